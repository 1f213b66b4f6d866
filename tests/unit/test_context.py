"""What a model is shown, and how a call is put into a context: pure functions."""

import math

import pytest
from livekit.agents import Agent
from livekit.agents.llm import ChatContext, ChatMessage, FunctionCall, FunctionCallOutput

from safe_session import CallRecord
from safe_session.context import (
    STILL_RUNNING,
    CallContext,
    commit,
    inherit,
    marker_of,
    newest_moment,
    show,
    stand_in_call,
    stand_in_output,
)

HOST = Agent(instructions="You are the host.")
OTHER = Agent(instructions="You are another.")


def message(role="user", at=1.0, text="Six!"):
    return ChatMessage(role=role, content=[text], created_at=at)


def call(at=2.0, call_id="c1"):
    return FunctionCall(call_id=call_id, name="book", arguments="{}", created_at=at)


def output(at=3.0, call_id="c1", text="047"):
    return FunctionCallOutput(call_id=call_id, name="book", output=text, is_error=False, created_at=at)


def record(*items, state="done", owner=HOST):
    made = next((item for item in items if item.type == "function_call"), call())
    return CallRecord(made, owner, "s1", None, 1, state=state, items=list(items), audience={owner})


def kinds(context):
    return [item.type for item in context.items]


PAIR = ["function_call", "function_call_output"]


def test_a_call_is_held_once_however_often_it_is_inserted():
    context = CallContext([message()])
    made, ended = call(), output()
    for _ in range(2):
        context.insert([made, ended])
        context.insert(made)
        commit([made, ended], [context])
    assert kinds(context) == ["message", *PAIR]


def test_messages_are_inserted_as_ever():
    context, said = CallContext([]), message()
    context.insert(said)
    context.insert(said)
    assert context.items == [said, said]


def test_items_stand_in_the_order_of_their_creation_and_behind_the_instructions():
    context = CallContext([message("system", at=9), message(at=1), message("assistant", at=5)])
    context.insert([output(at=3), call(at=2)])
    assert kinds(context) == ["message", "message", *PAIR, "message"]
    early = CallContext([message("system", at=9)])
    early.insert(call(at=2))
    assert kinds(early) == ["message", "function_call"]


def test_a_call_stands_there_once_however_many_went_on_beside_it():
    """What was reported of those is older than the call, and stands behind it."""
    made, ended = call(at=9), output(at=10)
    beside = [output(at=3, call_id=f"c{number}") for number in range(2, 99)]
    context = CallContext([message(), made, *beside])
    commit([made, ended], [context])
    assert [item for item in context.items if item.id == made.id] == [made]


def test_nothing_of_a_call_is_committed_before_there_is_something():
    context = CallContext([message()])
    commit([], [context])
    assert kinds(context) == ["message"]


def test_livekits_own_item_takes_the_place_of_a_stand_in():
    made, ended = call(), output()
    context = CallContext([message(), stand_in_call(ended), stand_in_output(made, "", is_error=False)])
    context.insert([made, ended])
    assert context.items[1:] == [made, ended]


def test_an_ending_that_is_lacking_is_shown():
    context = ChatContext([message()])
    ended = record(call(), output())
    seen, shown, lacked = show(context, HOST, [ended], marked=True)
    assert kinds(seen) == ["message", *PAIR]
    assert (shown, lacked) == ([ended], [ended])
    assert kinds(context) == ["message"], "the context itself is not changed"


def test_an_ending_that_is_there_is_not_shown_twice():
    made, ended = call(), output()
    known = record(made, ended)
    seen, shown, lacked = show(ChatContext([message(), made, ended]), HOST, [known], marked=True)
    assert kinds(seen) == ["message", *PAIR]
    assert (shown, lacked) == ([known], [])


def test_an_ending_whose_call_was_a_stand_in_is_not_shown_twice():
    """livekit has put its own call in the place of ours since; the record still has the stand-in."""
    made, ended = call(), output()
    known = record(stand_in_call(ended), ended)
    seen, _, lacked = show(ChatContext([message(), made, ended]), HOST, [known], marked=True)
    assert kinds(seen) == ["message", *PAIR]
    assert lacked == []


def test_a_running_call_is_shown_as_running():
    running = record(state="running")
    seen, shown, lacked = show(ChatContext([message()]), HOST, [running], marked=True)
    assert kinds(seen) == ["message", *PAIR]
    assert seen.items[-1].output == STILL_RUNNING
    assert (shown, lacked) == ([running], [running])


def test_a_marker_gives_way_to_the_ending():
    ended = record(call(), output())
    seen, _, _ = show(ChatContext([message(), *marker_of(ended)]), HOST, [ended], marked=True)
    assert [item.output for item in seen.items if item.type == "function_call_output"] == ["047"]


def test_the_ending_of_another_agents_call_is_not_shown():
    ended = record(call(), output(), owner=OTHER)
    seen, shown, lacked = show(ChatContext([message()]), HOST, [ended], marked=True)
    assert (kinds(seen), shown, lacked) == (["message"], [], [])


def test_another_agents_running_call_is_shown():
    running = record(state="running", owner=OTHER)
    seen, shown, _ = show(ChatContext([message()]), HOST, [running], marked=True)
    assert (kinds(seen), shown) == (["message", *PAIR], [running])


@pytest.mark.parametrize(
    ("items", "moment"),
    [
        ([], math.inf),
        ([message("system", at=1)], math.inf),
        ([message("system", at=9), message(at=2)], 2),
        ([message(at=2), call(at=3), output(at=4)], 4),
    ],
    ids=["empty", "instructions", "a message", "a call"],
)
def test_how_old_a_context_is(items, moment):
    assert newest_moment(ChatContext(items)) == moment


def test_an_agent_built_from_a_context_that_begins_with_a_call_keeps_it():
    made, ended, said = call(), output(), message(at=4)
    context = ChatContext([said])
    assert inherit(context, ChatContext([made, ended, said]), ChatContext([said]), kept={"book"})
    assert kinds(context) == [*PAIR, "message"]


def test_an_agent_built_from_a_trimmed_context_does_not_get_what_was_trimmed():
    made, ended, first, said = call(), output(), message(at=1), message(at=4)
    context = ChatContext([said])
    known = ChatContext([first, made, ended, said])
    assert inherit(context, known, known, kept={"book"})
    assert kinds(context) == ["message"]


def test_an_agent_built_from_a_context_that_ends_with_calls_keeps_them():
    made, ended, said = call(), output(), message(at=1)
    others = [call(at=5, call_id="c2"), output(at=6, call_id="c2")]
    context = CallContext([said, *others])
    known = ChatContext([said, made, ended, *others])
    assert inherit(context, ChatContext([]), known, kept={"book"})
    assert kinds(context) == ["message", *PAIR, *PAIR]


def test_an_agent_built_anew_inherits_nothing():
    context = ChatContext([message("system")])
    known = ChatContext([message(at=1), call(), output()])
    assert not inherit(context, known, known, kept={"book"})
    assert kinds(context) == ["message"]
