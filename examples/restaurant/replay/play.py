"""Plays a recorded call on a session class."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any

from livekit.agents import AgentSession

from safe_session.testing import Line, ScriptedModel

from ..agents import Host
from ..book import Book
from ..model import decide
from ..restaurant import Restaurant, Work
from ..texts import Texts
from .callfile import NOW, CallFile, Step
from .happened import Happened
from .moments import Moments
from .record import Recorder, errors_logged

PATIENCE = 60.0  # seconds to wait for a moment that may never come
SETTLE = 0.3  # seconds in which nothing more comes
CHANGE = "the agent's state changes, or a tool starts or ends"


async def play(call: CallFile, session_class: type[AgentSession[Any]]) -> Happened:
    """Play a call to its end, and tell what happened."""
    happened = Happened(call, session_class.__name__)
    with errors_logged(happened):
        await _Play(happened, session_class).through()
    return happened


class _Play:
    """One call under way: does what the caller does, when it is time."""

    def __init__(self, happened: Happened, session_class: type[AgentSession[Any]]) -> None:
        self.call = call = happened.call
        self.moments = Moments()
        self.restaurant = Restaurant(Book(now=lambda: NOW), durations=call.durations, noticed=self._on_work)
        self.line = Line(words_per_second=_words_per_second(call))
        self.record = Recorder(happened, decide)
        self.session = session_class(
            llm=ScriptedModel(self.record.decide),
            userdata=self.restaurant,
            tools=[Texts()],
            **self.line.options(),
        )
        self.line.speaker.on("playback_started", lambda _: self.moments.happened("agent speaks"))
        self.line.speaker.on("playback_finished", lambda _: self.moments.happened("agent stops"))
        self.session.on("agent_state_changed", lambda _: self.moments.happened(CHANGE))

    async def through(self) -> None:
        self.line.connect(self.session)
        self.record.listen(self.session)
        for reservation in self.call.book:
            self.restaurant.book.create(**reservation)
        await self.session.start(Host())
        try:
            await self._follow_the_file()
            self.record.before_the_end(self.session)
        finally:
            await self.session.aclose()
            self.record.sum_up(self.session, self.line, self.restaurant)
            self.restaurant.book.close()

    async def _follow_the_file(self) -> None:
        for step in self.call.timeline:
            try:
                await asyncio.wait_for(self._time_of(step), PATIENCE)
            except asyncio.TimeoutError:
                self.record.happened.missed.append(f"the caller waited in vain for {step.moment!r}")
                return
            if step.action == "hangs up":
                return
            await (self._say if step.action == "says" else self._type)(step.words)
        with suppress(asyncio.TimeoutError):  # a call that never comes to rest ends as well
            await asyncio.wait_for(self._quiet(), PATIENCE)

    async def _time_of(self, step: Step) -> None:
        if step.moment is None:
            await asyncio.sleep(max(0.0, (step.at or 0.0) - self.record.clock()))
            return
        await (self._quiet() if step.moment == "all is quiet" else self.moments.next(step.moment))
        await asyncio.sleep(step.after)

    async def _say(self, words: str) -> None:
        began = self.record.clock()
        await self.line.caller.say(words)
        self.record.caller_said(words, began)

    async def _type(self, words: str) -> None:
        self.record.caller_said(words, self.record.clock(), typed=True)
        await self.session.interrupt()
        self.session.generate_reply(user_input=words)

    async def _quiet(self) -> None:
        """Wait until nobody speaks, no tool runs, and nothing more comes of the last one."""
        await self._nobody_speaks()
        while running := self.record.running:
            await self.moments.next(f"{running[0].tool} ends")
            await self._nobody_speaks()

    async def _nobody_speaks(self) -> None:
        """Wait until all has been said; or, if a tool asks the caller something, until the question has."""
        ways = [asyncio.ensure_future(way) for way in (self.line.quiet(settle=SETTLE), self._asked())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()

    async def _asked(self) -> None:
        """The reply whose tool asks the caller is not done until the caller answers: no quiet line ever."""
        settled = False
        while not settled:
            while not self._listens():
                await self.moments.next(CHANGE)
            try:
                await asyncio.wait_for(self.moments.next(CHANGE), SETTLE)
            except asyncio.TimeoutError:
                settled = True

    def _listens(self) -> bool:
        return (
            self.record.asks_caller
            and self.session.agent_state == "listening"
            and not self.line.speaker.playing
        )

    def _on_work(self, work: Work) -> None:
        self.record.worked(work)
        self.moments.happened(f"{work.tool} {'starts' if work.ended is None else 'ends'}")
        self.moments.happened(CHANGE)


def _words_per_second(call: CallFile) -> float:
    """A Chinese character counts as a word; five of them take a second."""
    chinese = any(re.search(r"[\u4e00-\u9fff]", step.words) for step in call.timeline)
    return 5.0 if chinese else 3.0
