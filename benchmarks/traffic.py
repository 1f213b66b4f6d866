"""Steady traffic: a caller on a line who asks for something every few seconds, in all the ways there are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.caller import Clerk, ObedientModel, ask_for
from safe_session.testing import Line

if TYPE_CHECKING:
    from livekit.agents import AgentSession


@dataclass(frozen=True)
class Turn:
    """What the caller says, and cuts in with half a second later."""

    says: str
    cuts_in_with: str = ""


TURNS = (
    Turn("Good morning."),
    Turn(ask_for("look_up", seconds=0.5)),
    Turn(ask_for("look_up", times=2, seconds=1)),
    Turn(ask_for("look_up", times=2, seconds=1.2), cuts_in_with="Are you there?"),
    Turn(ask_for("order", seconds=1)),
    Turn(ask_for("hand_over")),
)

LASTS = 2.0
"""Seconds that a turn takes at most, with the late results that it leaves."""

_WORDS_PER_SECOND = 12.0


class Conversation:
    """A call that goes on and on, on a clock of any kind.

    Attributes:
        session: The agent's end of it.

    Args:
        kind: `SafeAgentSession` or `AgentSession`.
        begins_with: The place in `TURNS` of its first turn.
        keeps: How many items the contexts and the history are trimmed to after each turn.
    """

    def __init__(self, kind: type[AgentSession], *, begins_with: int = 0, keeps: int = 20) -> None:
        self._model = ObedientModel()
        self._line = Line(_WORDS_PER_SECOND)
        self.session = kind(llm=self._model, **self._line.options())
        self._line.connect(self.session)
        self._turn = begins_with
        self._keeps = keeps

    @property
    def calls(self) -> int:
        """How many tool calls were made in it."""
        return self._model.calls

    @property
    def requests(self) -> int:
        """How many requests to the model were made in it."""
        return self._model.requests

    async def start(self) -> None:
        await self.session.start(Clerk())

    async def talk(self, turns: int, *, every: float) -> None:
        """Go on for that many turns, one `every` so many seconds, which are no less than `LASTS`."""
        clock = asyncio.get_running_loop()
        for _ in range(turns):
            next_at = clock.time() + every
            await self._take(TURNS[self._turn % len(TURNS)])
            self._turn += 1
            await asyncio.sleep(next_at - clock.time())
            await self._trim()

    async def quiet(self) -> None:
        """Wait until nothing is left to be said."""
        await asyncio.sleep(LASTS)
        await self._line.quiet()

    async def aclose(self) -> None:
        await self.session.aclose()

    async def _take(self, turn: Turn) -> None:
        await self._line.caller.say(turn.says)
        if turn.cuts_in_with:
            await asyncio.sleep(0.5)
            await self._line.caller.say(turn.cuts_in_with)

    async def _trim(self) -> None:
        agent = self.session.current_agent
        await agent.update_chat_ctx(agent.chat_ctx.copy().truncate(max_items=self._keeps))
        self.session.history.truncate(max_items=self._keeps)
        self._line.speaker.utterances.clear()
