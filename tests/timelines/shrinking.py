"""Makes a timeline in which something is wrong as small as it can be."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from examples.timelines.player import play
from examples.timelines.properties import violations
from examples.timelines.timeline import dumped, loaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from examples.timelines.timeline import Timeline

REPLAY = "python -m examples.restaurant replay"
"""What plays the file of a timeline."""


def smallest(timeline: Timeline) -> Timeline:
    """Leave out whatever can be left out while the same guarantee is violated.

    A timeline is played in a few hundredths of a second, which is what Hypothesis takes to draw one: its own
    shrinking takes minutes.
    """
    sought, written = _violated(timeline), dumped(timeline)
    before: dict[str, Any] = {}
    while written != before:
        before, place = written, 0
        while place < len(paths := list(_paths(written))):
            without = _without(written, paths[place])
            if _is_possible(without) and sought & _violated(loaded(without)):
                written = without  # the next part is at this place now
            else:
                place += 1
    return loaded(written)


def _violated(timeline: Timeline) -> set[str]:
    return {wrong.split()[0] for wrong in violations(play(timeline))}


def _is_possible(written: dict[str, Any]) -> bool:
    try:
        return bool(loaded(written).desks)
    except ValidationError:
        return False


def _without(written: dict[str, Any], path: Sequence[Any]) -> dict[str, Any]:
    without = copy.deepcopy(written)
    parent: Any = without
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    return without


def _paths(written: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The largest parts first."""
    if not isinstance(written, dict | list):
        return
    steps = list(written) if isinstance(written, dict) else range(len(written))
    yield from ((*before, step) for step in steps)
    for step in steps:
        yield from _paths(written[step], (*before, step))
