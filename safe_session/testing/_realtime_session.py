"""One connection to the server of a scripted realtime model."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from livekit.agents import APIError, llm, utils
from livekit.agents.types import NOT_GIVEN

from ._model import Inference
from ._realtime_context import ServerContext, words_until
from ._realtime_generation import Delivery, Generation
from ._words import end_of_word, split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livekit import rtc
    from livekit.agents.types import NotGivenOr

    from ._model import Answer
    from ._realtime import ScriptedRealtimeModel
    from ._realtime_context import Known, Push
    from ._realtime_generation import Modality


@dataclass(frozen=True)
class RealtimeInference(Inference):
    """One generation of a realtime model.

    Attributes:
        shown: A copy of the server's context, taken when the generation began.
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
class _Request:
    """What a generation was asked for with. Where it says nothing, the session's own counts."""

    future: asyncio.Future[llm.GenerationCreatedEvent]
    instructions: str | None = None
    tools: Sequence[llm.Tool] | None = None
    tool_choice: llm.ToolChoice | None = None


class ScriptedRealtimeSession(llm.RealtimeSession[NoReturn]):
    """A connection of livekit-agents to a `ScriptedRealtimeModel`, and the server at its other end.

    The server generates one reply at a time; to ask for another one meanwhile is an error, as it is with
    OpenAI's. What it is told counts in the order in which it is told it.

    Attributes:
        instructions: The current agent's instructions.
        tool_choice: The session's tool choice, if any.
        turn_detection: Whether the server finds out by itself when the user's turn begins and ends.
        closed: Whether it was closed.

    """

    def __init__(self, model: ScriptedRealtimeModel, *, turn_detection: bool) -> None:
        super().__init__(model)
        self.instructions = ""
        self.tool_choice: llm.ToolChoice | None = None
        self.turn_detection = turn_detection
        self.closed = False
        self._model = model
        self._context = ServerContext(self._announce)
        self._tools = llm.ToolContext.empty()
        self._pushing = asyncio.Lock()
        self._pushed = False
        self._not_taken: dict[str, Known] = {}  # was pushed to a server that takes only outputs
        self._requests: deque[_Request] = deque()
        self._generation: Generation | None = None
        self._open_calls: set[str] = set()  # made here, and not answered yet
        self._reply_due = False
        self._heard: list[str] = []  # not committed yet

    # what a test does with it

    @property
    def server_context(self) -> llm.ChatContext:
        """A copy of what the server knows: what was pushed, what it heard, and what it said and called."""
        return self._context.snapshot()

    @property
    def unanswered_calls(self) -> list[str]:
        """The ids of the calls in the server's context that have no output there, in order."""
        return self._context.unanswered

    @property
    def generating(self) -> bool:
        """Whether a generation is on its way."""
        return self._generation is not None

    async def hear(self, text: str) -> None:
        """Let the server hear the user, and return when they have said it.

        With the server's turn detection it notices that the user starts, which cuts off its own generation,
        and that they stop; then it starts a generation. Without, it does so when it is asked to, after
        livekit-agents has committed what was heard (`AgentSession.commit_user_turn()`).

        Args:
            text: What the user says, at the model's number of words per second.

        Raises:
            ValueError: There is no word in the text.
            RuntimeError: The session has closed.
        """
        if not text.strip():
            raise ValueError("the user has to say at least one word")
        self._check_open()
        if self.turn_detection:
            self.emit("input_speech_started", llm.InputSpeechStartedEvent())
            self._stop()
        await asyncio.sleep(end_of_word(len(split_words(text)), self._model.words_per_second))
        self._check_open()
        self._heard.append(text)
        if self.turn_detection:
            transcribed = self._model.capabilities.user_transcription
            self.emit("input_speech_stopped", llm.InputSpeechStoppedEvent(transcribed))
            self.commit_audio()
            self._stop()
            self.start_generation()

    def start_generation(self, answer: Answer | None = None) -> RealtimeInference:
        """Let the server start a generation by itself, and return the inference.

        Args:
            answer: What it generates; by default what the script says.

        Raises:
            RuntimeError: A generation is on its way already, or the session has closed.
        """
        self._check_open()
        if self._generation is not None:
            raise RuntimeError("a generation is on its way already; a server makes one at a time")
        inference, answer_or_error = self._infer(None, answer)
        if isinstance(answer_or_error, Exception):
            self._report(answer_or_error)
        else:
            self._generate(answer_or_error, user_initiated=False)
        return inference

    def reconnect(self, *, keep_context: bool) -> None:
        """Let the connection break and come back. What was being generated is cut off.

        Args:
            keep_context: Whether the server still knows the conversation. If not, `chat_ctx` is empty too.

        Raises:
            RuntimeError: The session has closed.
        """
        self._check_open()
        self._fail_requests("the connection was lost before a reply began")
        self._stop()
        self._heard.clear()
        self._open_calls.clear()
        self._reply_due = False
        if not keep_context:
            self._context = ServerContext(self._announce)
            self._not_taken.clear()
        self.emit("session_reconnected", llm.RealtimeSessionReconnectedEvent())

    # what livekit-agents does with it

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """What the client takes the server's context for."""
        known = self._context.snapshot()
        known.items.extend(i for i in self._not_taken.values() if known.get_by_id(i.id) is None)
        return known

    @property
    def tools(self) -> llm.ToolContext:
        """The tools of the session."""
        return self._tools.copy()

    async def update_instructions(self, instructions: str) -> None:
        self.instructions = instructions

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Push a context. What it changes is worked out when it is sent, and counts once it has arrived."""
        async with self._pushing:  # one after the other, as livekit-agents' own clients do it
            first, self._pushed = not self._pushed, True
            outputs_only = not (first or self._model.capabilities.mutable_chat_context)
            change = self._context.plan(chat_ctx, outputs_only=outputs_only)
            if change:
                await self._send(self._model.new_push(change))
                self._context.apply(change)
            if outputs_only:
                self._not_taken.update((item.id, item) for item in self._context.plan(chat_ctx).items)
        self._answer_calls()

    async def update_tools(self, tools: list[llm.Tool]) -> None:
        self._tools = llm.ToolContext(tools)

    def update_options(self, *, tool_choice: NotGivenOr[llm.ToolChoice | None] = NOT_GIVEN) -> None:
        if utils.is_given(tool_choice):
            self.tool_choice = tool_choice

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        """Take no note of the microphone: what the server hears is said by `hear()`."""

    def push_video(self, frame: rtc.VideoFrame) -> None:
        """Take no note of the camera."""

    def generate_reply(
        self,
        *,
        instructions: NotGivenOr[str] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Ask for a generation. It begins in the next round of the event loop, unless it is cancelled."""
        loop = asyncio.get_running_loop()
        request = _Request(
            future=loop.create_future(),
            instructions=instructions or None,
            tools=tools if utils.is_given(tools) else None,
            tool_choice=tool_choice or None,
        )
        self._requests.append(request)
        loop.call_soon(self._serve_requests)
        return request.future

    def commit_audio(self) -> None:
        """End the user's turn: what was heard becomes a message."""
        heard, self._heard = self._heard, []
        if not heard:
            return
        message = llm.ChatMessage(role="user", content=[" ".join(heard)])
        self._context.add(message, announced_as=message.model_copy(update={"content": []}))
        if self._model.capabilities.user_transcription:
            self.emit(
                "input_audio_transcription_completed",
                llm.InputTranscriptionCompleted(
                    item_id=message.id, transcript=message.text_content or "", is_final=True
                ),
            )

    def clear_audio(self) -> None:
        self._heard.clear()

    def interrupt(self) -> None:
        """Cut off what is generated, and what was asked for before and has not begun."""
        self._serve_requests()
        self._stop()

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Modality],
        audio_end_ms: int,
        audio_transcript: NotGivenOr[str] = NOT_GIVEN,
    ) -> None:
        """Forget what was not heard of a message: by the time for audio, by the words for text."""
        if "audio" in modalities:
            said = self._context.text_of(message_id)
            heard = words_until(said, audio_end_ms / 1000, self._model.words_per_second)
            self._context.cut(message_id, heard)
        elif utils.is_given(audio_transcript):
            self._context.cut(message_id, audio_transcript)

    async def aclose(self) -> None:
        """End the connection."""
        self.closed = True
        self._fail_requests("the session has closed")
        self._stop()

    # the server

    def _serve_requests(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if not request.future.done():
                self._serve(request)

    def _serve(self, request: _Request) -> None:
        if self._generation is not None:
            request.future.set_exception(llm.RealtimeError("there is an active response already"))
            return
        _, answer = self._infer(request, None)
        if isinstance(answer, Exception):
            request.future.set_exception(llm.RealtimeError(str(answer)))
        else:
            request.future.set_result(self._generate(answer, user_initiated=True))

    def _fail_requests(self, reason: str) -> None:
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(llm.RealtimeError(reason))

    def _infer(
        self, request: _Request | None, answer: Answer | None
    ) -> tuple[RealtimeInference, Answer | Exception]:
        tools = self._tools.flatten() if request is None or request.tools is None else request.tools
        inference = RealtimeInference(
            shown=self._context.snapshot(),
            tools=tuple(tool.id for tool in tools),
            tool_choice=(request and request.tool_choice) or self.tool_choice,
            at=asyncio.get_running_loop().time(),
            instructions=request and request.instructions,
            agent_instructions=self.instructions,
            by_server=request is None,
            modalities=self._model.modalities,
        )
        return inference, self._model.next_answer(inference, answer)

    def _generate(self, answer: Answer, *, user_initiated: bool) -> llm.GenerationCreatedEvent:
        delivery = Delivery(self._model.modalities, self._model.words_per_second, self._model.new_call_id)
        generation = Generation(
            answer, self._context, delivery, user_initiated=user_initiated, on_end=self._on_end
        )
        self._generation = generation
        self._reply_due = False
        self.emit("generation_created", generation.event)
        generation.start()
        return generation.event

    def _on_end(self, generation: Generation) -> None:
        self._generation = None
        self._open_calls.update(generation.calls)
        if generation.answer.error is not None:
            self._report(generation.answer.error)
        self._answer_calls()

    def _stop(self) -> None:
        generation, self._generation = self._generation, None
        if generation is not None:
            generation.stop()
            self._open_calls.update(generation.calls)

    async def _send(self, push: Push) -> None:
        if self._model.push_delay > 0:
            await asyncio.sleep(self._model.push_delay)
        if push.failed:
            raise llm.RealtimeError(f"push {push.number} failed, as it was meant to")

    def _answer_calls(self) -> None:
        """Take note of the outputs that came; a model that replies by itself does so after the last one."""
        answered = self._open_calls & self._context.answered
        self._open_calls &= set(self._context.unanswered)  # one that was taken away isn't waited for
        self._reply_due = self._reply_due or bool(answered)
        auto = self._model.capabilities.auto_tool_reply_generation
        if auto and self._reply_due and not self._open_calls and self._generation is None:
            self.start_generation()

    def _announce(self, previous_id: str | None, item: Known) -> None:
        self.emit("remote_item_added", llm.RemoteItemAddedEvent(previous_item_id=previous_id, item=item))

    def _report(self, error: Exception) -> None:
        recoverable = error.retryable if isinstance(error, APIError) else True
        self.emit(
            "error",
            llm.RealtimeModelError(
                timestamp=time.time(), label=self._model.label, error=error, recoverable=recoverable
            ),
        )

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("this session with the model's server has closed")
