"""What the agents of the restaurant share; it is the session's `userdata`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from livekit.agents import RunContext, ToolError

from .book import Book, BookError
from .menu import MenuError
from .opening import OpeningError

# Seconds, besides what the caller takes to answer. A calendar, a bank, a kitchen and a text message service
# are slow; the book is not.
DURATIONS: Mapping[str, float] = MappingProxyType(
    {
        "find_table": 1.2,
        "find_reservation": 0.4,
        "create_reservation": 0.4,
        "change_reservation": 0.4,
        "cancel_reservation": 0.4,
        "charge_deposit": 1.5,
        "send_confirmation": 3.0,
        "check_allergens": 4.0,
        "send_text": 3.0,
        "order_meal": 0.4,
        "request_callback": 0.0,
        "transfer_to_manager": 0.2,
        "transfer_to_takeaway": 0.2,
    }
)
AT_ONCE: Mapping[str, float] = MappingProxyType(dict.fromkeys(DURATIONS, 0.0))


@dataclass
class Work:
    """One run of a tool: what really happened, whatever the conversation knows of it.

    Attributes:
        asks_caller: It waits for what the caller says.
    """

    tool: str
    call_id: str
    started: float
    ended: float | None = None
    outcome: Literal["running", "done", "failed", "stopped"] = "running"
    asks_caller: bool = False


@dataclass(frozen=True)
class Meal:
    """Something that the kitchen was asked to cook, to take away."""

    dish: str
    portions: int

    def __str__(self) -> str:
        return f"{self.portions} {self.dish}"


@dataclass
class Restaurant:
    """What the tools work on, how long each takes, and who is told when one starts and ends.

    Attributes:
        texts: What each text message that was sent is about.
        meals: What was ordered to take away.
    """

    book: Book = field(default_factory=Book)
    texts: list[str] = field(default_factory=list[str])
    meals: list[Meal] = field(default_factory=list[Meal])
    durations: Mapping[str, float] = field(default_factory=lambda: DURATIONS)
    noticed: Callable[[Work], None] = lambda work: None

    @asynccontextmanager
    async def at_work(
        self, ctx: RunContext[Restaurant], *, asks_caller: bool = False
    ) -> AsyncGenerator[None, None]:
        """Take the time that the tool of `ctx` takes, then let it do its work.

        Raises:
            ToolError: The book, the menu or the opening hours don't allow for it.
        """
        clock = asyncio.get_running_loop().time
        work = Work(
            ctx.function_call.name, ctx.function_call.call_id, started=clock(), asks_caller=asks_caller
        )
        self.noticed(work)
        try:
            await asyncio.sleep(self.durations[work.tool])
            yield
            work.outcome = "done"
        except asyncio.CancelledError:
            work.outcome = "stopped"
            raise
        except Exception as error:
            work.outcome = "failed"
            if isinstance(error, BookError | MenuError | OpeningError):
                raise ToolError(str(error)) from None
            raise
        finally:
            work.ended = clock()
            self.noticed(work)


Context: TypeAlias = RunContext[Restaurant]
