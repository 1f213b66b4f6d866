"""A restaurant with one tool, and a watch for errors that nobody retrieves."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, function_tool

from safe_session.testing import Answer, Line, ScriptedModel


class Host(Agent):
    def __init__(self, *, takes: float = 0.0) -> None:
        super().__init__(instructions="You take reservations.", id="host")
        self.takes = takes
        self.booked: list[int] = []

    @function_tool
    async def book(self, people: int) -> str:
        """Book a table."""
        await asyncio.sleep(self.takes)
        self.booked.append(people)
        return f"order {len(self.booked)}"


@dataclass
class Phone:
    """A session on a line, with what drives it."""

    session: AgentSession[Any]
    line: Line
    model: ScriptedModel
    host: Host
    errors: list[Exception] = field(default_factory=list)

    @property
    def messages(self) -> list[tuple[str, str, bool]]:
        items = self.session.history.items
        return [(i.role, i.text_content or "", i.interrupted) for i in items if i.type == "message"]


PhoneMaker = Callable[..., Awaitable[Phone]]


@pytest.fixture
async def call() -> AsyncIterator[PhoneMaker]:
    """Starts a session on a line; all of them are closed at the end of the test."""
    phones: list[Phone] = []

    async def make(script: Any, *, takes: float = 0.0, preemptive: bool = False) -> Phone:
        model = ScriptedModel(script)
        line = Line(words_per_second=2.0)
        session: AgentSession[Any] = AgentSession(llm=model, **line.options(preemptive=preemptive))
        phone = Phone(session, line, model, Host(takes=takes))
        session.on("error", lambda event: phone.errors.append(event.error.error))
        line.connect(session)
        await session.start(phone.host)
        phones.append(phone)
        return phone

    yield make
    for phone in phones:
        await phone.session.aclose()


@pytest.fixture(autouse=True)
async def no_loop_errors() -> AsyncIterator[None]:
    """Fails a test that leaves an exception in a task that nobody looks at."""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert not contexts


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def elapsed() -> Callable[[], float]:
    """Seconds of the loop's clock since the test asked first."""
    started: list[float] = []

    def seconds() -> float:
        started.append(now())
        return round(started[-1] - started[0], 3)

    return seconds


@pytest.fixture
def hello() -> Answer:
    return Answer("Good evening.")
