"""livekit's client of OpenAI's realtime models over a real WebSocket: what the server knows of the calls.

It plays in real time, since a socket knows no other. Tools end when the test says so, not by the clock.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import aiohttp
import pytest
from livekit.agents import Agent, AgentSession, function_tool
from livekit.plugins import openai
from packaging.version import Version

from safe_session.testing import Answer, Call, Line

from ._realtime_server import Failure, Inference, RealtimeServer, Script, calls_in, loose_ends, outputs_of

pytestmark = pytest.mark.looptime(False)

BOOK = Call("book", {"people": 6})
NOTIFY = Call("notify", {"number": "555"})
TABLE = "table 47"
SENT = "the message is sent"
INSISTS = "And by the window, please, if there is one left, as she likes the view."

# The client waits five seconds for an answer. Up to 1.6.x a refusal is none to it, so one of them will do.
FAILURES = ["refused", "lost"] if Version(version("livekit-agents")) >= Version("1.7") else ["refused"]

SOON = 1.5
"""Seconds within which anything comes over the loopback; it takes some milliseconds."""

TURNS: Any = {"turn_detection": "realtime_llm", "interruption": {"resume_false_interruption": False}}


class Host(Agent):
    """A host whose tools begin when they are called, and end when the test says so."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the host.")
        self.ran: list[str] = []
        self._began = {tool: asyncio.Event() for tool in ("book", "notify")}
        self._may_end = {tool: asyncio.Event() for tool in ("book", "notify")}

    async def began(self, tool: str) -> None:
        await asyncio.wait_for(self._began[tool].wait(), SOON)

    def end(self, *tools: str) -> None:
        for tool in tools:
            self._may_end[tool].set()

    async def work(self, tool: str, result: str) -> str:
        self.ran.append(tool)
        self._began[tool].set()
        await self._may_end[tool].wait()
        return result

    @function_tool
    async def book(self, people: int) -> str:
        """Book a table."""
        return await self.work("book", TABLE)

    @function_tool
    async def notify(self, number: str) -> str:
        """Send a message."""
        return await self.work("notify", SENT)


@dataclass
class Talk:
    """A session with a realtime model, and the server that it is connected to."""

    server: RealtimeServer
    host: Host
    line: Line

    async def begin(self) -> None:
        """The caller asks for a table: the tool runs, and the agent speaks."""
        await self.server.hear("A table for six, please.")
        await self.host.began("book")
        await asyncio.wait_for(self.line.speaker.wait_started(1), SOON)

    async def server_knows(self, tool: str, result: str) -> None:
        await self.server.until(lambda: result in outputs_of(self.server.items, tool), within=SOON)

    async def inference(self, number: int, *, within: float = SOON) -> Inference:
        """Wait for that response, counted from 1."""
        await self.server.until(lambda: len(self.server.inferences) >= number, within=within)
        return self.server.inferences[number - 1]

    def check(self, *ran: str) -> None:
        """Check that these tools ran, that every call has its output, and that the server was obeyed."""
        assert self.host.ran == list(ran)
        assert loose_ends(self.server.items) == []
        assert self.server.refused == []


Talks = Callable[[Script], Awaitable[Talk]]


@pytest.fixture
async def talk(session_class: type[AgentSession]) -> AsyncIterator[Talks]:
    """Starts a session whose model's server plays a script."""
    async with AsyncExitStack() as stack:

        async def start(script: Script) -> Talk:
            server = await stack.enter_async_context(RealtimeServer(script))
            http = await stack.enter_async_context(aiohttp.ClientSession())
            model = openai.realtime.RealtimeModel(base_url=server.base_url, api_key="-", http_session=http)
            session = session_class(llm=model, vad=None, turn_handling=TURNS)
            made = Talk(server, Host(), Line())
            session.output.audio = made.line.speaker
            stack.push_async_callback(session.aclose)
            stack.callback(made.host.end, "book", "notify")
            await session.start(made.host)
            await server.connected(1, within=SOON)
            return made

        yield start


@pytest.fixture(autouse=True)
def our_own_layer_never_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [r.getMessage() for r in caplog.get_records("call") if "safe_session failed" in r.getMessage()]


def makes(*calls: Call) -> Script:
    """A model that makes each of these calls unless it is shown that it was made."""

    def decide(inference: Inference) -> Answer:
        made = {call["name"] for call in calls_in(inference.items).values()}
        missing = [call for call in calls if call.name not in made]
        if missing:
            return Answer("One moment, please, I am doing it.", missing, calls_first=True, pace=0.02)
        return Answer("Very well, I have made a note of it.")

    return decide


@pytest.mark.fails_on_plain("<1.7")
async def test_the_next_response_knows_the_result_of_a_call_that_was_talked_over(talk: Talks) -> None:
    t = await talk(makes(BOOK))
    await t.begin()
    await t.server.hear("By the window!")
    t.host.end("book")
    await t.server_knows("book", TABLE)
    assert TABLE in (await t.server.hear("Well?")).told_of("book")
    t.check("book")


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_call_that_was_talked_over_is_answered_while_it_runs_and_told_when_it_ends(
    talk: Talks,
) -> None:
    t = await talk(makes(BOOK))
    await t.begin()
    meanwhile = await t.server.hear(INSISTS)
    assert meanwhile.told_of("book")
    assert TABLE not in meanwhile.told_of("book")
    t.host.end("book")
    await t.server_knows("book", TABLE)
    late = await t.inference(3)
    assert TABLE in late.told_of("book")
    assert not late.by_server
    assert (await t.server.hear("Thank you.")).told_of("book") == late.told_of("book")
    t.check("book")


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_fast_sibling_is_known_while_the_slow_one_runs(talk: Talks) -> None:
    t = await talk(makes(BOOK, NOTIFY))
    await t.begin()
    t.host.end("book")
    await t.server_knows("book", TABLE)
    assert TABLE in (await t.server.hear("Which table is it?")).told_of("book")
    t.host.end("notify")
    await t.server_knows("notify", SENT)
    assert SENT in (await t.server.hear("Well?")).told_of("notify")
    t.check("book", "notify")


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_push_that_is_refused_is_made_up_for_before_the_next_response(talk: Talks) -> None:
    t = await talk(makes(BOOK))
    t.server.fail_push_of("book", how="refused")
    await t.begin()
    t.host.end("book")
    assert (await t.inference(2, within=7.0)).told_of("book") == [TABLE]
    t.check("book")


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.fails_on_plain(">=1.6")
async def test_a_late_result_is_told_although_its_first_push_failed(talk: Talks, how: Failure) -> None:
    t = await talk(makes(BOOK))
    await t.begin()
    assert (await t.server.hear(INSISTS)).told_of("book")
    t.server.fail_push_of("book", how=how)
    t.host.end("book")
    late = await t.inference(3, within=7.0)
    assert TABLE in late.told_of("book")
    assert not late.by_server
    t.check("book")


@pytest.mark.fails_on_plain("<1.8.5")
async def test_a_new_connection_knows_what_the_old_one_knew(talk: Talks) -> None:
    t = await talk(makes(BOOK))
    await t.begin()
    t.host.end("book")
    await t.inference(2)
    known = calls_in(t.server.items)
    await t.server.drop()
    await t.server.connected(2, within=SOON)
    assert (await t.server.hear("Is it booked, please?")).told_of("book") == [TABLE]
    assert calls_in(t.server.items) == known
    t.check("book")


@pytest.mark.fails_on_plain("<1.8.5")
async def test_a_new_connection_knows_the_call_that_ran_when_the_old_one_was_lost(talk: Talks) -> None:
    t = await talk(makes(BOOK))
    await t.begin()
    await t.server.drop()
    await t.server.connected(2, within=SOON)
    t.host.end("book")
    await t.server_knows("book", TABLE)
    assert TABLE in (await t.server.hear("Is it booked, please?")).told_of("book")
    t.check("book")
