"""Hears what the caller says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from livekit import rtc
from livekit.agents import LanguageCode, stt, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr
from livekit.agents.utils import AudioBuffer
from pocketsphinx import Decoder

from .voices import RATE

GRAMMAR = Path(__file__).with_name("grammar.jsgf")
PIECE = RATE // 10 * 2  # bytes of a tenth of a second


class Ears(stt.STT):
    """Recognizes what the grammar allows, a turn at a time: livekit-agents' VAD says when it has ended."""

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._decoder = _decoder(GRAMMAR.read_text(encoding="utf-8"))

    async def _recognize_impl(
        self,
        buffer: AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.SpeechEvent:
        words = await asyncio.to_thread(self._recognize, utils.merge_frames(buffer))
        heard = stt.SpeechData(language=LanguageCode("en"), text=words)
        return stt.SpeechEvent(type=stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[heard])

    def _recognize(self, sound: rtc.AudioFrame) -> str:
        samples = bytes(sound.data)
        self._decoder.start_utt()
        # PocketSphinx keeps Python's lock while it works on a piece; between them the line plays on.
        for start in range(0, len(samples), PIECE):
            self._decoder.process_raw(samples[start : start + PIECE])
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return hypothesis.hypstr if hypothesis else ""


def _decoder(grammar: str) -> Decoder:
    # The pass over the best path takes longer than all else, and a small grammar gains nothing by it.
    decoder = Decoder(samprate=RATE, lm=None, bestpath=False, loglevel="FATAL")
    for word in set(re.findall(r"\b[A-Z][a-z]*\b", grammar)):
        if decoder.lookup_word(word) is None and (sound := decoder.lookup_word(word.lower())):
            decoder.add_word(word, sound, False)
    decoder.add_jsgf_string("caller", grammar)
    decoder.activate_search("caller")
    return decoder
