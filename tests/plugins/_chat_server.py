"""A server on loopback that speaks the stream of OpenAI's chat completions."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from aiohttp import web

from safe_session.testing import Call
from safe_session.testing._changes import Changes

PIECE = 4
"""Characters of a call's arguments in one chunk."""

Delta = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the server answers one request with.

    Attributes:
        text: Streamed word by word, before the calls.
        calls: Streamed one after the other, the arguments of each in pieces.
        then: How the stream ends once all of that was sent. "done": as it should. "error": with an error in
            the stream. "cut": the connection breaks. "stall": nothing more comes, until the client goes.
            In all but "done", the last call is never completed.
        status: The status of the answer; if it isn't 200, nothing is streamed.

    """

    text: str = ""
    calls: Sequence[Call] = ()
    then: Literal["done", "error", "cut", "stall"] = "done"
    status: int = 200


@dataclass(frozen=True)
class Request:
    """One request, as it came over the wire.

    Attributes:
        messages: The conversation that the model is shown.
        tools: The names of the tools that it may call.

    """

    messages: Sequence[dict[str, Any]]
    tools: Sequence[str]

    @property
    def calls(self) -> dict[str, Call]:
        """The calls that the model is shown, by their ids."""
        made = [call for message in self.messages for call in message.get("tool_calls") or ()]
        return {
            call["id"]: Call(call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in made
        }

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs that the model is shown, by the tool's name."""
        messages = [message for message in self.messages if message["role"] == "tool"]
        return {self.calls[message["tool_call_id"]].name: message["content"] for message in messages}


@dataclass
class ChatServer:
    """Answers each request with what `decide` makes of it; ``async with ChatServer(decide) as server``.

    Like OpenAI's own, it refuses a conversation in which a call has no output, or an output no call.

    Attributes:
        url: What the plugin's `base_url` is to be.
        requests: Those that were not refused, in the order in which they came.
        refused: What was wrong with the others.
        changes: Notified with each of these requests.

    """

    decide: Callable[[Request], Reply]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    _calls: int = 0

    async def __aenter__(self) -> "ChatServer":
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        request = Request(body["messages"], [tool["function"]["name"] for tool in body.get("tools", ())])
        if problem := _unpaired(request.messages):
            self.refused.append(problem)
            return web.json_response({"error": {"message": problem}}, status=400)
        self.requests.append(request)
        self.changes.notify()
        reply = self.decide(request)
        if reply.status != 200:
            return web.json_response({"error": {"message": "not now"}}, status=reply.status)
        return await self._stream(http, reply)

    async def _stream(self, http: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        about = {"id": f"chatcmpl-{len(self.requests)}", "object": "chat.completion.chunk", "created": 0}
        for delta, finish in self._deltas(reply):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            await response.write(_event({**about, "model": "gpt", "choices": [choice]}))
        await self._end(http, response, reply)
        return response

    def _deltas(self, reply: Reply) -> Iterator[tuple[Delta, str | None]]:
        yield {"role": "assistant", "content": ""}, None
        for word in reply.text.split():
            yield {"content": f"{word} "}, None
        for index, call in enumerate(reply.calls):
            self._calls += 1
            opening = {"name": call.name, "arguments": ""}
            yield _of_call(index, opening, id=f"call_{self._calls}", type="function"), None
            arguments = json.dumps(call.arguments)
            for start in range(0, len(arguments), PIECE):
                yield _of_call(index, {"arguments": arguments[start : start + PIECE]}), None
        if reply.then == "done":
            yield {}, "tool_calls" if reply.calls else "stop"

    async def _end(self, http: web.Request, response: web.StreamResponse, reply: Reply) -> None:
        if reply.then == "done":
            await response.write(b"data: [DONE]\n\n")
        elif reply.then == "error":
            await response.write(_event({"error": {"message": "the server had an error"}}))
        elif reply.then == "cut":
            assert http.transport is not None
            http.transport.close()
        else:
            await asyncio.Event().wait()  # aiohttp cancels it when the client goes


def _of_call(index: int, function: dict[str, str], **more: str) -> Delta:
    return {"tool_calls": [{"index": index, "function": function, **more}]}


def _event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _unpaired(messages: Sequence[dict[str, Any]]) -> str:
    """What OpenAI would say of calls and outputs that don't belong together."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"the output of {message['tool_call_id']} follows no call of it"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"no output follows the calls {', '.join(waiting)}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return f"no output follows the calls {', '.join(waiting)}" if waiting else ""
