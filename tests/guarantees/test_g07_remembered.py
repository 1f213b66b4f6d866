"""G7: who tells a result, or was shown a call as running, has its ending in its stored context then on."""

from __future__ import annotations

import pytest
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeOptions, ToolPolicy

from ._late_scenes import Desk, Form, LateScene, Work, filled, outputs_in, result_in, safe_scene, shown_of
from ._scenes import either_path

GO = {"Go!": ["look"], "Name?": ["ask"], "Manager!": ["transfer"]}


def texts(*tools) -> dict:
    return {"tools": [AsyncToolset(id="texts", tools=list(tools))]}


async def chats(call: LateScene, turns: int = 3) -> None:
    for _ in range(turns):
        await call.says("Well?")
        await call.at(call.now + 2)


# -- the one that tells it


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("landing", [1.8, 2.2, 2.6])
@either_path
async def test_the_agent_that_tells_it_still_knows_it_turns_later(session_class, medium, landing):
    """It lands while A leaves, from 1.5 to 3."""
    a, b = Desk("A", leave=1.5), Desk("B")
    async with LateScene(
        session_class, medium, a, GO, **texts(Work().tool("look", landing, reports=True))
    ) as call:
        await call.says("Go!")
        await call.at(1.5)
        call.hand_over(b)
        await call.at(10)
        await chats(call)
        assert call.tellings("look") == ["B"]
        assert shown_of(call.inferences[-1], "look") == "look-done"
    assert result_in(b, "look") == "look-done"


async def test_the_agent_that_tells_its_own_still_knows_it_on_both(session_class, medium):
    a = Desk("A", Work().tool("look", reports=True))
    async with LateScene(session_class, medium, a, GO) as call:
        await call.says("Go!")
        await call.at(8)
        await chats(call)
        assert shown_of(call.inferences[-1], "look") == "look-done"
    assert outputs_in(a.chat_ctx, "look").count("look-done") == 1


# -- the parent of an AgentTask


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("nested", [False, True], ids=["a task", "a nested task"])
async def test_a_parent_gets_what_landed_during_its_task(session_class, medium, nested):
    """The task has told it, so nobody tells it again; but the parents know."""
    work, inner = Work(), Form("G")
    form = Form("F", work.tool("more", 0, then=lambda _: filled(inner)))
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)))
    asks = {**GO, "More?": ["more"]}
    async with LateScene(session_class, medium, a, asks, **texts(work.tool("look", 5, reports=True))) as call:
        for text in ["Go!", "Name?", "More?"] if nested else ["Go!", "Name?"]:
            await call.says(text)
            await call.at(call.now + 1)
        await call.at(8)
        for task in (inner, form) if nested else (form,):
            task.complete("filled")
            await call.at(call.now + 2)
        await chats(call, 1)
        assert call.tellings("look") == ["G" if nested else "F"]
        assert shown_of(call.inferences[-1], "look") == "look-done"
    for agent in (a, form, inner) if nested else (a, form):
        assert result_in(agent, "look") == "look-done"


@pytest.mark.fails_on_plain("<1.8.9")
async def test_a_parent_gets_its_own_result_that_landed_during_its_task(session_class, medium):
    work, form = Work(), Form("F")
    a = Desk("A", work.tool("ask", 0, then=lambda _: filled(form)), work.tool("look", reports=True))
    async with LateScene(session_class, medium, a, GO) as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Name?")
        await call.at(8)
        form.complete("filled")
        await call.at(12)
        await chats(call, 1)
        assert call.tellings("look") == ["A"]
        assert shown_of(call.inferences[-1], "look") == "look-done"


# -- an agent that is built from another's context


def heir_of(a: Desk) -> Desk:
    return Desk("B", chat_ctx=a.chat_ctx)


@pytest.mark.fails_on_plain("<9")
async def test_an_heir_keeps_the_calls_of_the_sessions_tools(session_class, medium):
    """One call had ended, and one has given its receipt only."""
    work = Work()
    a = Desk("A", work.tool("transfer", 0, then=lambda _: heir_of(a)))
    tools = texts(work.tool("find", 0.5), work.tool("look", 6, reports=True))
    async with LateScene(session_class, medium, a, {**GO, "Go!": ["find", "look"]}, **tools) as call:
        await call.says("Go!")
        await call.at(3)
        await call.says("Manager!")
        await call.at(5)
        b = call.session.current_agent
        assert outputs_in(b.chat_ctx, "find") == ["find-done"]
        assert "look-begun" in result_in(b, "look")
        await call.says("Well?")
        assert shown_of(call.inferences[-1], "find") == "find-done"
        await call.at(12)
        assert call.tellings("look") == ["B"]
        assert result_in(b, "look") == "look-done"


@pytest.mark.fails_on_plain("<9")
async def test_an_heir_that_comes_after_another_agent_keeps_them_too(session_class, medium):
    """C is built from A's context, and B has the floor in between."""
    work = Work()
    a, b = Desk("A"), Desk("B")
    tools = texts(work.tool("find", 0.5))
    async with LateScene(session_class, medium, a, {"Go!": ["find"]}, **tools) as call:
        await call.says("Go!")
        await call.at(3)
        await chats(call, 1)
        c = Desk("C", chat_ctx=a.chat_ctx)
        call.hand_over(b)
        await call.at(call.now + 1)
        call.hand_over(c)
        await call.at(call.now + 1)
        assert outputs_in(c.chat_ctx, "find") == ["find-done"]
        assert outputs_in(b.chat_ctx, "find") == []


@pytest.mark.fails_on_plain("<9")
async def test_an_heir_gets_the_calls_of_the_step_that_hands_over(session_class, medium):
    """`find` ends in the step, and `look` 4 seconds later."""
    work = Work()
    a = Desk("A", work.tool("transfer", 0.1, then=lambda _: heir_of(a)))
    tools = texts(work.tool("find", 0.5), work.tool("look", 4, reports=True))
    async with LateScene(session_class, medium, a, {"Go!": ["find", "look", "transfer"]}, **tools) as call:
        await call.says("Go!")
        await call.at(12)
        b = call.session.current_agent
        assert b.id == "B"
        assert outputs_in(b.chat_ctx, "find") == ["find-done"]
        assert call.tellings("look") == ["B"]
        assert result_in(b, "look") == "look-done"


@pytest.mark.fails_on_plain("<9")
async def test_an_heir_gets_its_predecessors_call_that_ends_later(session_class, medium):
    """Nobody tells it, as A has left; but B has had A's words of it, and knows the end."""
    work = Work()
    a = Desk("A", work.tool("look", 4, reports=True), work.tool("transfer", 0.1, then=lambda _: heir_of(a)))
    async with LateScene(session_class, medium, a, {"Go!": ["look", "transfer"]}) as call:
        await call.says("Go!")
        await call.at(8)
        await chats(call, 1)
        b = call.session.current_agent
        assert b.id == "B"
        assert shown_of(call.inferences[-1], "look") == "look-done"
        assert result_in(b, "look") == "look-done"


async def test_an_agent_that_is_not_an_heir_gets_nothing_that_it_was_not_shown(medium):
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("find", 0.5), work.tool("transfer", 0, then=lambda _: b))
    async with safe_scene(a, {"Go!": ["find"], "Manager!": ["transfer"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(3)
        await call.says("Manager!")
        await call.at(5)
        await chats(call, 1)
        assert outputs_in(b.chat_ctx, "find") == []
        assert shown_of(call.inferences[-1], "find") is None


async def test_a_context_that_is_trimmed_on_purpose_stays_trimmed(medium):
    """B takes over A's last two messages only."""
    work = Work()

    def transfer(_):
        context = a.chat_ctx.copy()
        context.items[:] = [item for item in context.items if item.type == "message"][-2:]
        return Desk("B", chat_ctx=context)

    a = Desk("A", work.tool("transfer", 0, then=transfer))
    async with safe_scene(a, {**GO, "Go!": ["find"]}, medium=medium, **texts(work.tool("find", 0.5))) as call:
        await call.says("Go!")
        await call.at(3)
        await chats(call, 2)
        await call.says("Manager!")
        await call.at(call.now + 2)
        await chats(call, 1)
        b = call.session.current_agent
        assert b.id == "B"
        assert outputs_in(b.chat_ctx, "find") == []
        assert shown_of(call.inferences[-1], "find") is None


# -- an agent's own late result


@pytest.mark.fails_on_plain("<9")
async def test_its_own_late_result_strips_no_record_that_a_task_left(session_class, medium):
    """The task has left A a record of its own tool, `find`; A's own `look` ends after that."""
    work = Work()
    form = Form("F", work.tool("find", 0.5), preserve_function_call_history=True)
    a = Desk("A", work.tool("look", 8, reports=True), work.tool("ask", 0, then=lambda _: filled(form)))
    async with LateScene(session_class, medium, a, {**GO, "Find!": ["find"]}) as call:
        for text in ("Go!", "Name?", "Find!"):
            await call.says(text)
            await call.at(call.now + 1.5)
        form.complete("filled")
        await call.at(7)
        assert outputs_in(a.chat_ctx, "find") == ["find-done"]
        await call.at(12)
        assert outputs_in(a.chat_ctx, "look")[-1] == "look-done"
        assert outputs_in(a.chat_ctx, "find") == ["find-done"]


async def test_its_own_late_result_strips_no_record_of_what_it_told_for_another(medium):
    """B tells the result of A's tool, and then that of its own."""
    work = Work()
    options = SafeOptions(policies={"look": ToolPolicy(on_handoff="retarget")})
    a, b = Desk("A", work.tool("look", 4, reports=True)), Desk("B", work.tool("send", 4, reports=True))
    async with safe_scene(a, {**GO, "Send!": ["send"]}, medium=medium, safe=options) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(3)
        await call.says("Send!")
        await call.at(12)
        assert (call.tellings("look"), call.tellings("send")) == (["B"], ["B"])
        assert result_in(b, "look") == "look-done"
        assert result_in(b, "send") == "send-done"


# -- whoever was shown it as running


@pytest.mark.parametrize("scope", ["agent", "session"])
async def test_whoever_was_shown_it_as_running_is_shown_its_ending(medium, scope):
    """B and C each have a turn while A's tool runs, and another one after it has ended."""
    look = Work().tool("look", 8, reports=True)
    a, b, c = Desk("A", *([look] if scope == "agent" else [])), Desk("B"), Desk("C")
    async with safe_scene(a, GO, medium=medium, **(texts(look) if scope == "session" else {})) as call:
        await call.says("Go!")
        for second, agent in ((2, b), (4, c)):
            await call.at(second)
            call.hand_over(agent)
            await call.at(second + 0.5)
            await call.says("Well?")
            assert shown_of(call.inferences[-1], "look") is not None
        await call.at(12)
        for agent in (c, b, a):
            if call.session.current_agent is not agent:
                call.hand_over(agent)
                await call.at(call.now + 0.5)
            await call.says("Result?")
            await call.at(call.now + 2)
            assert shown_of(call.inferences[-1], "look") == "look-done", agent.id
            assert result_in(agent, "look") == "look-done"


async def test_whoever_was_shown_a_released_one_as_running_is_shown_its_ending(medium):
    """A is released at 1.25, hands over at 2 and takes over again at 6; the tool ends at 4."""
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("look", 4))
    async with safe_scene(a, GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Well?")
        await call.at(2)
        call.hand_over(b)
        await call.at(2.5)
        await call.says("Hello?")
        await call.at(6)
        await call.says("Result?")
        await call.at(8)
        assert shown_of(call.inferences[-1], "look") == "look-done"
        assert result_in(a, "look") == result_in(b, "look") == "look-done"
    assert work.did == ["look"]
