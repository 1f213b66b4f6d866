"""G6 and G8 where several things happen at once."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeOptions, ToolPolicy

from ._late_scenes import (
    WITHOUT_A_SERVER,
    Desk,
    Form,
    LateScene,
    Work,
    clerk,
    filled,
    heard_in,
    result_in,
    safe_scene,
    said_in,
)
from ._scenes import either_path

GO = {"Go!": ["look"], "Name?": ["ask"], "Manager!": ["transfer"]}
RETARGET = SafeOptions(policies={"look": ToolPolicy(on_handoff="retarget")})


def texts(*tools) -> dict:
    return {"tools": [AsyncToolset(id="texts", tools=list(tools))]}


@pytest.mark.parametrize("at", [4.3, 4.6, 4.95])
async def test_a_handoff_while_the_result_is_told(medium, at):
    """The model takes half a second over it, and in voice the words take as long again."""
    a, b = Desk("A", Work().tool("look", reports=True)), Desk("B")
    async with safe_scene(a, clerk(GO, delay=0.5), medium=medium) as call:
        await call.says("Go!")
        await call.at(at)
        call.hand_over(b)
        await call.at(20)
        assert call.session.current_agent is b
        assert len(call.tellings("look")) + len(call.emitted("reply_dropped")) == 1
        assert not call.tellings("look") or call.tellings("look") == ["A"]


@pytest.mark.parametrize("scope", ["agent", "session"])
async def test_a_handoff_to_the_same_agent(medium, scope):
    work = Work()
    look = work.tool("look", reports=True)
    a = Desk("A", *([look] if scope == "agent" else []), leave=0.5)
    async with safe_scene(a, GO, medium=medium, **(texts(look) if scope == "session" else {})) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(a)
        call.types("One")
        await call.at(20)
        assert call.tellings("look") == ["A"]
        assert "A answers One" in call.said
    assert heard_in(a.chat_ctx) == ["Go!", "One"]


async def test_a_tool_hands_over_and_the_caller_goes_on(medium):
    """The tool returns B at 1, and A takes a second to leave."""
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("transfer", 1, then=lambda _: b), leave=1)
    async with safe_scene(a, GO, medium=medium) as call:
        await call.says("Manager!")
        await call.at(1.5)
        call.types("One")
        await call.at(1.7)
        call.types("Two")
        await call.at(20)
    assert call.said == ["B answers One", "B answers Two"] == said_in(b.chat_ctx)
    assert heard_in(b.chat_ctx) == ["One", "Two"]


async def test_a_reply_that_is_interrupted_before_its_agent_starts(medium):
    a, b = Desk("A", leave=1), Desk("B")
    async with safe_scene(a, medium=medium) as call:
        call.hand_over(b)
        await call.at(0.3)
        first, second = call.types("One"), call.types("Two")
        first.interrupt()
        await call.at(20)
        assert (first.done(), second.done()) == (True, True)
        assert call.said == ["B answers Two"]


async def test_the_session_is_interrupted_in_the_window(medium):
    """As a program does it that types for the caller: interrupt, then reply."""
    a, b = Desk("A", leave=1), Desk("B")
    async with safe_scene(a, medium=medium) as call:
        call.hand_over(b)
        await call.at(0.3)
        for text in ("One", "Two"):
            call.session.interrupt()
            call.types(text)
        await call.at(20)
        assert call.said[-1] == "B answers Two"
        assert heard_in(b.chat_ctx)[-1] == "Two"


@pytest.mark.parametrize("scope", ["agent", "session"])
@pytest.mark.parametrize("retarget", [False, True])
@either_path
async def test_a_handoff_away_from_a_task(medium, scope, retarget):
    """The task has the floor when the session hands over to B; A, which was paused, is gone for good."""
    work, form, b = Work(), Form("F"), Desk("B")
    look = work.tool("look", 4, reports=True)
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)), *([look] if scope == "agent" else []))
    options = {"may_log": WITHOUT_A_SERVER, **(texts(look) if scope == "session" else {})}
    async with safe_scene(a, GO, medium=medium, safe=RETARGET if retarget else None, **options) as call:
        call.types("Go!")
        await call.at(1)
        call.types("Name?")
        await call.at(2)
        call.hand_over(b)
        await call.at(3)
        form.complete("filled")
        await call.at(20)
        assert call.session.current_agent is b
        dropped = [event for event in call.emitted("reply_dropped") if event.tool == "look"]
        assert len(call.tellings("look")) + len(dropped) == 1
        assert scope == "agent" or call.tellings("look") == ["B"]
        assert call.said.count("B tells look-done") == (1 if scope == "session" or retarget else 0)


async def test_a_task_in_on_enter_of_the_next_agent(medium):
    """B begins with a form; what the caller types in the window, and a result that lands, go to the form."""
    form = Form("F")
    a, b = Desk("A", leave=1), Desk("B", enter=lambda _: filled(form))
    async with safe_scene(a, GO, medium=medium, **texts(Work().tool("look", 2.5, reports=True))) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(2.2)
        call.types("One")
        await call.at(8)
        assert call.session.current_agent is form
        form.complete("filled")
        await call.at(20)
        assert call.session.current_agent is b
        assert len(call.tellings("look")) == 1
        assert len([text for text in call.said if text.endswith("answers One")]) == 1


async def test_a_tool_hands_over_by_itself(medium):
    """In the background, it calls `update_agent()` and then speaks; B does."""
    b = Desk("B")

    async def transfer(ctx):
        ctx.session.update_agent(b)
        ctx.session.generate_reply(user_input="One")
        return "transfer-done"

    a = Desk("A", Work().tool("transfer", 2, reports=True, then=transfer), leave=0.5)
    async with safe_scene(a, GO, medium=medium) as call:
        await call.says("Manager!")
        await call.at(20)
        assert call.session.current_agent is b
        assert len([text for text in call.said if text.endswith("answers One")]) == 1
    assert result_in(a, "transfer") == "transfer-done"


@pytest.mark.parametrize("second", [4.3, 4.7, 5.1])
@pytest.mark.parametrize("drain", [False, True])
async def test_a_close_while_the_result_is_told(medium, second, drain):
    a = Desk("A", Work().tool("look", reports=True))
    async with safe_scene(a, clerk(GO, delay=0.5), medium=medium) as call:
        await call.says("Go!")
        await call.at(second)
        call.session.shutdown(drain=drain)
        await call.at(20)
        assert call.emitted("reply_redelivered") == []
        assert len(call.tellings("look")) <= 1
    assert result_in(a, "look") == "look-done"


@pytest.mark.parametrize("second", [0.1, 0.5, 1.2, 1.8])
@pytest.mark.parametrize("drain", [False, True])
async def test_a_close_in_two_handoffs_in_a_row(medium, second, drain):
    a, b, c = Desk("A", leave=1), Desk("B", leave=1), Desk("C")
    async with safe_scene(a, medium=medium) as call:
        call.hand_over(b)
        one = call.types("One")
        call.hand_over(c)
        two = call.types("Two")
        await call.at(second)
        call.session.shutdown(drain=drain)
        await call.at(20)
        assert (one.done(), two.done()) == (True, True)
    assert len(call.said) == len(set(call.said))


@pytest.mark.fails_on_plain("<9")
async def test_a_released_tool_a_handoff_and_a_result(session_class, medium):
    """Talked over at 1, handed over at 2, landed at 4: B was told that it runs."""
    work, b = Work(), Desk("B", leave=0.5)
    async with LateScene(session_class, medium, Desk("A"), GO, **texts(work.tool("look", 4))) as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Well?")
        await call.at(2)
        call.hand_over(b)
        await call.at(20)
        assert call.tellings("look") == ["B"]
    assert result_in(b, "look") == "look-done"
    assert work.did == ["look"]


@either_path
async def test_many_sessions_at_once(medium):
    """Twenty calls that have nothing to do with each other, each with a handoff and a result in it."""

    async def one(n):
        a, b = Desk("A", leave=0.5), Desk("B")
        async with safe_scene(
            a, GO, medium=medium, **texts(Work().tool("look", 1 + n / 10, reports=True))
        ) as call:
            call.types("Go!")
            await call.at(2)
            call.hand_over(b)
            await call.at(10)
            return len(call.tellings("look"))

    assert await asyncio.gather(*(one(n) for n in range(20))) == [1] * 20
