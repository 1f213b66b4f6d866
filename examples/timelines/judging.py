"""What the properties have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livekit.agents.llm import ChatContext

    from .happened import Happened, Run

HAIR = 0.011
"""Virtual seconds that pass for no time at all."""


def wrong_ending(context: ChatContext, run: Run) -> Iterator[str]:
    outputs = run.endings_in(context)
    if not outputs:
        yield f"{run} is nowhere"
        return
    last = outputs[-1]
    if says_it_runs(last.output):
        yield f"the last that is known of {run} is {last.output!r}"
    elif run.how == "done" and run.given not in last.output:
        yield f"{run} gave {run.given!r}, and its ending is {last.output!r}"
    elif run.how in {"failed", "cancelled"} and not last.is_error:
        yield f"{run} ended with {last.output!r}, which is no error"


def says_it_runs(output: str) -> bool:
    """Whether it is what a tool reported, or tells a model to wait for the result, and not to ask again."""
    return "has begun" in output or "Still running, no result yet" in output


def run_of(call: Happened, call_id: str) -> Run | None:
    return next((run for run in call.runs if run.call_id == base_of(call_id)), None)


def base_of(call_id: str) -> str:
    """The id of a call, of that of one of its outputs."""
    return re.sub(r"_(final|update_\d+)$", "", call_id)
