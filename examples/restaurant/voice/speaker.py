"""The caller's end of what the agent says: plays as fast as the line asks for, and knows what was heard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.voice import io
from livekit.agents.voice.transcription import TranscriptSynchronizer

from .voices import CHINESE, RATE


@dataclass
class Utterance:
    """Something that the agent says, up to a flush or to where it is cut off.

    Attributes:
        sound: All there is of it, in 16 bit samples.
        played: How many bytes of it were played.
        complete: No more of it will come.
        started_at: When it began to play, in seconds of the event loop.
        ended_at: When it ended or was cut off.
        heard: The words of it that were played.
        interrupted: It was cut off.
    """

    sound: bytearray = field(default_factory=bytearray)
    played: int = 0
    complete: bool = False
    started_at: float = 0.0
    ended_at: float | None = None
    heard: str = ""
    interrupted: bool = False

    @property
    def text(self) -> str:
        return self.heard


class Speaker(io.AudioOutput):
    """Where a session's audio comes out.

    Attributes:
        utterances: What the agent said, in the order in which it began to play.

    Args:
        agent_stops: Is called whenever the agent has said something, or was cut off.
    """

    def __init__(self, agent_stops: Callable[[], None]) -> None:
        super().__init__(label="line", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=RATE)
        self.utterances: list[Utterance] = []
        self._agent_stops = agent_stops
        self._queue: deque[Utterance] = deque()  # the first of them plays, the last of them grows
        self._cut_off = False  # what still comes up to the next flush belongs to one that was cut off

    @asynccontextmanager
    async def connect(self, session: AgentSession) -> AsyncGenerator[None, None]:
        """Have a session speak here. livekit-agents' own synchronizer tells which words were played."""
        synchronizer = TranscriptSynchronizer(next_in_chain_audio=self, next_in_chain_text=None)
        synchronizer.audio_output.on("playback_finished", self._on_words)
        session.output.audio = synchronizer.audio_output
        session.output.transcription = synchronizer.text_output
        try:
            yield
        finally:
            await synchronizer.aclose()

    def play(self, size: int) -> bytes:
        """The next bytes to be heard: silence, where there is nothing."""
        if not self._queue:
            return bytes(size)
        utterance = self._queue[0]
        sound = bytes(utterance.sound[utterance.played : utterance.played + size])
        if sound and not utterance.played:
            self._start(utterance)
        utterance.played += len(sound)
        if utterance.complete and utterance.played == len(utterance.sound):
            self._end(interrupted=False)
        return sound.ljust(size, b"\0")

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if self._cut_off:
            return
        if not self._queue or self._queue[-1].complete:
            self._queue.append(Utterance())
        self._queue[-1].sound += bytes(frame.data)

    def flush(self) -> None:
        super().flush()
        self._cut_off = False
        if self._queue:
            self._queue[-1].complete = True

    def clear_buffer(self) -> None:
        self._cut_off = bool(self._queue) and not self._queue[-1].complete
        while self._queue:
            self._end(interrupted=True)

    def _start(self, utterance: Utterance) -> None:
        utterance.started_at = asyncio.get_running_loop().time()
        self.utterances.append(utterance)
        self.on_playback_started(created_at=time.time())

    def _end(self, *, interrupted: bool) -> None:
        utterance = self._queue[0]
        utterance.ended_at = asyncio.get_running_loop().time()
        utterance.interrupted = interrupted
        self.on_playback_finished(playback_position=utterance.played / 2 / RATE, interrupted=interrupted)
        self._queue.popleft()
        self._agent_stops()

    def _on_words(self, event: io.PlaybackFinishedEvent) -> None:
        if self._queue:
            self._queue[0].heard = CHINESE.sub("", event.synchronized_transcript or "").strip()
