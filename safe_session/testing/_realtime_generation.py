"""One reply of a realtime model, on its way from the server."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from livekit import rtc
from livekit.agents import llm, utils
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT, TimedString

from ._speech import SAMPLE_RATE
from ._words import end_of_word, split_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._model import Answer, Call
    from ._realtime_context import ServerContext

Modality = Literal["text", "audio"]


@dataclass(frozen=True)
class Delivery:
    """How a server's generations come.

    Attributes:
        modalities: "text", or "text" and "audio".
        words_per_second: How fast it speaks.
        new_call_id: Makes an id for a call that was scripted without one.

    """

    modalities: tuple[Modality, ...]
    words_per_second: float
    new_call_id: Callable[[], str]


class Generation:
    """An answer as it is streamed: word by word with its audio, then call by call.

    As much of it as has been streamed is in the server's context at any time.

    Attributes:
        event: What livekit-agents is given of it.
        calls: The ids of the calls that it has made up to now.

    Args:
        answer: What is said and called.
        context: The server's context, which it goes into.
        delivery: How it comes.
        user_initiated: Whether livekit-agents asked for it, rather than the server starting it by itself.
        on_end: Called when it has ended by itself, not when it was stopped.
    """

    def __init__(
        self,
        answer: Answer,
        context: ServerContext,
        delivery: Delivery,
        *,
        user_initiated: bool,
        on_end: Callable[[Generation], None],
    ) -> None:
        self.answer = answer
        self.calls: list[str] = []
        self._context = context
        self._delivery = delivery
        self._on_end = on_end
        self._messages = utils.aio.Chan[llm.MessageGeneration]()
        self._functions = utils.aio.Chan[llm.FunctionCall]()
        self._message: _Message | None = None
        self._task: asyncio.Task[None] | None = None
        self.event = llm.GenerationCreatedEvent(
            message_stream=self._messages,
            function_stream=self._functions,
            user_initiated=user_initiated,
            response_id=utils.shortuuid("response_"),
        )

    def start(self) -> None:
        """Begin to stream."""
        self._task = asyncio.create_task(self._stream(), name="scripted_realtime_generation")

    def stop(self) -> None:
        """Cut it off. What was streamed up to now stays."""
        if self._task is not None:
            self._task.cancel()
        self._close()

    async def _stream(self) -> None:
        steps = self._steps() or [lambda: None]  # saying nothing takes its time too
        pause = self.answer.delay
        try:
            for step in steps:
                if pause > 0:
                    await asyncio.sleep(pause)
                step()
                pause = self.answer.pace
        finally:
            self._close()
        self._on_end(self)

    def _steps(self) -> list[Callable[[], None]]:
        words = split_words(self.answer.text)
        said = [functools.partial(self._say, word, last=n == len(words)) for n, word in enumerate(words, 1)]
        called = [functools.partial(self._call, call) for call in self.answer.calls]
        return [*called, *said] if self.answer.calls_first else [*said, *called]

    def _say(self, word: str, *, last: bool) -> None:
        if self._message is None:
            self._message = _Message(self._context, self._delivery)
            self._messages.send_nowait(self._message.generation)
        self._message.say(word)
        if last:
            self._message.close()

    def _call(self, call: Call) -> None:
        arguments = call.arguments
        made = llm.FunctionCall(
            call_id=call.call_id or self._delivery.new_call_id(),
            name=call.name,
            arguments=arguments
            if isinstance(arguments, str)
            else json.dumps(dict(arguments), ensure_ascii=False),
        )
        self.calls.append(made.call_id)
        self._context.add(
            made.model_copy(deep=True), announced_as=made.model_copy(deep=True, update={"arguments": ""})
        )
        self._functions.send_nowait(made)

    def _close(self) -> None:
        if self._message is not None:
            self._message.close()
        self._messages.close()
        self._functions.close()


class _Message:
    """What a generation says, in words and in audio (silence, as long as the words take)."""

    def __init__(self, context: ServerContext, delivery: Delivery) -> None:
        self._pace = delivery.words_per_second
        self._aloud = "audio" in delivery.modalities
        self._words = 0
        self._samples = 0
        self._text = utils.aio.Chan[str]()
        self._audio = utils.aio.Chan[rtc.AudioFrame]()
        self._item = llm.ChatMessage(role="assistant", content=[])
        context.add(self._item, announced_as=self._item.model_copy(update={"content": []}))
        modalities = asyncio.get_running_loop().create_future()
        modalities.set_result(list(delivery.modalities))
        self.generation = llm.MessageGeneration(
            message_id=self._item.id,
            text_stream=self._text,
            audio_stream=self._audio,
            modalities=modalities,
        )

    def say(self, word: str) -> None:
        self._item.content = [(self._item.text_content or "") + word]
        self._text.send_nowait(word)
        if self._aloud:
            self._audio.send_nowait(self._spoken(word))

    def close(self) -> None:
        self._text.close()
        self._audio.close()

    def _spoken(self, word: str) -> rtc.AudioFrame:
        start = end_of_word(self._words, self._pace)
        self._words += 1
        end = end_of_word(self._words, self._pace)
        samples = math.ceil(end * SAMPLE_RATE) - self._samples  # so it reaches at least to the word's end
        self._samples += samples
        return rtc.AudioFrame(
            data=bytes(2 * samples),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            samples_per_channel=samples,
            userdata={USERDATA_TIMED_TRANSCRIPT: [TimedString(word, start_time=start, end_time=end)]},
        )
