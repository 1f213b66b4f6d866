"""G4 to G6: what the caller is told, when, and by whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .judging import HAIR, base_of, run_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .happened import Happened, Reply, Run, Thought

LIVEKITS_OWN = re.compile(
    "Error in _llm_inference_task|Error in _realtime_(reply|generation)_task|as it was meant to"
    "|exception occurred while executing tool|closing due to unrecoverable error"
    "|tool_choice set to 'none'|expected to receive only one Agent|finished before FormTask was completed"
    "|AgentSession isn't running|no active AgentActivity to execute tools"
    "|speech not done in time after interruption"
    # a hook that goes on when its agent has left, which may happen if a tool asks for an AgentTask meanwhile
    "|Error in _traceable_on_(enter|exit).*no activity context found"
    "|failed to generate a reply after tool execution: the connection has closed"
    "|This generation handle does not allow interruptions|there is an active response already",
    re.DOTALL,
)
"""What livekit logs as an error of models and tools that fail, and of what they may not do."""


def prompt(call: Happened) -> Iterator[str]:
    """G4: an interrupted turn does not wait for its tools for longer than the grace."""
    if call.timeline.server.replies_by_itself:
        return  # livekit keeps a turn open for the reply to its outputs, which others need not wait for
    for run in call.runs:
        reply = call.reply_of(run)
        if reply.interrupted is not None and run.began <= reply.interrupted:
            yield from _waits(call, run, reply, reply.interrupted)


def _waits(call: Happened, run: Run, reply: Reply, since: float) -> Iterator[str]:
    due = since + call.timeline.grace + HAIR
    if any(at is not None and at <= due for at in (reply.over, run.ended, call.closing)):
        return
    asking = [other for other in call.runs if other.does.asks]
    if any(other.speech is reply.speech for other in asking):
        return  # it awaits an AgentTask, and is not released
    if call.timeline.medium == "realtime" and any(
        other.began <= due and (other.ended is None or other.ended > since) for other in asking
    ):
        return  # livekit lets a realtime model's turn wait for the current one before it takes its outputs
    if call.timeline.medium == "realtime":
        answers = [thought.at for thought in call.thoughts]  # one that thinks keeps the turn before it open
    else:
        answers = [began for began, _ in call.utterances]
    if not any(since - HAIR <= began <= due for began in answers):
        yield f"the turn of {run}, interrupted at {since:.3f}, was over at {reply.over}"


def told_once(call: Happened) -> Iterator[str]:
    """G5: a late result is offered once it can be, once more if nothing of it was heard, and not again."""
    offers: dict[str, list[Thought]] = {}
    for thought in _first_steps(call):
        for call_id in thought.asked:
            offers.setdefault(call_id, []).append(thought)
    for call_id, thoughts in offers.items():
        if len(thoughts) > 2 or any(_was_heard(call, thought) for thought in thoughts[:-1]):
            yield f"{call_id} was offered in {', '.join(map(str, thoughts))}"
        elif len(thoughts) == 1 and _is_due_again(call, thoughts[0]):
            yield f"nothing was heard of {thoughts[0]}, and {call_id} was not offered again"
    if not _ended_quietly(call):
        return
    dropped = {event.call_id for _, event in call.emitted("reply_dropped")}
    for run in call.runs:
        if (
            _lands_late(call, run)
            and f"{run.call_id}_final" not in offers
            and run.call_id not in dropped
            and not _tells_by_itself(call, run)
        ):
            yield f"{run} landed late, and nobody was asked to tell it"


def _tells_by_itself(call: Happened, run: Run) -> bool:
    """Whether it was told to a model that replies by itself, which is asked only if it does not."""
    return call.timeline.server.replies_by_itself and any(
        thought.knows_end_of(run) for thought in call.thoughts
    )


def _was_heard(call: Happened, thought: Thought) -> bool:
    """Whether any of what was said in that inference is in the history, which holds what was heard."""
    said = [i.text_content or "" for i in call.session.history.items if i.type == "message"]
    return any(re.search(rf"\bsaid{thought.number}\b", text) for text in said)


def _is_due_again(call: Happened, thought: Thought) -> bool:
    """Whether its reply had something to say, was cut off by the caller, and could be made again."""
    if call.timeline.server.replies_by_itself:
        return False  # the reply that it made by itself may have been the second offer
    decisions = call.timeline.decisions
    decision = decisions[thought.number] if thought.number < len(decisions) else None
    if decision is not None and (not decision.words or decision.fails or decision.calls):
        return False
    dropped = {base_of(event.call_id) for _, event in call.emitted("reply_dropped")}
    return (
        _ended_quietly(call)
        and not _was_heard(call, thought)
        and not dropped & {base_of(call_id) for call_id in thought.asked}
    )


def _ended_quietly(call: Happened) -> bool:
    return call.timeline.rests is None and not call.closed_by_itself


def _first_steps(call: Happened) -> Iterator[Thought]:
    """Without those that follow the calls of the same reply, which was asked to tell something once."""
    for place, thought in enumerate(call.thoughts):
        before = [each for each in call.thoughts[:place] if each.asked == thought.asked]
        if not any(call_id in thought.inference.outputs for each in before for call_id in each.call_ids):
            yield thought


def _lands_late(call: Happened, run: Run) -> bool:
    """Whether its result came after its turn had gone on, and there is something to tell."""
    released = any(event.call_id == run.call_id for _, event in call.emitted("call_released"))
    return run.how == "done" and bool(run.given) and (released or run.reported is not None)


def told_by_the_right_agent(call: Happened) -> Iterator[str]:
    """G6: by the route table; never an error, never by an agent that does not have the result."""
    for error in call.errors:
        if not LIVEKITS_OWN.search(error):
            yield f"an error: {error[-1500:]}"
    yield from (f"raised: {error}" for error in call.raised)
    # a session that closes may say so
    yield from (f"raised: {error}" for at, error in call.refusals if at < call.closing)
    for thought in call.thoughts:
        for call_id in thought.asked:
            run = run_of(call, call_id)
            if run is not None:
                yield from _told_wrongly(thought, run, call_id)
    for _, event in call.emitted("reply_dropped"):
        run = run_of(call, event.call_id)
        if (
            event.reason == "gone"
            and run is not None
            and (run.scope, run.does.on_handoff) != ("activity", "drop")
        ):
            yield f"{run} was dropped, which any agent may tell"


def _told_wrongly(thought: Thought, run: Run, call_id: str) -> Iterator[str]:
    only_the_owner = run.scope == "activity" and run.does.on_handoff == "drop"
    if only_the_owner and thought.agent is not run.owner:
        yield f"{run} is told by {thought.agent.id}, and was made under {run.owner.id}"
    if call_id not in thought.inference.outputs:
        instructions = getattr(thought.inference, "instructions", None) or ""
        if f"{call_id}_" not in instructions and run.given not in instructions:
            yield f"{thought} is asked to tell {call_id}, and does not have it"
