"""Whether anything of a speech was heard: decided by what the line played, not by what was generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livekit.agents import AgentSession
    from livekit.agents.voice import SpeechHandle
    from livekit.agents.voice.io import PlaybackFinishedEvent


class Hearing:
    """Listens to the session's output while `speech` is under way."""

    def __init__(self, session: AgentSession[Any], speech: SpeechHandle) -> None:
        self._session = session
        self._speech = speech
        self._output = session.output.audio if session.output.audio_enabled else None
        self._played = False
        if self._output is not None:
            self._output.on("playback_finished", self._on_playback_finished)

    @property
    def heard(self) -> bool:
        """Whether anything was heard so far; with no audio output: whether any text went out."""
        # livekit's message of the speech holds what was said of it, and is not made of nothing
        said = any(item.type == "message" for item in self._speech.chat_items)
        return said and (self._output is None or self._played)

    def close(self) -> None:
        """Stop listening."""
        if self._output is not None:
            self._output.off("playback_finished", self._on_playback_finished)

    def _on_playback_finished(self, event: PlaybackFinishedEvent) -> None:
        if self._session.current_speech is self._speech and event.playback_position > 0:
            self._played = True
