"""A connection of livekit-agents to the server of a scripted realtime model."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NoReturn

from livekit.agents import APIError, llm, utils
from livekit.agents.types import NOT_GIVEN

from ._realtime_context import words_until
from ._realtime_server import Listener, Request, Server
from ._words import end_of_word, split_words

if TYPE_CHECKING:
    from livekit import rtc
    from livekit.agents.types import NotGivenOr

    from ._model import Answer
    from ._realtime import ScriptedRealtimeModel
    from ._realtime_context import Known, Push
    from ._realtime_generation import Modality
    from ._realtime_server import RealtimeInference


class ScriptedRealtimeSession(llm.RealtimeSession[NoReturn]):
    """A connection to a `ScriptedRealtimeModel`'s server, which does what a test says.

    The server generates one reply at a time; to ask for another one meanwhile is an error, as it is with
    OpenAI's. What it is told counts in the order in which it is told it.

    Attributes:
        turn_detection: Whether the server finds out by itself when the user's turn begins and ends.
        closed: Whether the connection was closed.

    """

    def __init__(self, model: ScriptedRealtimeModel, *, turn_detection: bool) -> None:
        super().__init__(model)
        self.turn_detection = turn_detection
        self.closed = False
        self._model = model
        self._server = Server(model, Listener(self._on_item, self._on_generation, self._on_failure))
        self._pushing = asyncio.Lock()
        self._pushed = False
        self._not_taken: dict[str, Known] = {}  # was pushed to a server that takes only outputs
        self._heard: list[str] = []  # not committed yet

    # -- for tests

    @property
    def server_context(self) -> llm.ChatContext:
        """A copy of what the server knows: what was pushed, what it heard, and what it said and called."""
        return self._server.context.snapshot()

    @property
    def unanswered_calls(self) -> list[str]:
        """The ids of the calls in the server's context that have no output there, in order."""
        return self._server.context.unanswered

    @property
    def generating(self) -> bool:
        """Whether a generation is on its way."""
        return self._server.generation is not None

    async def hear(self, text: str) -> None:
        """Let the server hear the user, and return when they have said it.

        With the server's turn detection it notices at the first word's end that the user speaks, which cuts
        off its own generation, and in the end that they stop; then it starts a generation. Without, it
        generates when it is asked to, after livekit-agents has committed what was heard
        (`AgentSession.commit_user_turn()`).

        Args:
            text: What the user says, at the model's number of words per second.

        Raises:
            ValueError: There is no word in the text.
            RuntimeError: The connection has closed.
        """
        if not text.strip():
            raise ValueError("the user has to say at least one word")
        self._check_open()
        if self.turn_detection:
            await self._speak(1)
            self.emit("input_speech_started", llm.InputSpeechStartedEvent())
            self._server.stop()
        await self._speak(len(split_words(text)) - int(self.turn_detection))
        self._heard.append(text)
        if self.turn_detection:
            transcribed = self._model.capabilities.user_transcription
            self.emit("input_speech_stopped", llm.InputSpeechStoppedEvent(transcribed))
            self.commit_audio()
            self._server.stop()  # one that livekit-agents asked for while they spoke
            self.start_generation()

    def start_generation(self, answer: Answer | None = None) -> RealtimeInference:
        """Let the server start a generation by itself, and return the inference.

        Args:
            answer: What it generates; by default what the script says.

        Raises:
            RuntimeError: A generation is on its way already, or the connection has closed.
        """
        self._check_open()
        if self.generating:
            raise RuntimeError("a generation is on its way already; a server makes one at a time")
        self._server.start(answer)
        return self._model.inferences[-1]

    def reconnect(self, *, keep_context: bool) -> None:
        """Let the connection break and come back. What is being generated is cut off.

        Args:
            keep_context: Whether the server still knows the conversation. If not, `chat_ctx` is empty too.

        Raises:
            RuntimeError: The connection has been closed for good.
        """
        self._check_open()
        self._server.disconnect("the connection was lost before the reply began")
        self._heard.clear()
        if not keep_context:
            self._server.forget()
            self._not_taken.clear()
        self.emit("session_reconnected", llm.RealtimeSessionReconnectedEvent())

    # -- for livekit-agents

    @property
    def chat_ctx(self) -> llm.ChatContext:
        """What the client takes the server's context for."""
        known = self._server.context.snapshot()
        known.items.extend(i for i in self._not_taken.values() if known.get_by_id(i.id) is None)
        return known

    @property
    def tools(self) -> llm.ToolContext:
        """The session's tools."""
        return self._server.tools.copy()

    async def update_instructions(self, instructions: str) -> None:
        self._server.instructions = instructions

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Push a context. What it changes is worked out when it is sent, and counts once it has arrived."""
        async with self._pushing:  # one after the other, as livekit-agents' own clients do it
            first, self._pushed = not self._pushed, True
            outputs_only = not (first or self._model.capabilities.mutable_chat_context)
            change = self._server.context.plan(chat_ctx, outputs_only=outputs_only)
            if change:
                await self._send(self._model.new_push(change))
                self._server.context.apply(change)
            if outputs_only:
                left = self._server.context.plan(chat_ctx).items
                self._not_taken.update((item.id, item) for item in left)
        self._server.take_outputs()

    async def update_tools(self, tools: list[llm.Tool]) -> None:
        self._server.tools = llm.ToolContext(tools)

    def update_options(self, *, tool_choice: NotGivenOr[llm.ToolChoice | None] = NOT_GIVEN) -> None:
        if utils.is_given(tool_choice):
            self._server.tool_choice = tool_choice

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
        request = Request(
            future=asyncio.get_running_loop().create_future(),
            instructions=instructions or None,
            tools=tools if utils.is_given(tools) else None,
            tool_choice=tool_choice or None,
        )
        if self.closed:
            request.future.set_exception(llm.RealtimeError("the connection has closed"))
        else:
            self._server.ask(request)
        return request.future

    def commit_audio(self) -> None:
        """End the user's turn: what was heard becomes a message."""
        heard, self._heard = self._heard, []
        if not heard:
            return
        message = llm.ChatMessage(role="user", content=[" ".join(heard)])
        self._server.context.add(message, announced_as=message.model_copy(update={"content": []}))
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
        self._server.serve()
        self._server.stop()

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Modality],
        audio_end_ms: int,
        audio_transcript: NotGivenOr[str] = NOT_GIVEN,
    ) -> None:
        """Forget what was not heard of a message: by the time for audio, by the words for text."""
        context = self._server.context
        if "audio" in modalities:
            said = context.text_of(message_id)
            context.cut(message_id, words_until(said, audio_end_ms / 1000, self._model.words_per_second))
        elif utils.is_given(audio_transcript):
            context.cut(message_id, audio_transcript)

    async def aclose(self) -> None:
        """Close the connection."""
        self.closed = True
        self._server.disconnect("the connection has closed")

    async def _speak(self, words: int) -> None:
        await asyncio.sleep(end_of_word(words, self._model.words_per_second))
        self._check_open()

    async def _send(self, push: Push) -> None:
        if self._model.push_delay > 0:
            await asyncio.sleep(self._model.push_delay)
        if push.failed:
            raise llm.RealtimeError(f"push {push.number} failed, as it was meant to")
        if self.closed:
            raise llm.RealtimeError(f"push {push.number} failed: the connection has closed")

    def _on_item(self, previous_id: str | None, item: Known) -> None:
        self.emit("remote_item_added", llm.RemoteItemAddedEvent(previous_item_id=previous_id, item=item))

    def _on_generation(self, event: llm.GenerationCreatedEvent) -> None:
        self.emit("generation_created", event)

    def _on_failure(self, error: Exception) -> None:
        recoverable = error.retryable if isinstance(error, APIError) else True
        self.emit(
            "error",
            llm.RealtimeModelError(
                timestamp=time.time(), label=self._model.label, error=error, recoverable=recoverable
            ),
        )

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("the connection to the model's server has closed")
