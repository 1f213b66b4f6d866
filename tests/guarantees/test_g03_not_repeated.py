"""G3: a call that its model makes because it could not know of an earlier one is not executed."""

import asyncio

import pytest
from livekit.agents import RunContext, ToolError, function_tool
from livekit.agents.llm import ChatContext

from safe_session import SafeOptions, ToolPolicy, tool_policy
from safe_session.testing import Answer, Call, ScriptedModel

from ._scenes import BOOK, Host, diligent, shown

TOLD = "Not run again: the same call with the same arguments was already made. "
DEFAULT = Call("book", {"people": 6, "name": "Miller"})


def both_book(first=BOOK, second=BOOK, *, delay=0.0):
    """A model whose first two inferences both make the call, whatever they are shown."""
    answers = [Answer("", [first]), Answer("", [second], delay=delay)]
    return ScriptedModel([*answers, *[Answer("It is done.")] * 4])


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("seconds", [0.2, 3], ids="{} s".format)
@pytest.mark.parametrize("delay", [0, 1], ids="after {}".format)
async def test_two_replies_are_queued_together(stage, seconds, delay):
    async with stage(both_book(delay=delay), Host(takes={"book": seconds})) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output == f"{TOLD}It gave: book 6 Miller is done"


@pytest.mark.fails_on_plain(">=1.6")
async def test_the_model_is_told_that_it_was_not_run_again(stage):
    async with stage(both_book(), Host()) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert shown(call.inferences[-1])["book"] == f"{TOLD}It gave: book 6 Miller is done"


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize(("first", "second"), [(BOOK, DEFAULT), (DEFAULT, BOOK)], ids=["omitted", "explicit"])
async def test_an_omitted_default_equals_an_explicit_one(stage, first, second):
    async with stage(both_book(first, second), Host()) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]


@pytest.mark.fails_on_plain(">=1.6")
async def test_what_was_cancelled_may_have_taken_effect(stage):
    def be_cancelled():
        raise asyncio.CancelledError

    async with stage(both_book(), Host(then={"book": be_cancelled})) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output.startswith(f"{TOLD}Cancelled before it ended.")


@pytest.mark.fails_on_plain(">=1.6")
async def test_what_another_agent_did_in_a_turn_that_was_interrupted(stage):
    first, second = Host(id="first"), Host(id="second")
    async with stage(diligent(BOOK), first, forgets=True) as call:
        await call.says("Six!")
        await call.at(1)
        call.session.interrupt()
        call.session.update_agent(second)
        await call.at(2)
        await call.says("Six?")
        await call.at(30)
    assert (first.did, second.did) == (["book 6 Miller"], [])
    assert shown(call.inferences[-1])["book"] == f"{TOLD}It gave: book 6 Miller is done"


# -- what must still run


async def test_two_identical_calls_in_one_response_both_run_on_both(stage):
    model = ScriptedModel([Answer("", [BOOK, BOOK]), Answer("Both are done.")])
    async with stage(model, Host()) as call:
        await call.says("Six, twice!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"] * 2


async def test_a_call_is_repeated_knowingly_on_both(stage):
    model = ScriptedModel(
        [Answer("", [BOOK]), Answer("Done."), Answer("", [BOOK]), Answer("", [BOOK]), Answer("Done.")]
    )
    async with stage(model, Host()) as call:
        await call.says("Six!")
        await call.at(5)
        await call.says("Again!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"] * 3


async def test_other_arguments_run_on_both(stage):
    async with stage(both_book(BOOK, Call("book", {"people": 7})), Host()) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Seven!")
        await call.at(30)
    assert sorted(call.agent.did) == ["book 6 Miller", "book 7 Miller"]


@pytest.mark.parametrize("error", [ToolError("The book is closed."), ValueError("broken")], ids=repr)
async def test_a_call_that_failed_may_be_repeated_unknowingly_on_both(stage, error):
    host = Host()

    def fail_once():
        if len(host.runs) == 1:
            raise error

    host.then["book"] = fail_once
    async with stage(both_book(), host) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert host.did == ["book 6 Miller"] * 2
    assert call.result_of("book").output == "book 6 Miller is done"


class Forgetful(Host):
    """Shows each turn little of what was before."""

    def __init__(self, trim):
        super().__init__()
        self.trim = trim

    async def on_user_turn_completed(self, turn_ctx, new_message):
        self.trim(turn_ctx)


TRIMMED = {
    "to nothing": lambda context: context.items.clear(),
    "to the last message": lambda context: context.truncate(max_items=1),
    "to the instructions": lambda context: context.items.__delitem__(slice(1, None)),
}


@pytest.mark.parametrize("trim", TRIMMED.values(), ids=TRIMMED)
async def test_a_call_trimmed_in_the_turn_hook_is_repeated_on_both(voice_stage, trim):
    async with voice_stage(diligent(BOOK), Forgetful(trim), forgets=True) as call:
        await call.says("Six!")
        await call.at(5)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"] * 2
    assert shown(call.inferences[2]) == {}


async def test_a_call_trimmed_from_the_stored_context_is_repeated_on_both(stage):
    async with stage(diligent(BOOK), Host(), forgets=True) as call:
        await call.says("Six!")
        await call.at(5)
        await call.agent.update_chat_ctx(ChatContext.empty())
        await call.says("Six?")
        await call.at(30)
        assert call.agent.did == ["book 6 Miller"] * 2


@pytest.mark.pipeline_only("a reply of a realtime model is not given a context")
async def test_a_call_that_is_not_in_the_given_context_is_repeated_on_both(stage):
    async with stage(diligent(BOOK), Host(), forgets=True) as call:
        await call.says("Six!")
        await call.at(5)
        short = ChatContext.empty()
        short.add_message(role="user", content="I want a table.")
        call.session.generate_reply(user_input="Six?", chat_ctx=short)
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"] * 2


async def test_the_next_agent_looks_again_minutes_later_on_both(stage):
    first, second = Host(id="first"), Host(id="second")
    async with stage(diligent(BOOK), first, forgets=True) as call:
        await call.says("Six!")
        await call.at(60)
        call.session.update_agent(second)
        await call.at(300)
        await call.says("Six!")
        await call.at(330)
    assert (first.did, second.did) == (["book 6 Miller"], ["book 6 Miller"])


# -- policies


class Cashier(Host):
    """`once` stands above the decorator of livekit's, and below it."""

    @tool_policy(repeat="once")
    @function_tool
    async def pay(self, ctx: RunContext, euros: int = 20):
        return await self.work("pay", f"pay {euros}")

    @function_tool
    @tool_policy(repeat="once")
    async def refund(self, euros: int = 20):
        return await self.work("refund", f"refund {euros}")

    @tool_policy(repeat="freely")
    @function_tool
    async def look(self, day: str):
        return await self.work("look", f"look {day}")


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("tool", ["pay", "refund"], ids=["above", "below"])
async def test_once_means_once_even_knowingly(stage, tool):
    answers = [Answer("", [Call(tool, arguments)]) for arguments in ({}, {"euros": 20})]
    model = ScriptedModel([*answers, Answer("Done."), Answer("", [Call(tool)]), Answer("Done.")])
    async with stage(model, Cashier()) as call:
        await call.says("Pay!")
        await call.at(5)
        await call.says("Again!")
        await call.at(30)
    assert call.agent.did == [f"{tool} 20"]
    assert call.result_of(tool).output == f"{TOLD}It gave: {tool} 20 is done"


@pytest.mark.fails_on_plain(">=1.6")
async def test_once_in_the_options(stage):
    safe = SafeOptions(policies={"book": ToolPolicy(repeat="once")})
    model = ScriptedModel([Answer("", [BOOK]), Answer("", [BOOK]), Answer("Done.")])
    async with stage(model, Host(), safe=safe) as call:
        await call.says("Six!")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]


async def test_once_with_other_arguments_runs_on_both(stage):
    calls = [Call("pay", {"euros": euros}) for euros in (1, 2)]
    model = ScriptedModel([*(Answer("", [call]) for call in calls), Answer("Done.")])
    async with stage(model, Cashier()) as call:
        await call.says("Pay!")
        await call.at(30)
    assert call.agent.did == ["pay 1", "pay 2"]


@pytest.mark.fails_on_plain(">=1.6")
async def test_once_does_not_count_a_call_that_failed(stage):
    host = Cashier()
    host.then["pay"] = lambda: fail() if len(host.runs) == 1 else None
    model = ScriptedModel([*[Answer("", [Call("pay")])] * 3, Answer("Done.")])
    async with stage(model, host) as call:
        await call.says("Pay!")
        await call.at(30)
    assert host.did == ["pay 20"] * 2


def fail():
    raise ToolError("The card reader is off.")


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("fails", [False, True], ids=["done", "fails at first"])
async def test_once_for_calls_at_the_same_time(stage, fails):
    """Three in one response: one runs, the others wait for it; if it fails, the next one runs."""
    host = Cashier()
    host.then["pay"] = lambda: fail() if fails and len(host.runs) == 1 else None
    model = ScriptedModel([Answer("", [Call("pay")] * 3), Answer("Done.")])
    async with stage(model, host) as call:
        await call.says("Pay!")
        await call.at(30)
    assert host.did == ["pay 20"] * (2 if fails else 1)


@pytest.mark.fails_on_plain(">=1.6")
async def test_once_across_agents(stage):
    first, second = Cashier(id="first"), Cashier(id="second")
    async with stage(diligent(Call("pay", {"euros": 5})), first, forgets=True) as call:
        await call.says("Pay!")
        await call.at(60)
        call.session.update_agent(second)
        await call.at(300)
        await call.says("Pay!")
        await call.at(330)
    assert (first.did, second.did) == (["pay 5"], [])


@pytest.mark.parametrize("in_options", [False, True], ids=["decorated", "in options"])
async def test_freely_is_never_held_back_on_both(stage, in_options):
    tool = Call("book", {"people": 6}) if in_options else Call("look", {"day": "Friday"})
    safe = SafeOptions(policies={"book": ToolPolicy(repeat="freely")})
    async with stage(both_book(tool, tool), Cashier(), safe=safe) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.at(30)
    assert len(call.agent.did) == 2


@pytest.mark.fails_on_plain(">=1.6")
async def test_the_options_win_over_the_decorator(stage):
    safe = SafeOptions(policies={"look": ToolPolicy(repeat="once")})
    look = Call("look", {"day": "Friday"})
    async with stage(both_book(look, look), Cashier(), safe=safe) as call:
        await call.says("Friday!")
        await call.at(30)
    assert call.agent.did == ["look Friday"]
