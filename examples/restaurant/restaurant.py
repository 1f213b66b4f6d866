"""What the agents of the restaurant share; it is the session's `userdata`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from livekit.agents import RunContext

from .book import Book

# Seconds. A calendar, a kitchen and a text message service are slow; the book is not.
DURATIONS: Mapping[str, float] = MappingProxyType(
    {
        "find_table": 1.2,
        "create_reservation": 0.4,
        "change_reservation": 0.4,
        "cancel_reservation": 0.4,
        "send_confirmation": 3.0,
        "check_allergens": 4.0,
        "transfer_to_manager": 0.2,
    }
)


@dataclass
class Work:
    """One run of a tool: what really happened, whatever the conversation knows of it."""

    tool: str
    call_id: str
    started: float
    ended: float | None = None
    outcome: Literal["running", "done", "failed", "stopped"] = "running"


@dataclass
class Restaurant:
    """The book, how long each tool takes, and who is told when a tool starts and ends."""

    book: Book = field(default_factory=Book)
    durations: Mapping[str, float] = field(default_factory=lambda: DURATIONS)
    noticed: Callable[[Work], None] = lambda work: None

    @asynccontextmanager
    async def at_work(self, ctx: RunContext[Restaurant]) -> AsyncGenerator[None, None]:
        """Take the time that the tool of `ctx` takes, then let it do its work."""
        clock = asyncio.get_running_loop().time
        work = Work(ctx.function_call.name, ctx.function_call.call_id, started=clock())
        self.noticed(work)
        try:
            await asyncio.sleep(self.durations[work.tool])
            yield
            work.outcome = "done"
        except asyncio.CancelledError:
            work.outcome = "stopped"
            raise
        except Exception:
            work.outcome = "failed"
            raise
        finally:
            work.ended = clock()
            self.noticed(work)


Context: TypeAlias = RunContext[Restaurant]
