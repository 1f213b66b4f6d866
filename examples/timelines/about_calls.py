"""G1 to G3: what becomes of each call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from safe_session.testing import RealtimeInference, check_guarantees

from .judging import HAIR, run_of, says_it_runs, wrong_ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .happened import Happened, Run, Thought


def kept(call: Happened) -> Iterator[str]:
    """G1: each call that started has one call and one ending, as soon as it ends, whatever happens."""
    agents = {agent for agent, _ in call.entered}
    for violation in check_guarantees(call.session, *agents):
        if not _is_made_in_passing(call, violation.call_id):
            yield str(violation)
    for run in call.runs:
        for context in (call.session.history, run.owner.chat_ctx):
            yield from wrong_ending(context, run)
        if run.missing and not run.gives_agent:
            yield f"{run} had ended, and its ending was not in {' and '.join(run.missing)}"


def _is_made_in_passing(call: Happened, call_id: str) -> bool:
    """Whether a server made the call by itself as its agent left, and nothing ran."""
    thought = call.thought_of(call_id)
    by_itself = thought is not None and _is_by_server(thought)
    return by_itself and call.is_handing_over(thought.at) and run_of(call, call_id) is None


def _is_by_server(thought: Thought) -> bool:
    return isinstance(thought.inference, RealtimeInference) and thought.inference.by_server


def known(call: Happened) -> Iterator[str]:
    """G2: every inference that begins after a call began is shown how it ended, or that it is running."""
    for thought in call.thoughts:
        yield from _unbalanced(call, thought)
        for run in call.runs:
            if run.owner is thought.agent and run.began < thought.at - HAIR:
                yield from _unknown(thought, run, call)


def _unbalanced(call: Happened, thought: Thought) -> Iterator[str]:
    made, ended = (
        Counter(item.call_id for item in thought.inference.shown.items if item.type == kind)
        for kind in ("function_call", "function_call_output")
    )
    if isinstance(thought.inference, RealtimeInference):
        # one whose context cannot be changed takes outputs only
        balanced = ended <= made or not call.timeline.server.mutable
    else:
        balanced = ended == made
    if any(number > 1 for number in made.values()) or not balanced:
        yield f"{thought} was shown calls {dict(made)} with outputs {dict(ended)}"


def _unknown(thought: Thought, run: Run, call: Happened) -> Iterator[str]:
    server = call.timeline.server
    if server.fails and not server.mutable:
        return  # what it refused can't be told in any other way, and is gone with the connection
    outputs = thought.outputs_of(run)
    is_there = run.call_id in {made.call_id for made in thought.inference.calls}
    if not outputs and not (isinstance(thought.inference, RealtimeInference) and is_there):
        yield f"{thought} knows nothing of {run}"
        return
    runs_on = run.ended is None or run.ended > thought.at + HAIR
    if outputs and runs_on and not says_it_runs(outputs[-1]):
        yield f"{thought} does not know that {run} goes on: {outputs}"
    if _is_by_server(thought) and server.fails:
        return  # what a failed push owes is told before the next reply that is asked for, and no sooner
    if _is_by_server(thought) and call.is_handing_over(thought.at):
        return  # nobody takes it up; the connection is on its way to the next agent
    if server.replies_by_itself:
        return  # it would reply to what it is told, so that it is told when that is to be said
    if (
        not thought.knows_end_of(run)
        and run.how == "done"
        and run.given
        and not run.gives_agent
        and run.ended is not None
        and run.ended < thought.at - HAIR
    ):
        yield f"{thought} does not know how {run} ended: {outputs}"


def not_repeated(call: Happened) -> Iterator[str]:
    """G3: no call is run if its model could not know of an earlier one; one made knowingly is run."""
    for place, run in enumerate(call.runs):
        thought = call.thought_of(run.call_id)
        if thought is None or run.does.repeat == "freely" or run.gives_agent:
            continue
        for other in call.runs[:place]:
            if (other.name, other.argument) == (run.name, run.argument) and _stands_for(other, run):
                if run.does.repeat == "once":
                    yield f"{run} ran although {other} had, and it is to run once"
                elif not _may_repeat(thought, other, call):
                    yield f"{run}, made in {thought}, repeats {other}, of which its model did not know"
    for _, event in call.emitted("call_replayed"):
        if not call.timeline.server.replies_by_itself:
            yield from _replayed_in_vain(call, event)


def _stands_for(other: Run, run: Run) -> bool:
    """One that failed does not count."""
    return not (other.how == "failed" and other.ended is not None and other.ended <= run.began + HAIR)


def _may_repeat(thought: Thought, other: Run, call: Happened) -> bool:
    if other.call_id in thought.call_ids or thought.outputs_of(other):
        return True
    return any(
        earlier is not thought and earlier.at <= thought.at + HAIR and _settles(earlier, other)
        for earlier in call.thoughts
    )


def _settles(thought: Thought, run: Run) -> bool:
    ended = run.ended is not None and run.ended <= thought.at + HAIR
    return ended and bool(thought.outputs_of(run))


def _replayed_in_vain(call: Happened, event: Any) -> Iterator[str]:
    thought = call.thought_of(event.call_id)
    if event.reason == "unseen" and thought is not None:
        if event.twin_id in thought.call_ids:
            yield f"{event.call_id} was not run, as {event.twin_id} of the same response stands for it"
        elif event.twin_id in thought.inference.outputs:
            yield f"{event.call_id} was not run although its model knew of {event.twin_id}"
