"""G9: a close gives running tools `close_timeout`, then stops them, and records each as cancelled.

The tools take 20 seconds and the close begins at 3, with a timeout of 2 unless a test says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from livekit.agents import AgentSession
from livekit.agents.llm import ToolFlag
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import Call

from ._late_scenes import (
    WORD,
    Desk,
    Form,
    LateScene,
    Work,
    filled,
    heard_in,
    now,
    outputs_in,
    result_in,
    safe_scene,
)
from ._scenes import either_path, spoken

MAY_HAVE = "may already have taken effect"
TWO = SafeOptions(close_timeout=2)
A_LITTLE = 0.5
DISOBEDIENT = "tool_choice set to 'none'"
"""What livekit logs about our model, which makes its calls also when it is told to make none."""

pytestmark = pytest.mark.timeout(10)
every_way = pytest.mark.parametrize("how", ["aclose", "shutdown", "with"])


async def close(call: LateScene, how: str) -> float:
    """Close the session in that way; returns the seconds that it takes."""
    began = call.now
    closed = asyncio.Event()
    call.session.on("close", lambda _: closed.set())
    if how == "shutdown":
        call.session.shutdown()
    elif how == "with":
        async with call.session:
            pass
    else:
        await call.session.aclose()
    await call.within(60, closed.wait())
    return call.now - began


def a_little(how: str, medium: str) -> float:
    """What a close adds to the time of the tools: `shutdown()` lets the agent speak, here three words."""
    return A_LITTLE + (3 * WORD if how == "shutdown" and medium != "text" else 0)


def running(kind: str, work: Work, takes: float = 20) -> tuple[Desk, dict]:
    """An agent with a tool that runs in that way once the caller has said "Go!" and "Well?"."""
    tool = work.tool("look", takes, reports=kind in {"background", "session"})
    if kind in {"session", "session's turn"}:
        return Desk("A"), {"tools": [AsyncToolset(id="texts", tools=[tool])]}
    return Desk("A", tool), {}


KINDS = ["turn", "released", "background", "session", "session's turn"]


@pytest.mark.fails_on_plain("<9")
@every_way
@pytest.mark.parametrize("kind", KINDS)
@spoken
async def test_a_tool_that_runs_is_stopped_in_time(session_class, medium, how, kind):
    work = Work()
    a, options = running(kind, work)
    async with LateScene(session_class, medium, a, {"Go!": ["look"]}, safe=TWO, **options) as call:
        await call.says("Go!")
        if kind == "released":
            await call.at(1)
            await call.says("Well?")
        await call.at(3)
        assert await close(call, how) <= 2 + A_LITTLE
        assert MAY_HAVE in result_in(a, "look")
        assert MAY_HAVE in result_in(call.session, "look")
    assert [run.ended for run in work.runs] == [None]
    if session_class is not AgentSession:
        assert [event.tool for event in call.emitted("call_cancelled")] == ["look"]


@every_way
@pytest.mark.parametrize("kind", KINDS)
@either_path
async def test_a_tool_that_ends_in_time_is_waited_for(medium, how, kind):
    """It ends a second after the close began."""
    work = Work()
    a, options = running(kind, work, takes=4)
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium, safe=TWO, **options) as call:
        await call.says("Go!")
        if kind == "released":
            await call.at(1)
            await call.says("Well?")
        await call.at(3)
        assert await close(call, how) <= 1 + a_little(how, medium)
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"
    assert call.tellings("look") == []


@either_path
async def test_the_timeout_is_ten_seconds(medium):
    a, _ = running("turn", Work())
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium) as call:
        call.types("Go!")
        await call.at(3)
        assert await close(call, "aclose") == pytest.approx(10, abs=A_LITTLE)


@every_way
@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_timeout_it_waits(how, kind):
    a, options = running(kind, Work())
    async with safe_scene(a, {"Go!": ["look"]}, safe=SafeOptions(close_timeout=None), **options) as call:
        await call.says("Go!")
        await call.at(1)
        if kind == "released":
            await call.says("Well?")
        await call.at(3)
        assert await close(call, how) == pytest.approx(17, abs=A_LITTLE)
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"


@every_way
@either_path
async def test_several_tools_share_one_timeout(medium, how):
    work = Work()
    names = ["look", "send", "pay", "text"]
    a = Desk("A", *(work.tool(name, 20, reports=name == "pay") for name in names[:3]))
    tools = [AsyncToolset(id="texts", tools=[work.tool("text", 20, reports=True)])]
    async with safe_scene(a, {"Go!": names}, medium=medium, safe=TWO, tools=tools) as call:
        call.types("Go!")
        await call.at(3)
        assert await close(call, how) <= 2 + a_little(how, medium)
    assert all(MAY_HAVE in result_in(call.session, name) for name in names)
    assert len(call.emitted("call_cancelled")) == 4


# -- while an AgentTask is active


@pytest.mark.fails_on_plain("<9")
@every_way
@pytest.mark.parametrize("whose", ["task", "parent"])
async def test_while_an_agent_task_is_active(session_class, medium, how, whose):
    """The 20 second tool is the task's, in its turn, or the parent's, in the background."""
    work = Work()
    form = Form("F", work.tool("look", 20)) if whose == "task" else Form("F")
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    if whose == "parent":
        await a.update_tools([*a.tools, work.tool("look", 20, reports=True)])
    asks = {"Name?": ["ask"], "Go!": ["look"]}
    async with LateScene(session_class, medium, a, asks, safe=TWO, may_log=DISOBEDIENT) as call:
        for text in ["Name?", "Go!"] if whose == "task" else ["Go!", "Name?"]:
            await call.says(text)
            await call.at(call.now + 1)
        await call.at(3)
        assert call.session.current_agent is form
        assert await close(call, how) <= 2 + (1 if how == "shutdown" else A_LITTLE)  # which lets A speak
    # up to 1.8.0, a realtime model makes the call again in what it says last, which is not to make any
    for context in (call.session.history, (form if whose == "task" else a).chat_ctx):
        assert any(MAY_HAVE in output for output in outputs_in(context, "look"))
    assert form.done()


@every_way
@either_path
async def test_while_a_nested_agent_task_is_active(medium, how):
    work, inner = Work(), Form("G")
    outer = Form("F", work.tool("more", 0, then=lambda _: filled(inner)))
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(outer)), work.tool("look", 20, reports=True))
    asks = {"Go!": ["look"], "Name?": ["ask"], "More?": ["more"]}
    async with safe_scene(a, asks, medium=medium, safe=TWO, may_log=DISOBEDIENT) as call:
        for text in asks:
            call.types(text)
            await call.at(call.now + 0.9)
        await call.at(3)
        assert call.session.current_agent is inner
        assert await close(call, how) <= 2 + A_LITTLE
    assert MAY_HAVE in result_in(a, "look")
    assert inner.done()
    assert outer.done()


# -- while a reply is held, and while a handoff is under way


@every_way
async def test_while_a_reply_is_held(medium, how):
    """A's result lands at 2, while a form has the floor."""
    work, form = Work(), Form("F")
    a = Desk("A", work.tool("look", 2, reports=True), work.tool("ask", 0, then=lambda _: filled(form)))
    async with safe_scene(a, {"Go!": ["look"], "Name?": ["ask"]}, medium=medium, safe=TWO) as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Name?")
        await call.at(3)
        assert [event.reason for event in call.emitted("reply_held")] == ["paused"]
        assert await close(call, how) <= (1.5 if how == "shutdown" else A_LITTLE)  # which lets A speak
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"
    assert [event.reason for event in call.emitted("reply_dropped")] == ["closing"]
    assert call.tellings("look") == []


@every_way
@pytest.mark.parametrize("second", [2, 2.5, 3, 3.5])
@spoken
async def test_while_a_handoff_is_under_way(medium, how, second):
    """The handoff goes on from 2 to 3. What the caller typed in its window has an end, too."""
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("look", 20, reports=True), leave=1)
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium, safe=TWO) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        handle = call.types("One")
        await call.at(second)
        assert await close(call, how) <= 3 + A_LITTLE
        await call.at(call.now + 1)
        assert handle.done()
    assert MAY_HAVE in result_in(a, "look")
    assert MAY_HAVE in result_in(call.session, "look")


@every_way
@either_path
async def test_while_a_reply_is_held_in_a_handoff(medium, how):
    """The result lands at 2.5, in a handoff that goes on from 2 to 3; the close begins at 2.6."""
    a = Desk("A", leave=1)
    tools = [AsyncToolset(id="texts", tools=[Work().tool("look", 2.5, reports=True)])]
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium, tools=tools, safe=TWO) as call:
        call.types("Go!")
        await call.at(2)
        call.hand_over(Desk("B"))
        await call.at(2.6)
        assert await close(call, how) <= 1 + A_LITTLE
    assert result_in(call.session, "look") == "look-done"
    assert len(call.emitted("reply_dropped")) + len(call.tellings("look")) == 1


# -- tools that don't behave


def deaf(name: str, work: Work, **kwargs):
    """A tool that goes on for its 20 seconds when it is stopped."""

    async def go_on(_):
        until = now() + 20
        while now() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(until - now())

    return work.tool(name, 0, first=go_on, **kwargs)


@every_way
@pytest.mark.parametrize("flags", [ToolFlag.NONE, ToolFlag.CANCELLABLE])
@either_path
async def test_a_tool_that_can_not_be_stopped_does_not_hang_the_close(medium, how, flags):
    a = Desk("A", deaf("look", Work(), flags=flags))
    async with safe_scene(
        a, {"Go!": ["look"]}, medium=medium, safe=TWO, may_log="although it was stopped"
    ) as call:
        call.types("Go!")
        await call.at(3)
        assert await close(call, how) <= 3 + a_little(how, medium)
        assert "not known whether it took effect" in result_in(a, "look")
        assert "not known whether it took effect" in result_in(call.session, "look")
        assert [record.state for record in call.session.keeper.ledger] == ["unknown"]
        assert any("although it was stopped" in error for error in call.errors)
    assert len(call.errors) == 1


@every_way
@either_path
async def test_a_session_tool_that_can_not_be_stopped_does_not_hang_the_close(medium, how):
    tools = [AsyncToolset(id="texts", tools=[deaf("look", Work())])]
    async with safe_scene(
        Desk("A"), {"Go!": ["look"]}, medium=medium, safe=TWO, tools=tools, may_log="stopped"
    ) as call:
        call.types("Go!")
        await call.at(3)
        assert await close(call, how) <= 3 + a_little(how, medium)
        assert "not known whether it took effect" in result_in(call.session, "look")


@pytest.mark.parametrize("how", ["aclose", "shutdown"])
@pytest.mark.parametrize("reports", [False, True], ids=["turn", "background"])
async def test_a_tool_that_closes_the_session(medium, how, reports):
    async def hang_up(ctx):
        if how == "aclose":
            await ctx.session.aclose()
        else:
            ctx.session.shutdown()
        return "look-done"

    work, closed = Work(), asyncio.Event()
    a = Desk("A", work.tool("look", 1, reports=reports, then=hang_up))
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium, safe=TWO) as call:
        call.session.on("close", lambda _: closed.set())
        await call.says("Go!")
        await call.within(1 + 2 + A_LITTLE, closed.wait())
        await call.at(10)
    assert work.did == ["look"]


@every_way
@either_path
async def test_it_can_be_started_again(medium, how):
    """And then keeps its promises as before."""
    work = Work()
    a, b = Desk("A", work.tool("look", 20)), Desk("B", work.tool("find", 4))
    async with safe_scene(a, {"Go!": ["look"], "Again!": ["find"]}, medium=medium, safe=TWO) as call:
        call.types("Go!")
        await call.at(3)
        await close(call, how)
        await call.session.start(b)
        again = call.now
        await call.says("Again!")
        await call.at(again + 1)
        said = await call.says("Well?")
        await call.at(again + 10)
        assert call.starts()[2] == ("B", pytest.approx(said, abs=0.35))
        assert call.tellings("find") == ["B"]
    assert result_in(b, "find") == "find-done"
    assert heard_in(b.chat_ctx) == ["Again!", "Well?"]


# -- stopped by the model


def stop_look(shown) -> Call:
    call = next(item for item in shown.items if item.type == "function_call" and item.name == "look")
    return Call("lk_agents_cancel_task", {"call_id": call.call_id})


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("reports", [True, False], ids=["background", "released"])
async def test_stopped_by_the_model_it_may_have_acted(session_class, medium, reports):
    work = Work()
    a = Desk("A", work.tool("look", 20, reports=reports, flags=ToolFlag.CANCELLABLE))
    async with LateScene(session_class, medium, a, {"Go!": ["look"], "Stop!": [stop_look]}) as call:
        await call.says("Go!")
        await call.at(2)
        await call.says("Stop!")
        await call.at(6)
        assert MAY_HAVE in result_in(a, "look")
        assert MAY_HAVE in result_in(call.session, "look")
    assert [run.ended for run in work.runs] == [None]


async def test_a_session_that_never_started_closes_on_both(session_class):
    session = session_class()
    await asyncio.wait_for(session.aclose(), 1)
    assert issubclass(SafeAgentSession, AgentSession)
