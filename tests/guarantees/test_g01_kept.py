"""G1: every call that started is kept, with its ending, whatever happened to the reply around it.

Each scene ends with the check that it was (`Scene.check`). The caller's first word takes until 0.25; then the
model makes its calls and talks for seven words.
"""

import itertools

import pytest
from livekit.agents import Agent, APIError, RunContext, StopResponse, ToolError, function_tool, mock_tools
from livekit.agents.llm import Toolset

from safe_session.testing import Answer, Call, ScriptedModel

from ._scenes import BOOK, CHARGE, NOTIFY, WORD, Host, diligent, either_path, shown

before_1_6_6 = pytest.mark.fails_on_plain("<1.6.6", realtime="<1.7")
before_1_6_6_or_5_in_text = pytest.mark.fails_on_plain("<1.6.6", text="<1.6.5", realtime="<1.7")
in_a_pipeline_before_1_6_5 = pytest.mark.fails_on_plain("<1.6.5", realtime=None)
in_a_pipeline_before_1_6_6 = pytest.mark.fails_on_plain("<1.6.6", realtime=None)
always_in_realtime = pytest.mark.fails_on_plain("<1.6.6", realtime=">=1.6")


def typed(realtime: str | None) -> pytest.MarkDecorator:
    return pytest.mark.fails_on_plain(text=">=1.6", voice="<1.6.6", realtime=realtime)


STREAMS = {"pace": WORD}  # the model still streams
SPEAKS = {"pace": 0}  # it has ended, and the agent speaks
SILENT = {"says": ""}  # there is no text

while_the_model = pytest.mark.parametrize(
    "model",
    [
        pytest.param(STREAMS, marks=before_1_6_6, id="streams"),
        pytest.param(SPEAKS, marks=before_1_6_6_or_5_in_text, id="speaks"),
        pytest.param(SILENT, marks=in_a_pipeline_before_1_6_5, id="silent"),
    ],
)


@while_the_model
async def test_interrupted_while_the_tool_runs(stage, model):
    async with stage(diligent(BOOK, **model), Host()) as call:
        await call.says("Six!")
        await call.at(0.3)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output == "book 6 Miller is done"


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(STREAMS, marks=typed(realtime=">=1.6"), id="streams"),
        pytest.param(SPEAKS, marks=pytest.mark.fails_on_plain(voice="<1.6.6", realtime=">=1.6"), id="speaks"),
        pytest.param(SILENT, marks=in_a_pipeline_before_1_6_6, id="silent"),
    ],
)
async def test_interrupted_after_the_tool_has_finished(stage, model):
    async with stage(diligent(BOOK, **model), Host()) as call:
        await call.says("Six!")
        await call.at(0.75)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output == "book 6 Miller is done"


@pytest.mark.parametrize(
    ("offset", "model"),
    [
        pytest.param(-1e-6, STREAMS, marks=before_1_6_6, id="just before, streams"),
        pytest.param(-1e-6, SILENT, marks=in_a_pipeline_before_1_6_5, id="just before, silent"),
        pytest.param(0, STREAMS, marks=typed(realtime="<1.7"), id="at once, streams"),
        pytest.param(0, SILENT, marks=typed(realtime=None), id="at once, silent"),
        pytest.param(1e-6, STREAMS, marks=typed(realtime=">=1.6"), id="just after, streams"),
        pytest.param(1e-6, SILENT, marks=in_a_pipeline_before_1_6_6, id="just after, silent"),
    ],
)
async def test_interrupted_in_the_moment_the_tool_finishes(stage, offset, model):
    """The tool is over at 0.75, and so is the caller's word."""
    async with stage(diligent(BOOK, **model), Host()) as call:
        await call.says("Six!")
        await call.at(0.5 + offset)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output == "book 6 Miller is done"


@while_the_model
@either_path
async def test_interrupted_by_what_the_tool_does_last(stage, model):
    """The same turn of the event loop: the body interrupts, asks anew and returns."""
    host = Host(then={"book": lambda: interrupt_and_ask(call)})
    async with stage(diligent(BOOK, **model), host) as call:
        await call.says("Six!")
        await call.at(30)
    assert host.did == ["book 6 Miller"]
    assert call.result_of("book").output == "book 6 Miller is done"


def interrupt_and_ask(call):
    if len(call.inferences) == 1:
        call.session.interrupt()
        call.session.generate_reply(user_input="Six?")


@pytest.mark.fails_on_plain(text="<1.6.6")
async def test_interrupted_while_the_result_is_told(stage):
    async with stage(diligent(BOOK), Host()) as call:
        await call.says("Six!")
        await call.at(2.5)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]


@pytest.mark.fails_on_plain("<1.8.7")
async def test_a_tool_that_outlasts_livekits_own_timeout(stage):
    """The interrupted speech is given up 5 seconds after 1.0; the tool ends at 8.25."""
    async with stage(diligent(BOOK), Host(takes={"book": 8})) as call:
        await call.says("Six!")
        await call.at(0.75)
        await call.says("Six?")
        await call.at(12)
        await call.says("Well?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert call.result_of("book").output == "book 6 Miller is done"
    assert "book 6 Miller is done" in shown(call.inferences[-1])["book"]


ORDERS = [(0.5, 3), (3, 0.5), *itertools.permutations((0.5, 1.5, 9))]


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("seconds", ORDERS, ids=str)
@either_path
async def test_each_of_several_is_kept_as_it_ends(stage, seconds):
    """The caller interrupts at 1.25, after the first and before the second."""
    tools = dict(zip(["book", "notify", "charge"], seconds, strict=False))
    wanted = [BOOK, NOTIFY, CHARGE][: len(seconds)]
    async with stage(diligent(*wanted), Host(takes=tools)) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        for second in (1.6, 2.1, 2.3, 3.8, 9.8, 30):
            await call.at(second)
            for run in (run for run in call.agent.runs if run.ended):
                assert call.result_of(run.tool).output == f"{run.what} is done"
    assert sorted(run.tool for run in call.agent.runs) == sorted(tools)


ERRORS = {
    "ToolError": (ToolError("We are full."), "We are full.", True),
    "Exception": (ValueError("secret"), "An internal error occurred", True),
    "StopResponse": (StopResponse(), "", False),
}


def raising(error):
    def end():
        raise error

    return {"book": end}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ToolError", marks=before_1_6_6),
        pytest.param("Exception", marks=before_1_6_6),
        pytest.param("StopResponse", marks=pytest.mark.fails_on_plain("<1.7")),
    ],
)
async def test_a_tool_raises_after_an_interruption(stage, name):
    error, told, is_error = ERRORS[name]
    async with stage(diligent(BOOK), Host(then=raising(error))) as call:
        await call.says("Six!")
        await call.at(0.3)
        await call.says("Six?")
        await call.at(30)
    assert (call.result_of("book").output, call.result_of("book").is_error) == (told, is_error)
    assert call.agent.did == ["book 6 Miller"]


@pytest.mark.fails_on_plain(">=1.6", realtime="<1.7")
@pytest.mark.parametrize("name", ERRORS)
@either_path
async def test_interrupted_after_a_tool_raised(stage, name):
    error, told, is_error = ERRORS[name]
    async with stage(diligent(BOOK), Host(then=raising(error))) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        await call.at(30)
    assert (call.result_of("book").output, call.result_of("book").is_error) == (told, is_error)
    assert call.agent.did == ["book 6 Miller"]


@before_1_6_6
@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(Call("cook", {"dish": "noodles"}), "Unknown function: cook", marks=always_in_realtime),
        (Call("book", '{"people": [6'), ""),
        pytest.param(Call("book", "no JSON"), "arguments", marks=always_in_realtime),
        (Call("book", {"people": "many"}), "people"),
        (Call("book", {}), "people"),
    ],
    ids=["unknown tool", "cut off", "unreadable", "invalid", "missing"],
)
async def test_a_call_that_starts_no_tool(stage, made, told):
    model = ScriptedModel(
        [
            Answer("One moment, please, I do it.", [made], pace=WORD, calls_first=True),
            Answer("I could not."),
        ]
    )
    async with stage(model, Host()) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == []
    assert call.result_of(made.name).is_error
    assert told in call.result_of(made.name).output


@pytest.mark.fails_on_plain(text=">=1.6", voice="<1.6.6", realtime="<1.7")
@pytest.mark.parametrize("kind", ["raw", "toolset", "function"])
async def test_tools_of_every_kind(stage, kind):
    ran = []

    @function_tool
    async def look(day: str) -> str:
        """Look for a table."""
        ran.append(day)
        return "free"

    @function_tool(raw_schema={"name": "look", "description": "", "parameters": {"type": "object"}})
    async def look_raw(raw_arguments: dict[str, object]) -> str:
        ran.append(raw_arguments["day"])
        return "free"

    tool = {"raw": look_raw, "function": look, "toolset": Toolset(id="tables", tools=[look])}[kind]
    async with stage(diligent(Call("look", {"day": "Friday"})), Host(tools=[tool])) as call:
        await call.says("Friday!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
    assert ran == ["Friday"]
    assert call.result_of("look").output == "free"


class Reporting(Host):
    @function_tool
    async def look(self, ctx: RunContext, day: str):
        """Look for a table."""
        await ctx.update("I am looking.")
        return await self.work("look", f"look {day}")


async def test_a_tool_that_reports_and_returns_later_on_both(stage):
    """Its receipt is the ending of one call; what it returns is the ending of another, of livekit's own."""
    async with stage(diligent(Call("look", {"day": "Friday"})), Reporting(takes={"look": 3})) as call:
        await call.says("Friday!")
        await call.at(30)
    assert call.result_of("look").output == "look Friday is done"


@pytest.mark.fails_on_plain(text=">=1.6", voice="<1.6.6", realtime="<1.7")
async def test_a_mocked_tool(stage):
    mocked = []
    host = Host()
    with mock_tools(Host, {"notify": lambda number: mocked.append(number) or "mocked"}):
        async with stage(diligent(NOTIFY), host) as call:
            await call.says("Six!")
            await call.at(1)
            await call.says("Six?")
            await call.at(30)
    assert (mocked, host.did) == (["555"], [])
    assert call.result_of("notify").output == "mocked"


@pytest.mark.fails_on_plain(text=">=1.6", voice="<1.6.6", realtime=">=1.6")
async def test_the_step_limit_is_reached(stage):
    """Two steps are allowed, the model makes a call in each of three, and the caller interrupts the last."""
    steps = [Answer("So.", [Call("book", {"people": n})]) for n in (1, 2)]
    last = Answer("One moment, please, I do it.", [Call("book", {"people": 3})], pace=WORD, calls_first=True)
    model = ScriptedModel([*steps, last, Answer("Yes.")])
    async with stage(model, Host(), max_tool_steps=2) as call:
        await call.says("Six!")
        while len(call.inferences) < 3:
            await call.at(call.now + 0.1)
        await call.at(call.now + 0.8)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did[:2] == ["book 1 Miller", "book 2 Miller"]


class Breaking(Host):
    """Breaks in one of its nodes once a tool has ended."""

    broken: str | None = None

    def break_if_done(self, node: str) -> None:
        if not self.broken and any(run.ended for run in self.runs):
            self.broken = node
            raise RuntimeError(f"{node} broke")


class BreakingLLMNode(Breaking):
    async def llm_node(self, chat_ctx, tools, model_settings):
        async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
            yield chunk
            self.break_if_done("llm_node")


class BreakingTTSNode(Breaking):
    async def tts_node(self, text, model_settings):
        async for frame in Agent.default.tts_node(self, text, model_settings):
            yield frame
            self.break_if_done("tts_node")


class BreakingTranscriptionNode(Breaking):
    async def transcription_node(self, text, model_settings):
        async for part in Agent.default.transcription_node(self, text, model_settings):
            yield part
            self.break_if_done("transcription_node")


class BreakingAudioNode(Breaking):
    async def realtime_audio_output_node(self, audio, model_settings):
        async for frame in Agent.default.realtime_audio_output_node(self, audio, model_settings):
            yield frame
            self.break_if_done("realtime_audio_output_node")


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize(
    ("medium", "host"),
    [
        ("voice", BreakingLLMNode),
        ("voice", BreakingTTSNode),
        ("voice", BreakingTranscriptionNode),
        ("realtime", BreakingTranscriptionNode),
        ("realtime", BreakingAudioNode),
    ],
)
async def test_a_node_raises_after_a_tool_ran(stage, host):
    """One tool is done when it breaks at 1.0, the other still runs when the caller speaks."""
    async with stage(diligent(BOOK, NOTIFY), host(takes={"notify": 8})) as call:
        await call.says("Six!")
        await call.at(2)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.broken
    assert call.agent.did == ["book 6 Miller", "notify 555"]


@pytest.mark.fails_on_plain(">=1.6")
async def test_the_models_stream_breaks_after_the_calls(stage):
    error = APIError("gone", retryable=False)
    broken = Answer("One moment.", [BOOK, NOTIFY], pace=WORD, calls_first=True, error=error)
    model = ScriptedModel([broken, *[Answer("All is done.")] * 3])
    async with stage(model, Host(takes={"notify": 8})) as call:
        await call.says("Six!")
        await call.at(2)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller", "notify 555"]
