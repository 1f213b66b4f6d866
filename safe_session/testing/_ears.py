"""The session's end of what the caller says: a microphone, and a recognizer that needs no audio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

from livekit.agents import LanguageCode, stt
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN
from livekit.agents.voice import io

if TYPE_CHECKING:
    from livekit import rtc
    from livekit.agents.types import APIConnectOptions, NotGivenOr
    from livekit.agents.utils import AudioBuffer

_ENGLISH = LanguageCode("en")


class Ears(stt.STT[NoReturn]):
    """Speech to text that is told what the caller says, and passes it on to the session.

    What is said while nobody listens (before the session has started, or in a handoff) is kept until
    somebody does.
    """

    def __init__(self) -> None:
        super().__init__(
            capabilities=stt.STTCapabilities(streaming=True, interim_results=True, offline_recognize=False)
        )
        self._listening: list[_Listening] = []
        self._unheard: list[stt.SpeechEvent] = []

    def hear(self, kind: stt.SpeechEventType, text: str = "") -> None:
        """Pass on that the caller starts or stops, or what they have said so far."""
        said = [stt.SpeechData(language=_ENGLISH, text=text.strip(), confidence=1.0)] if text else []
        event = stt.SpeechEvent(type=kind, alternatives=said)
        if self._listening:
            self._listening[-1].pass_on(event)  # in a handoff there can be two: the newest one stays
        else:
            self._unheard.append(event)

    def stream(
        self,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.RecognizeStream:
        """Listen to the caller."""
        return _Listening(self, conn_options)

    def attach(self, stream: _Listening) -> None:
        """Let a stream that has started hear the caller, beginning with what nobody has heard yet."""
        self._listening.append(stream)
        unheard, self._unheard = self._unheard, []
        for event in unheard:
            stream.pass_on(event)

    def detach(self, stream: _Listening) -> None:
        """Take away a stream that has ended."""
        self._listening.remove(stream)

    async def _recognize_impl(
        self, buffer: AudioBuffer, *, language: NotGivenOr[str] = NOT_GIVEN, conn_options: APIConnectOptions
    ) -> stt.SpeechEvent:
        raise NotImplementedError("a Line's speech to text has no audio to recognize; use stream()")


class _Listening(stt.RecognizeStream):
    def __init__(self, ears: Ears, conn_options: APIConnectOptions) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - livekit leaves STT's parameter out
            stt=ears, conn_options=conn_options
        )
        self._ears = ears

    def pass_on(self, event: stt.SpeechEvent) -> None:
        self._event_ch.send_nowait(event)

    async def _run(self) -> None:
        self._ears.attach(self)
        try:
            async for _ in self._input_ch:  # the microphone's sound, if there is any, says nothing
                pass
        finally:
            self._ears.detach(self)


class Microphone(io.AudioInput):
    """A microphone that is connected but picks up no sound: the caller's words don't need it."""

    def __init__(self) -> None:
        super().__init__(label="safe_session.testing")

    async def __anext__(self) -> rtc.AudioFrame:
        return await asyncio.get_running_loop().create_future()
