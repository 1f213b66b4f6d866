"""A caller who books a table, and asks about it while the host's tools still run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from livekit.agents import AgentSession, UserInputTranscribedEvent
from livekit.plugins import silero

from safe_session.testing import ScriptedModel

from ..agents import Host
from ..book import Book
from ..model import decide
from ..model.decide import THINKING
from ..replay.callfile import NOW, CallFile, Expect
from ..replay.happened import Happened, Said
from ..replay.moments import Moments
from ..replay.record import Recorder, errors_logged
from ..restaurant import DURATIONS, Restaurant
from ..texts import Texts
from .ears import Ears
from .line import Line
from .voices import RATE, Voice, in_english

CUT_IN = "That is for six, right?"
SCRIPT = (  # what the caller waits to hear, and answers
    ("good evening", "Hello, my name is Miller. A table for four on Friday at seven, please."),
    ("Shall I book it", "Make it six, and book it, please."),
    ("to confirm it", CUT_IN),
    ("has been sent", "Thank you, goodbye."),
)
FAREWELL = "Goodbye"

REACTION = 0.5  # seconds until the caller answers
PATIENCE = 40.0  # seconds to wait for words that may never come

CALL = CallFile(
    path=Path(__file__),
    title="A caller speaks while the table is booked",
    report="https://github.com/livekit/agents/issues/3702",
    durations={**DURATIONS, "send_confirmation": 19.0},  # still running when the caller cuts in
    thinking=THINKING,
    timeline=(),
    expect=Expect(
        orders=1,
        runs={"create_reservation": 1, "send_confirmation": 1},
        told=("order 047", "has been sent"),
        kept=("find_table", "create_reservation", "send_confirmation"),
        silence=5.0,  # as long as AgentSession waits for the tools of an interrupted turn
        errors=0,
    ),
)


async def have_call(session_class: type[AgentSession[Any]]) -> SpokenCall:
    """Have the call on a session class, in real time."""
    call = SpokenCall(session_class)
    await call.through()
    return call


class SpokenCall:
    """One call.

    Attributes:
        happened: What happened, once the call is over.
        line: What it went over, with the recording.
    """

    def __init__(self, session_class: type[AgentSession[Any]]) -> None:
        self.happened = Happened(CALL, session_class.__name__)
        self._moments = Moments()
        self.line = Line(agent_stops=lambda: self._moments.happened("agent stops"))
        self._record = Recorder(self.happened, decide)
        self._restaurant = Restaurant(
            Book(now=lambda: NOW), durations=CALL.durations, noticed=self._record.worked
        )
        caller = Voice(pitch=1.18)
        self._sounds = {words: caller.speak(words) for _, words in SCRIPT}
        self._session = session_class(
            llm=ScriptedModel(self._record.decide),
            stt=Ears(),
            tts=Voice(),
            vad=silero.VAD.load(),
            turn_handling={
                "turn_detection": "vad",
                "interruption": {"mode": "vad", "resume_false_interruption": False},
            },
            aec_warmup_duration=None,  # this line has no echo
            tts_text_transforms=[in_english],
            userdata=self._restaurant,
            tools=[Texts()],
        )
        self._session.on("user_input_transcribed", self._on_heard)

    @property
    def silence(self) -> float | None:
        """Seconds from the end of the cut-in to the host's next sound, in the recording; None without one."""
        cut_in = [said.began for said in self.happened.said if said.text == CUT_IN]
        return self.line.recording.silence_after(cut_in[0]) if cut_in else None

    async def through(self) -> None:
        """Have the call."""
        with errors_logged(self.happened):
            self._record.listen(self._session)
            async with self.line.open(self._session):
                try:
                    await self._session.start(Host())
                    await self._talk()
                    self._record.before_the_end(self._session)
                finally:
                    await self._session.aclose()
            self._record.sum_up(self._session, self.line, self._restaurant)
            self._restaurant.book.close()

    async def _talk(self) -> None:
        for cue, words in SCRIPT:
            if not await self._hears(cue):
                return
            await self._says(words)
        await self._hears(FAREWELL)

    async def _says(self, words: str) -> None:
        sound = self._sounds[words]
        began = self._record.clock()
        self.happened.said.append(Said("caller", began, began + len(sound) / 2 / RATE, words, heard=""))
        await self.line.say(sound)

    async def _hears(self, words: str) -> bool:
        """Let the host speak until these words were heard, and take a moment; False if they never come."""
        try:
            await asyncio.wait_for(self._until_heard(words), PATIENCE)
        except asyncio.TimeoutError:
            self.happened.missed.append(f"the caller waited in vain for {words!r}")
            return False
        await asyncio.sleep(REACTION)
        return True

    async def _until_heard(self, words: str) -> None:
        while not any(words in said.heard for said in self.line.speaker.utterances):
            await self._moments.next("agent stops")

    def _on_heard(self, event: UserInputTranscribedEvent) -> None:
        """Put what the host has understood beside what the caller has said."""
        if event.is_final:
            said = self.happened.said[-1]
            self.happened.said[-1] = replace(said, heard=f"{said.heard} {event.transcript}".strip())
