"""The guarantees G1 to G9, each as a function from what happened in a call to what is wrong with it.

What tools really did is known from their own bodies (`Run`), and never from the session under test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .about_agents import closed_in_time, handed_over_at_once, remembered
from .about_calls import kept, known, not_repeated
from .about_replies import prompt, told_by_the_right_agent, told_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .happened import Happened

PROPERTIES: dict[str, Callable[[Happened], Iterator[str]]] = {
    "G1": kept,
    "G2": known,
    "G3": not_repeated,
    "G4": prompt,
    "G5": told_once,
    "G6": told_by_the_right_agent,
    "G7": remembered,
    "G8": handed_over_at_once,
    "G9": closed_in_time,
}


def violations(call: Happened) -> list[str]:
    """All that is wrong with a call, each with the number of the guarantee."""
    return [f"{number} {wrong}" for number, judge in PROPERTIES.items() for wrong in judge(call)]
