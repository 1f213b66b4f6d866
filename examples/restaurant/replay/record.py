"""Takes down what happens in a call."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from livekit.agents import Agent, AgentSession, ChatContext
from livekit.agents.llm import AgentHandoff

from safe_session.testing import Answer, Line, check_guarantees

from ..model.context import Made, read
from ..restaurant import Restaurant, Work
from .happened import Happened, Known, Note, Said, Thought

# The events in which a SafeAgentSession tells what it decides; an AgentSession has none of them.
DECISIONS = {
    "call_kept": "keeps the ending of {}",
    "call_shown": "adds {} to what the model is shown",
    "call_replayed": "does not run {} again",
    "call_not_run": "answers {} as not run",
    "call_released": "no longer waits for {}",
    "call_cancelled": "stops {}",
    "handoff_applied": "applies the handoff of {}",
    "handoff_not_applied": "does not apply the handoff of {}",
    "reply_held": "holds the reply about {} back",
    "reply_retargeted": "gives the reply about {} to the next agent",
    "reply_dropped": "makes no reply of its own about {}",
    "reply_redelivered": "offers the reply about {} once more",
}


class Recorder:
    """Fills in a `Happened`. Its times are seconds since the call began."""

    def __init__(self, happened: Happened, decide: Callable[[ChatContext], Answer]) -> None:
        self.happened = happened
        self._decide = decide
        self._work: list[Work] = []
        self._agents: list[Agent] = []
        self._began = 0.0

    def clock(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    @property
    def running(self) -> list[Work]:
        """The tools that run, but for those that wait for the caller."""
        return [work for work in self._work if work.ended is None and not work.asks_caller]

    @property
    def asks_caller(self) -> bool:
        """Whether a tool waits for what the caller says."""
        return any(work.ended is None and work.asks_caller for work in self._work)

    def listen(self, session: AgentSession[Any]) -> None:
        """Listen to a session that is about to start."""
        self._began = asyncio.get_running_loop().time()
        session.on("conversation_item_added", lambda event: self._item_added(session, event.item))
        for decision in DECISIONS:
            session.on(decision, self._decided)  # pyright: ignore[reportArgumentType]

    def decide(self, shown: ChatContext) -> Answer:
        """Let the model decide, and note what it was shown of the calls that had begun."""
        answer = replace(self._decide(shown), delay=self.happened.call.thinking)
        made = read(shown).made
        known: dict[str, tuple[str, Known]] = {
            work.call_id: (work.tool, _known(work, made)) for work in self._work
        }
        self.happened.thoughts.append(Thought(self.clock(), known, [call.name for call in answer.calls]))
        return answer

    def caller_said(self, words: str, began: float, *, typed: bool = False) -> None:
        self.happened.said.append(Said("caller", began, self.clock(), words, words, typed=typed))

    def worked(self, work: Work) -> None:
        """Take note of a tool that starts; the record of its work fills itself in."""
        if work not in self._work:
            self._work.append(work)

    def before_the_end(self, session: AgentSession[Any]) -> None:
        """Take down what the agent that talks last knows; its session is about to close."""
        self.happened.known = _ended(session.current_agent.chat_ctx)

    def sum_up(self, session: AgentSession[Any], line: Line, restaurant: Restaurant) -> None:
        """Take down what is known once the session has closed."""
        happened = self.happened
        happened.seconds = self.clock()
        for spoken in line.speaker.utterances:
            began, ended = spoken.started_at - self._began, (spoken.ended_at or 0.0) - self._began
            happened.said.append(Said("agent", began, ended, spoken.text, spoken.heard, spoken.interrupted))
        happened.said.sort(key=lambda said: said.began)
        happened.work = [
            replace(work, started=work.started - self._began, ended=work.ended and work.ended - self._began)
            for work in self._work
        ]
        happened.reservations = restaurant.book.standing()
        happened.meals = restaurant.meals
        happened.kept = _ended(session.history)
        violations = check_guarantees(session, *self._agents)
        happened.violations = [str(violation) for violation in violations]

    def _item_added(self, session: AgentSession[Any], item: object) -> None:
        if session.current_agent not in self._agents:
            self._agents.append(session.current_agent)
        if isinstance(item, AgentHandoff) and item.old_agent_id is not None:
            self.happened.handoffs.append(Note(self.clock(), item.new_agent_id))

    def _decided(self, event: Any) -> None:
        self.happened.decisions.append(Note(self.clock(), DECISIONS[event.type].format(event.tool)))


def _ended(context: ChatContext) -> set[str]:
    """The tools of which a context holds a result."""
    return {made.tool for made in read(context).made if made.state != "running"}


def _known(work: Work, made: Sequence[Made]) -> Known:
    """What is shown of a tool's run. A late result's id is made from that of the call."""
    known: Known = "not shown"
    for shown in made:
        same = shown.call_id == work.call_id or shown.call_id.startswith(f"{work.call_id}_")
        if same and (shown.state != "running" or known == "not shown"):
            known = shown.state
    return known


@contextmanager
def errors_logged(happened: Happened) -> Iterator[None]:
    """Take down each error that livekit-agents or asyncio logs.

    An exception that nobody retrieved is logged when its task is collected: before and after are kept apart.
    """
    gc.collect()
    gc.freeze()  # at the end, only what this call makes is looked through
    clock = asyncio.get_running_loop().time
    began = clock()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            cause = f": {record.exc_info[1]!r}" if record.exc_info else ""
            happened.errors.append(Note(clock() - began, record.getMessage() + cause))

    handler = Handler(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("livekit.agents", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
        gc.collect()
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
