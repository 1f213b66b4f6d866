"""Draws new timelines and plays them, until something is wrong with one."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from examples.timelines.player import play
from examples.timelines.properties import violations

from .strategies import timelines

if TYPE_CHECKING:
    from examples.timelines.timeline import Timeline


class WrongError(AssertionError):
    """A timeline in which something is wrong."""


def first_wrong(number: int, most: int) -> tuple[int, tuple[Timeline, list[str]] | None]:
    """Draw up to `most` timelines by that seed; how many were played, and the one that failed."""
    played = 0
    failing: tuple[Timeline, list[str]] | None = None

    @seed(number)
    @settings(
        max_examples=most,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(timelines())
    def holds(timeline: Timeline) -> None:
        nonlocal played, failing
        played += failing is None
        if wrong := violations(play(timeline)):
            failing = (timeline, wrong)
            raise WrongError(wrong[0])

    try:
        holds()
    except BaseException as error:  # a flaky one comes in a group
        if failing is None or isinstance(error, KeyboardInterrupt):
            raise
    gc.unfreeze()  # what the player froze while it was still to be judged
    gc.collect()  # or it freezes that again
    return played, failing
