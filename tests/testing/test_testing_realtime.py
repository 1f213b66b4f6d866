import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, APIError, RunContext, function_tool, llm

from safe_session.testing import (
    Answer,
    Call,
    Line,
    RealtimeInference,
    ScriptedRealtimeModel,
    ScriptedRealtimeSession,
    check_guarantees,
)

SIX = Call("book", {"people": 6})


def now() -> float:
    return asyncio.get_running_loop().time()


def brief(context: llm.ChatContext) -> list[str]:
    """A context in short: who said what, what was called and what came of it."""
    lines = {
        "message": lambda i: f"{i.role}: {(i.text_content or '').strip()}",
        "function_call": lambda i: f"call {i.name}",
        "function_call_output": lambda i: f"output {i.output}",
    }
    return [lines[item.type](item) for item in context.items if item.type in lines]


def shown(inference: RealtimeInference) -> list[str]:
    """What an inference was shown of the conversation, in short."""
    return [line for line in brief(inference.shown) if not line.startswith("system: ")]


class Host(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="You take reservations.", id="host")
        self.booked: list[int] = []

    @function_tool
    async def book(self, people: int) -> str:
        """Book a table."""
        self.booked.append(people)
        return f"order {len(self.booked)}"


class Greeter(Agent):
    def __init__(self, name: str, context: llm.ChatContext | None = None, tools: Any = ()) -> None:
        instructions = f"You are {name}."
        super().__init__(instructions=instructions, id=name, chat_ctx=context, tools=list(tools))

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Greet.")


@dataclass
class Talk:
    session: AgentSession[Any]
    line: Line
    model: ScriptedRealtimeModel
    agent: Agent
    errors: list[Exception] = field(default_factory=list)

    @property
    def server(self) -> ScriptedRealtimeSession:
        return self.model.server


Talker = Callable[..., Awaitable[Talk]]


@pytest.fixture
async def talk() -> AsyncIterator[Talker]:
    """Starts a session with a realtime model on a line; all of them are closed at the end of the test."""
    talks: list[Talk] = []

    async def make(model: ScriptedRealtimeModel, agent: Agent | None = None, *, voice: bool = True) -> Talk:
        line = Line(words_per_second=model.words_per_second)
        session: AgentSession[Any] = AgentSession(llm=model, **{**line.options(), "stt": None})
        made = Talk(session, line, model, agent or Host())
        session.on("error", lambda event: made.errors.append(event.error.error))
        line.connect(session)
        if not voice:
            session.output.audio = None
        await session.start(made.agent)
        talks.append(made)
        return made

    yield make
    for made in talks:
        await made.session.aclose()


async def generated(event: llm.GenerationCreatedEvent) -> list[tuple[float, str]]:
    """All that comes of a generation, with the time at which it came."""
    arrived: list[tuple[float, str]] = []

    async def functions() -> None:
        arrived.extend([(now(), f"{call.name}({call.arguments})") async for call in event.function_stream])

    async def messages() -> None:
        async for message in event.message_stream:
            arrived.extend([(now(), word) async for word in message.text_stream])

    started = now()
    await asyncio.gather(messages(), functions())
    return [(round(at - started, 3), what) for at, what in sorted(arrived, key=lambda arrival: arrival[0])]


def connect(script: Any, **options: Any) -> ScriptedRealtimeSession:
    return ScriptedRealtimeModel(script, **options).session()


# -- in a session


@pytest.mark.parametrize("voice", [True, False])
@pytest.mark.parametrize("turn_detection", [True, False])
async def test_a_call_goes_round(talk: Talker, voice: bool, turn_detection: bool) -> None:
    script = [Answer("Let me see.", [SIX]), Answer("Order one is booked.")]
    t = await talk(ScriptedRealtimeModel(script, turn_detection=turn_detection), voice=voice)
    await t.server.hear("A table for six")
    if not turn_detection:
        assert brief(t.server.server_context) == []
        await t.session.commit_user_turn()
    # Up to 1.8.0 a session without audio takes the agent for speaking for ever: the line is never quiet.
    await (t.line.quiet() if voice else asyncio.sleep(1))

    conversation = [
        "user: A table for six",
        "assistant: Let me see.",
        "call book",
        "output order 1",
        "assistant: Order one is booked.",
    ]
    first, second = t.model.inferences
    assert shown(first) == conversation[:1]
    assert shown(second) == conversation[:4]
    assert (first.by_server, second.by_server) == (turn_detection, False)
    assert (first.tools, second.tool_choice) == (("book",), "auto")
    assert first.modalities == ("text", "audio")
    assert brief(t.server.server_context) == brief(t.server.chat_ctx) == conversation
    assert brief(t.agent.chat_ctx) == conversation
    assert t.server.unanswered_calls == []
    assert t.line.speaker.heard == (["Let me see.", "Order one is booked."] if voice else [])
    assert check_guarantees(t.session, t.agent) == []
    t.model.assert_complete()


async def test_it_runs_in_livekits_own_test_harness() -> None:
    model = ScriptedRealtimeModel(lambda shown: Answer("Yes.") if shown.items else Answer("Hello."))
    async with AgentSession[Any](llm=model) as session:
        await session.start(Agent(instructions=""))
        result = await session.run(user_input="Six?")
        result.expect.next_event().is_message(role="assistant")
    assert [i.user_said for i in model.inferences] == [["Six?"]]
    assert [push.number for push in model.pushes] == [1]


@pytest.mark.parametrize("pace", [0.0, 0.3])
async def test_talking_over_it_leaves_just_what_was_heard(talk: Talker, pace: float) -> None:
    script = [Answer("One two three four five six", pace=pace), Answer("Sorry.")]
    t = await talk(ScriptedRealtimeModel(script, turn_detection=True, words_per_second=2.0))
    await t.server.hear("Hello")
    utterance = await t.line.speaker.wait_started()
    await asyncio.sleep(1.1)
    await t.server.hear("Wait please")  # which the server notices half a second later
    await t.line.quiet()

    assert (utterance.heard, utterance.interrupted) == ("One two three", True)
    conversation = ["user: Hello", "assistant: One two three", "user: Wait please"]
    assert shown(t.model.inferences[1]) == conversation
    assert brief(t.agent.chat_ctx) == [*conversation, "assistant: Sorry."]
    t.model.assert_complete()


async def test_writing_can_be_interrupted_too(talk: Talker) -> None:
    answer = Answer("One two three four", [SIX], pace=1.0)
    t = await talk(ScriptedRealtimeModel([answer], audio_output=False), voice=False)
    speech = t.session.generate_reply(user_input="Count")
    await asyncio.sleep(2.5)
    assert t.server.generating
    await t.session.interrupt()
    await speech
    assert not t.server.generating
    assert brief(t.server.server_context) == ["user: Count", "assistant: One two three"]
    assert check_guarantees(t.session, t.agent) == []


async def test_without_audio_of_its_own_it_speaks_with_the_sessions_voice(talk: Talker) -> None:
    t = await talk(ScriptedRealtimeModel([Answer("Good evening.")], audio_output=False))
    await t.session.generate_reply()
    assert t.line.speaker.heard == ["Good evening."]
    assert t.model.inferences[0].modalities == ("text",)


async def test_a_push_that_fails_tells_the_server_nothing(talk: Talker) -> None:
    script = [Answer("", [Call("book", {"people": 6}, call_id="c1")]), Answer("Hm."), Answer("Booked.")]
    t = await talk(ScriptedRealtimeModel(script, fail_pushes={2}))
    await t.session.generate_reply(user_input="Six")
    assert [(push.number, push.failed) for push in t.model.pushes] == [(1, False), (2, True)]
    assert t.model.pushes[1].outputs["c1"].output == "order 1"
    assert shown(t.model.inferences[1]) == ["user: Six", "call book"]
    assert t.server.unanswered_calls == ["c1"]

    t.model.fail_next_pushes(2)
    for _ in range(2):
        with pytest.raises(llm.RealtimeError, match=r"push [34] failed"):
            await t.agent.update_chat_ctx(t.agent.chat_ctx.copy())
    await t.agent.update_chat_ctx(t.agent.chat_ctx.copy())
    assert t.server.unanswered_calls == []
    await t.session.generate_reply()
    assert list(t.model.inferences[2].outputs) == ["c1"]
    t.model.assert_complete()


async def test_the_server_starts_a_generation_by_itself(talk: Talker) -> None:
    t = await talk(ScriptedRealtimeModel([Answer("From the script.")], turn_detection=True))
    inference = t.server.start_generation(Answer("By the way.", [SIX]))
    assert (inference.by_server, inference.instructions, inference.user_said) == (True, None, [])
    with pytest.raises(RuntimeError, match="one at a time"):
        t.server.start_generation()
    await t.line.quiet()
    assert t.line.speaker.heard == ["By the way.", "From the script."]
    assert t.agent.booked == [6]  # type: ignore[attr-defined]
    assert len(t.model.inferences) == 2
    t.model.assert_complete()


async def test_it_can_reply_to_outputs_by_itself(talk: Talker) -> None:
    script = [Answer("", [SIX, Call("book", {"people": 2})]), Answer("Both are booked.")]
    t = await talk(ScriptedRealtimeModel(script, auto_tool_reply_generation=True))
    await t.session.generate_reply(user_input="Six, and two")
    await t.line.quiet()
    assert [i.by_server for i in t.model.inferences] == [False, True]
    assert len(t.model.inferences[1].outputs) == 2
    assert t.line.speaker.heard == ["Both are booked."]
    t.model.assert_complete()


@pytest.mark.parametrize("reuse", [True, False])
async def test_a_handoff_keeps_the_connection_or_opens_another(talk: Talker, reuse: bool) -> None:
    script = [Answer("I am A."), Answer("I am B.")]
    t = await talk(ScriptedRealtimeModel(script, mutable_instructions=reuse), Greeter("A"))
    await t.line.quiet()
    t.session.update_agent(Greeter("B", t.agent.chat_ctx))
    await t.line.quiet()

    assert len(t.model.sessions) == (1 if reuse else 2)
    assert t.model.sessions[0].closed is not reuse
    assert t.server is t.model.sessions[-1]
    assert [i.agent_instructions for i in t.model.inferences] == ["You are A.", "You are B."]
    assert shown(t.model.inferences[1]) == ["assistant: I am A."]
    assert t.line.speaker.heard == ["I am A.", "I am B."]
    t.model.assert_complete()


async def test_an_agent_without_the_conversation_takes_it_from_the_server(talk: Talker) -> None:
    t = await talk(ScriptedRealtimeModel([Answer("I am A."), Answer("I am B.")]), Greeter("A"))
    await t.line.quiet()
    t.session.update_agent(Greeter("B"))
    await t.line.quiet()
    assert [shown(i) for i in t.model.inferences] == [[], []]
    assert len(t.model.pushes[0].removes) == 1


@pytest.mark.parametrize("keep", [True, False])
async def test_a_reconnection_cuts_off_and_may_forget(talk: Talker, keep: bool) -> None:
    t = await talk(ScriptedRealtimeModel([Answer("One two three", pace=1.0), Answer("Yes?")]), voice=False)
    reconnected: list[object] = []
    t.server.on("session_reconnected", reconnected.append)
    speech = t.session.generate_reply(user_input="Count")
    await asyncio.sleep(1.5)
    t.server.reconnect(keep_context=keep)
    await speech
    assert len(reconnected) == 1
    assert brief(t.server.server_context) == (["user: Count", "assistant: One two"] if keep else [])
    assert brief(t.server.chat_ctx) == brief(t.server.server_context)
    await t.session.generate_reply()
    assert t.model.inferences[1].user_said == (["Count"] if keep else [])


async def test_what_a_response_was_asked_for_with_is_recorded(talk: Talker) -> None:
    @function_tool
    async def cancel() -> None:
        """Cancel."""

    agent = Agent(instructions="Take orders.", tools=[cancel])
    t = await talk(ScriptedRealtimeModel([Answer("Yes.")] * 2), agent)
    await t.session.generate_reply(instructions="Be brief.", tool_choice="required")
    await t.session.generate_reply()
    one, other = t.model.inferences
    assert (one.instructions, one.tool_choice) == ("Be brief.", "required")
    assert (other.instructions, other.tool_choice, other.tools) == (None, None, ("cancel",))
    assert one.agent_instructions == other.agent_instructions == "Take orders."
    assert brief(one.shown) == ["system: Take orders.", "system: Be brief."]
    assert brief(other.shown) == ["system: Take orders.", "assistant: Yes."]


async def test_where_a_response_has_no_tool_choice_of_its_own_the_session_has(talk: Talker) -> None:
    t = await talk(ScriptedRealtimeModel([Answer("Yes.")] * 2, per_response_tool_choice=False))
    await t.session.generate_reply(tool_choice="none")
    await t.session.generate_reply()
    assert [i.tool_choice for i in t.model.inferences] == ["none", None]


async def test_a_late_result_reaches_a_context_that_cannot_be_changed(talk: Talker) -> None:
    @function_tool
    async def research(context: RunContext[Any]) -> str:
        """Find out."""
        await context.update("Looking.")
        await asyncio.sleep(5)
        return "found"

    script = [Answer("", [Call("research")]), Answer("One moment."), Answer("I found it.")]
    model = ScriptedRealtimeModel(script, mutable_chat_context=False)
    t = await talk(model, Agent(instructions="", tools=[research]))
    await t.session.generate_reply()
    await asyncio.sleep(8)
    await t.line.quiet()
    known = shown(model.inferences[2])
    assert [line.partition(" ")[0] for line in known] == ["call", "output", "assistant:", "output"]
    assert known[-1] == "output found"
    assert [line.partition(" ")[0] for line in brief(t.server.chat_ctx)].count("call") == 2
    model.assert_complete()


# -- by hand


async def test_a_generation_is_streamed_word_by_word_then_call_by_call() -> None:
    answer = Answer("One moment.", [SIX, Call("b", '{"peop')], delay=2.0, pace=0.5)
    server = connect([answer])
    event = await server.generate_reply()
    assert event.user_initiated
    assert await generated(event) == [
        (2.0, "One "),
        (2.5, "moment."),
        (3.0, 'book({"people": 6})'),
        (3.5, 'b({"peop)'),
    ]
    assert brief(server.server_context) == ["assistant: One moment.", "call book", "call b"]
    assert len(server.unanswered_calls) == 2
    assert not server.generating


async def test_calls_can_come_first_and_nothing_takes_its_time() -> None:
    server = connect([Answer("Done.", [Call("a")], calls_first=True, pace=1.0), Answer(delay=3.0)])
    assert await generated(await server.generate_reply()) == [(0.0, "a({})"), (1.0, "Done.")]
    assert brief(server.server_context) == ["call a", "assistant: Done."]
    assert await generated(await server.generate_reply()) == []
    assert now() == 1.0 + 3.0


async def test_its_audio_takes_as_long_as_its_words() -> None:
    server = connect([Answer("One two three")], words_per_second=2.5)
    event = await server.generate_reply()
    async for message in event.message_stream:
        assert await message.modalities == ["text", "audio"]
        frames = [frame async for frame in message.audio_stream]
        assert round(sum(frame.duration for frame in frames), 3) == 1.2


async def test_items_are_announced_before_they_are_complete() -> None:
    server = connect([Answer("Yes.", [SIX])], turn_detection=True)
    events: list[tuple[str, str, Any]] = []

    def on_item(event: llm.RemoteItemAddedEvent) -> None:
        assert event.previous_item_id == (events[-1][0] if events else None)
        events.append((event.item.id, *brief(llm.ChatContext([event.item])), event.item))

    server.on("remote_item_added", on_item)
    await server.hear("Six")
    await asyncio.sleep(0.1)
    assert [line for _, line, _ in events] == ["user: ", "assistant: ", "call book"]
    assert events[2][2].arguments == ""
    assert [item.id for item in server.server_context.items] == [item_id for item_id, *_ in events]


async def test_the_user_is_heard_as_long_as_they_speak() -> None:
    model = ScriptedRealtimeModel(
        [Answer("Yes."), Answer("Oh.")], turn_detection=True, user_transcription=False, words_per_second=2.0
    )
    server = model.session()
    events: list[tuple[float, str]] = []
    for name in ("input_speech_started", "input_speech_stopped", "input_audio_transcription_completed"):
        server.on(name, lambda _, name=name: events.append((now(), name)))  # type: ignore[arg-type]
    await server.hear("One two three")
    await server.hear("Yes")
    assert events == [
        (0.5, "input_speech_started"),
        (1.5, "input_speech_stopped"),
        (2.0, "input_speech_started"),
        (2.0, "input_speech_stopped"),
    ]
    assert brief(server.server_context)[0] == "user: One two three"
    with pytest.raises(ValueError, match="at least one word"):
        await server.hear(" ")


async def test_what_was_heard_can_be_committed_or_cleared() -> None:
    server = connect([])
    await server.hear("never mind")
    server.clear_audio()
    server.commit_audio()
    assert brief(server.server_context) == []
    await server.hear("A table")
    await server.hear("for six")
    server.commit_audio()
    assert brief(server.server_context) == ["user: A table for six"]


async def test_a_push_takes_its_time_and_leaves_what_came_meanwhile() -> None:
    server = connect([Answer("Meanwhile.")], push_delay=1.0)
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="Hello")
    pushing = asyncio.create_task(server.update_chat_ctx(context))
    await asyncio.sleep(0.5)
    await server.generate_reply()
    await pushing
    assert now() == 1.0
    assert brief(server.server_context) == ["user: Hello", "assistant: Meanwhile."]

    await server.update_chat_ctx(server.chat_ctx)
    assert now() == 1.0  # there was nothing to tell
    assert len(server.realtime_model.pushes) == 1  # type: ignore[attr-defined]


async def test_a_push_replaces_the_context() -> None:
    server = connect([Answer("Hello there.", [SIX])])
    await generated(await server.generate_reply())
    (message, call) = server.server_context.items
    new = llm.ChatMessage(role="user", content=["New"])
    placeholder = llm.ChatMessage(role="assistant", content=[])
    said = llm.ChatMessage(role="assistant", content=[], id=message.id)
    await server.update_chat_ctx(llm.ChatContext([said, call, placeholder, new, call, new]))
    assert brief(server.server_context) == ["assistant: Hello there.", "call book", "user: New"]
    changed = llm.ChatMessage(role="assistant", content=["Hello."], id=message.id)
    await server.update_chat_ctx(llm.ChatContext([new, changed]))
    assert brief(server.server_context) == ["user: New", "assistant: Hello."]


async def test_nobody_else_holds_the_servers_items() -> None:
    server = connect([])
    context = llm.ChatContext.empty()
    message = context.add_message(role="user", content="Hello")
    await server.update_chat_ctx(context)
    message.content.append("changed")
    server.chat_ctx.items.clear()
    server.server_context.items[0].content.append("changed")  # type: ignore[union-attr]
    assert brief(server.server_context) == ["user: Hello"]


async def test_a_message_is_cut_to_what_was_heard() -> None:
    server = connect([Answer("One two three")] * 3)
    for _ in range(3):
        await generated(await server.generate_reply())
    one, two, three = (item.id for item in server.server_context.items)
    server.truncate(message_id=one, modalities=["text", "audio"], audio_end_ms=666)
    server.truncate(message_id=two, modalities=["text", "audio"], audio_end_ms=0)
    server.truncate(message_id=three, modalities=["text"], audio_end_ms=0, audio_transcript="One")
    assert brief(server.server_context) == ["assistant: One two", "assistant: One"]


async def test_one_generation_at_a_time_and_in_the_order_of_the_requests() -> None:
    server = connect([Answer("One", pace=1.0), Answer("Two")])
    first, second = server.generate_reply(), server.generate_reply()
    await first
    with pytest.raises(llm.RealtimeError, match="active response"):
        await second
    server.interrupt()
    cancelled = server.generate_reply()
    cancelled.cancel()
    stopped = server.generate_reply()
    server.interrupt()
    assert await generated(await stopped) == []
    server.realtime_model.assert_complete()  # type: ignore[attr-defined]


async def test_what_goes_wrong_is_reported(talk: Talker) -> None:
    def decide(shown: llm.ChatContext) -> Answer:
        raise LookupError("no idea")

    failing = APIError("over capacity", retryable=True)
    t = await talk(ScriptedRealtimeModel([Answer("Well", error=failing)]))
    await t.session.generate_reply()
    assert t.errors == [failing]
    t.server.start_generation()
    with pytest.raises(AssertionError, match="inference 2 is beyond the script"):
        t.model.assert_complete()

    server = connect(decide)
    with pytest.raises(llm.RealtimeError, match="no idea"):
        await server.generate_reply()


async def test_a_connection_that_has_closed_does_nothing() -> None:
    server = connect([Answer("One")])
    asked = server.generate_reply()
    await server.realtime_model.aclose()
    with pytest.raises(llm.RealtimeError, match="closed"):
        await asked
    with pytest.raises(llm.RealtimeError, match="closed"):
        await server.generate_reply()
    with pytest.raises(llm.RealtimeError, match="push 1 failed: the connection has closed"):
        await server.update_chat_ctx(llm.ChatContext([llm.ChatMessage(role="user", content=["Hello"])]))
    for act in (server.start_generation, lambda: server.reconnect(keep_context=True)):
        with pytest.raises(RuntimeError, match="has closed"):
            act()
    with pytest.raises(RuntimeError, match="has closed"):
        await server.hear("Hello")


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="counts from 1"):
        ScriptedRealtimeModel([], fail_pushes=[0])
    with pytest.raises(ValueError, match="words_per_second"):
        ScriptedRealtimeModel([], words_per_second=0)
    with pytest.raises(RuntimeError, match="no connection yet"):
        _ = ScriptedRealtimeModel([]).server
