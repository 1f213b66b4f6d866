"""The server of a scripted realtime model, at the other end of one connection."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livekit.agents import llm

from ._model import Inference
from ._realtime_context import ServerContext
from ._realtime_generation import Delivery, Generation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._model import Answer
    from ._realtime import ScriptedRealtimeModel
    from ._realtime_context import Announce
    from ._realtime_generation import Modality


@dataclass(frozen=True)
class RealtimeInference(Inference):
    """One generation of a realtime model.

    Attributes:
        shown: A copy of the server's context, taken when the generation began. As in a `ScriptedModel`'s
            inference, the agent's instructions stand before it and those for this response after it, as
            system messages.
        tools: The names of the tools that it could call.
        tool_choice: The tool choice of this response, or else of its session, if any.
        at: The event loop's time at which it began, in seconds.
        instructions: The instructions for this response alone, if any.
        agent_instructions: The instructions of the session, which are the current agent's.
        by_server: Whether the server started it by itself.
        modalities: What it consists of: "text", or "text" and "audio".

    """

    instructions: str | None
    agent_instructions: str
    by_server: bool
    modalities: tuple[Modality, ...]


@dataclass(frozen=True)
class Request:
    """What a generation is asked for with. Where it says nothing, the session's own counts."""

    future: asyncio.Future[llm.GenerationCreatedEvent]
    instructions: str | None
    tools: Sequence[llm.Tool] | None
    tool_choice: llm.ToolChoice | None


@dataclass(frozen=True)
class Listener:
    """What the client does about what the server tells it."""

    item_added: Announce
    generation_created: Callable[[llm.GenerationCreatedEvent], None]
    failed: Callable[[Exception], None]


class Server:
    """Generates one reply at a time, and knows what happened on its connection.

    Attributes:
        context: What it knows of the conversation.
        instructions: The session's instructions.
        tools: The session's tools.
        tool_choice: The session's tool choice, if any.
        generation: The generation that is on its way, if there is one.

    """

    def __init__(self, model: ScriptedRealtimeModel, listener: Listener) -> None:
        self.context = ServerContext(listener.item_added)
        self.instructions = ""
        self.tools = llm.ToolContext.empty()
        self.tool_choice: llm.ToolChoice | None = None
        self.generation: Generation | None = None
        self._model = model
        self._listener = listener
        self._requests: deque[Request] = deque()
        self._open_calls: set[str] = set()  # made here, and not answered yet
        self._reply_due = False

    def ask(self, request: Request) -> None:
        """Take a request. It is served in the next round of the event loop, unless it is cancelled."""
        self._requests.append(request)
        asyncio.get_running_loop().call_soon(self.serve)

    def serve(self) -> None:
        """Begin what was asked for."""
        while self._requests:
            request = self._requests.popleft()
            if request.future.done():
                continue
            begun = self._begin(request)
            if isinstance(begun, Exception):
                request.future.set_exception(llm.RealtimeError(str(begun)))
            else:
                request.future.set_result(begun)

    def start(self, answer: Answer | None) -> None:
        """Begin a generation that nobody asked for, with a given answer or with what the script says."""
        begun = self._begin(None, answer)
        if isinstance(begun, Exception):
            self._listener.failed(begun)

    def stop(self) -> None:
        """Cut off the generation that is on its way."""
        generation, self.generation = self.generation, None
        if generation is not None:
            generation.stop()
            self._open_calls.update(generation.calls)

    def disconnect(self, reason: str) -> None:
        """Cut off everything, and fail what was asked for and has not begun."""
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(llm.RealtimeError(reason))
        self.stop()
        self._open_calls.clear()
        self._reply_due = False

    def forget(self) -> None:
        """Lose the conversation."""
        self.context = ServerContext(self._listener.item_added)

    def take_outputs(self) -> None:
        """See which calls have been answered; a model that replies by itself does so after the last one."""
        answered = self._open_calls & self.context.answered
        self._open_calls &= set(self.context.unanswered)  # one that was taken away is not waited for
        self._reply_due = self._reply_due or bool(answered)
        auto = self._model.capabilities.auto_tool_reply_generation
        if auto and self._reply_due and not self._open_calls and self.generation is None:
            self.start(None)

    def _begin(
        self, request: Request | None, answer: Answer | None = None
    ) -> llm.GenerationCreatedEvent | Exception:
        if self.generation is not None:
            return RuntimeError("there is an active response already")
        answer_or_error = self._model.next_answer(self._inference(request), answer)
        if isinstance(answer_or_error, Exception):
            return answer_or_error
        self._reply_due = False
        generation = self.generation = Generation(
            answer_or_error,
            self.context,
            Delivery(self._model.modalities, self._model.words_per_second, self._model.new_call_id),
            user_initiated=request is not None,
            on_end=self._on_end,
        )
        self._listener.generation_created(generation.event)
        generation.start()
        return generation.event  # it may be over already

    def _inference(self, request: Request | None) -> RealtimeInference:
        tools = self.tools.flatten() if request is None or request.tools is None else request.tools
        return RealtimeInference(
            shown=self._shown(request and request.instructions),
            tools=tuple(tool.id for tool in tools),
            tool_choice=(request and request.tool_choice) or self.tool_choice,
            at=asyncio.get_running_loop().time(),
            instructions=request and request.instructions,
            agent_instructions=self.instructions,
            by_server=request is None,
            modalities=self._model.modalities,
        )

    def _shown(self, instructions: str | None) -> llm.ChatContext:
        known = self.context.snapshot()
        before, after = (
            [llm.ChatMessage(role="system", content=[text])] if text else []
            for text in (self.instructions, instructions)
        )
        return llm.ChatContext([*before, *known.items, *after])

    def _on_end(self, generation: Generation) -> None:
        self.generation = None
        self._open_calls.update(generation.calls)
        if generation.answer.error is not None:
            self._listener.failed(generation.answer.error)
        self.take_outputs()
