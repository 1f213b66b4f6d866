"""Late results on their way to the caller: routed, told together, offered again if nobody heard them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from livekit.agents import NOT_GIVEN

from . import _livekit, faults, telemetry
from .events import ReplyDropped, ReplyHeld, ReplyRedelivered, ReplyRetargeted
from .heard import Hearing
from .routing import route
from .server import SafeRealtimeSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from livekit.agents import Agent, AgentSession, UserStateChangedEvent
    from livekit.agents.llm import FunctionCallOutput
    from livekit.agents.voice import SpeechHandle

    from ._livekit import AgentActivity
    from .handoff import Handoffs
    from .keeper import CallKeeper
    from .ledger import CallRecord
    from .policy import OnHandoff
    from .routing import Route


_OWN_ANSWER = 2.0
"""Seconds that a realtime model's server gets to begin with an answer to the caller."""


@dataclass(eq=False)
class LateResult:
    """One late result.

    Attributes:
        record: its call.
        output: what is told of it; None if it only hands over.
        is_progress: whether more will follow.
        handoff: the agent that the tool returned.
        offers: how often it was offered to the caller.
        held: whether it was found to be held.
    """

    record: CallRecord
    output: FunctionCallOutput | None
    is_progress: bool = False
    handoff: Agent | None = None
    offers: int = 0
    held: bool = False


class Delivery:
    """Brings the late results of one session to the caller."""

    def __init__(self, session: AgentSession[Any], keeper: CallKeeper, handoffs: Handoffs) -> None:
        self._session = session
        self._keeper = keeper
        self._handoffs = handoffs
        self._waiting: list[LateResult] = []
        self._task: asyncio.Task[None] | None = None
        session.on("user_state_changed", self._on_user_state)

    def add(self, late: LateResult) -> asyncio.Task[None]:
        """A result has landed late; returns the task that brings it to the caller."""
        self._waiting.append(late)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._deliver_all(), name="late_results")
            _livekit.keep_run_open(self._session, self._task)
        else:
            self._handoffs.changed()
        return self._task

    def _on_user_state(self, _: UserStateChangedEvent) -> None:
        self._handoffs.changed()

    def introduce(self, agent: Agent) -> None:
        """`agent` is about to start: it is to know what it will tell. Some servers can be told only now."""
        for late in self._waiting:
            if late.record.scope == "session" or self._on_handoff(late) == "retarget":
                self._keeper.remember(late.record, agent)

    async def _deliver_all(self) -> None:
        await asyncio.sleep(0)  # what lands at the same moment is told together, with eager tasks too
        try:
            while self._waiting:
                await self._deliver_what_can_be()
        except Exception:
            self._waiting.clear()  # or what comes next would wait for what failed
            telemetry.report_failure("deliver a late result")

    async def _deliver_what_can_be(self) -> None:
        await faults.wait("route.before")
        self._drop_what_must_be()
        if not self._waiting:
            return
        activity = _livekit.current_activity(self._session)
        if activity is None or not self._deliverable():
            await self._hold()
            return
        if not await self._is_idle(activity):
            return
        # from here to the reply nothing is awaited, or the routes could change again
        self._drop_what_must_be()
        if activity is _livekit.current_activity(self._session) and (ready := self._deliverable()):
            self._waiting = [late for late in self._waiting if late not in ready]
            self._tell(activity, ready)

    async def _is_idle(self, activity: AgentActivity) -> bool:
        """Wait until nobody speaks; False if the routes may have changed before."""
        change = asyncio.ensure_future(self._handoffs.change())
        idle = asyncio.ensure_future(activity.wait_for_idle())
        try:
            await asyncio.wait({change, idle}, return_when=asyncio.FIRST_COMPLETED)
            if not idle.done():
                return False
            if idle.exception() is None:
                return await self._leaves_the_word(activity, change)
            # it gave way, or the session closes: the routes are others now, or will be
            if self._handoffs.session_state() == "open":
                await change
            return False
        finally:
            change.cancel()
            idle.cancel()

    async def _leaves_the_word(self, activity: AgentActivity, change: asyncio.Future[Any]) -> bool:
        """Whether the caller leaves us the word; livekit does not look at what a model's own server hears.

        Once they have spoken, that server answers by itself, unless it leaves that to the application.
        """
        connection = _livekit.realtime_session_of(activity.agent)
        if isinstance(connection, SafeRealtimeSession):
            if self._session.user_state == "speaking":
                await change
            elif connection.caller_waits:
                await asyncio.wait({change}, timeout=_OWN_ANSWER)
        return not change.done()

    def _route_of(self, late: LateResult) -> Route:
        owner = self._handoffs.owner_state(late.record.owner)
        decided = route(late.record.scope, owner, self._handoffs.session_state(), self._on_handoff(late))
        faults.point("route.after")
        return decided

    @staticmethod
    def _on_handoff(late: LateResult) -> OnHandoff:
        return late.record.policy.on_handoff if late.record.policy is not None else "drop"

    def _deliverable(self) -> list[LateResult]:
        return [late for late in self._waiting if self._route_of(late) in {"deliver", "retarget"}]

    def _drop_what_must_be(self) -> None:
        dropped = [late for late in self._waiting if self._route_of(late) == "drop"]
        self._waiting = [late for late in self._waiting if late not in dropped]
        closing = self._handoffs.session_state() == "closing"
        for late in dropped:
            if late.handoff is not None:
                self._keeper.returned.give_up(late.record, late.handoff, "closing" if closing else "left")
            if late.output is not None:
                self._keeper.announce(ReplyDropped, late.record, reason="closing" if closing else "gone")

    async def _hold(self) -> None:
        handing_off = self._handoffs.session_state() == "handing off"
        for late in self._waiting:
            if not late.held:
                late.held = True
                self._keeper.announce(
                    ReplyHeld, late.record, reason="handing off" if handing_off else "paused"
                )
        if self._task is None or handing_off:
            await self._handoffs.change()
            return
        # an AgentTask has the floor, which may need another run to end
        _livekit.let_run_end(self._session, self._task)
        await self._handoffs.change()
        _livekit.keep_run_open(self._session, self._task)

    # -- telling

    def _tell(self, activity: AgentActivity, results: Sequence[LateResult]) -> None:
        for late in results:
            self._make_known(late, activity.agent)
        if told := [late for late in results if late.output is not None]:
            self._reply(activity, told)
        handed_over = False
        for late in results:
            handoff, late.handoff = late.handoff, None
            if handoff is None:
                continue
            if handed_over:
                # its agent leaves by the first handoff, so that its route is another one now
                self._waiting.append(LateResult(late.record, None, handoff=handoff))
            else:
                self._keeper.returned.apply(late.record, handoff)
                handed_over = True

    def _make_known(self, late: LateResult, agent: Agent) -> None:
        """Whoever tells a result knows it from then on (G7)."""
        if agent is not late.record.owner:
            self._keeper.announce(ReplyRetargeted, late.record, told_by=agent.id)
        self._keeper.remember(late.record, agent)

    def _reply(self, activity: AgentActivity, told: Sequence[LateResult]) -> None:
        outputs = [late.output for late in told if late.output is not None]
        call_ids = [output.call_id for output in outputs]
        items = _livekit.stored_context(activity.agent).items
        newest = bool(items) and items[-1].id == outputs[-1].id and not any(late.offers for late in told)
        template = told[0].record.wording[
            "reply_at_tail_template" if newest else "reply_maybe_covered_template"
        ]
        only_progress = all(late.is_progress for late in told)
        instructions = _render(template, {"call_ids": call_ids})
        connection = _livekit.realtime_session_of(activity.agent)
        if connection is not None and not _livekit.capabilities_of(connection).mutable_chat_context:
            # its server takes no call that its own model did not make
            instructions = "\n".join(
                [instructions, *(f"{output.name}: {output.output}" for output in outputs)]
            )
        speech = self._session.generate_reply(
            instructions=instructions,
            tool_choice="none" if only_progress else NOT_GIVEN,
        )
        _livekit.report_late_reply(self._session, call_ids, speech, "scheduled")
        hearing = Hearing(self._session, speech)

        def over(speech: SpeechHandle) -> None:
            speech.remove_done_callback(over)  # livekit remembers speeches, and with them what they call back
            self._told(told, call_ids, speech, hearing)

        speech.add_done_callback(over)

    def _told(
        self, told: Sequence[LateResult], call_ids: list[str], speech: SpeechHandle, hearing: Hearing
    ) -> None:
        hearing.close()
        status: Literal["completed", "interrupted", "skipped"] = "completed"
        if speech.interrupted:
            status = "interrupted"
        elif not speech.chat_items:
            status = "skipped"
        _livekit.report_late_reply(self._session, call_ids, speech, status)
        if not speech.interrupted or hearing.heard:
            return
        for late in told:
            late.offers += 1
            if late.offers <= self._keeper.options.redeliver and not _livekit.is_closing(self._session):
                self._keeper.announce(ReplyRedelivered, late.record)
                self.add(late)


def _render(template: Any, given: Mapping[str, Any]) -> str:
    """The application's wording; livekit takes a format string or a function."""
    return str(template(given) if callable(template) else template.format(**given))
