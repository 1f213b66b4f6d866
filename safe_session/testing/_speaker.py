"""The loudspeaker on the caller's end: it plays by the clock and knows what was heard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT
from livekit.agents.voice import io

if TYPE_CHECKING:
    from livekit import rtc
    from livekit.agents.types import TimedString

    from ._changes import Changes

# A word counts as heard although the clock, which counts microseconds, is a hair short of its end.
_HAIR = 1e-4


class Utterance:
    """Something that the agent says, from its first word to its last or to where it was cut off.

    Attributes:
        text: What was to be said, as far as it is known: what the voice has been given up to now.
        started_at: When it began to play (event loop time, seconds).
        ended_at: When it ended or was cut off; None while it plays.
        interrupted: Whether it was cut off.
    """

    def __init__(self) -> None:
        self.text = ""
        self.started_at = 0.0
        self.ended_at: float | None = None
        self.interrupted = False
        self._words: list[tuple[str, float]] = []  # each with where it ends, in seconds of audio
        self._audio = 0.0  # seconds there are to play
        self._played = 0.0  # seconds played up to _as_of
        self._as_of: float | None = None  # None before it begins and after it has ended

    @property
    def heard(self) -> str:
        """What has been heard of it up to now: the words that were played to their end."""
        reached = self.position + _HAIR
        return "".join(word for word, end in self._words if end <= reached).strip()

    @property
    def position(self) -> float:
        """How much of it has been played up to now, in seconds of audio."""
        if self._as_of is None:
            return self._played
        return min(self._audio, self._played + asyncio.get_running_loop().time() - self._as_of)

    def __repr__(self) -> str:
        end = "..." if self.ended_at is None else f"{self.ended_at:.3f}"
        heard = f", heard={self.heard!r}" if self.interrupted or self.ended_at is None else ""
        return f"Utterance({self.text!r}, {self.started_at:.3f}-{end}{heard})"


class _Playing(Utterance):
    """An utterance as the speaker handles it."""

    @property
    def remaining(self) -> float:
        return max(0.0, self._audio - self.position)

    def start(self, now: float) -> None:
        self.started_at = self._as_of = now

    def add(self, frame: rtc.AudioFrame, now: float) -> None:
        if self._as_of is not None:
            # Where the audio had run out, the playing stood still: that time doesn't count as played.
            self._played, self._as_of = self.position, now
        self._audio += frame.duration
        words: list[TimedString] = frame.userdata.get(USERDATA_TIMED_TRANSCRIPT) or []
        for word in words:
            end = word.end_time if isinstance(word.end_time, float) else self._audio
            self._words.append((str(word), end))
        self.text = "".join(word for word, _ in self._words).strip()

    def complete(self) -> None:
        """No more audio will come: what follows the last word (some releases add 10 ms) is not played."""
        if self._words:
            self._audio = min(self._audio, self._words[-1][1])

    def end(self, now: float, *, interrupted: bool) -> None:
        self._played, self._as_of = self.position, None
        self.ended_at, self.interrupted = now, interrupted


class Speaker(io.AudioOutput):
    """Plays what the agent says, each second of audio in one second of the event loop's clock.

    It tells the session how much was played and which words were heard, so that the assistant's message
    holds just those when it is interrupted.

    Attributes:
        utterances: What the agent said, in the order in which it began to play.
    """

    def __init__(self, changes: Changes) -> None:
        super().__init__(label="safe_session.testing", capabilities=io.AudioOutputCapabilities(pause=False))
        self.utterances: list[Utterance] = []
        self._changes = changes
        self._queue: deque[_Playing] = deque()  # the first of them plays
        self._open: _Playing | None = None  # the one that more audio is added to
        self._cut_off = False  # what still comes up to the next flush belongs to one that was cut off
        self._timer: asyncio.TimerHandle | None = None

    @property
    def playing(self) -> bool:
        """Whether something plays now."""
        return bool(self._queue)

    @property
    def heard(self) -> list[str]:
        """What was heard, utterance by utterance, without those of which nothing was."""
        return [heard for utterance in self.utterances if (heard := utterance.heard)]

    async def wait_started(self, n: int | None = None) -> Utterance:
        """Wait until an utterance begins to play, and return it.

        Args:
            n: Which one (1 is the session's first); returns at once if it has begun already. By default
                the next one that begins from now on.

        Raises:
            RuntimeError: The session closed without it.
        """
        number = len(self.utterances) + 1 if n is None else n
        await self._changes.until(lambda: len(self.utterances) >= number)
        return self.utterances[number - 1]

    async def wait_finished(self, n: int | None = None) -> Utterance:
        """Wait until an utterance has ended or was cut off, and return it.

        Args:
            n: Which one (1 is the session's first); returns at once if it has ended already. By default
                the one that plays now, or else the next.

        Raises:
            RuntimeError: The session closed without it.
        """
        ended = len(self.utterances) - (1 if self.playing else 0)
        number = ended + 1 if n is None else n
        utterance = await self.wait_started(number)
        await self._changes.until(lambda: utterance.ended_at is not None)
        return utterance

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Take audio from the session; it may come faster than it plays."""
        await super().capture_frame(frame)
        if self._cut_off:
            return
        if self._open is None:
            self._open = _Playing()
            self._queue.append(self._open)
        self._open.add(frame, _now())
        if self._queue[0] is self._open and self._open not in self.utterances:
            self._play(self._open)

    def flush(self) -> None:
        """Take note that an utterance is complete."""
        super().flush()
        self._cut_off = False
        if self._open is None:
            return
        self._open.complete()
        complete, self._open = self._open, None
        if self._queue[0] is complete:
            self._end_when_played(complete)

    def clear_buffer(self) -> None:
        """Stop playing: what plays is cut off, what was to follow is dropped."""
        self._cut_off = self._open is not None
        self._open = None
        stopped = list(self._queue)
        self._queue.clear()
        for utterance in stopped:
            self._end(utterance, interrupted=True)

    def _play(self, utterance: _Playing) -> None:
        utterance.start(_now())
        self.utterances.append(utterance)
        self.on_playback_started(created_at=time.time())
        self._changes.notify()

    def _end_when_played(self, utterance: _Playing) -> None:
        self._timer = asyncio.get_running_loop().call_later(round(utterance.remaining, 6), self._played_out)

    def _played_out(self) -> None:
        self._end(self._queue.popleft(), interrupted=False)
        if self._queue and (following := self._queue[0]) not in self.utterances:
            self._play(following)
            if following is not self._open:
                self._end_when_played(following)

    def _end(self, utterance: _Playing, *, interrupted: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        utterance.end(_now(), interrupted=interrupted)
        self.on_playback_finished(
            playback_position=utterance.position,
            interrupted=interrupted,
            synchronized_transcript=utterance.heard if utterance.text else None,
        )
        self._changes.notify()


def _now() -> float:
    return asyncio.get_running_loop().time()
