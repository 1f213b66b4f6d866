"""The person who calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from livekit.agents.stt import SpeechEventType

from ._words import end_of_word, split_words

if TYPE_CHECKING:
    from ._changes import Changes
    from ._ears import Ears


class Caller:
    """A scripted caller, who speaks at a fixed number of words per second.

    Attributes:
        speaking: Whether the caller speaks now.
    """

    def __init__(self, ears: Ears, changes: Changes, words_per_second: float) -> None:
        self.speaking = False
        self._ears = ears
        self._changes = changes
        self._words_per_second = words_per_second
        self._turns_noted = 0
        self._connected = False
        self._hung_up = False

    async def say(self, text: str, *, commit_delay: float = 0.0) -> None:
        """Say something, and return when the session has taken note of its end.

        The session learns at once that the caller starts; each word when it ends, and the first of them
        interrupts the agent if it is talking or thinking; when the last one ends all of them as a preflight,
        on which livekit-agents starts a preemptive generation; and after `commit_delay` the final text and
        that the caller is silent.

        Args:
            text: What the caller says.
            commit_delay: Seconds from the last word to the final text: what a recognizer takes to be sure.

        Raises:
            ValueError: There is no word in the text.
            RuntimeError: The caller is speaking already, or there is no session (any more) to speak to.
        """
        if not text.strip():
            raise ValueError("the caller has to say at least one word")
        if not self._connected:
            raise RuntimeError("there is nobody to speak to; connect() the line to a session first")
        if self._hung_up:
            raise RuntimeError("there is nobody to speak to; the session has closed")
        if self.speaking:
            raise RuntimeError("the caller is speaking already; await the first say() before the next")
        noted = self._turns_noted
        self.speaking = True
        try:
            await self._speak(split_words(text), commit_delay)
        finally:
            self.speaking = False
            self._changes.notify()
        await self._changes.until(lambda: self._turns_noted > noted or self._hung_up)

    async def _speak(self, words: list[str], commit_delay: float) -> None:
        clock = asyncio.get_running_loop()
        started_at = clock.time()
        self._ears.hear(SpeechEventType.START_OF_SPEECH)
        for n in range(1, len(words) + 1):
            await asyncio.sleep(started_at + end_of_word(n, self._words_per_second) - clock.time())
            self._ears.hear(SpeechEventType.INTERIM_TRANSCRIPT, "".join(words[:n]))
        self._ears.hear(SpeechEventType.PREFLIGHT_TRANSCRIPT, "".join(words))
        if commit_delay > 0:
            await asyncio.sleep(commit_delay)
        self._ears.hear(SpeechEventType.FINAL_TRANSCRIPT, "".join(words))
        self._ears.hear(SpeechEventType.END_OF_SPEECH)

    def pick_up(self) -> None:
        """Take note that there is a session to speak to."""
        self._connected = True

    def turn_noted(self) -> None:
        """Take note that the session knows that the caller has stopped speaking."""
        self._turns_noted += 1

    def hang_up(self) -> None:
        """Take note that the session has closed."""
        self._hung_up = True
