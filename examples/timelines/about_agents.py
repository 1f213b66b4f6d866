"""G7 to G9: what agents remember, how they hand over, and how a session closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livekit.agents import AgentTask

from .judging import HAIR, base_of, run_of, wrong_ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livekit.agents import Agent

    from .happened import Happened, Turn


def remembered(call: Happened) -> Iterator[str]:
    """G7: whoever tells a late result, or was shown a call as running, has its ending from then on."""
    for run in call.runs:
        if run.ended is None:
            continue
        for thought in call.thoughts:
            if _has_left_for_good(call, thought.agent):
                continue
            told = any(base_of(call_id) == run.call_id for call_id in thought.asked)
            if told or (run.began < thought.at < run.ended and thought.outputs_of(run)):
                yield from (
                    f"{thought.agent.id}: {wrong}" for wrong in wrong_ending(thought.agent.chat_ctx, run)
                )
    for agent in {agent for agent, _ in call.entered}:
        if not _has_left_for_good(call, agent):
            yield from _half_known(call, agent)
    for agent, call_ids in call.built_with.items():
        yield from _forgotten(call, agent, call_ids)


def _has_left_for_good(call: Happened, agent: Agent) -> bool:
    """Whether the agent keeps what its realtime model's server was told when it left, and no more."""
    return isinstance(agent, AgentTask) and call.timeline.medium == "realtime"


def _half_known(call: Happened, agent: Agent) -> Iterator[str]:
    """Whoever has a call in its context has its ending, too."""
    held = {item.call_id for item in agent.chat_ctx.items if item.type == "function_call"}
    for run in call.runs:
        if run.call_id in held and run.ended is not None:
            yield from (f"{agent.id}: {wrong}" for wrong in wrong_ending(agent.chat_ctx, run))


def _forgotten(call: Happened, agent: Agent, call_ids: list[str]) -> Iterator[str]:
    """An agent built with another's context keeps the session tools' calls that it holds."""
    held = {item.call_id for item in agent.chat_ctx.items if item.type == "function_call"}
    for call_id in call_ids:
        run = run_of(call, call_id)
        if run is not None and run.scope == "session" and call_id not in held and _had_the_floor(call, agent):
            yield f"{agent.id} was built with {call_id} in its context, and has lost it"


def _had_the_floor(call: Happened, agent: Agent) -> bool:
    return any(who is agent for who, _ in call.entered)


def handed_over_at_once(call: Happened) -> Iterator[str]:
    """G8: released tools do not hold up a handoff; what arrives meanwhile is answered by the next agent."""
    for turn in call.turns:
        if (turn.speech is None or not turn.speech.interrupted) and not _is_served(call, turn):
            yield f"{turn.words!r}, from {turn.began:.3f} on, was never answered"
    for handoff in call.handoffs:
        entered = call.entered_after(handoff)
        until = entered if entered is not None else call.closing
        due = _nothing_to_say_from(call, handoff.asked) + HAIR
        if until > due and not _is_held_up(call, handoff.asked, until):
            yield f"the handoff at {handoff.asked:.3f} was over at {until:.3f} instead of {due:.3f}"


def _is_served(call: Happened, turn: Turn) -> bool:
    if call.closed_by_itself or turn.began > call.close_asked - 15 or not call.timeline.server.mutable:
        return True  # a server whose context cannot be changed takes no text
    if any("there is an active response already" in error for error in call.errors):
        return True  # the server was about to answer what they said
    over = next((reply.over for reply in call.replies if reply.speech is turn.speech), None)
    return any(
        turn.words in thought.inference.user_said and (over is None or thought.at <= over + HAIR)
        for thought in call.thoughts
    )


def _nothing_to_say_from(call: Happened, since: float) -> float:
    """When the turns that an agent had begun were over, and its hooks; released tools may go on."""
    hooks = max(desk.leaves for desk in call.timeline.desks) + max(d.thinks for d in call.timeline.desks)
    for reply in call.replies:
        if reply.began <= since + hooks and (reply.over is None or reply.over > since):
            since = call.closing if reply.over is None else reply.over
    return since + hooks


def _is_held_up(call: Happened, since: float, until: float) -> bool:
    """Whether there is another handoff, or a tool that a handoff may wait for."""
    if sum(since - 15 <= other.asked <= until for other in call.handoffs) > 1:
        return True
    if any(since - 2.5 <= at < until for _, at in call.entered):
        return True  # in the middle of a handoff that a tool asked for
    return any(
        run.began <= until
        and (run.ended is None or run.ended >= since)
        and (run.does.asks or run.name.startswith("own"))
        for run in call.runs
    )


def closed_in_time(call: Happened) -> Iterator[str]:
    """G9: a close gives running tools their time, then stops them, and leaves nothing behind."""
    timeline = call.timeline
    hooks = 4 * max([timeline.form.leaves, *(desk.leaves for desk in timeline.desks)])
    # livekit lets the `on_enter` of an AgentTask end, too
    hooks += timeline.form.enters + (timeline.form.completes or 0.0)
    bound = timeline.close_timeout + 1 + hooks + HAIR + _seconds_of_words(call)
    if call.close_took > bound:
        yield f"the close took {call.close_took:.3f} s instead of {bound:.3f}"
    for run in call.runs:
        if run.ended is None:
            yield f"{run} still runs"
        elif run.began < call.close_asked and run.ended > call.close_asked + bound:
            yield f"{run} was not stopped by the close at {call.close_asked:.3f}"
    yield from (f"a task is left: {task}" for task in call.left)


def _seconds_of_words(call: Happened) -> float:
    """What models and agents say while the session closes; a close that drains waits for it."""
    said = sum(
        ended - max(began, call.close_asked) for began, ended in call.utterances if ended > call.close_asked
    )
    decisions = call.timeline.decisions
    late = [t.number for t in call.thoughts if t.at >= call.close_asked - 15 and t.number < len(decisions)]
    return said + sum(decisions[n].delay + decisions[n].pace * decisions[n].words for n in late) + 0.1
