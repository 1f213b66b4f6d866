"""Draws timelines and plays them; writes down what fails."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from examples.timelines.player import play
from examples.timelines.properties import violations
from examples.timelines.timeline import save

from .shrinking import REPLAY, smallest
from .strategies import timelines

if TYPE_CHECKING:
    from examples.timelines.timeline import Timeline

BLOCK = 250
"""How many timelines are drawn before the next seed; a block ends with the first one that fails."""


class WrongError(AssertionError):
    """A timeline in which something is wrong."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.timelines", description=__doc__)
    parser.add_argument("--timelines", type=int, default=20_000, help="how many to play")
    parser.add_argument("--seed", type=int, default=0, help="the first block's; each block has the next one")
    parser.add_argument("--into", type=Path, default=Path("failing"), help="where files of failing ones go")
    arguments = parser.parse_args()
    logging.lastResort = None
    return _draw(arguments.timelines, arguments.seed, arguments.into)


def _draw(number: int, first_seed: int, into: Path) -> int:
    began, played, failed, block = time.monotonic(), 0, 0, first_seed
    while played < number:
        size = min(BLOCK, number - played)
        drawn, failing = _block(block, size)
        played += min(size, drawn)
        if failing is not None:
            failed += 1
            timeline, wrong = failing
            save(smallest(timeline), into / f"seed-{block}.yaml")
            _say(f"seed {block}: {wrong[0]}\n  {REPLAY} {into / f'seed-{block}.yaml'}")
        block += 1
        gc.unfreeze()  # what the player froze while it was still to be judged
        gc.collect()  # or it freezes that again
        _say(f"{played} played, {failed} failed, {time.monotonic() - began:.0f} s", end="\r")
    _say("")
    return bool(failed)


def _block(number: int, size: int) -> tuple[int, tuple[Timeline, list[str]] | None]:
    """Draw a block; how many timelines were played in it, and the one that failed."""
    drawn = 0
    failing: tuple[Timeline, list[str]] | None = None

    @seed(number)
    @settings(
        max_examples=size,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(timelines())
    def holds(timeline: Timeline) -> None:
        nonlocal drawn, failing
        drawn += failing is None
        if wrong := violations(play(timeline)):
            failing = (timeline, wrong)
            raise WrongError(wrong[0])

    try:
        holds()
    except BaseException as error:  # a flaky one comes in a group
        if failing is None or isinstance(error, KeyboardInterrupt):
            raise
    return drawn, failing


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
