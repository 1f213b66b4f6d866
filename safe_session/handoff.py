"""Who has the floor, who is to have it next, and what arrives before that one has started (G8)."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from livekit.agents import AgentTask

from . import _livekit, telemetry

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from livekit.agents import Agent, AgentSession
    from livekit.agents.voice import SpeechHandle

    from ._livekit import AgentActivity
    from .routing import OwnerState, SessionState

_serving: contextvars.ContextVar[bool] = contextvars.ContextVar("safe_session_serving", default=False)


@contextlib.contextmanager
def serving(choosing: bool = True) -> Generator[None]:
    """While the session is `choosing` the activity that serves a request."""
    token = _serving.set(choosing)
    try:
        yield
    finally:
        _serving.reset(token)


def is_serving() -> bool:
    """Whether the session is just choosing the activity that serves a request."""
    return _serving.get()


_MOMENT = 0.25
"""Seconds that the tool which awaited an AgentTask gets to end before anybody else speaks."""


class HandoffFailedError(RuntimeError):
    """What waited for an agent will not be served: it did not start."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(
            f"the agent {agent.id!r} did not start: the session closed, or handed over elsewhere"
        )


@dataclass(eq=False)
class Coming:
    """An activity that is to have the floor, and what waits for it.

    Attributes:
        activity: the activity.
        previous: the agent that has the floor until then.
        started: done when it has started, or failed to.
        speeches: those that wait.
        arrivals: what is done about what waits, in the order in which it came.
    """

    activity: AgentActivity
    previous: Agent | None
    started: asyncio.Future[None]
    speeches: list[SpeechHandle] = field(default_factory=list["SpeechHandle"])
    arrivals: list[Callable[[], Any]] = field(default_factory=list[Callable[[], Any]])


class Handoffs:
    """The handoffs of one session."""

    def __init__(self, session: AgentSession[Any]) -> None:
        self._session = session
        self._promised: list[AgentActivity] = []
        self._coming: dict[AgentActivity, Coming] = {}
        self._changed = asyncio.Event()
        self._resuming: Agent | None = None
        self._leaving: set[AgentActivity] = set()

    # -- who has the floor

    def session_state(self) -> SessionState:
        """Of the session, for the route of a late result."""
        if _livekit.is_closing(self._session):
            return "closing"
        current = _livekit.current_activity(self._session)
        # the current one is paused as well if it failed to start
        if (
            self._promised
            or self._resuming is not None
            or _livekit.is_switching(self._session)
            or current is None
            or current.scheduling_paused
        ):
            return "handing off"
        return "open"

    def owner_state(self, owner: Agent) -> OwnerState:
        """Of an agent, for the route of a late result."""
        current = _livekit.current_activity(self._session)
        if current is not None and current.agent is owner:
            return "current"
        under_a_task = current is not None and isinstance(current.agent, AgentTask)
        activity = _livekit.activity_of(owner)
        returns = under_a_task and activity is not None and activity not in self._leaving
        return "paused" if returns else "gone"

    def is_paused(self, agent: Agent) -> bool:
        """Whether an AgentTask of its own has the floor in the place of `agent`."""
        return self.owner_state(agent) == "paused"

    def gives_way(self, agent: Agent) -> bool:
        """Whether an AgentTask of its own has the floor in the place of `agent`, or is about to."""
        activity = _livekit.activity_of(agent)
        heir = self.heir_of(activity) if activity is not None else None
        return self.is_paused(agent) or (heir is not None and isinstance(heir.activity.agent, AgentTask))

    def change(self) -> Coroutine[Any, Any, Any]:
        """Wait until one of these states may have changed since this call."""
        return self._changed.wait()

    def changed(self) -> None:
        """One of these states may have changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    # -- who is to have it

    def promise(self, activity: AgentActivity) -> None:
        """A handoff was asked for: `activity` is to follow."""
        self._promised.append(activity)
        self._expect(activity)

    def take(self, activity: AgentActivity) -> AgentActivity:
        """livekit is about to start or resume `activity`, or the one that was promised for its agent."""
        if self._promised and self._promised[0].agent is activity.agent:
            activity = self._promised[0]
        coming = self._expect(activity)
        if (current := _livekit.current_activity(self._session)) is not None:
            coming.previous = current.agent  # since it was promised, another one may have had the floor
        return activity

    def last_promised(self) -> AgentActivity | None:
        """The last one that was promised and has not started."""
        return self._promised[-1] if self._promised else None

    def coming(self, activity: AgentActivity) -> Coming | None:
        """What waits for `activity`, until it has started."""
        return self._coming.get(activity)

    async def has_started(self, activity: AgentActivity) -> bool:
        """Wait until `activity` has started; False if it failed to."""
        coming = self._coming.get(activity)
        if coming is not None:
            await asyncio.wait([coming.started])
        return coming is None or coming.started.exception() is None

    def previous_of(self, activity: AgentActivity) -> Agent | None:
        """The agent that `activity` takes the floor from."""
        coming = self._coming.get(activity)
        return coming.previous if coming is not None else None

    def heir_of(self, activity: AgentActivity) -> Coming | None:
        """What serves the caller in the place of an activity that leaves, or is being paused."""
        if _livekit.current_activity(self._session) is not activity:
            return None
        heir = self._promised[-1] if self._promised else next(reversed(self._coming), None)
        return self._coming.get(heir) if heir is not None else None

    def next_to_serve(self) -> Coming | None:
        """What serves the caller next, if whoever has the floor leaves, is paused or has not started."""
        current = _livekit.current_activity(self._session)
        if current is not None and current in self._coming:
            return self._coming[current]
        return self.heir_of(current) if current is not None else None

    @contextlib.contextmanager
    def leaving(self, activity: AgentActivity) -> Generator[None]:
        """While `activity` is being closed, and will not have the floor again."""
        self._leaving.add(activity)
        self.changed()
        try:
            yield
        finally:
            self._leaving.discard(activity)

    # -- it has it

    def arrived(self, activity: AgentActivity) -> None:
        """`activity` has started, or resumed."""
        coming = self._forget(activity)
        if coming is not None:
            coming.started.set_result(None)
            for arrival in coming.arrivals:
                arrival()

    def resumed(self, activity: AgentActivity) -> None:
        """`activity` has the floor again, and the tool that awaited the AgentTask ends.

        Its step's reply comes before late results, which it can tell: both at once would tell them twice.
        """
        self._resuming = activity.agent
        asyncio.get_running_loop().call_later(_MOMENT, self.step_ended, activity.agent)
        self.arrived(activity)

    def step_ended(self, agent: Agent) -> None:
        """A step of `agent` is over; if a reply follows, it has been scheduled."""
        if self._resuming is agent:
            self._resuming = None
            self.changed()

    def failed(self, activity: AgentActivity, error: BaseException) -> None:
        """`activity` will not have the floor: what waited for it ends with that error."""
        coming = self._forget(activity)
        if coming is None:
            return
        coming.started.set_exception(error)
        coming.started.exception()  # whoever waits is told; if nobody does, that is no loss
        for speech in coming.speeches:
            _livekit.fail(speech, error)
        if lost := len(coming.arrivals) - len(coming.speeches):
            log = telemetry.logger.warning if _livekit.is_closing(self._session) else telemetry.logger.error
            log(
                "the next agent did not start; nobody answers the caller",
                turns=lost,
                agent_id=activity.agent.id,
            )

    def switched_to(self, agent: Agent, error: BaseException | None) -> None:
        """The switch to an activity of `agent` is over; one that did not start then never will."""
        for activity in list(self._coming):
            if activity.agent is agent and activity not in self._promised:
                self.failed(activity, error or HandoffFailedError(agent))

    def _expect(self, activity: AgentActivity) -> Coming:
        if activity not in self._coming:
            current = _livekit.current_activity(self._session)
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._coming[activity] = Coming(activity, current.agent if current is not None else None, started)
            self.changed()
        return self._coming[activity]

    def _forget(self, activity: AgentActivity) -> Coming | None:
        if activity in self._promised:
            self._promised.remove(activity)
        # livekit still holds its lock on the switch when it starts an activity
        asyncio.get_running_loop().call_soon(self.changed)
        return self._coming.pop(activity, None)
