"""Named points at which tests let this package fail: raise, wait, or be cancelled. Else they do nothing.

Before and after each of these there is a point, such as ``"commit.before"``: a record (of how a call began,
went on or ended), a commit, a push to a realtime model's server, a route decision, a release.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator

Fault: TypeAlias = Callable[[str], Awaitable[None] | None]
"""Is given the name of each point that is reached; raises, or returns what to wait for, or None."""

_fault: Fault | None = None


def point(name: str) -> None:
    """This point is reached. Nothing can be waited for here."""
    if _fault is not None:
        _fault(name)


async def wait(name: str) -> None:
    """This point is reached, where it may take time."""
    if _fault is not None and (waiting := _fault(name)) is not None:
        await waiting


@contextlib.contextmanager
def injected(fault: Fault) -> Generator[None]:
    """While `fault` decides what happens at each point, in all sessions of the process."""
    global _fault  # noqa: PLW0603 - what makes a point that does nothing cost nothing
    before, _fault = _fault, fault
    try:
        yield
    finally:
        _fault = before
