import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from livekit.agents import Agent, AgentSession, StopResponse, llm, utils

from safe_session.testing import Answer, Call, Line, ScriptedModel, check_guarantees

if TYPE_CHECKING:
    from .conftest import PhoneMaker

Elapsed = Callable[[], float]


async def test_a_call_from_first_word_to_last(call: "PhoneMaker", elapsed: Elapsed) -> None:
    phone = await call([Answer("Let me see.", [Call("book", {"people": 6})]), Answer("Order one is booked.")])
    elapsed()
    await phone.line.caller.say("A table for six")
    assert elapsed() == 2.0
    await phone.line.quiet()

    first, second = phone.line.speaker.utterances
    assert (first.text, first.heard, first.interrupted) == ("Let me see.", "Let me see.", False)
    assert second.text == "Order one is booked."
    assert first.ended_at is not None
    assert second.ended_at is not None
    assert round(first.ended_at - first.started_at, 3) == 1.5
    assert round(second.ended_at - second.started_at, 3) == 2.0
    assert elapsed() == 2.0 + 1.5 + 2.0 + 0.1
    assert phone.line.speaker.heard == ["Let me see.", "Order one is booked."]
    assert phone.messages == [
        ("user", "A table for six", False),
        ("assistant", "Let me see.", False),
        ("assistant", "Order one is booked.", False),
    ]
    assert phone.host.booked == [6]
    assert check_guarantees(phone.session, phone.host) == []
    phone.model.assert_complete()


@pytest.mark.parametrize("pace", [0.0, 0.3, 0.7])
async def test_talking_over_the_agent_keeps_just_what_was_heard(call: "PhoneMaker", pace: float) -> None:
    phone = await call([Answer("One two three four five six seven", pace=pace), Answer("Sorry.")])
    await phone.line.caller.say("Hello")
    utterance = await phone.line.speaker.wait_started()
    await asyncio.sleep(1.6)  # two words at pace 0.7, three else
    heard = "One two three" if pace < 0.5 else "One two"
    assert utterance.heard == heard
    assert utterance.ended_at is None
    await phone.line.caller.say("Wait, stop")  # its first word takes half a second more
    await phone.line.quiet()

    heard = "One two three four" if pace < 0.5 else "One two three"
    assert (utterance.heard, utterance.interrupted) == (heard, True)
    assert phone.messages[1:] == [
        ("assistant", heard, True),
        ("user", "Wait, stop", False),
        ("assistant", "Sorry.", False),
    ]
    assert phone.line.speaker.heard == [heard, "Sorry."]
    phone.model.assert_complete()


async def test_nothing_heard_leaves_no_message(call: "PhoneMaker") -> None:
    phone = await call([Answer("Unheard words"), Answer("Yes?")])
    await phone.line.caller.say("Hello")
    await phone.line.speaker.wait_started()
    phone.session.interrupt()
    await phone.line.quiet()
    assert phone.line.speaker.heard == []
    assert phone.line.speaker.utterances[0].interrupted
    assert [role for role, _, _ in phone.messages] == ["user"]


async def test_interrupting_while_the_model_thinks(call: "PhoneMaker") -> None:
    phone = await call([Answer("Too slow.", delay=5.0), Answer("Here.")])
    await phone.line.caller.say("Hello")
    await asyncio.sleep(1)
    await phone.line.caller.say("Anybody there?")
    await phone.line.quiet()
    assert phone.line.speaker.heard == ["Here."]
    assert phone.model.inferences[1].user_said == ["Hello", "Anybody there?"]
    phone.model.assert_complete()


async def test_say_and_generate_reply_play_one_after_the_other(call: "PhoneMaker", hello: Answer) -> None:
    phone = await call([hello])
    phone.session.say("Welcome to the house.")
    phone.session.generate_reply()
    await phone.line.quiet()
    assert phone.line.speaker.heard == ["Welcome to the house.", "Good evening."]


async def test_waiting_for_utterances(call: "PhoneMaker", elapsed: Elapsed) -> None:
    phone = await call([Answer("One two"), Answer("Three four")])
    speaker = phone.line.speaker
    elapsed()
    phone.session.generate_reply()
    phone.session.generate_reply()
    assert (await speaker.wait_started(2)).text
    assert elapsed() == 1.0
    assert (await speaker.wait_started(1)).text == "One two"
    assert (await speaker.wait_finished(1)).text == "One two"
    assert elapsed() == 1.0
    assert (await speaker.wait_finished()).text == "Three four"
    assert elapsed() == 2.0
    waiting = asyncio.create_task(speaker.wait_started())
    await phone.session.aclose()
    with pytest.raises(RuntimeError, match="the session has closed"):
        await waiting


async def test_preemptive_generation(call: "PhoneMaker", elapsed: Elapsed) -> None:
    phone = await call([Answer("Good evening.", delay=1.0)], preemptive=True)
    elapsed()
    await phone.line.caller.say("Hello there", commit_delay=0.8)
    utterance = await phone.line.speaker.wait_started(1)
    await phone.line.quiet()
    assert elapsed() == 2.0 + 1.0 + 0.1
    assert utterance.heard == "Good evening."
    # The model was asked when the words were said, 0.8 s before they were final.
    assert round(utterance.started_at - phone.model.inferences[0].at, 3) == 1.0
    assert phone.messages == [("user", "Hello there", False), ("assistant", "Good evening.", False)]
    phone.model.assert_complete()


async def test_a_preemptive_generation_that_is_thrown_away(call: "PhoneMaker") -> None:
    phone = await call([Answer("Wrong."), Answer("Right.")], preemptive=True)

    async def change(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        new_message.content = ["Something else"]
        turn_ctx.add_message(role="system", content="Now you know more.")

    phone.host.on_user_turn_completed = change  # type: ignore[method-assign]
    await phone.line.caller.say("Hello there", commit_delay=0.5)
    await phone.line.quiet()
    assert phone.line.speaker.heard == ["Right."]
    phone.model.assert_complete()


async def test_a_turn_that_is_not_answered(call: "PhoneMaker") -> None:
    phone = await call([])

    async def stop(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        raise StopResponse

    phone.host.on_user_turn_completed = stop  # type: ignore[method-assign]
    await phone.line.caller.say("Hm")
    await phone.line.quiet()
    assert phone.line.speaker.utterances == []
    phone.model.assert_complete()


async def test_quiet_waits_for_a_tool(call: "PhoneMaker", elapsed: Elapsed) -> None:
    phone = await call([Answer(calls=[Call("book", {"people": 2})]), Answer("Booked.")], takes=30.0)
    elapsed()
    await phone.line.caller.say("Two")
    await phone.line.quiet()
    assert elapsed() == 0.5 + 30.0 + 0.5 + 0.1
    assert phone.line.speaker.heard == ["Booked."]


async def test_the_script_runs_out_in_a_call(call: "PhoneMaker", elapsed: Elapsed) -> None:
    phone = await call([])
    elapsed()
    await phone.line.caller.say("Hello")
    await phone.line.quiet()
    assert elapsed() == 0.6
    assert [str(error) for error in phone.errors] == [
        "inference 1 is beyond the script; the user's messages: ['Hello']"
    ]
    with pytest.raises(AssertionError, match="beyond the script"):
        phone.model.assert_complete()


async def test_the_model_breaks_in_mid_stream(call: "PhoneMaker") -> None:
    phone = await call([Answer("One moment", error=ValueError("broken")), Answer("Again.")])
    await phone.line.caller.say("Six")
    await phone.line.quiet()
    assert [str(error) for error in phone.errors] == ["broken"]
    await phone.line.caller.say("Hello?")
    await phone.line.quiet()
    assert phone.line.speaker.heard[-1] == "Again."
    phone.model.assert_complete()


async def test_a_handoff_keeps_the_line(call: "PhoneMaker") -> None:
    phone = await call([Answer("From the second.")])
    second = Agent(instructions="The second.", id="second")
    phone.session.update_agent(second)
    await phone.line.caller.say("Hello")
    await phone.line.quiet()
    assert phone.session.current_agent is second
    assert phone.line.speaker.heard == ["From the second."]


async def test_what_is_said_before_the_start_is_heard_after_it() -> None:
    line = Line()
    model = ScriptedModel([Answer("Good evening.")])
    session: AgentSession[Any] = AgentSession(llm=model, **line.options())
    line.connect(session)
    saying = asyncio.create_task(line.caller.say("Hello"))
    await asyncio.sleep(1)
    await session.start(Agent(instructions=""))
    await saying
    await line.quiet()
    assert line.speaker.heard == ["Good evening."]
    await session.aclose()


async def test_two_calls_at_once(call: "PhoneMaker") -> None:
    one, two = await call([Answer("One.")]), await call([Answer("Two and more.")])
    await asyncio.gather(one.line.caller.say("Hello"), two.line.caller.say("Hello from me"))
    await asyncio.gather(one.line.quiet(), two.line.quiet())
    assert (one.line.speaker.heard, two.line.speaker.heard) == (["One."], ["Two and more."])


async def test_closing_while_the_agent_talks(call: "PhoneMaker") -> None:
    phone = await call([Answer("One two three four")])
    await phone.line.caller.say("Hello")
    await phone.line.speaker.wait_started()
    await asyncio.sleep(0.7)
    saying = asyncio.create_task(phone.line.caller.say("I am still talking"))
    await asyncio.sleep(0.1)
    await phone.session.aclose()
    await phone.line.quiet()
    assert not phone.line.speaker.playing
    await saying


async def test_a_line_is_for_one_session() -> None:
    line = Line()
    model = ScriptedModel([])
    session: AgentSession[Any] = AgentSession(llm=model, **line.options())
    line.connect(session)
    await session.aclose()
    with pytest.raises(RuntimeError, match="make a new Line for each session"):
        line.connect(AgentSession(llm=model, **line.options()))


async def test_misuse_is_told_clearly() -> None:
    with pytest.raises(ValueError, match="words_per_second"):
        Line(0.0)
    line = Line()
    with pytest.raises(RuntimeError, match="connect"):
        await line.quiet()
    with pytest.raises(RuntimeError, match="connect"):
        await line.caller.say("Hello")
    with pytest.raises(ValueError, match="at least one word"):
        await line.caller.say(" ")


async def test_the_caller_says_one_thing_at_a_time(call: "PhoneMaker", hello: Answer) -> None:
    phone = await call([hello])
    saying = asyncio.create_task(phone.line.caller.say("Hello there"))
    await asyncio.sleep(0.1)
    with pytest.raises(RuntimeError, match="speaking already"):
        await phone.line.caller.say("And")
    await saying


async def test_what_follows_waits_and_is_dropped_when_cut_off(call: "PhoneMaker") -> None:
    speaker = (await call([])).line.speaker

    async def play(seconds: float) -> None:
        await speaker.capture_frame(utils.audio.silence_frame(seconds, 8000))

    await play(1.0)
    speaker.flush()
    await asyncio.sleep(0.4)
    await play(2.0)  # while the first one plays
    speaker.flush()
    await play(1.0)
    assert [round(u.position, 3) for u in speaker.utterances] == [0.4]
    await asyncio.sleep(1.0)
    assert [(round(u.position, 3), u.ended_at is None) for u in speaker.utterances] == [
        (1.0, False),
        (0.4, True),
    ]
    speaker.clear_buffer()
    await play(1.0)  # still belongs to the third, which was cut off
    speaker.flush()
    assert [u.interrupted for u in speaker.utterances] == [False, True]
    assert not speaker.playing
    assert (await speaker.wait_for_playout()).playback_position == 0.0
    await play(1.0)
    speaker.flush()
    assert not (await speaker.wait_finished(3)).interrupted
