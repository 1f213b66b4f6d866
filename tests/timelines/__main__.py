"""Draws timelines and plays them; writes down what fails."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from examples.timelines.timeline import save

from .drawing import first_wrong
from .shrinking import REPLAY, smallest

BLOCK = 250
"""How many timelines are drawn before the next seed; a block ends with the first one that fails."""


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
        drawn, failing = first_wrong(block, size)
        played += min(size, drawn)
        if failing is not None:
            failed += 1
            timeline, wrong = failing
            save(smallest(timeline), into / f"seed-{block}.yaml")
            _say(f"seed {block}: {wrong[0]}\n  {REPLAY} {into / f'seed-{block}.yaml'}")
        block += 1
        _say(f"{played} played, {failed} failed, {time.monotonic() - began:.0f} s", end="\r")
    _say("")
    return bool(failed)


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
