"""The recorded calls, played on both session classes."""

from importlib.metadata import version

import pytest
from livekit.agents import AgentSession

from examples.restaurant.replay.record import DECISIONS
from safe_session import SafeAgentSession, SafeEvent

RELEASE = tuple(int(part) for part in version("livekit-agents").split(".")[:3])


async def test_3702_is_ordered_twice_on_a_plain_session(recorded):
    happened = await recorded("report-3702", AgentSession)
    assert happened.orders == ["047", "048"]
    assert happened.unmet == [
        "2 orders in the book instead of 1",
        "the caller was never told '047'",
    ]
    assert [thought.again[0] for thought in happened.thoughts if thought.again] == ["create_reservation"]


async def test_3702_is_ordered_once_on_a_safe_session(recorded):
    happened = await recorded("report-3702", SafeAgentSession)
    assert happened.orders == ["047"]
    assert not happened.wrong
    assert not any(thought.again for thought in happened.thoughts)
    assert "047" in happened.heard


async def test_3702_plays_as_its_file_says(recorded):
    """The caller cuts in while the agent speaks, the order is made, and the text message is not yet sent."""
    happened = await recorded("report-3702", SafeAgentSession)
    (cut_off,) = [said for said in happened.said if said.cut_off]
    assert cut_off.who == "agent"
    assert 0 < len(cut_off.heard) < len(cut_off.text)
    cut_in = next(said for said in happened.said if said.text == "是六位，对吧？")
    ended = {work.tool: work.ended for work in happened.work}
    assert ended["create_reservation"] < cut_in.began < cut_off.ended < ended["send_confirmation"]


async def test_7632_hands_over_on_both(recorded, session_class):
    happened = await recorded("report-7632", session_class)
    assert [note.text for note in happened.handoffs] == ["manager"]
    assert "I am the manager" in happened.heard
    assert {"check_allergens", "transfer_to_manager"} <= happened.kept


async def test_7632_on_a_plain_session(recorded):
    happened = await recorded("report-7632", AgentSession)
    assert "peanuts" not in happened.heard
    errors = [note.text for note in happened.errors]
    if RELEASE < (1, 8, 1):
        assert any("no activity context found" in error for error in errors)
    else:
        assert errors == []


async def test_7632_on_a_safe_session(recorded):
    happened = await recorded("report-7632", SafeAgentSession)
    assert not happened.wrong
    assert "The kitchen says that the kung pao chicken contains peanuts" in happened.heard


async def test_what_is_cancelled_is_cancelled_again_on_a_plain_session(recorded):
    happened = await recorded("cancelled", AgentSession)
    again = ["cancel_reservation ran 2 times instead of 1"]
    if RELEASE < (1, 6, 5):  # it does not show what runs
        again.append("send_confirmation ran 2 times instead of 1")
    assert happened.unmet == [*again, "the caller was never told '订单047已经取消'"]
    assert "没有找到王的预订" in happened.heard


CALLERS = {
    "zh": (
        ("你好，我姓王，周五晚上七点，六位，有桌子吗？", "周五晚上七点有六位的桌子，要为您订下吗？"),
        ("好的，就这样订吧。", "已经为您订好了：订单047，周五晚上七点，六位。"),
    ),
    "en": (
        (
            "Hello, my name is Wang. Have you a table for six people on Friday at seven?",
            "There is a table for six on Friday at 7 pm. Shall I book it?",
        ),
        ("Yes, book it, please.", "It is booked: order 047, six people on Friday at 7 pm."),
    ),
}


@pytest.mark.parametrize("language", CALLERS)
async def test_an_undisturbed_call_on_both(written, session_class, language):
    happened = await written(
        "timeline:\n"
        + "".join(f'  - {{when: all is quiet, says: "{words}"}}\n' for words, _ in CALLERS[language])
        + 'expect: {orders: 1, told: ["047"], kept: [find_table, create_reservation], errors: 0}',
        session_class,
    )
    assert not happened.wrong
    assert all(answer in happened.heard for _, answer in CALLERS[language])
    assert [work.tool for work in happened.work] == ["find_table", "create_reservation", "send_confirmation"]


async def test_typed_words_interrupt_too(written):
    happened = await written(
        """
timeline:
  - {when: agent speaks, after: 0.5, types: A table for two on Sunday at eight}
  - {when: find_table ends, hangs up: true}
""",
    )
    greeting, typed = happened.said[:2]
    assert (greeting.cut_off, typed.typed) == (True, True)
    assert [work.tool for work in happened.work] == ["find_table"]


async def test_a_step_at_a_time_of_its_own(written):
    happened = await written("timeline: [{at: 5.5, says: hello}, {at: 9, hangs up: true}]")
    (said,) = [said for said in happened.said if said.who == "caller"]
    assert said.began == pytest.approx(5.5)
    assert happened.seconds == pytest.approx(9, abs=0.1)


async def test_a_moment_that_never_comes_ends_the_call_and_is_told(written):
    happened = await written("timeline: [{when: cancel_reservation ends, says: hello}]")
    assert happened.wrong == ["the caller waited in vain for 'cancel_reservation ends'"]


async def test_what_is_expected_and_does_not_come_is_told(written):
    happened = await written(
        "timeline: [{when: agent stops, says: hello}]\n"
        "expect: {orders: 1, runs: {find_table: 1}, told: [foo], kept: [find_table], known: [find_table], "
        "silence: 0.1}",
    )
    assert happened.wrong == [
        "0 orders in the book instead of 1",
        "find_table ran 0 times instead of 1",
        "the caller was never told 'foo'",
        "the history has no result of find_table",
        "the last agent does not know find_table",
        "0.20 s of silence instead of 0.1 s at most",
    ]


async def test_a_tool_that_fails_is_told(written):
    happened = await written(
        """
timeline:
  - {when: all is quiet, says: Please cancel order 123.}
expect: {orders: 0, told: ["there is no reservation '123'"], kept: [cancel_reservation], errors: 0}
""",
    )
    assert not happened.wrong
    assert [work.outcome for work in happened.work] == ["failed"]


def test_every_decision_of_a_safe_session_is_taken_down():
    assert {event.model_fields["type"].default for event in SafeEvent.__subclasses__()} == set(DECISIONS)
