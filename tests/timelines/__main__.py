"""Draws and plays timelines, or plays one from a file."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from livekit.agents import AgentSession

from safe_session import SafeAgentSession

from .player import play
from .properties import violations
from .shrinking import smallest
from .strategies import timelines
from .timeline import load, save

if TYPE_CHECKING:
    from .happened import Happened
    from .timeline import Timeline

BLOCK = 250
"""How many timelines are drawn before the next seed; a block ends with the first one that fails."""


class WrongError(AssertionError):
    """A timeline in which something is wrong."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.timelines", description=__doc__)
    parser.add_argument("--timelines", type=int, default=20_000, help="how many to play")
    parser.add_argument("--seed", type=int, default=0, help="the first block's; each block has the next one")
    parser.add_argument("--into", type=Path, default=Path("failing"), help="where files of failing ones go")
    commands = parser.add_subparsers(dest="command")
    player = commands.add_parser("play", help="play a file")
    player.add_argument("file", type=Path)
    player.add_argument("--plain", action="store_true", help="on a plain AgentSession")
    arguments = parser.parse_args()
    logging.lastResort = None
    if arguments.command == "play":
        return _play(arguments.file, AgentSession if arguments.plain else SafeAgentSession)
    return _draw(arguments.timelines, arguments.seed, arguments.into)


def _play(file: Path, session_class: type[AgentSession]) -> int:
    happened = play(load(file), session_class)
    for at, what in _story(happened):
        _say(f"{at:8.3f}  {what}")
    wrong = violations(happened)
    _say("\n".join(wrong) or "nothing is wrong")
    return bool(wrong)


def _story(call: Happened) -> list[tuple[float, str]]:
    """What happened, in order."""
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
    return sorted(told, key=lambda each: each[0])


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
            _say(f"seed {block}: {wrong[0]}\n  python -m tests.timelines play {into / f'seed-{block}.yaml'}")
        block += 1
        gc.unfreeze()  # what the player froze while it was still to be judged
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
