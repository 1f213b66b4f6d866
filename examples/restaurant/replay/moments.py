"""Waiting for something to happen in a call, without looking again and again."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Moments:
    """Moments by name. Whoever waits for one gets the next time that it comes."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = defaultdict(list)

    def happened(self, moment: str) -> None:
        for future in self._waiting.pop(moment, ()):
            if not future.done():  # who waited may have given up
                future.set_result(None)

    async def next(self, moment: str) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting[moment].append(future)
        await future
