"""G8: a handoff is immediate, and what arrives in its window is served by the agent that comes."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import AgentSession
from livekit.agents.llm import ToolFlag, Toolset
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import ScriptedModel, ScriptedRealtimeModel

from ._late_scenes import (
    WITHOUT_A_SERVER,
    Desk,
    Form,
    LateScene,
    Work,
    filled,
    heard_in,
    outputs_in,
    result_in,
    safe_scene,
    said_in,
)
from ._scenes import either_path, spoken

MAY_HAVE = "may already have taken effect"

# -- released tools do not hold it up


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("by", ["application", "tool"])
async def test_it_does_not_wait_for_a_tool_in_the_background(session_class, medium, by):
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("look", reports=True), work.tool("transfer", 0, then=lambda _: b))
    asks = {"Go!": ["look"], "Manager!": ["transfer"]}
    async with LateScene(session_class, medium, a, asks) as call:
        await call.says("Go!")
        await call.at(2)
        asked = await call.says("Manager!") if by == "tool" else call.hand_over(b) or 2
        await call.at(20)
        assert call.floor[-1][0] == "B"
        assert call.floor[-1][1] - asked < 0.5
    assert work.runs[0].ended - work.runs[0].began == pytest.approx(4)
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"


@pytest.mark.fails_on_plain("<9")
async def test_it_does_not_wait_for_a_tool_that_was_released(session_class, medium):
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("look", 8), work.tool("transfer", 0, then=lambda _: b))
    async with LateScene(session_class, medium, a, {"Go!": ["look"], "Manager!": ["transfer"]}) as call:
        await call.says("Go!")
        await call.at(1)
        asked = await call.says("Manager!")
        await call.at(20)
        assert call.floor[-1][0] == "B"
        assert call.floor[-1][1] - asked < 0.6
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"


@pytest.mark.parametrize("kind", [Toolset, AsyncToolset])
@pytest.mark.parametrize(("takes", "until", "told"), [(4, 4, "look-done"), (20, 3, MAY_HAVE)])
@either_path
async def test_it_waits_for_a_toolset_that_leaves_too(medium, kind, takes, until, told):
    """Its tools may need what the toolset closes; so it gets the close timeout, here 2 seconds from 1."""
    work = Work()
    a = Desk("A", kind(id="own", tools=[work.tool("look", takes, reports=True)]))
    options = SafeOptions(close_timeout=2 if takes == 20 else 10)
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium, safe=options) as call:
        call.types("Go!")
        await call.at(1)
        call.hand_over(Desk("B"))
        await call.at(30)
        assert call.floor[-1][1] == pytest.approx(until, abs=0.2)
    assert told in result_in(a, "look")
    assert told in result_in(call.session, "look")


@pytest.mark.fails_on_plain("<9")
async def test_a_cancellable_tool_is_stopped_and_may_have_acted(session_class, medium):
    work = Work()
    a = Desk("A", work.tool("look", reports=True, flags=ToolFlag.CANCELLABLE))
    async with LateScene(session_class, medium, a, {"Go!": ["look"]}) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(Desk("B"))
        await call.at(20)
        assert call.floor[-1] == ("B", 2.0)
    assert MAY_HAVE in result_in(a, "look")
    assert MAY_HAVE in result_in(call.session, "look")
    assert work.runs[0].ended is None
    if session_class is not AgentSession:
        assert [event.tool for event in call.emitted("call_cancelled")] == ["look"]


# -- the window


class SlowSetup(Toolset):
    """A toolset that takes a second to set up."""

    async def setup(self):
        await asyncio.sleep(1)
        return await super().setup()


def slow_agents(window: str, *tools, **kwargs) -> tuple[Desk, Desk]:
    """Two agents whose handoff takes a second: the first is slow to leave, or the next slow to start."""
    if window == "exit":
        return Desk("A", *tools, leave=1, **kwargs), Desk("B")
    return Desk("A", *tools, **kwargs), Desk("B", SlowSetup(id="slow", tools=[]))


windows = pytest.mark.parametrize("window", ["exit", "start"])


@pytest.mark.fails_on_plain("<9")
@windows
async def test_what_comes_in_the_window_is_served_in_order(session_class, medium, window):
    a, b = slow_agents(window)
    async with LateScene(session_class, medium, a) as call:
        await call.at(1)
        call.hand_over(b)
        await call.at(1.3)
        handles = [call.types("One"), call.session.say("B says two"), call.types("Three")]
        await call.within(10, asyncio.gather(*handles))
        await call.at(20)
    assert call.said == ["B answers One", "B says two", "B answers Three"] == said_in(b.chat_ctx)
    assert heard_in(b.chat_ctx) == heard_in(call.session.history) == ["One", "Three"]
    assert said_in(a.chat_ctx) == heard_in(a.chat_ctx) == []


@windows
@pytest.mark.parametrize("at", [0.8, 1, 1.25, 1.5, 1.9])
@spoken
async def test_what_is_spoken_in_the_window(medium, window, at):
    """The handoff begins at 1. The caller's two words end in the window, or soon after it."""
    await spoken_in_the_window(SafeAgentSession, medium, window, at)


@pytest.mark.fails_on_plain("<9")
@spoken
async def test_what_is_spoken_while_an_agent_leaves(session_class, medium):
    await spoken_in_the_window(session_class, medium, "exit", 1.25)


async def spoken_in_the_window(session_class, medium, window, at):
    a, b = slow_agents(window)
    async with LateScene(session_class, medium, a) as call:
        asyncio.get_running_loop().call_later(1, call.hand_over, b)
        await call.at(at)
        await call.says("Hello there")
        await call.at(20)
    assert call.said == ["B answers Hello there"] == said_in(b.chat_ctx) == call.line.speaker.heard
    assert heard_in(b.chat_ctx) == heard_in(call.session.history) == ["Hello there"]


@pytest.mark.fails_on_plain("<9")
@windows
@spoken
async def test_what_is_spoken_between_what_is_typed(session_class, medium, window):
    a, b = slow_agents(window)
    async with LateScene(session_class, medium, a) as call:
        await call.at(1)
        call.hand_over(b)
        await call.at(1.1)
        call.types("One")
        await call.says("Two")
        call.types("Three")
        await call.at(20)
    assert sorted(heard_in(call.session.history)) == ["One", "Three", "Two"]
    assert sorted(heard_in(b.chat_ctx)) == ["One", "Three", "Two"]
    assert {text.split()[0] for text in call.said} == {"B"}
    if call.realtime is None:  # its server has heard "Two" before it is told "One"
        assert "B answers Two" in call.said


@pytest.mark.fails_on_plain("<9")
@windows
@either_path
async def test_a_run_in_the_window(session_class, medium, window):
    a, b = slow_agents(window)
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        await call.at(0.3)
        result = await call.within(10, call.session.run(user_input="One"))
        await call.at(20)
    result.expect.contains_message(role="assistant")
    assert call.said == ["B answers One"]
    assert heard_in(b.chat_ctx) == ["One"]


@pytest.mark.fails_on_plain("<9")
@windows
async def test_a_call_that_a_reply_in_the_window_makes(session_class, medium, window):
    work = Work()
    a, b = slow_agents(window)
    b = Desk("B", *b.tools, work.tool("look", 1))
    async with LateScene(session_class, medium, a, {"Go!": ["look"]}) as call:
        call.hand_over(b)
        await call.at(0.3)
        call.types("Go!")
        await call.at(20)
    assert work.did == ["look"]
    assert call.said == ["B answers Go!"]
    assert result_in(b, "look") == "look-done"


@windows
async def test_a_late_result_in_the_window(medium, window):
    """It lands at 2, in the middle of the window."""
    await late_result_in_the_window(SafeAgentSession, medium, window)


@pytest.mark.fails_on_plain("<9")
async def test_a_late_result_while_an_agent_leaves(session_class, medium):
    await late_result_in_the_window(session_class, medium, "exit")


async def late_result_in_the_window(session_class, medium, window):
    work = Work()
    a, b = slow_agents(window)
    tools = [AsyncToolset(id="texts", tools=[work.tool("look", 2, reports=True)])]
    async with LateScene(session_class, medium, a, {"Go!": ["look"]}, tools=tools) as call:
        await call.says("Go!")
        await call.at(1.6)
        call.hand_over(b)
        await call.at(20)
    assert call.tellings("look") == ["B"]
    assert result_in(b, "look") == "look-done"


# -- what the agent that leaves still does


@pytest.mark.parametrize("waits", [True, False], ids=["awaited", "not awaited"])
@pytest.mark.parametrize("how", ["say", "generate_reply"])
async def test_it_says_goodbye_itself_on_both(session_class, medium, how, waits):
    async def goodbye(agent):
        handle = (
            agent.session.say("A says goodbye")
            if how == "say"
            else agent.session.generate_reply(user_input="Bye")
        )
        if waits:
            await handle

    a, b = Desk("A", leave=goodbye), Desk("B")
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        await call.at(10)
        assert call.floor[-1][0] == "B"
    assert call.said == ["A says goodbye" if how == "say" else "A answers Bye"] == said_in(a.chat_ctx)


@pytest.mark.fails_on_plain("<9")
async def test_its_goodbye_and_what_comes_meanwhile(session_class, medium):
    async def goodbye(agent):
        await asyncio.sleep(0.5)
        await agent.session.say("A says goodbye")
        await asyncio.sleep(0.5)

    a, b = Desk("A", leave=goodbye), Desk("B")
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        await call.at(0.2)
        call.types("One")
        await call.at(10)
    assert call.said == ["A says goodbye", "B answers One"]
    assert said_in(a.chat_ctx) == ["A says goodbye"]


@pytest.mark.parametrize("waits", [True, False], ids=["awaited", "not awaited"])
@pytest.mark.parametrize("how", ["say", "generate_reply"])
@pytest.mark.parametrize("reports", [True, False], ids=["background", "foreground"])
async def test_a_tool_of_it_speaks_in_the_window(medium, how, waits, reports):
    """The tool speaks at 2; the handoff begins at 1.5 and takes a second."""

    async def speak(ctx):
        handle = (
            ctx.session.say("X says so") if how == "say" else ctx.session.generate_reply(user_input="Tool")
        )
        if waits:
            await handle
        return "look-done"

    a, b = slow_agents("exit", Work().tool("look", 2, reports=reports, then=speak))
    async with safe_scene(a, {"Go!": ["look"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(1.5)
        call.hand_over(b)
        await call.at(10)
        assert call.floor[-1][0] == "B"
    assert call.said.count("X says so") + heard_in(call.session.history).count("Tool") == 1
    assert how == "say" or any(text.endswith("answers Tool") for text in call.said)
    assert "look-done" in outputs_in(call.session.history, "look")


async def test_a_hook_of_it_hands_over_again_on_both(session_class, medium):
    """`on_exit` of A asks for C while B is to come."""
    c = Desk("C")

    async def change_mind(agent):
        agent.session.update_agent(c)

    a, b = Desk("A", leave=change_mind), Desk("B")
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        await call.at(5)
        assert [name for name, _ in call.floor] == ["A", "B", "C"]
        await call.says("One")
        await call.at(10)
    assert call.said == ["C answers One"]


# -- several handoffs


@pytest.mark.fails_on_plain("<9")
async def test_two_handoffs_in_a_row(session_class, medium):
    await two_handoffs(session_class, medium, back=False)


async def test_a_handoff_there_and_back_on_both(session_class, medium):
    await two_handoffs(session_class, medium, back=True)


async def two_handoffs(session_class, medium, *, back):
    a, b = Desk("A", leave=1), Desk("B", leave=1)
    last = a if back else Desk("C")
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        await call.at(0.2)
        call.types("One")
        await call.at(0.4)
        call.hand_over(last)
        await call.at(0.6)
        call.types("Two")
        await call.at(20)
        assert call.session.current_agent is last
        assert [name for name, _ in call.floor] == ["A", "B", last.id]
    assert heard_in(call.session.history) == ["One", "Two"]
    assert len(call.said) == 2
    assert call.said[1] == f"{last.id} answers Two"


@pytest.mark.fails_on_plain("<9")
@either_path
async def test_what_was_asked_between_two_handoffs_is_served_by_the_agent_of_that_time(session_class, medium):
    a, b, c = Desk("A", leave=1), Desk("B", leave=1), Desk("C")
    async with LateScene(session_class, medium, a) as call:
        call.hand_over(b)
        call.types("One")
        call.hand_over(c)
        call.types("Two")
        await call.at(20)
    assert call.said == ["B answers One", "C answers Two"]


# -- the next agent fails to start


class BrokenModel(ScriptedModel):
    """A model that can't be used."""

    def on(self, *args, **kwargs):
        raise ValueError("no model")


class BrokenRealtimeModel(ScriptedRealtimeModel):
    """A realtime model whose server can't be reached."""

    def session(self, **kwargs):
        raise ValueError("no model")


BROKEN = {"text": BrokenModel, "realtime": BrokenRealtimeModel}


class Unbuildable(Desk):
    """An agent that livekit can't build an activity for."""

    complete = False

    @property
    def llm(self):
        if self.complete:
            raise ValueError("no model")
        return super().llm


@either_path
async def test_an_agent_that_can_not_be_handed_over_to(medium):
    """Livekit refuses it at once, so A keeps the floor and serves what comes."""
    b = Unbuildable("B")
    b.complete = True
    async with safe_scene(Desk("A"), medium=medium, may_log="no model") as call:
        call.hand_over(b)
        handle = call.types("One")
        await call.at(5)
        assert handle.done()
        assert call.said == ["A answers One"]


@pytest.mark.parametrize("leave", [0, 1], ids=["quick exit", "slow exit"])
@either_path
async def test_what_waits_for_an_agent_that_fails_to_start_ends_with_its_error(medium, leave):
    a, b = Desk("A", leave=leave), Desk("B", llm=BROKEN[medium]([]))
    async with safe_scene(a, medium=medium, may_log="no model") as call:
        call.hand_over(b)
        handles = [call.types("One"), call.session.say("B says two")]
        await call.at(0.3)
        if leave:
            handles.append(call.types("Three"))
        await call.at(5)
        assert [handle.done() for handle in handles] == [True] * len(handles)
        for handle in handles:
            assert "no model" in repr(await error_of(handle))
    assert call.said == []


async def error_of(handle):
    """The error that a speech ended with: releases up to 1.6 raise it, later ones give it."""
    try:
        await handle
    except Exception as error:
        return error
    return handle.exception()


@either_path
async def test_a_run_that_waits_for_an_agent_that_fails_to_start(medium):
    a, b = Desk("A", leave=1), Desk("B", llm=BROKEN[medium]([]))
    async with safe_scene(a, medium=medium, may_log="no model") as call:
        call.hand_over(b)
        await call.at(0.3)
        with pytest.raises(ValueError, match="no model"):
            await call.within(10, call.session.run(user_input="One"))


@either_path
async def test_a_late_result_that_waits_for_an_agent_that_fails_to_start(medium):
    """It lands at 2 in the window. Nobody has the floor any more; the session can be closed."""
    work = Work()
    a, b = Desk("A", leave=1), Desk("B", llm=BROKEN[medium]([]))
    tools = [AsyncToolset(id="texts", tools=[work.tool("look", 2, reports=True)])]
    async with safe_scene(a, {"Go!": ["look"]}, tools=tools, medium=medium, may_log="no model") as call:
        call.types("Go!")
        await call.at(1.5)
        call.hand_over(b)
        await call.at(10)
    assert result_in(call.session, "look") == "look-done"


@either_path
async def test_what_waits_for_a_handoff_that_livekit_refuses(medium):
    """A is paused under a form: it can't be started again."""
    work, form = Work(), Form("F", leave=1)
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    may_log = f"already running|{WITHOUT_A_SERVER}"
    async with safe_scene(a, {"Go!": ["ask"]}, medium=medium, may_log=may_log) as call:
        call.types("Go!")
        await call.at(1)
        call.hand_over(a)
        handle = call.types("One")
        await call.at(3)
        assert handle.done()
        assert "already running" in repr(await error_of(handle))
        call.types("Two")
        await call.at(5)
        form.complete("filled")
        await call.at(10)
    assert "F answers Two" in call.said


# -- an AgentTask


@pytest.mark.fails_on_plain("<9")
async def test_the_window_of_an_agent_task(session_class, medium):
    """The task is slow to start, from 0 to 1, and slow to leave, from 3 to 4."""
    work, form = Work(), Form("F", SlowSetup(id="slow", tools=[]), leave=1)
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    async with LateScene(session_class, medium, a, {"Go!": ["ask"]}) as call:
        await call.says("Go!")
        await call.at(0.7)
        call.types("One")
        await call.at(3)
        form.complete("filled")
        await call.at(3.5)
        call.types("Two")
        await call.at(20)
        assert call.session.current_agent is a
    assert "F answers One" in call.said
    assert "A answers Two" in call.said
    assert result_in(a, "ask") == "filled"


@pytest.mark.fails_on_plain("<9")
@spoken
async def test_what_is_spoken_in_the_window_of_an_agent_task(session_class, medium):
    work, form = Work(), Form("F", SlowSetup(id="slow", tools=[]), leave=1)
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    async with LateScene(session_class, medium, a, {"Go!": ["ask"]}) as call:
        await call.says("Go!")
        await call.at(0.6)
        await call.says("One")
        await call.at(3)
        form.complete("filled")
        await call.at(3.4)
        await call.says("Two")
        await call.at(20)
    assert "F answers One" in call.said
    assert "A answers Two" in call.said
    assert heard_in(call.session.history) == ["Go!", "One", "Two"]
