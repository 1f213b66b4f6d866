"""A telephone line between a caller and a session. It plays by the clock, and is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.voice import io

from .recording import Recording
from .speaker import Speaker
from .voices import RATE

PACKET = 0.02  # seconds
SIZE = round(PACKET * RATE) * 2  # bytes of it


class Line:
    """Carries a packet of sound both ways, each as long as it sounds.

    Attributes:
        speaker: What the caller hears the agent say.
        recording: All that was to be heard since the line was opened.

    Args:
        agent_stops: Is called whenever the agent has said something, or was cut off.
    """

    def __init__(self, agent_stops: Callable[[], None]) -> None:
        self.speaker = Speaker(agent_stops)
        self.recording = Recording()
        self._microphone = _Microphone()
        self._to_say = b""
        self._said = asyncio.Event()

    @asynccontextmanager
    async def open(self, session: AgentSession) -> AsyncGenerator[None, None]:
        """Connect a session that is about to start; until it has closed."""
        session.input.audio = self._microphone
        async with self.speaker.connect(session):
            carrying = asyncio.create_task(self._carry())
            try:
                yield
            finally:
                carrying.cancel()
                with suppress(asyncio.CancelledError):
                    await carrying

    async def say(self, sound: bytes) -> None:
        """Have the caller say something, to its end."""
        self._said.clear()
        self._to_say = sound
        await self._said.wait()

    async def _carry(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            caller, self._to_say = self._to_say[:SIZE].ljust(SIZE, b"\0"), self._to_say[SIZE:]
            self._microphone.pick_up(caller)
            self.recording.add(caller, self.speaker.play(SIZE))
            if not self._to_say:
                self._said.set()
            due += PACKET
            await asyncio.sleep(max(0.0, due - clock()))  # a packet that is late is followed at once


class _Microphone(io.AudioInput):
    def __init__(self) -> None:
        super().__init__(label="line")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    def pick_up(self, sound: bytes) -> None:
        self._frames.put_nowait(rtc.AudioFrame(sound, RATE, 1, len(sound) // 2))

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()
