"""Breaks the package in one place after the other, and tells which guarantee notices.

    python -m tests.timelines.broken

A property that no break violates may be one that can't fail.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any
from unittest.mock import patch

from rich.console import Console

from .drawing import first_wrong

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


def main() -> int:
    logging.lastResort = None
    console = Console()
    unnoticed = 0
    for what, (where, instead) in BREAKS.items():
        with patch(f"safe_session.{where}", instead):
            number, failing = first_wrong(0, MOST)
        unnoticed += failing is None
        noticed_by = failing[1][0].split()[0] if failing is not None else "nothing"
        console.print(f"{what}: {noticed_by}, timeline {number}")
    return bool(unnoticed)


if __name__ == "__main__":
    sys.exit(main())
