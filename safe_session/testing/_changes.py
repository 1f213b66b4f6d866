"""Waiting for something to become true, without polling."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Changes:
    """What may have changed. Whoever changes it says so, and those who wait look again."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._over: str | None = None

    def notify(self) -> None:
        """Tell those who wait that something has changed."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def close(self, reason: str) -> None:
        """Say that nothing will change any more: who waits for something in vain gets a RuntimeError."""
        self._over = reason
        self.notify()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds. It is looked at now and after each change."""
        while not condition():
            if self._over is not None:
                raise RuntimeError(self._over)
            await self._next()

    async def within(self, seconds: float) -> bool:
        """Wait for the next change, for at most so many seconds. True if there was one."""
        try:
            await asyncio.wait_for(self._next(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    async def _next(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)
