"""All that went over a line, in stereo: the caller left, the agent right."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .voices import RATE

LOUD = 500  # of 32767
PAUSE = 0.25  # seconds; what is shorter is within a word


class Recording:
    """Grows while the line is open."""

    def __init__(self) -> None:
        self._caller = bytearray()
        self._agent = bytearray()

    def add(self, caller: bytes, agent: bytes) -> None:
        """What came from either side in the same time."""
        self._caller += caller
        self._agent += agent

    def save(self, path: Path) -> None:
        sides = [np.frombuffer(side, np.int16) for side in (self._caller, self._agent)]
        with wave.open(str(path), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(np.column_stack(sides).tobytes())

    def silence_after(self, second: float) -> float:
        """Seconds from the end of what the caller says at a time, to the agent's next sound."""
        silent = next(ended for _, ended in _sounds(self._caller) if ended > second)
        end = len(self._agent) / 2 / RATE
        return next((began for began, _ in _sounds(self._agent) if began >= silent), end) - silent


def _sounds(side: bytearray) -> Iterator[tuple[float, float]]:
    """When something was to be heard of a side, in seconds."""
    loud = np.flatnonzero(np.abs(np.frombuffer(side, np.int16).astype(np.int32)) > LOUD) / RATE
    for sound in np.split(loud, np.flatnonzero(np.diff(loud) > PAUSE) + 1):
        if sound.size:
            yield float(sound[0]), float(sound[-1])
