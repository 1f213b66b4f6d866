"""Breaks the package in one place after the other, and tells which guarantee notices.

    python -m tests.timelines.broken

A property that no break violates may be one that can't fail.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from rich.console import Console

from examples.timelines.player import play
from examples.timelines.properties import violations

from .strategies import timelines

if TYPE_CHECKING:
    from examples.timelines.timeline import Timeline

MOST = 1000
"""How many timelines are played until it counts as unnoticed."""


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _no(*_: Any, **__: Any) -> bool:
    return False


async def _waits(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


async def _none(*_: Any, **__: Any) -> None:
    pass


def _told_by_anyone(scope: str, owner: str, session: str, on_handoff: str) -> str:
    return "drop" if session == "closing" else "hold" if session == "handing off" else "retarget"


def _never_held(scope: str, owner: str, session: str, on_handoff: str) -> str:
    return "drop" if session == "closing" else "deliver" if owner == "current" else "retarget"


BREAKS = {
    "the ending of a call is not put into contexts": ("keeper.commit", _nothing),
    "a call's items are put in as often as they come": (
        "context._put_in_place",
        lambda given, items, since: {item.id: item for item in given},
    ),
    "a running call is not shown as running": ("context.marker_of", lambda *_, **__: []),
    "what a push to a server loses is forgotten": ("server.SafeRealtimeSession._owe_lacking", _nothing),
    "a call that another one stands for is run": ("executor._Run._await_twin", _none),
    "the tools of an interrupted turn are waited for": ("runs.Runs._release_after_grace", _nothing),
    "a result that nobody heard is not told again": ("heard.Hearing.heard", True),
    "a result that was heard is told again": ("heard.Hearing.heard", False),
    "any agent tells any result": ("delivery.route", _told_by_anyone),
    "no result is held back": ("delivery.route", _never_held),
    "only the agent that made a call remembers it": ("keeper.CallKeeper.remember", _nothing),
    "an agent built from another's context gets nothing more": ("keeper.CallKeeper.inherit", _nothing),
    "a handoff waits for tools in the background": ("runs.Run.take_over", _nothing),
    "what the caller says during a handoff is not passed on": ("activity.SafeAgentActivity._pass_on", _no),
    "a close does not stop tools": ("runs.Runs._stop_all_after", _waits),
    "a handoff that livekit gave up is not noted": ("returned.ReturnedAgents.step_ended", _nothing),
}


class NoticedError(AssertionError):
    """A property is violated."""


def main() -> int:
    logging.lastResort = None
    console = Console()
    unnoticed = 0
    for what, (where, instead) in BREAKS.items():
        with patch(f"safe_session.{where}", instead):
            number, wrong = first_noticed()
        unnoticed += not wrong
        console.print(f"{what}: {wrong.split()[0] if wrong else 'nothing'}, timeline {number}")
    return bool(unnoticed)


def first_noticed(most: int = MOST) -> tuple[int, str]:
    """The number of the first timeline in which something is wrong, and what; or of the last one."""
    played, found = 0, ""

    @seed(0)
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
        nonlocal played, found
        if found:
            raise NoticedError(found)
        played += 1
        if wrong := violations(play(timeline)):
            found = wrong[0]
            raise NoticedError(found)

    try:
        holds()
    except BaseException as error:  # a flaky one comes in a group
        if not found or isinstance(error, KeyboardInterrupt):
            raise
    return played, found


if __name__ == "__main__":
    sys.exit(main())
