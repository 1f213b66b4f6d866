"""A tool that returns an agent after its turn went on: it was released, or it called `ctx.update()` first."""

from __future__ import annotations

import pytest

from safe_session import SafeOptions

from ._late_scenes import Desk, Form, LateScene, Work, clerk, filled, outputs_in, result_in, safe_scene
from ._scenes import either_path, spoken

NOT_DONE = "The handoff did not happen."
APPLY = SafeOptions(interrupted_handoff="apply")
ASKS = {"Manager!": ["transfer"], "Name?": ["ask"]}


def transferring(*tools, says: str | None = None, **how) -> tuple[Desk, Desk, Work]:
    """A, whose tool `transfer` gives B after 4 seconds, beside what it says if that is given."""
    b, work = Desk("B"), Work()
    transfer = work.tool("transfer", 4, then=lambda _: b if says is None else (b, says), **how)
    return Desk("A", transfer, *tools), b, work


both_forms = pytest.mark.parametrize("says", [None, "transfer-done"], ids=["alone", "beside a result"])


# -- after ctx.update(): report #5936


@pytest.mark.fails_on_plain("<9")
@both_forms
async def test_5936_after_an_update_it_hands_over(session_class, medium, says):
    a, b, work = transferring(says=says, reports=True)
    async with LateScene(session_class, medium, a, ASKS) as call:
        await call.says("Manager!")
        await call.at(10)
        assert call.session.current_agent is b
        assert call.floor[-1][1] == pytest.approx(4.5, abs=0.6)
        await call.says("Well?")
        await call.at(15)
        assert call.said[-1] == "B answers Well?"
    assert len(call.tellings("transfer")) == (1 if says else 0)
    assert NOT_DONE not in str(outputs_in(a.chat_ctx, "transfer"))
    assert [event.to_agent_id for event in call.emitted("handoff_applied")] in (["B"], [])
    assert work.did == ["transfer"]


@both_forms
@spoken
async def test_it_waits_until_its_owner_is_idle(medium, says):
    """A talks from 3 to 6."""
    a, b, _ = transferring(says=says, reports=True)
    async with safe_scene(a, ASKS, medium=medium) as call:
        await call.says("Manager!")
        await call.at(3)
        call.session.say(" ".join(["word"] * 12))
        await call.at(20)
        assert call.session.current_agent is b
        assert call.floor[-1][1] >= 6
        assert not call.line.speaker.utterances[1].interrupted


@both_forms
async def test_it_waits_until_its_owner_resumes(medium, says):
    work, form = Work(), Form("F")
    a, b, _ = transferring(work.tool("ask", 0, then=lambda _: filled(form)), says=says, reports=True)
    async with safe_scene(a, ASKS, medium=medium) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Name?")
        await call.at(8)
        assert call.session.current_agent is form
        form.complete("filled")
        await call.at(20)
        assert call.session.current_agent is b
    assert NOT_DONE not in str(outputs_in(a.chat_ctx, "transfer"))


@both_forms
@pytest.mark.parametrize("reports", [True, False], ids=["updated", "released"])
async def test_it_does_not_happen_once_its_owner_has_left(medium, says, reports):
    a, b, _ = transferring(says=says, reports=reports)
    c = Desk("C")
    async with safe_scene(a, ASKS, medium=medium, safe=APPLY) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(2.5)
        call.hand_over(c)
        await call.at(20)
        assert call.session.current_agent is c
        assert [event.reason for event in call.emitted("handoff_not_applied")] == ["left"]
    assert NOT_DONE in result_in(a, "transfer")
    assert NOT_DONE in result_in(call.session, "transfer")
    assert (says or "") in result_in(a, "transfer")
    assert b not in call.agents


@pytest.mark.parametrize("landing", [3.8, 4.2, 5.5])
@either_path
async def test_it_does_not_happen_once_the_session_closes(medium, landing):
    """The close begins `landing` after the caller's turn, and lets the tool end."""
    a, b, _ = transferring(reports=True)
    async with safe_scene(a, ASKS, medium=medium) as call:
        call.types("Manager!")
        await call.at(min(landing, 3.9))
        call.session.shutdown()
        await call.at(20)
    assert b not in call.agents
    assert NOT_DONE in result_in(a, "transfer")
    assert [event.reason for event in call.emitted("handoff_not_applied")] == ["closing"]


@pytest.mark.parametrize("landing", [2, 3.5, 4.5])
@either_path
async def test_while_the_owner_is_leaving(medium, landing):
    """A leaves from `landing` on for a second; C is to follow, and does."""
    a, b, _ = transferring(reports=True)
    a.leave, c = 1, Desk("C")
    async with safe_scene(a, ASKS, medium=medium) as call:
        call.types("Manager!")
        await call.at(landing)
        call.hand_over(c)
        await call.at(20)
        assert call.session.current_agent is c
    assert (b in call.agents) == (landing > 4)
    assert (NOT_DONE in result_in(a, "transfer")) == (landing < 4)


# -- after the caller interrupted


@pytest.mark.fails_on_plain("<9")
@both_forms
async def test_released_it_is_cancelled_by_default(session_class, medium, says):
    a, b, work = transferring(says=says)
    async with LateScene(session_class, medium, a, ASKS) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(20)
        assert call.session.current_agent is a
        assert [event.reason for event in call.emitted("handoff_not_applied")] == ["interrupted"]
    assert NOT_DONE in result_in(a, "transfer")
    assert (says or "") in result_in(a, "transfer")
    assert b not in call.agents
    assert work.did == ["transfer"]


@both_forms
async def test_released_it_is_applied_where_the_options_say_so(medium, says):
    a, b, work = transferring(says=says)
    async with safe_scene(a, ASKS, medium=medium, safe=APPLY) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(20)
        assert call.session.current_agent is b
        assert 4 <= call.floor[-1][1] < 6
        assert [event.to_agent_id for event in call.emitted("handoff_applied")] == ["B"]
    assert NOT_DONE not in str(outputs_in(a.chat_ctx, "transfer"))
    assert len(call.tellings("transfer")) == (1 if says else 0)
    assert work.did == ["transfer"]


@both_forms
async def test_updated_and_interrupted_it_hands_over(medium, says):
    """It was not interrupted: its turn was over when the caller spoke again."""
    a, b, _ = transferring(says=says, reports=True)
    async with safe_scene(a, ASKS, medium=medium) as call:
        await call.says("Manager!")
        await call.at(2.5)
        await call.says("Well?")
        await call.at(20)
        assert call.session.current_agent is b
    assert NOT_DONE not in str(outputs_in(a.chat_ctx, "transfer"))


@pytest.mark.parametrize("reports", [True, False], ids=["updated", "released"])
async def test_what_it_said_is_interrupted_before_it_is_heard(medium, reports):
    """The handoff has happened, and its record does not say anything else later on."""
    a, b, _ = transferring(says="transfer-done", reports=reports)
    async with safe_scene(a, clerk(ASKS, delay=1), medium=medium, safe=APPLY) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Hello?")
        await call.at(4.5)
        await call.says("Well?")
        await call.at(20)
        assert call.session.current_agent is b
        assert [name for name, _ in call.floor] == ["A", "B"]
        assert call.emitted("handoff_not_applied") == []
        assert len(call.tellings("transfer")) <= 1
    assert result_in(a, "transfer") == "transfer-done"


async def test_two_late_handoffs(medium):
    """The second of them comes from an agent that has left by then."""
    b, c, work = Desk("B"), Desk("C"), Work()
    to_b = work.tool("to_b", 4, reports=True, then=lambda _: b)
    to_c = work.tool("to_c", 6, reports=True, then=lambda _: c)
    a = Desk("A", to_b, to_c)
    async with safe_scene(a, {"Go!": ["to_b", "to_c"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(20)
        assert call.session.current_agent is b
    assert NOT_DONE in result_in(a, "to_c")
    assert NOT_DONE not in result_in(a, "to_b")


async def test_two_late_handoffs_at_once(medium):
    """Each hands over to another: one of them happens, and the other's record says that it did not."""
    b, c, work = Desk("B"), Desk("C"), Work()
    to_b = work.tool("to_b", 4, reports=True, then=lambda _: b)
    to_c = work.tool("to_c", 4, reports=True, then=lambda _: c)
    a = Desk("A", to_b, to_c)
    async with safe_scene(a, {"Go!": ["to_b", "to_c"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(20)
        last = call.session.current_agent
        assert last in {b, c}
        assert [agent for agent in (b, c) if agent in call.agents] == [last]
    lost = "to_c" if last is b else "to_b"
    assert NOT_DONE in result_in(a, lost)
