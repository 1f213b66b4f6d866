"""What happened in a call, to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .happened import Happened


def story(call: Happened) -> str:
    """What happened, in order, a line each."""
    told: list[tuple[float, str]] = []
    for run in call.runs:
        told.append((run.began, f"{run.name}({run.argument}) [{run.call_id}] starts, of {run.owner.id}"))
        if run.ended is not None:
            told.append((run.ended, f"{run.name} [{run.call_id}] ends: {run.how}"))
    for thought in call.thoughts:
        known = {call_id: output.output[:32] for call_id, output in thought.inference.outputs.items()}
        asked = f" asked to tell {thought.asked}" if thought.asked else ""
        told.append((thought.at, f"{thought}{asked} was shown {known} and calls {thought.call_ids}"))
    told += [(turn.began, f"the caller: {turn.words}") for turn in call.turns]
    told += [(handoff.asked, f"a handoff to {handoff.to.id}") for handoff in call.handoffs]
    told += [(at, f"{agent.id} enters") for agent, at in call.entered]
    told += [(at, f"{event.type} {event.call_id}") for at, event in call.events]
    told += [(began, f"the agent speaks until {ended:.3f}") for began, ended in call.utterances]
    told.append((call.close_asked, f"the session closes, in {call.close_took:.3f} s"))
    return "\n".join(f"{at:8.3f}  {what}" for at, what in sorted(told, key=lambda each: each[0]))
