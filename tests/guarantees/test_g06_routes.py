"""G6: a late result is told by the right agent, or dropped with an event: the route table, in real sessions.

The tool `look` reports at once and ends later. Whoever tells its result says so by name: "B tells look-done".
"""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents.llm import Toolset
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeAgentSession, SafeOptions, ToolPolicy, tool_policy

from ._late_scenes import WORD, Desk, Form, LateScene, Work, filled, outputs_in, result_in, safe_scene
from ._scenes import either_path, spoken

GO = {"Go!": ["look"]}
SCOPES = ["agent", "session"]
scopes = pytest.mark.parametrize("scope", SCOPES)
RETARGET = SafeOptions(policies={"look": ToolPolicy(on_handoff="retarget")})


def first_agent(scope: str, *looks, tools=(), **kwargs) -> tuple[Desk, dict]:
    """An agent with these tools, or one in a session that has them."""
    if scope == "agent":
        return Desk("A", *looks, *tools, **kwargs), {}
    return Desk("A", *tools, **kwargs), {"tools": [AsyncToolset(id="texts", tools=list(looks))]}


def told_or_dropped(call: LateScene, *agents: Desk, tool: str = "look") -> str:
    """Who told the result, once, and has it; or "dropped", with an event."""
    tellers, dropped = call.tellings(tool), call.emitted("reply_dropped")
    assert len(tellers) + len(dropped) == 1, f"told by {tellers}, dropped {len(dropped)} times"
    assert result_in(call.session, tool) == f"{tool}-done"
    if dropped:
        return "dropped"
    teller = next(agent for agent in agents if agent.id == tellers[0])
    assert outputs_in(teller.chat_ctx, tool).count(f"{tool}-done") == 1
    return teller.id


# -- the owner is current


@scopes
async def test_the_owner_is_current_on_both(session_class, medium, scope):
    a, options = first_agent(scope, Work().tool("look", reports=True))
    async with LateScene(session_class, medium, a, GO, **options) as call:
        await call.says("Go!")
        await call.at(20)
        assert call.tellings("look") == ["A"]
    assert result_in(a, "look") == "look-done"


# -- the owner is paused


def with_forms(scope: str, takes: float, nested: bool) -> tuple[Desk, list[Form], dict]:
    """The caller says "Go!", then "Name?", and "More?" to the form if there is one more in it."""
    work = Work()
    inner = Form("G")
    form = Form("F", *([work.tool("more", 0, then=lambda _: filled(inner))] if nested else []))
    ask = work.tool("ask", 0, then=lambda _: filled(form))
    a, options = first_agent(scope, work.tool("look", takes, reports=True), tools=[ask])
    return a, [form, inner] if nested else [form], options


ASKS = {"Go!": ["look"], "Name?": ["ask"], "More?": ["more"]}


@pytest.mark.fails_on_plain("<1.8.9")
@pytest.mark.parametrize("nested", [False, True], ids=["a task", "a nested task"])
async def test_the_owner_is_paused(session_class, medium, nested):
    """The result lands at 4; the tasks are over at 7."""
    a, forms, options = with_forms("agent", 4, nested)
    async with LateScene(session_class, medium, a, ASKS, **options) as call:
        for text in ["Go!", "Name?", "More?"][: 1 + len(forms)]:
            await call.says(text)
            await call.at(call.now + 1)
        await call.at(6)
        assert call.session.current_agent is forms[-1]
        assert call.tellings("look") == []
        for n, form in enumerate(reversed(forms)):
            await call.at(7 + n)
            form.complete("filled")
        await call.at(30)
        assert call.tellings("look") == ["A"]
    assert result_in(a, "look") == "look-done"


@pytest.mark.parametrize("nested", [False, True], ids=["a task", "a nested task"])
async def test_a_session_tool_ends_under_a_task(medium, nested):
    """The task that has the floor tells it."""
    a, forms, options = with_forms("session", 4, nested)
    async with safe_scene(a, ASKS, medium=medium, **options) as call:
        for text in ["Go!", "Name?", "More?"][: 1 + len(forms)]:
            await call.says(text)
            await call.at(call.now + 1)
        await call.at(8)
        assert call.tellings("look") == [forms[-1].id]
        assert [event.told_by for event in call.emitted("reply_retargeted")] == [forms[-1].id]
        for form in reversed(forms):
            form.complete("filled")
            await call.at(call.now + 2)
        assert call.tellings("look") == [forms[-1].id]
    assert result_in(a, "look") == result_in(forms[-1], "look") == "look-done"


@pytest.mark.fails_on_plain("<1.8.9")
@either_path
async def test_while_it_is_held_the_run_ends(session_class, medium):
    """It lands in the run, at 2; the run would wait for ever, since the task needs another one to end."""
    work, form = Work(), Form("F", enter=2)
    ask = work.tool("ask", 0, then=lambda _: filled(form))
    a = Desk("A", ask, work.tool("look", 2, reports=True))
    async with LateScene(session_class, medium, a, ASKS) as call:
        call.types("Go!")
        await call.at(1)
        await call.within(5, call.session.run(user_input="Name?"))
        await call.within(5, call.session.run(user_input="Hello"))
        form.complete("filled")
        await call.at(20)
        assert call.tellings("look") == ["A"]


# -- the owner leaves, or has left


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("retarget", ["no", "by decorator", "by options"])
async def test_the_owner_has_left(session_class, medium, retarget):
    """A plain session waits for the tool (3.7 s of the handoff), and nobody tells it."""
    look = Work().tool("look", reports=True)
    if retarget == "by decorator":
        look = tool_policy(on_handoff="retarget")(look)
    a, b = Desk("A", look), Desk("B")
    safe = RETARGET if retarget == "by options" else None
    async with LateScene(session_class, medium, a, GO, safe=safe) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(20)
        assert call.floor[-1][1] < 2.5
        assert told_or_dropped(call, a, b) == ("dropped" if retarget == "no" else "B")
    assert result_in(a, "look") == "look-done"
    assert [e.reason for e in call.emitted("reply_dropped")] == (["gone"] if retarget == "no" else [])


@pytest.mark.parametrize("retarget", [False, True])
async def test_the_owner_is_leaving(medium, retarget):
    """The result lands at 4 while `on_exit` of A runs, from 3 to 5."""
    a, b = Desk("A", Work().tool("look", reports=True), leave=2), Desk("B")
    async with safe_scene(a, GO, medium=medium, safe=RETARGET if retarget else None) as call:
        await call.says("Go!")
        await call.at(3)
        call.hand_over(b)
        await call.at(20)
        assert told_or_dropped(call, a, b) == ("B" if retarget else "dropped")
        assert [e.reason for e in call.emitted("reply_held")] == ["handing off"]


@pytest.mark.parametrize("retarget", [False, True])
@spoken
async def test_the_owner_is_draining(medium, retarget):
    """A still says something of eight words, from 3 to 5, when it is to leave; the result lands at 4."""
    a, b = Desk("A", Work().tool("look", reports=True)), Desk("B")
    async with safe_scene(a, GO, medium=medium, safe=RETARGET if retarget else None) as call:
        await call.says("Go!")
        await call.at(3)
        call.session.say("One two three four five six seven eight", allow_interruptions=False)
        call.hand_over(b)
        await call.at(20)
        assert call.floor[-1][1] == pytest.approx(5, abs=0.3)
        assert told_or_dropped(call, a, b) == ("B" if retarget else "dropped")


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("nested", [False, True], ids=["AsyncToolset", "nested in a Toolset"])
async def test_a_toolset_of_the_session_outlives_the_owner(session_class, medium, nested):
    """Told by B, and in its stored context."""
    toolset = AsyncToolset(id="texts", tools=[Work().tool("look", reports=True)])
    a, b = Desk("A", leave=0.5), Desk("B")
    tools = [Toolset(id="all", tools=[toolset]) if nested else toolset]
    async with LateScene(session_class, medium, a, GO, tools=tools) as call:
        await call.says("Go!")
        await call.at(3.9)
        call.hand_over(b)
        await call.at(20)
        assert call.tellings("look") == ["B"]
    assert outputs_in(b.chat_ctx, "look")[-1] == "look-done"


@pytest.mark.parametrize("nested", [False, True], ids=["AsyncToolset", "nested in a Toolset"])
async def test_a_toolset_of_an_agent_is_its_own(medium, nested):
    """It is closed with its agent, which waits for it; so its result comes too late to be told."""
    toolset = AsyncToolset(id="texts", tools=[Work().tool("look", reports=True)])
    a, b = Desk("A", Toolset(id="all", tools=[toolset]) if nested else toolset), Desk("B")
    async with safe_scene(a, GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(20)
        assert call.floor[-1][1] == pytest.approx(4.2, abs=0.3)
        assert told_or_dropped(call, a, b) == "dropped"
    assert result_in(a, "look") == "look-done"


@pytest.mark.parametrize("nested", [False, True], ids=["AsyncToolset", "nested in a Toolset"])
async def test_a_toolset_of_an_agent_that_stays_on_both(session_class, medium, nested):
    toolset = AsyncToolset(id="texts", tools=[Work().tool("look", reports=True)])
    a = Desk("A", Toolset(id="all", tools=[toolset]) if nested else toolset)
    async with LateScene(session_class, medium, a, GO) as call:
        await call.says("Go!")
        await call.at(20)
        assert call.tellings("look") == ["A"]


# -- the session hands off: every moment of it


def landings(first: float, last: float, step: float = 0.1) -> list[float]:
    return [round(first + n * step, 3) for n in range(round((last - first) / step) + 1)]


async def one_landing(scope, medium, landing, *, safe=None, session_class=SafeAgentSession):
    """The handoff begins at 2, A leaves until 2.5, `on_enter` of B goes on until 3."""
    work = Work()
    a, options = first_agent(scope, work.tool("look", landing, reports=True), leave=0.5)
    b = Desk("B", enter=0.5)
    async with LateScene(session_class, medium, a, GO, safe=safe, **options) as call:
        call.types("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(20)
    return told_or_dropped(call, a, b)


@pytest.mark.parametrize("landing", landings(1.6, 3.3))
@either_path
async def test_a_session_tool_lands_in_each_moment_of_a_handoff(medium, landing):
    teller = await one_landing("session", medium, landing)
    assert teller == ("A" if landing < 2 else "B") or (landing == 2 and teller != "dropped")


@pytest.mark.parametrize("landing", landings(1.2, 3.2, 0.2))
@scopes
async def test_it_lands_in_each_moment_of_a_handoff_in_voice(scope, landing):
    teller = await one_landing(scope, "voice", landing)
    assert teller in ({"A", "B"} if scope == "session" else {"A", "dropped"})


@pytest.mark.parametrize("landing", landings(1.6, 3.3))
@either_path
async def test_an_agents_tool_lands_in_each_moment_of_a_handoff(medium, landing):
    teller = await one_landing("agent", medium, landing)
    assert teller == ("A" if landing < 2 else "dropped") or landing == 2


@pytest.mark.parametrize("landing", landings(1.6, 3.2, 0.2))
@spoken
async def test_a_retargeted_tool_lands_in_each_moment_of_a_handoff(medium, landing):
    teller = await one_landing("agent", medium, landing, safe=RETARGET)
    assert teller != "dropped"


@pytest.mark.parametrize("offset", [-1e-6, 0, 1e-6], ids=["just before", "at", "just after"])
@pytest.mark.parametrize("moment", [2, 2.5, 3])
@scopes
@either_path
async def test_in_the_very_moment(medium, scope, moment, offset):
    await one_landing(scope, medium, moment + offset)


@pytest.mark.fails_on_plain("<9")
async def test_it_lands_while_an_agent_leaves(session_class, medium):
    assert await one_landing("session", medium, 2.2, session_class=session_class) == "B"


@pytest.mark.parametrize("landing", landings(1.8, 4.6, 0.4))
@pytest.mark.parametrize("back", [False, True], ids=["A to B to C", "A to B to A"])
@scopes
@either_path
async def test_two_handoffs_in_a_row(medium, scope, landing, back):
    """Asked for at 2 and at 2.2; each takes a second."""
    a, options = first_agent(scope, Work().tool("look", landing, reports=True), leave=1)
    b, c = Desk("B", leave=1), Desk("C")
    last = a if back else c
    async with safe_scene(a, GO, medium=medium, **options) as call:
        call.types("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(2.2)
        call.hand_over(last)
        await call.at(20)
        assert call.session.current_agent is last
        teller = told_or_dropped(call, a, b, c)
    if scope == "session":
        assert teller != "dropped"
    elif back:
        assert teller in {"A", "dropped"}
    else:
        assert teller == ("A" if landing < 2 else "dropped") or landing == 2


@scopes
async def test_the_owner_comes_back_before_it_ends(medium, scope):
    a, options = first_agent(scope, Work().tool("look", 6, reports=True))
    b = Desk("B")
    async with safe_scene(a, GO, medium=medium, **options) as call:
        await call.says("Go!")
        await call.at(2)
        call.hand_over(b)
        await call.at(4)
        call.hand_over(a)
        await call.at(20)
        assert told_or_dropped(call, a, b) == "A"


@pytest.mark.parametrize("landing", landings(0.5, 4.5, 0.25))
@scopes
@either_path
async def test_each_moment_of_an_agent_task(medium, scope, landing):
    """The task starts at 1 with half a second of `on_enter`, and leaves for half a second from 3 on."""
    work, form = Work(), Form("F", enter=0.5, leave=0.5)
    ask = work.tool("ask", 0, then=lambda _: filled(form))
    a, options = first_agent(scope, work.tool("look", landing, reports=True), tools=[ask])
    async with safe_scene(a, ASKS, medium=medium, **options) as call:
        call.types("Go!")
        await call.at(1)
        call.types("Name?")
        await call.at(3)
        form.complete("filled")
        await call.at(20)
        assert call.session.current_agent is a
        teller = told_or_dropped(call, a, form)
    assert teller == "A" if scope == "agent" else teller in {"A", "F"}
    assert outputs_in(a.chat_ctx, "look").count("look-done") == 1


# -- the session closes


@pytest.mark.parametrize("landing", [2.5, 2.9, 3, 3.1, 3.6, 4.5])
@pytest.mark.parametrize("drain", [False, True])
@scopes
@spoken
async def test_the_session_closes(medium, scope, landing, drain):
    """The close begins at 3 while A talks."""
    a, options = first_agent(scope, Work().tool("look", landing, reports=True))
    async with safe_scene(a, GO, medium=medium, **options) as call:
        call.types("Go!")
        await call.at(2.8)
        call.session.say("One two three four five")
        await call.at(3)
        call.session.shutdown(drain=drain)
        await call.at(20)
    assert result_in(a, "look") == result_in(call.session, "look") == "look-done"
    dropped = [e.reason for e in call.emitted("reply_dropped")]
    assert dropped in (["closing"], [])
    assert len(dropped) + len(call.tellings("look")) <= 1
    if landing > 3:
        assert dropped == ["closing"]


# -- the report's own timelines


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("lands", [0.2, 4])
async def test_7632_an_async_tool_and_a_handoff_in_one_step(session_class, medium, lands):
    """Nobody tells it, as its agent has left; the handoff doesn't wait for it, and an event says so."""
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("look", lands, reports=True), work.tool("transfer", 0.1, then=lambda _: b))
    async with LateScene(session_class, medium, a, {"Go!": ["look", "transfer"]}) as call:
        asked = await call.says("Go!")
        await call.at(20)
        assert call.session.current_agent is b
        assert call.floor[-1][1] - asked < (0.5 if medium == "text" else 0.5 + 3 * WORD)  # A answers first
        assert told_or_dropped(call, a, b) == "dropped"
    assert result_in(a, "look") == "look-done"
    assert work.did == ["look", "transfer"]


@pytest.mark.fails_on_plain("<1.8.9")
async def test_7632_with_an_agent_task(session_class, medium):
    """The task never saw the result, and does not speak of it: the agent that comes back does."""
    work, form = Work(), Form("F")
    a = Desk("A", work.tool("look", 4, reports=True), work.tool("ask", 0.1, then=lambda _: filled(form)))
    async with LateScene(session_class, medium, a, {"Go!": ["look", "ask"]}) as call:
        await call.says("Go!")
        await call.at(6)
        assert call.session.current_agent is form
        assert call.said == []
        form.complete("filled")
        await call.at(20)
        assert call.tellings("look") == ["A"]


@pytest.mark.fails_on_plain("<9", realtime="<1.8.9")
@either_path
async def test_7632_with_a_toolset_of_the_session(session_class, medium):
    await toolset_of_the_session(session_class, medium, 0.2)


@pytest.mark.parametrize("lands", [0.11, 0.2, 0.5, 0.6, 0.7, 1, 4])
async def test_7632_with_a_toolset_of_the_session_in_each_moment(medium, lands):
    await toolset_of_the_session(SafeAgentSession, medium, lands)


async def toolset_of_the_session(session_class, medium, lands):
    work, b = Work(), Desk("B")
    a = Desk("A", work.tool("transfer", 0.1, then=lambda _: b), leave=0.5)
    tools = [AsyncToolset(id="texts", tools=[work.tool("look", lands, reports=True)])]
    async with LateScene(session_class, medium, a, {"Go!": ["look", "transfer"]}, tools=tools) as call:
        await call.says("Go!")
        await call.at(20)
        assert call.tellings("look") == ["B"]
        assert outputs_in(b.chat_ctx, "look")[-1] == "look-done"


# -- several owners


@pytest.mark.parametrize("seconds", [(3, 5), (5, 3), (4, 4)], ids=str)
@either_path
async def test_a_held_result_does_not_hold_up_another(medium, seconds):
    """A's result is held while the task has the floor; that of the session's tool is told by the task."""
    work, form = Work(), Form("F")
    ask = work.tool("ask", 0, then=lambda _: filled(form))
    a = Desk("A", ask, work.tool("look", seconds[0], reports=True))
    tools = [AsyncToolset(id="texts", tools=[work.tool("text", seconds[1], reports=True)])]
    async with safe_scene(a, {**ASKS, "Go!": ["look", "text"]}, medium=medium, tools=tools) as call:
        call.types("Go!")
        await call.at(1)
        call.types("Name?")
        await call.at(8)
        assert (call.tellings("text"), call.tellings("look")) == (["F"], [])
        form.complete("filled")
        await call.at(20)
        assert (call.tellings("text"), call.tellings("look")) == (["F"], ["A"])


@either_path
async def test_handoffs_again_and_again_while_results_land(medium):
    """Ten handoffs between two agents, one each 0.3 s, while ten results land."""
    work = Work()
    names = [f"look{n}" for n in range(10)]
    toolset = AsyncToolset(
        id="texts", tools=[work.tool(name, 1 + 0.31 * n, reports=True) for n, name in enumerate(names)]
    )
    a, b = Desk("A", leave=0.1, enter=0.1), Desk("B", leave=0.1, enter=0.1)
    async with safe_scene(a, {"Go!": names}, medium=medium, tools=[toolset]) as call:
        call.types("Go!")
        for n in range(10):
            await call.at(1 + 0.3 * n)
            call.hand_over(a if n % 2 else b)
        await asyncio.sleep(20)
        assert [len(call.tellings(name)) for name in names] == [1] * 10
