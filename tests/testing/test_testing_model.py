import asyncio
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, APIConnectionError, APIError, function_tool, llm

from safe_session.testing import Answer, Call, ScriptedModel


async def stream_of(model: ScriptedModel, context: llm.ChatContext | None = None) -> list[llm.ChoiceDelta]:
    async with model.chat(chat_ctx=context or llm.ChatContext.empty()) as stream:
        return [chunk.delta async for chunk in stream if chunk.delta]


def said(deltas: list[llm.ChoiceDelta]) -> list[str]:
    return [delta.content or ",".join(call.name for call in delta.tool_calls) for delta in deltas]


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_answer_is_streamed_word_by_word_then_call_by_call() -> None:
    model = ScriptedModel([Answer("One moment,\nplease. ", [Call("a"), Call("b")], delay=2.0, pace=0.5)])
    started = now()
    arrived: list[tuple[float, str]] = []
    async with model.chat(chat_ctx=llm.ChatContext.empty()) as stream:
        async for chunk in stream:
            assert chunk.delta
            arrived.append((round(now() - started, 3), *said([chunk.delta])))
    assert arrived == [(2.0, "One "), (2.5, "moment,\n"), (3.0, "please. "), (3.5, "a"), (4.0, "b")]
    model.assert_complete()


async def test_calls_can_come_first() -> None:
    model = ScriptedModel([Answer("Done.", [Call("book")], calls_first=True)])
    assert said(await stream_of(model)) == ["book", "Done."]


async def test_chinese_is_streamed_character_by_character() -> None:
    model = ScriptedModel([Answer("好的，六位 ok")])
    assert said(await stream_of(model)) == ["好", "的", "，", "六", "位 ", "ok"]


async def test_arguments_are_json_or_sent_as_they_are() -> None:
    model = ScriptedModel([Answer(calls=[Call("a", {"name": "Zoë"}), Call("b", '{"peop'), Call("c")])])
    calls = [call for delta in await stream_of(model) for call in delta.tool_calls]
    assert [call.arguments for call in calls] == ['{"name": "Zoë"}', '{"peop', "{}"]


async def test_call_ids_are_unique_unless_given() -> None:
    answer = Answer(calls=[Call("book"), Call("book"), Call("book", call_id="mine")])
    models = ScriptedModel([answer, answer]), ScriptedModel(lambda _: answer)
    deltas = [await stream_of(models[0]), await stream_of(models[0]), await stream_of(models[1])]
    ids = [call.call_id for ds in deltas for delta in ds for call in delta.tool_calls]
    assert ids.count("mine") == 3
    assert len(set(ids)) == 7


async def test_an_inference_is_a_copy_of_what_was_shown() -> None:
    model = ScriptedModel([Answer("Yes.")])
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="A table for six")
    made = llm.FunctionCall(call_id="c1", name="book", arguments="{}")
    ended = llm.FunctionCallOutput(call_id="c1", name="book", output="order 1", is_error=False)
    context.insert([made, ended])
    await stream_of(model, context)
    context.add_message(role="user", content="later")
    made.extra["later"] = True

    (inference,) = model.inferences
    assert inference.user_said == ["A table for six"]
    assert [(call.call_id, call.extra) for call in inference.calls] == [("c1", {})]
    assert inference.outputs["c1"].output == "order 1"
    assert inference.assistant_said == []
    assert inference.tools == ()
    assert inference.tool_choice is None


async def test_it_decides_from_what_it_is_shown() -> None:
    def decide(shown: llm.ChatContext) -> Answer:
        done = any(item.type == "function_call_output" for item in shown.items)
        return Answer("It is done.") if done else Answer(calls=[Call("book", {"people": 6})])

    booked: list[int] = []

    @function_tool
    async def book(people: int) -> str:
        """Book."""
        booked.append(people)
        return "order 1"

    model = ScriptedModel(decide)
    async with AgentSession[Any](llm=model) as session:
        await session.start(Agent(instructions="", tools=[book]))
        result = await session.run(user_input="Six, please")
        result.expect.contains_message(role="assistant")
    assert booked == [6]
    assert [i.tools for i in model.inferences] == [("book",), ("book",)]
    assert [list(i.outputs) for i in model.inferences] == [[], [model.inferences[1].calls[0].call_id]]
    model.assert_complete()


async def test_what_was_not_asked_for_is_named() -> None:
    model = ScriptedModel([Answer("One."), Answer("Two.")])
    await stream_of(model)
    with pytest.raises(AssertionError, match=r"1 answers never asked for in 1 inferences:\n.*'Two\.'"):
        model.assert_complete()


async def test_a_request_beyond_the_script_fails_at_once_and_is_reported() -> None:
    model = ScriptedModel([])
    started = now()
    with pytest.raises(APIError, match="inference 1 is beyond the script"):
        await stream_of(model)
    assert now() == started
    with pytest.raises(AssertionError, match="inference 1 is beyond the script"):
        model.assert_complete()


async def test_a_decide_that_raises_is_reported() -> None:
    def decide(_: llm.ChatContext) -> Answer:
        raise KeyError("people")

    model = ScriptedModel(decide)
    with pytest.raises(KeyError):
        await stream_of(model)
    with pytest.raises(AssertionError, match=r"decide\(\) failed for inference 1: KeyError\('people'\)"):
        model.assert_complete()


async def test_an_error_comes_after_what_was_streamed() -> None:
    model = ScriptedModel([Answer("One moment", error=ValueError("broken"))])
    words: list[str] = []
    with pytest.raises(ValueError, match="broken"):  # noqa: PT012
        async with model.chat(chat_ctx=llm.ChatContext.empty()) as stream:
            async for chunk in stream:
                words += said([chunk.delta] if chunk.delta else [])
    assert words == ["One ", "moment"]
    model.assert_complete()


async def test_asking_again_after_a_retryable_error_is_an_inference_of_its_own() -> None:
    model = ScriptedModel([Answer(error=APIConnectionError("no route")), Answer("There.")])
    assert said(await stream_of(model)) == ["There."]
    assert len(model.inferences) == 2
    model.assert_complete()


async def test_a_cancelled_inference_has_used_up_its_answer() -> None:
    model = ScriptedModel([Answer("Too late.", delay=60.0), Answer("Here.")])
    async with model.chat(chat_ctx=llm.ChatContext.empty()):
        await asyncio.sleep(1)
    assert said(await stream_of(model)) == ["Here."]
    model.assert_complete()


async def test_two_sessions_share_a_model() -> None:
    model = ScriptedModel(lambda shown: Answer(f"{len(shown.items)}", delay=1.0))
    async with AgentSession[Any](llm=model) as one, AgentSession[Any](llm=model) as two:
        await one.start(Agent(instructions=""))
        await two.start(Agent(instructions=""))

        async def ask(session: AgentSession[Any], text: str) -> None:
            await session.run(user_input=text)

        await asyncio.gather(ask(one, "first"), ask(two, "second"))
    assert [i.user_said for i in model.inferences] == [["first"], ["second"]]
    model.assert_complete()
