"""G5: a late result is told once: offered again if nobody heard of it, and not told again if somebody did.

The result of `look` lands at 4; the model takes a second over what it says of it.
"""

from __future__ import annotations

import pytest
from livekit.agents.llm.async_toolset import AsyncToolset
from livekit.agents.voice import events

from safe_session import SafeOptions

from ._late_scenes import (
    WORD,
    WORDING,
    Desk,
    Form,
    LateScene,
    Work,
    agent_of,
    asked_to_tell,
    clerk,
    filled,
    result_in,
    safe_scene,
)
from ._scenes import spoken

SLOW = {"delay": 1.0}
GO = {"Go!": ["look"], "Manager!": ["transfer"]}


def looking(*tools, **kwargs) -> Desk:
    return Desk("A", Work().tool("look", reports=True), *tools, **kwargs)


def told(call: LateScene, tool: str = "look") -> int:
    """How often the caller heard the whole of it (in text: how often it was said)."""
    said = call.line.speaker.heard if call.line is not None else call.said
    return sum(f"{tool}-done" in text for text in said)


@pytest.mark.fails_on_plain("<9")
@pytest.mark.parametrize("word", [0.05, 0.3, 0.7])
async def test_interrupted_before_anything_was_heard_it_is_offered_again(session_class, medium, word):
    async with LateScene(session_class, medium, looking(), clerk(GO, **SLOW)) as call:
        await call.says("Go!")
        await call.at(4.25 + word)
        await call.says("Well?")
        await call.at(30)
        assert told(call) == 1
        assert call.offers("look") == ["TELL", "MAYBE"]
    assert "A answers Well?" in call.said
    assert [event.tool for event in call.emitted("reply_redelivered")] == ["look"]


@pytest.mark.parametrize(("redeliver", "offers"), [(0, 1), (1, 2), (2, 3), (5, 4)])
async def test_it_is_offered_again_so_often_and_no_more(medium, redeliver, offers):
    """The caller interrupts the first three offers."""
    options = SafeOptions(redeliver=redeliver)
    async with safe_scene(looking(), clerk(GO, **SLOW), medium=medium, safe=options) as call:
        await call.says("Go!")
        for n in range(3):
            while len(call.offers("look")) <= n and call.now < 12 + n:
                await call.at(call.now + 0.1)
            await call.at(call.now + 0.2)
            await call.says("Well?")
        await call.at(40)
        assert len(call.offers("look")) == offers
        assert told(call) == (1 if redeliver >= 3 else 0)
        assert len(call.emitted("reply_redelivered")) == offers - 1
    assert result_in(call.session, "look") == "look-done"


@pytest.mark.parametrize("second", [4.4, 4.6, 4.9])
@spoken
async def test_heard_in_part_it_is_not_told_again_on_both(session_class, medium, second):
    """The reply starts to play at 4.25; the caller's word ends in it, at `second`."""
    async with LateScene(session_class, medium, looking(), clerk(GO)) as call:
        await call.says("Go!")
        reply = await call.line.speaker.wait_started(2)
        await call.at(second - WORD)
        await call.says("Well?")
        await call.at(30)
        assert reply.interrupted
        assert reply.position > 0
        assert len(call.offers("look")) == 1


@spoken
async def test_generated_is_not_heard(medium):
    """The whole reply is generated at once; the caller has it cut off in the moment it starts to play."""
    async with safe_scene(looking(), clerk(GO, **SLOW), medium=medium) as call:
        await call.says("Go!")
        reply = await call.line.speaker.wait_started(2)
        call.session.interrupt()
        await call.at(30)
        assert reply.position == 0
        assert told(call) == 1
        assert call.offers("look") == ["TELL", "MAYBE"]


async def test_heard_in_full_it_is_not_told_again_on_both(session_class, medium):
    async with LateScene(session_class, medium, looking(), clerk(GO)) as call:
        await call.says("Go!")
        await call.at(8)
        for _ in range(3):
            await call.says("Well?")
            await call.at(call.now + 2)
        assert told(call) == 1
        assert call.offers("look") == ["TELL"]


async def test_text_that_went_out_in_part_is_not_told_again():
    """Its words go out each quarter of a second from 4 on; it is interrupted at 4.6."""
    async with safe_scene(looking(), clerk(GO, pace=0.25)) as call:
        await call.says("Go!")
        await call.at(4.6)
        await call.says("Well?")
        await call.at(30)
        assert call.offers("look") == ["TELL"]


@pytest.mark.fails_on_plain("<9")
async def test_interrupted_by_the_program(session_class, medium):
    async with LateScene(session_class, medium, looking(), clerk(GO, **SLOW)) as call:
        await call.says("Go!")
        await call.at(4.75)
        call.session.interrupt(force=True)
        await call.at(30)
        assert told(call) == 1


async def test_what_a_later_inference_has_told_is_not_told_again(medium):
    """The caller interrupts with the question itself, and the model answers it."""
    async with safe_scene(looking(), clerk(GO, **SLOW), medium=medium) as call:
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Result?")
        await call.at(30)
        assert told(call) == 1


# -- several results


@spoken
async def test_results_that_wait_together_are_told_together(medium):
    """Both land while A talks, from 3 to 7."""
    work = Work()
    a = Desk("A", work.tool("look", 4, reports=True), work.tool("find", 5, reports=True))
    async with safe_scene(a, {"Go!": ["look", "find"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(3)
        call.session.say(" ".join(["word"] * 16))
        await call.at(30)
        assert call.said[-1] == "A tells look-done find-done"
        assert (told(call, "look"), told(call, "find")) == (1, 1)
        assert len(call.offers("look")) == 1


async def test_results_that_wait_under_a_task_are_told_together(medium):
    work, form = Work(), Form("F")
    tools = [work.tool("look", 2, reports=True), work.tool("find", 3, reports=True)]
    a = Desk("A", *tools, work.tool("ask", 0, then=lambda _: filled(form)))
    async with safe_scene(a, {"Go!": ["look", "find"], "Name?": ["ask"]}, medium=medium) as call:
        await call.says("Go!")
        await call.at(1)
        await call.says("Name?")
        await call.at(6)
        form.complete("filled")
        await call.at(30)
        assert [text for text in call.said if "tells" in text] == ["A tells look-done find-done"]


async def test_results_that_were_offered_together_are_offered_again_together(medium):
    work = Work()
    a = Desk("A", work.tool("look", 4, reports=True), work.tool("find", 4, reports=True))
    async with safe_scene(a, clerk({"Go!": ["look", "find"]}, **SLOW), medium=medium) as call:
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Well?")
        await call.at(30)
        assert sorted(call.said[-1].split()) == ["A", "find-done", "look-done", "tells"]
        assert call.offers("look") == call.offers("find") == ["TELL", "MAYBE"]


async def test_a_result_that_lands_while_another_is_told(medium):
    """At 4 and at 4.5; the model takes a second over each."""
    work = Work()
    a = Desk("A", work.tool("look", 4, reports=True), work.tool("find", 4.5, reports=True))
    async with safe_scene(a, clerk({"Go!": ["look", "find"]}, **SLOW), medium=medium) as call:
        await call.says("Go!")
        await call.at(30)
        assert (told(call, "look"), told(call, "find")) == (1, 1)


async def test_each_progress_is_told_once(medium):
    async def go_on(ctx):
        await ctx.update("halfway")
        return "look-done"

    work = Work()
    a = Desk("A", work.tool("look", 3, reports=True, then=go_on))
    async with safe_scene(a, GO, medium=medium) as call:
        await call.says("Go!")
        await call.at(30)
        assert sum("halfway" in text for text in call.said) == 1
        assert told(call) == 1


# -- across a handoff


@pytest.mark.parametrize("scope", ["agent", "session"])
async def test_interrupted_by_a_handoff(medium, scope):
    """The caller interrupts the reply by asking for the manager: the second offer goes by the route table."""
    work, b = Work(), Desk("B")
    look, transfer = work.tool("look", reports=True), work.tool("transfer", 0, then=lambda _: b)
    a = Desk("A", transfer) if scope == "session" else Desk("A", transfer, look)
    tools = [AsyncToolset(id="texts", tools=[look])] if scope == "session" else []
    async with safe_scene(a, clerk(GO, **SLOW), medium=medium, tools=tools) as call:
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Manager!")
        await call.at(30)
        assert call.session.current_agent is b
        assert len(call.tellings("look")) + len(call.emitted("reply_dropped")) == 1
        assert scope == "agent" or told(call) == 1


# -- the wording


async def test_the_applications_own_wording(medium):
    """As functions, on the session; the toolset has one of its own."""
    seen = []

    def wording(who):
        def word(kind):
            return lambda given: seen.append((who, kind)) or f"{kind} {given['call_ids']}"

        return {"reply_at_tail_template": word("TELL"), "reply_maybe_covered_template": word("MAYBE")}

    look = Work().tool("look", reports=True)
    toolset = AsyncToolset(id="texts", tools=[look], tool_handling={"async_options": wording("toolset")})
    options = {"tools": [toolset], "tool_handling": {"async_options": wording("session")}}
    async with safe_scene(Desk("A"), clerk(GO, **SLOW), medium=medium, **options) as call:
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Well?")
        await call.at(30)
    assert seen == [("toolset", "TELL"), ("toolset", "MAYBE")]


async def test_the_agents_own_wording(medium):
    mine = {"reply_maybe_covered_template": "MAYBE {call_ids} (mine)"}
    a = looking(tool_handling={"async_options": {**WORDING, **mine}})
    async with safe_scene(a, clerk(GO, **SLOW), medium=medium) as call:
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Well?")
        await call.at(30)
    system = [m.text_content for i in call.inferences for m in i.shown.items if m.type == "message"]
    assert any("(mine)" in (text or "") for text in system)


@pytest.mark.fails_on_plain(realtime=">=1.6")
@spoken
async def test_what_is_no_longer_the_newest_may_be_covered(session_class, medium):
    """The result lands while the caller talks, whose turn comes after it, and whom nobody talks over."""
    async with LateScene(session_class, medium, looking(), GO) as call:
        await call.says("Go!")
        await call.at(3.9)
        await call.says("Well then now")
        await call.at(20)
        assert call.offers("look") == ["MAYBE"]
        assert told(call) == 1


# -- livekit's own event about late replies


@pytest.mark.skipif(not hasattr(events, "ToolReplyUpdated"), reason="this release has no such event")
async def test_livekits_own_event(medium):
    async with safe_scene(looking(), clerk(GO, **SLOW), medium=medium) as call:
        statuses = []
        call.session.on(
            "tool_execution_updated", lambda event: statuses.append(getattr(event.update, "status", None))
        )
        await call.says("Go!")
        await call.at(4.5)
        await call.says("Well?")
        await call.at(30)
    replies = [
        status for status in statuses if status in {"scheduled", "completed", "interrupted", "skipped"}
    ]
    assert [s for s in replies if s != "scheduled"][-2:] == ["interrupted", "completed"]


async def test_who_is_asked_has_the_result_on_both(session_class, medium):
    async with LateScene(session_class, medium, looking(), GO) as call:
        await call.says("Go!")
        await call.at(20)
        (asked,) = [i for i in call.inferences if asked_to_tell(i.shown)[0]]
        assert agent_of(asked.shown) == "A"
        assert set(asked_to_tell(asked.shown)[1]) <= set(asked.outputs)
