"""A scripted peer that speaks the OpenAI Realtime protocol over a WebSocket on loopback.

What stands in its conversation is what its model knows. It is as strict as the real one about what matters
here: ids are unique and short, an item goes after one that is there, an output belongs to a call, and one
response is generated at a time.
"""

import asyncio
import base64
import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web
from aiohttp.test_utils import TestServer

from safe_session.testing import Answer, Call
from safe_session.testing._changes import Changes

Event = dict[str, Any]
Item = dict[str, Any]
"""An item of a conversation, as the protocol has it."""

WORDS_PER_SECOND = 30
"""How fast the model and the caller speak."""

_ONE_WORD = base64.b64encode(bytes(2 * 24000 // WORDS_PER_SECOND)).decode()
_LONGEST_ID = 32

_ids = itertools.count(1)


@dataclass(frozen=True)
class Inference:
    """One response of the model.

    Attributes:
        items: The conversation as it was when the response began.
        by_server: Whether the server began it, after the caller's turn.
    """

    items: tuple[Item, ...]
    by_server: bool

    def told_of(self, tool: str) -> list[str]:
        """What it was told that became of the tool's calls, in order."""
        return outputs_of(self.items, tool)


Script = Callable[[Inference], Answer]
Failure = Literal["refused", "lost"]


class RealtimeServer:
    """A model that plays a script, and whoever is connected to it.

    Attributes:
        inferences: The responses to all clients, in order.
        connections: The connections, the newest last. Each has a conversation of its own.
        refused: Why items were not added, apart from those that were there and what `fail_push_of()` refused.

    Args:
        script: What the model says and calls, by what it is shown.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.inferences: list[Inference] = []
        self.connections: list[Connection] = []
        self.refused: list[str] = []
        self.failing: dict[str, Failure] = {}
        self.changes = Changes()
        app = web.Application()
        app.router.add_get("/v1/realtime", self._serve)
        self._http = TestServer(app)

    async def __aenter__(self) -> "RealtimeServer":
        await self._http.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    @property
    def base_url(self) -> str:
        return str(self._http.make_url("/v1"))

    @property
    def items(self) -> list[Item]:
        """The conversation of the newest connection."""
        return self.connections[-1].conversation.items

    async def hear(self, text: str) -> Inference:
        """Let the caller say something, which interrupts; returns the response to it."""
        connection = self.connections[-1]
        turn = connection.speech_starts()
        await asyncio.sleep(len(text.split()) / WORDS_PER_SECOND)
        connection.speech_ends(turn, text)
        return self.inferences[-1]

    async def drop(self) -> None:
        """Break the connection off. The client connects again, to a conversation that is empty."""
        await self.connections[-1].socket.close()

    def fail_push_of(self, tool: str, *, how: Failure) -> None:
        """Let the tool's next output not get through: it is answered with an error, or not at all."""
        self.failing[tool] = how

    async def connected(self, times: int, *, within: float) -> None:
        """Wait until a client has connected so many times, and has said which tools there are."""

        def holds() -> bool:
            return len(self.connections) == times and "tools" in self.connections[-1].session

        await self.until(holds, within=within)

    async def until(self, holds: Callable[[], bool], *, within: float) -> None:
        """Wait until something holds of the server, and fail if it does not come to hold."""
        try:
            await asyncio.wait_for(self.changes.until(holds), within)
        except asyncio.TimeoutError:
            known = "\n  ".join(map(json.dumps, self.items if self.connections else ()))
            raise AssertionError(f"not so within {within} s; the server knows:\n  {known}") from None

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        connection = Connection(self, socket)
        self.connections.append(connection)
        await connection.serve()
        return socket


class RefusedError(Exception):
    """What the client asked for is answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Conversation:
    """The items, in order."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def item(self, item_id: str) -> Item:
        for item in self.items:
            if item["id"] == item_id:
                return item
        raise RefusedError("item_not_found", f"there is no item {item_id}")

    def place_after(self, item_id: str | None) -> int:
        """Where an item after that one goes: at the end, if it is None."""
        if item_id is None:
            return len(self.items)
        return 0 if item_id == "root" else self.items.index(self.item(item_id)) + 1

    def check(self, item: Item) -> None:
        """Refuse an item that cannot be added."""
        if any(len(item.get(name) or "") > _LONGEST_ID for name in ("id", "call_id")):
            raise RefusedError("string_above_max_length", f"an id is too long: {item}")
        if any(other["id"] == item["id"] for other in self.items):
            raise RefusedError("item_create_duplicate_item_id", f"there is an item {item['id']} already")
        if item["type"] == "function_call_output" and item["call_id"] not in calls_in(self.items):
            raise RefusedError("invalid_tool_call_id", f"there is no call {item['call_id']}")

    def tool_of(self, item: Item) -> str | None:
        """The tool whose output the item is, if it is one."""
        is_output = item["type"] == "function_call_output"
        return calls_in(self.items)[item["call_id"]]["name"] if is_output else None


class Connection:
    """One client, and the conversation with it.

    Attributes:
        conversation: What the model knows.
        session: What the client has set.
        socket: What it is connected by.
    """

    def __init__(self, server: RealtimeServer, socket: web.WebSocketResponse) -> None:
        self.conversation = Conversation()
        self.session: dict[str, Any] = {}
        self.socket = socket
        self._server = server
        self._outgoing = asyncio.Queue[Event]()
        self._generation: Generation | None = None

    async def serve(self) -> None:
        writer = asyncio.create_task(self._write())
        try:
            async for message in self.socket:
                self._answer(message.json())
        finally:
            self._stop_generation()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    def send(self, kind: str, **fields: Any) -> None:
        self._outgoing.put_nowait({"type": kind, "event_id": new_id("event"), **copy.deepcopy(fields)})
        self._server.changes.notify()

    async def _write(self) -> None:
        while True:
            await self.socket.send_json(await self._outgoing.get())

    # -- what the client asks for

    def _answer(self, event: Event) -> None:
        try:
            self._do(event)
        except RefusedError as refusal:
            harmless = refusal.code in ("server_error", "item_create_duplicate_item_id")
            if event["type"] == "conversation.item.create" and not harmless:
                self._server.refused.append(str(refusal))
            error = {"type": "invalid_request_error", "code": refusal.code, "message": str(refusal)}
            self.send("error", error={**error, "event_id": event.get("event_id")})

    def _do(self, event: Event) -> None:
        match event["type"]:
            case "session.update":
                self.session.update(event["session"])
                self.send("session.updated", session=self.session)
            case "conversation.item.create":
                self._create(event["item"], event.get("previous_item_id"))
            case "conversation.item.delete":
                self.conversation.items.remove(self.conversation.item(event["item_id"]))
                self.send("conversation.item.deleted", item_id=event["item_id"])
            case "conversation.item.truncate":
                self._truncate(event["item_id"], event["audio_end_ms"])
            case "response.create":
                self._generate(by_server=False, metadata=event["response"]["metadata"])
            case "response.cancel":
                if self._generation is None:
                    # the client knows this one by its first words
                    raise RefusedError("response_cancel_not_active", "Cancellation failed: nothing is active")
                self._stop_generation()
            case "input_audio_buffer.append" | "input_audio_buffer.clear":
                pass  # what is said comes by `RealtimeServer.hear()`
            case unknown:
                raise RefusedError("unknown_event", f"there is no event {unknown}")

    def _create(self, item: Item, after: str | None) -> None:
        place = self.conversation.place_after(after)
        self.conversation.check(item)
        how = self._server.failing.pop(self.conversation.tool_of(item) or "", None)
        if how == "refused":
            raise RefusedError("server_error", "the server had an error")
        if how is None:
            self.add(item, place)
            self.send("conversation.item.done", item=item)

    def _truncate(self, item_id: str, audio_end_ms: int) -> None:
        """Forget the words of a message that were not heard."""
        part = self.conversation.item(item_id)["content"][0]
        heard = int(audio_end_ms / 1000 * WORDS_PER_SECOND)
        part["transcript"] = " ".join(part["transcript"].split()[:heard])
        self.send("conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=audio_end_ms)

    # -- what the server does by itself

    def speech_starts(self) -> str:
        """The caller begins to speak, which cuts the model off; returns the id of the turn."""
        turn = new_id("item")
        self.send("input_audio_buffer.speech_started", item_id=turn, audio_start_ms=0)
        self._stop_generation()
        return turn

    def speech_ends(self, turn: str, text: str) -> None:
        """The caller's turn has ended, and is answered."""
        self.send("input_audio_buffer.speech_stopped", item_id=turn, audio_end_ms=0)
        self.send("input_audio_buffer.committed", item_id=turn)
        said = {"type": "input_audio", "transcript": None}
        self.add({"id": turn, "type": "message", "role": "user", "content": [said]})
        said["transcript"] = text
        transcribed = "conversation.item.input_audio_transcription.completed"
        self.send(transcribed, item_id=turn, content_index=0, transcript=text)
        self._generate(by_server=True)

    def add(self, item: Item, place: int | None = None) -> None:
        """Put an item at its place, or at the end."""
        items = self.conversation.items
        place = len(items) if place is None else place
        before = items[place - 1]["id"] if place else None
        items.insert(place, item)
        self.send("conversation.item.added", previous_item_id=before, item=item)

    def _generate(self, *, by_server: bool, metadata: dict[str, str] | None = None) -> None:
        if self._generation is not None:
            raise RefusedError("conversation_already_has_active_response", "there is an active response")
        inference = Inference(tuple(copy.deepcopy(self.conversation.items)), by_server)
        self._server.inferences.append(inference)
        self._generation = Generation(self, self._server.script(inference), metadata)

    def _stop_generation(self) -> None:
        if self._generation is not None:
            self._generation.stop()

    def generation_over(self) -> None:
        self._generation = None


class Generation:
    """One response on its way: an answer that is streamed, word by word with its audio, and call by call."""

    def __init__(self, connection: Connection, answer: Answer, metadata: dict[str, str] | None) -> None:
        self._connection = connection
        self._answer = answer
        self._response = {"id": new_id("resp"), "object": "realtime.response", "metadata": metadata}
        self._message: Item | None = None
        self._send("response.created", response={**self._response, "status": "in_progress"})
        self._task = asyncio.create_task(self._stream())

    def stop(self) -> None:
        """Cut it off; what was streamed up to now stays."""
        self._task.cancel()
        self._end("cancelled")

    async def _stream(self) -> None:
        words = [f"{word} " for word in self._answer.text.split()]
        calls = list(self._answer.calls)
        for part in [*calls, *words] if self._answer.calls_first else [*words, *calls]:
            if isinstance(part, Call):
                self._call(part)
            else:
                self._say(part)
            await asyncio.sleep(self._answer.pace)
        self._end("completed")

    def _end(self, status: Literal["completed", "cancelled"]) -> None:
        if self._message is not None:
            self._send("response.output_audio.done", item_id=self._message["id"], content_index=0)
            self._send("response.output_item.done", item=self._message)
        self._send("response.done", response={**self._response, "status": status})
        self._connection.generation_over()

    def _say(self, word: str) -> None:
        message = self._message or self._begin_message()
        message["content"][0]["transcript"] += word
        where = {"item_id": message["id"], "content_index": 0}
        self._send("response.output_audio_transcript.delta", **where, delta=word)
        self._send("response.output_audio.delta", **where, delta=_ONE_WORD)

    def _begin_message(self) -> Item:
        item = {"id": new_id("item"), "type": "message", "role": "assistant", "content": []}
        self._add(item)
        item["content"] = [{"type": "output_audio", "transcript": ""}]
        part = {"type": "audio", "transcript": ""}
        self._send("response.content_part.added", item_id=item["id"], content_index=0, part=part)
        self._message = item
        return item

    def _call(self, call: Call) -> None:
        item = {"id": new_id("item"), "type": "function_call", "call_id": new_id("call"), "name": call.name}
        item["arguments"] = ""
        self._add(item)
        item["arguments"] = json.dumps(call.arguments)
        where = {"item_id": item["id"], "call_id": item["call_id"]}
        self._send("response.function_call_arguments.delta", **where, delta=item["arguments"])
        self._send("response.function_call_arguments.done", **where, arguments=item["arguments"])
        self._send("response.output_item.done", item=item)

    def _add(self, item: Item) -> None:
        self._send("response.output_item.added", item=item)
        self._connection.add(item)

    def _send(self, kind: str, **fields: Any) -> None:
        self._connection.send(kind, response_id=self._response["id"], **fields)


def new_id(kind: str) -> str:
    """Make an id that is as long as the real server's."""
    return f"{kind}_{next(_ids):016}"


def calls_in(items: Sequence[Item]) -> dict[str, Item]:
    """The calls among the items, by call id."""
    return {item["call_id"]: item for item in items if item["type"] == "function_call"}


def outputs_of(items: Sequence[Item], tool: str) -> list[str]:
    """The outputs of the tool's calls among the items, in order."""
    mine = {call_id for call_id, call in calls_in(items).items() if call["name"] == tool}
    outputs = [item for item in items if item["type"] == "function_call_output"]
    return [output["output"] for output in outputs if output["call_id"] in mine]


def loose_ends(items: Sequence[Item]) -> list[str]:
    """The call ids that are not those of one call and one output."""
    calls = Counter(item["call_id"] for item in items if item["type"] == "function_call")
    outputs = Counter(item["call_id"] for item in items if item["type"] == "function_call_output")
    return [call_id for call_id in calls | outputs if (calls[call_id], outputs[call_id]) != (1, 1)]
