"""Text to speech at a fixed number of words per second."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NoReturn

from livekit.agents import tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, TimedString

from ._words import end_of_word, split_words, take_words

if TYPE_CHECKING:
    from livekit.agents.types import APIConnectOptions

SAMPLE_RATE = 8000  # of silence: the lowest will do


class Voice(tts.TTS[NoReturn]):
    """A voice whose audio is silence, as long as the words take, and there at once.

    Its frames carry the words with their times (as livekit-agents' aligned transcripts), which is how the
    speaker knows what was heard.
    """

    def __init__(self, words_per_second: float) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=True, aligned_transcript=True),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
        )
        self.words_per_second = words_per_second

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        """Speak one text."""
        return _Whole(self, text, conn_options)

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.SynthesizeStream:
        """Speak a text as it comes."""
        return _AsItComes(self, conn_options)


class _Mouth:
    """Turns words into audio, one after the other."""

    def __init__(self, output: tts.AudioEmitter, words_per_second: float, *, stream: bool) -> None:
        self._output = output
        self._pace = words_per_second
        self._words = 0
        self._samples = 0
        output.initialize(
            request_id=utils.shortuuid("speech_"),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
            stream=stream,
        )
        if stream:
            output.start_segment(segment_id=utils.shortuuid("segment_"))

    def speak(self, words: list[str]) -> None:
        for word in words:
            start = end_of_word(self._words, self._pace)
            self._words += 1
            end = end_of_word(self._words, self._pace)
            # Rounded up: the audio reaches at least to the word's end.
            samples = math.ceil(end * SAMPLE_RATE) - self._samples
            self._samples += samples
            self._output.push_timed_transcript(TimedString(word, start_time=start, end_time=end))
            self._output.push(bytes(2 * samples))
            self._output.flush()  # or livekit-agents keeps the last 10 ms until the next word comes


class _Whole(tts.ChunkedStream):
    def __init__(self, voice: Voice, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, input_text=text, conn_options=conn_options)
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        mouth = _Mouth(output_emitter, self._voice.words_per_second, stream=False)
        mouth.speak(split_words(self.input_text))


class _AsItComes(tts.SynthesizeStream):
    def __init__(self, voice: Voice, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, conn_options=conn_options)
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        mouth = _Mouth(output_emitter, self._voice.words_per_second, stream=True)
        pending = ""
        async for part in self._input_ch:
            if isinstance(part, str):  # else a flush: the words that are complete are spoken already
                words, pending = take_words(pending + part)
                mouth.speak(words)
        if pending.strip():
            mouth.speak([pending])
