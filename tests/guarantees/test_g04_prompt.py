"""G4: an interrupted turn does not wait for its tools, and their results are told when they land.

The caller says "Go!", which takes until 0.25 in voice, and talks over the tools at 1.
"""

from __future__ import annotations

import pytest
from livekit.agents import ToolError

from safe_session import SafeOptions

from ._late_scenes import (
    Desk,
    Form,
    LateScene,
    Work,
    clerk,
    filled,
    outputs_in,
    result_in,
    safe_scene,
    shown_of,
)
from ._scenes import shown_running, spoken

GO = {"Go!": ["look"]}
PROMPT = 0.35


async def silence(call: LateScene, text: str = "Well?", typed: bool = False) -> float:
    """The caller says that, or types it: the seconds until the next inference has started, and is heard."""
    inferences, answers = len(call.inferences), len(call.answers())
    said = call.now if typed else await call.says(text)
    if typed:
        call.session.interrupt()
        call.types(text)
    while len(call.answers()) == answers and call.now < said + 30:
        await call.at(call.now + 0.01)
    return max(call.starts()[inferences][1], call.answers()[answers]) - said


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("says", ["", "One moment please"], ids=["no text", "text"])
@pytest.mark.parametrize("takes", [2, 4, 8])
async def test_the_caller_talks_over_a_tool(session_class, medium, takes, says):
    work = Work()
    async with LateScene(
        session_class, medium, Desk("A", work.tool("look", takes)), clerk(GO, says=says)
    ) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call) < PROMPT
        assert shown_running(call.inferences[1], "look")
        await call.at(20)
        assert call.tellings("look") == ["A"]
        landed = work.runs[0].ended - work.runs[0].began + call.starts()[0][1]
        assert call.starts()[2][1] == pytest.approx(max(landed, call.starts()[1][1]), abs=0.8)
    assert work.did == ["look"]
    assert result_in(call.agents[0], "look") == result_in(call.session, "look") == "look-done"


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("takes", [2, 4, 8])
@spoken
async def test_the_caller_types_during_a_call(session_class, medium, takes):
    async with LateScene(session_class, medium, Desk("A", Work().tool("look", takes)), GO) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call, typed=True) < PROMPT
        await call.at(20)
        assert call.tellings("look") == ["A"]


@pytest.mark.fails_on_plain("<9")
@spoken
async def test_the_caller_says_several_words(session_class, medium):
    async with LateScene(session_class, medium, Desk("A", Work().tool("look", 8)), GO) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call, "Are you still there") < PROMPT


@pytest.mark.fails_on_plain("<9")
async def test_several_tools_at_once(session_class, medium):
    work, takes = Work(), {"look": 2, "find": 4, "send": 8}
    a = Desk("A", *(work.tool(name, seconds) for name, seconds in takes.items()))
    async with LateScene(session_class, medium, a, {"Go!": list(takes)}) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call) < PROMPT
        for name, seconds in takes.items():
            await call.at(seconds - 0.1)
            assert call.tellings(name) == []
            await call.at(seconds + 1.5)
            assert call.tellings(name) == ["A"]
    assert work.did == list(takes)


@pytest.mark.fails_on_plain("<9")
async def test_the_caller_talks_over_it_again_and_again(session_class, medium):
    work = Work()
    async with LateScene(session_class, medium, Desk("A", work.tool("look", 8)), GO) as call:
        await call.says("Go!")
        for second in (1, 2, 3.5, 5):
            await call.at(second)
            assert await silence(call) < PROMPT
        await call.at(20)
        assert call.tellings("look") == ["A"]
    assert work.did == ["look"]


@pytest.mark.fails_on_plain("<9")
async def test_as_fast_as_with_no_tool_that_runs(session_class, medium):
    """Once it is released, a tool adds nothing to a turn's time."""
    async with LateScene(session_class, medium, Desk("A", Work().tool("look", 8)), GO) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call) < PROMPT
        await call.at(3)
        assert await silence(call) < 0.05


@pytest.mark.parametrize("grace", [0, 0.25, 1])
async def test_the_grace_can_be_set(grace):
    options = SafeOptions(interruption_grace=grace)
    async with safe_scene(Desk("A", Work().tool("look", 8)), GO, medium="voice", safe=options) as call:
        await call.says("Go!")
        await call.at(2)
        assert await silence(call) == pytest.approx(grace, abs=0.1)


async def test_without_a_grace_the_turn_waits_for_its_tools():
    options = SafeOptions(interruption_grace=None)
    async with safe_scene(Desk("A", Work().tool("look", 4)), GO, medium="voice", safe=options) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call) == pytest.approx(3, abs=0.1)
        await call.at(20)
        assert shown_of(call.inferences[-1], "look") == "look-done"
        assert call.emitted("call_released") == []


@pytest.mark.parametrize("other", [0.1, 0.2, 0.24, 0.26, 8])
async def test_a_tool_that_ends_in_the_grace_or_soon_after(medium, other):
    """Its result is known to the next inference, or told later; not both, not neither."""
    work = Work()
    a = Desk("A", work.tool("look", 1 + other), work.tool("send", 8))
    async with safe_scene(a, {"Go!": ["look", "send"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        assert await silence(call) < PROMPT
        known = shown_of(call.inferences[1], "look") == "look-done"
        await call.at(30)
        assert len(call.tellings("look")) == (0 if known else 1)
        assert call.tellings("send") == ["A"]


@pytest.mark.parametrize("takes", [1.75, 2.0, 2.1, 2.2, 2.3, 2.45])
async def test_a_tool_that_ends_although_an_inference_was_shown_that_it_runs(takes):
    """A preemptive inference starts at 2.05 and is used at 2.55: whoever was told "running" hears the end."""
    work = Work()
    a = Desk("A", work.tool("look", takes))
    scene = safe_scene(a, GO, medium="voice", preemptive=True)
    async with scene as call:
        await call.says("Go!")
        await call.at(1.8)
        await call.line.caller.say("Well?", commit_delay=0.5)
        await call.at(30)
        used = [i for i in call.inferences if "Well?" in i.user_said]
        assert call.tellings("look") == ["A"] or shown_of(used[-1], "look") == "look-done"
        assert len(call.tellings("look")) <= 1
    assert work.did == ["look"]


# -- those that are not released


async def test_one_that_forbade_interruptions_is_not_released(medium):
    """The caller can't interrupt it; in text the program does, by force."""
    look = Work().tool("look", 3, first=lambda ctx: ctx.disallow_interruptions())
    async with safe_scene(Desk("A", look), GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        if medium == "text":
            call.session.interrupt(force=True)
            call.types("Well?")
        else:
            await call.says("Well?")
        await call.at(20)
        assert call.emitted("call_released") == []
        assert "look-done" in [shown_of(inference, "look") for inference in call.inferences]
    assert outputs_in(call.session.history, "look") == ["look-done"]


async def test_one_that_awaits_an_agent_task_is_not_released(medium):
    work, form = Work(), Form("F")
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    async with safe_scene(a, {"Go!": ["ask"]}, medium=medium) as call:
        await call.says("Go!")
        for second in (1, 2, 3):
            await call.at(second)
            await call.says("Well?")
        await call.at(5)
        form.complete("filled")
        await call.at(20)
        assert call.emitted("call_released") == []
        assert call.session.current_agent is a
    assert outputs_in(a.chat_ctx, "ask") == ["filled"]


async def test_one_that_awaits_an_agent_task_soon_after(medium):
    """The caller talks over the tool a moment before it awaits its form; livekit refuses the form."""
    work, form = Work(), Form("F")
    a = Desk("A", work.tool("ask", 1.1, then=lambda _: filled(form)))
    async with safe_scene(a, {"Go!": ["ask"]}, medium=medium, may_log="interrupted|finished before") as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Well?")
        await call.at(10)
        if call.session.current_agent is form:
            form.complete("filled")
        await call.at(20)
        assert call.session.current_agent is a
        assert "A answers Well?" in call.said or "F answers Well?" in call.said


# -- how a released tool ends


def raising(error):
    def end(_):
        raise error

    return end


@pytest.mark.parametrize(
    ("end", "told", "is_error"),
    [
        (raising(ToolError("We are full.")), "We are full.", True),
        (raising(ValueError("secret")), "An internal error occurred", True),
        (lambda _: "", "", False),
        (lambda _: None, "", False),
        (lambda _: {"table": 7}, "7", False),
    ],
    ids=["ToolError", "Exception", "empty", "None", "dict"],
)
async def test_a_released_tool_ends(medium, end, told, is_error):
    a = Desk("A", Work().tool("look", 4, then=end))
    async with safe_scene(a, GO, medium=medium, may_log="secret") as call:
        await call.says("Go!")
        await call.at(1)
        await silence(call)
        await call.at(20)
        assert len(call.emitted("call_released")) == 1
        assert [record.state for record in call.session.keeper.ledger] == ["failed" if is_error else "done"]
        final = [i for i in a.chat_ctx.items if i.type == "function_call_output"][-1]
        assert (told in final.output, final.is_error) == (True, is_error)
        assert len([text for text in call.said if "tells" in text and told in text]) == (1 if told else 0)
        assert "secret" not in str(call.said)


async def test_a_released_tool_reports_on(medium):
    """`ctx.update()` after the release is progress, which is told as well."""

    async def go_on(ctx):
        await ctx.update("halfway")
        await ctx.update("nearly")
        return "look-done"

    async with safe_scene(Desk("A", Work().tool("look", 4, then=go_on)), GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        await silence(call)
        await call.at(20)
        assert call.tellings("look") == ["A"]
        assert sum("halfway" in text for text in call.said) == 1


async def test_a_released_tool_speaks_for_itself(medium):
    async def speak(ctx):
        await ctx.session.say("It is done")

    async with safe_scene(Desk("A", Work().tool("look", 4, then=speak)), GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        await silence(call)
        await call.at(20)
        assert call.said == ["A answers Well?", "It is done"]


async def test_a_tool_that_nobody_talks_over_is_not_released_on_both(session_class, medium):
    async with LateScene(session_class, medium, Desk("A", Work().tool("look", 8)), GO) as call:
        await call.says("Go!")
        await call.at(20)
        assert call.said == ["A answers Go!"]
        assert call.events == []
    assert outputs_in(call.session.history, "look") == ["look-done"]
