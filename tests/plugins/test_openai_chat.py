"""G1 to G3 with livekit-plugins-openai over HTTP: calls in pieces, streams that break off, refused requests.

The model is a server on loopback (`ChatServer`), so time is real here: nobody sleeps, the tools end when the
test says so.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from livekit.agents import Agent, AgentSession, APIConnectOptions, function_tool
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.agent_session import SessionConnectOptions
from livekit.plugins import openai

from safe_session import SafeAgentSession
from safe_session.testing import Call, check_guarantees
from safe_session.testing._changes import Changes

from ._chat_server import ChatServer, Reply, Request

pytestmark = [pytest.mark.looptime(False), pytest.mark.timeout(20)]

BOOK = Call("book", {"people": 6, "name": "王小明"})
NOTIFY = Call("notify", {"number": "555 0142"})


class Host(Agent):
    """A host whose tools end when they are told to.

    Attributes:
        did: What its tools have begun, in that order.
        may_end: Whether a tool may end, by its name.

    """

    def __init__(self, changes: Changes) -> None:
        super().__init__(instructions="You are the host.")
        self.did: list[str] = []
        self.may_end = {"book": asyncio.Event(), "notify": asyncio.Event()}
        self._changes = changes

    async def work(self, tool: str, what: str) -> str:
        self.did.append(what)
        self._changes.notify()
        await self.may_end[tool].wait()
        return f"{what} is done"

    @function_tool
    async def book(self, people: int, name: str) -> str:
        """Book a table."""
        return await self.work("book", f"book {people} {name}")

    @function_tool
    async def notify(self, number: str) -> str:
        """Send a message."""
        return await self.work("notify", f"notify {number}")


class Phone:
    """A session whose model is behind HTTP, and a caller who types; ``async with Phone(…) as call``.

    Its end is a check that every call was kept (G1), and that the model was only shown conversations that it
    takes.

    Args:
        session_class: `SafeAgentSession` or `AgentSession`.
        decide: What the model answers.
        patience: Seconds that the session waits for a word of the model's.

    """

    def __init__(
        self, session_class: type[AgentSession], decide: Callable[[Request], Reply], *, patience: float = 5.0
    ) -> None:
        self.server = ChatServer(decide)
        self.changes = self.server.changes
        self.host = Host(self.changes)
        self.session_class = session_class
        self.options = SessionConnectOptions(
            llm_conn_options=APIConnectOptions(max_retry=2, retry_interval=0.1, timeout=patience)
        )
        self._speeches: list[SpeechHandle] = []

    async def __aenter__(self) -> "Phone":
        await self.server.__aenter__()
        self.llm = openai.LLM(model="gpt", base_url=self.server.url, api_key="none")
        self.session = self.session_class(llm=self.llm, conn_options=self.options)
        self.session.on("speech_created", lambda event: self._begun(event.speech_handle))
        self.session.on("conversation_item_added", lambda _: self.changes.notify())
        await self.session.start(self.host)
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        for event in self.host.may_end.values():
            event.set()
        try:
            if kind is None:
                await self.rest()
                assert self.server.refused == []
                assert [str(each) for each in check_guarantees(self.session, self.host)] == []
        finally:
            await self.session.aclose()
            await self.llm.aclose()
            await self.server.__aexit__(None, None, None)

    def says(self, text: str) -> None:
        """The caller types, and interrupts."""
        self.session.interrupt()
        self.session.generate_reply(user_input=text)

    def end(self, tool: str) -> None:
        """Let a tool end."""
        self.host.may_end[tool].set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds that the server, the tools or the session's items tell of."""
        await self.changes.until(lambda: bool(condition()))

    async def rest(self) -> None:
        """Wait until nothing is left to be said."""
        changed = True
        while changed:
            await self.until(lambda: not self._speeches)
            changed = await self.changes.within(0.2)

    def stored(self, tool: str) -> list[str]:
        """The outputs of a tool in the host's context."""
        items = self.host.chat_ctx.items
        return [item.output for item in items if item.type == "function_call_output" and item.name == tool]

    @property
    def requests(self) -> list[Request]:
        return self.server.requests

    def _begun(self, speech: SpeechHandle) -> None:
        self._speeches.append(speech)
        speech.add_done_callback(self._done)

    def _done(self, speech: SpeechHandle) -> None:
        self._speeches.remove(speech)
        self.changes.notify()


@pytest.fixture
def phone(session_class: type[AgentSession]) -> Callable[..., Phone]:
    return partial(Phone, session_class)


@pytest.fixture
def safe_phone() -> Callable[..., Phone]:
    return partial(Phone, SafeAgentSession)


def diligent(*wanted: Call, first: Reply | None = None) -> Callable[[Request], Reply]:
    """A model that makes each of these calls unless it is shown that it was made.

    Args:
        *wanted: The calls.
        first: What it answers to the first request instead.

    """
    asked = 0

    def decide(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        if first and asked == 1:
            return first
        missing = [call for call in wanted if call not in request.calls.values()]
        return Reply("One moment, please.", missing) if missing else Reply("It is done, thank you.")

    return decide


# -- the calls


async def test_calls_come_in_pieces_and_their_outputs_go_back_on_both(phone):
    async with phone(diligent(BOOK, NOTIFY)) as call:
        call.says("Six!")
        call.end("book")
        call.end("notify")
        await call.rest()
    assert sorted(call.host.did) == ["book 6 王小明", "notify 555 0142"]
    assert call.requests[1].outputs == {
        "book": "book 6 王小明 is done",
        "notify": "notify 555 0142 is done",
    }
    assert call.requests[0].tools == ["book", "notify"]


async def test_two_identical_calls_of_one_response_both_run_on_both(phone):
    async with phone(diligent(first=Reply("Twice.", [BOOK, BOOK]))) as call:
        call.says("Six, twice!")
        call.end("book")
        await call.rest()
    assert call.host.did == ["book 6 王小明"] * 2


# -- the caller interrupts


async def one_of_two_runs(call):
    """The caller has asked for both; the table is booked, and the message still under way."""
    call.says("Six!")
    await call.until(lambda: len(call.host.did) == 2)
    call.end("book")
    await settled(call)


@pytest.mark.fails_on_plain(">=1.6")
async def test_the_caller_speaks_while_one_of_two_runs(phone):
    async with phone(diligent(BOOK, NOTIFY)) as call:
        await one_of_two_runs(call)
        call.says("Six?")
        await call.until(lambda: len(call.requests) == 2)
        known = call.requests[1].outputs
        call.end("notify")
        await call.rest()
        assert call.host.did == ["book 6 王小明", "notify 555 0142"]
        assert known["book"] == "book 6 王小明 is done"
        assert "still" in known["notify"].lower()


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_result_is_kept_while_another_tool_runs(phone):
    async with phone(diligent(BOOK, NOTIFY)) as call:
        await one_of_two_runs(call)
        assert call.stored("book") == ["book 6 王小明 is done"]


async def test_a_tool_that_ends_late_is_told(safe_phone):
    """The interrupted turn no longer waits for it; its result comes with a request of its own."""
    async with safe_phone(diligent(BOOK, NOTIFY)) as call:
        call.says("Six!")
        await call.until(lambda: len(call.host.did) == 2)
        call.end("book")
        call.says("Six?")
        await call.rest()
        before = len(call.requests)
        call.end("notify")
        await call.until(lambda: len(call.requests) > before)
        assert "notify 555 0142 is done" in call.requests[-1].outputs["notify"]
        await call.rest()
        assert call.host.did == ["book 6 王小明", "notify 555 0142"]


@pytest.mark.fails_on_plain(">=1.6")
async def test_two_queued_replies_decide_on_the_same_call(phone):
    def decide(request: Request) -> Reply:
        return Reply("It is done.") if request.outputs else Reply("One moment.", [BOOK])

    async with phone(decide) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        await call.until(lambda: len(call.requests) == 2)
        call.end("book")
        await call.rest()
        assert call.host.did == ["book 6 王小明"]
        assert "Not run again" in call.requests[-1].outputs["book"]


# -- the stream breaks off in the middle of a call

LAST = Call("notify", {"number": "of which half comes"})
BREAKS = ["error", "cut", "stall"]


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("then", BREAKS)
async def test_the_stream_breaks_off_while_one_of_two_runs(phone, then):
    async with phone(diligent(BOOK, NOTIFY, first=Reply("Yes.", [BOOK, NOTIFY, LAST], then=then))) as call:
        await one_of_two_runs(call)
        call.says("Six?")
        await call.until(lambda: len(call.requests) == 2)
        known = call.requests[1].outputs
        call.end("notify")
        await call.rest()
        assert call.host.did == ["book 6 王小明", "notify 555 0142"]
        assert known["book"] == "book 6 王小明 is done"


@pytest.mark.parametrize("then", BREAKS)
async def test_the_stream_breaks_off_after_a_call(safe_phone, then):
    """A plain session keeps the call if the stream fails, and not if it stalls."""
    async with safe_phone(diligent(BOOK, first=Reply("Yes.", [BOOK, NOTIFY], then=then))) as call:
        call.says("Six!")
        await call.until(lambda: call.host.did)
        call.end("book")
        await settled(call)
        call.says("Six?")
        await call.rest()
        assert call.host.did == ["book 6 王小明"]
        assert call.requests[-1].outputs == {"book": "book 6 王小明 is done"}


# -- the request is refused, and made again


@pytest.mark.parametrize("status", [429, 503])
async def test_a_refused_request_is_made_again_on_both(phone, status):
    async with phone(diligent(BOOK, first=Reply(status=status))) as call:
        call.says("Six!")
        call.end("book")
        await call.rest()
    assert call.host.did == ["book 6 王小明"]
    assert len(call.requests) == 3


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("refusal", [Reply(status=429), Reply(then="stall")], ids=["429", "stall"])
async def test_a_request_is_made_again_with_what_was_known_before(phone, refusal):
    """The second reply's first request is refused; the one that follows was made up before the booking."""
    asked = []

    def decide(request: Request) -> Reply:
        asked.append(request.messages[-1]["content"])
        if request.messages[-1]["content"] == "Six, please!" and asked.count("Six, please!") == 1:
            return refusal
        return Reply("It is done.") if request.outputs else Reply("One moment.", [BOOK])

    async with phone(decide, patience=0.3) as call:
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six, please!")
        call.end("book")
        await call.until(lambda: asked.count("Six, please!") == 2)
        await call.rest()
        assert call.host.did == ["book 6 王小明"]
        assert "Not run again" in call.requests[-1].outputs["book"]


async def settled(call: Phone) -> None:
    """Wait until what a tool has just given has gone where it goes."""
    while await call.changes.within(0.1):
        pass
