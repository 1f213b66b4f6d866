"""The reply pipeline: what each inference is shown, what became of its step, and what waits for a start."""

from __future__ import annotations

import contextlib
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from . import _livekit, telemetry
from ._livekit import AgentActivity
from .context import hold_each_call_once
from .executor import SafeToolExecutor
from .handoff import is_serving, serving
from .keeper import keeper_of
from .server import SafeRealtimeSession, asking, replying

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Generator

    from livekit.agents import Agent, AgentSession, ModelSettings
    from livekit.agents.llm import ChatContext, GenerationCreatedEvent, RealtimeSession, Tool, Toolset
    from livekit.agents.voice import SpeechHandle

    from .generation import Generation
    from .keeper import CallKeeper
    from .ledger import Inference, Over


@dataclass(eq=False)
class _SpokenTurn:
    """A turn of the caller's on its way to a reply."""

    replied: bool = False
    handed_over: bool = False


_spoken_turn: contextvars.ContextVar[_SpokenTurn | None] = contextvars.ContextVar("spoken_turn", default=None)


def mark_handed_over() -> None:
    """The running code hands over; if it answers a turn of the caller's, the next agent must not do so."""
    if (turn := _spoken_turn.get()) is not None:
        turn.handed_over = True


class SafeAgentActivity(AgentActivity):
    """livekit's activity of one agent, which shows each inference the calls that it must know.

    It adds no state, so that an activity that livekit built can be turned into one.
    """

    @classmethod
    def adopt(cls, activity: AgentActivity) -> None:
        """Turn an activity that livekit built into one of these, before it starts."""
        if not isinstance(activity, cls):
            _livekit.turn_into(activity, cls)
            _livekit.set_executor(activity, SafeToolExecutor)
            _hold_each_call_once(activity.agent)

    # -- inferences

    async def _pipeline_reply_task(
        self,
        *,
        speech_handle: SpeechHandle,
        chat_ctx: ChatContext,
        tools: list[Tool | Toolset],
        **kwargs: Any,
    ) -> None:
        is_own = chat_ctx is _livekit.stored_context(self._agent)
        if not await self._keeper.handoffs.has_started(self):
            return
        if is_own:
            chat_ctx = _livekit.stored_context(self._agent)  # it may be another one since the start
        if speech_handle.interrupted and speech_handle.num_steps > 1:
            return  # up to 1.6.x, livekit asks the model for a reply that nobody will hear
        inference: Inference | None = None
        try:
            _adopt_executors_of(tools)
            inference, chat_ctx = self._keeper.begin_inference(speech_handle, self._agent, chat_ctx)
        except Exception:
            telemetry.report_failure("show an inference the calls it must know", speech_id=speech_handle.id)
        with self._step_of(inference, speech_handle):
            await super()._pipeline_reply_task(
                speech_handle=speech_handle, chat_ctx=chat_ctx, tools=tools, **kwargs
            )

    @contextlib.contextmanager
    def _step_of(self, inference: Inference | None, speech: SpeechHandle) -> Generator[None]:
        """The step that `inference` decides; what it leaves open is settled."""
        over: Over = "failed"
        try:
            yield
            over = "interrupted" if speech.interrupted else "done"
        finally:
            if inference is not None:
                with telemetry.guarded("settle what a step left open", speech_id=speech.id):
                    self._keeper.end_inference(inference, over=over)

    async def update_chat_ctx(self, chat_ctx: ChatContext, **kwargs: Any) -> None:
        await super().update_chat_ctx(chat_ctx, **kwargs)
        _hold_each_call_once(self._agent)

    # -- generations of a realtime model

    # livekit assigns the connection to the model's server to this name before it tells it anything
    @property
    def _rt_session(self) -> RealtimeSession[Any] | None:
        return self.__dict__["_rt_session"]

    @_rt_session.setter
    def _rt_session(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, connection: RealtimeSession[Any] | None
    ) -> None:
        if connection is not None:
            with telemetry.guarded("watch a realtime model's server", agent_id=self._agent.id):
                SafeRealtimeSession.adopt(connection, self._keeper, self._agent)
        self.__dict__["_rt_session"] = connection

    async def _realtime_reply_task(self, *, speech_handle: SpeechHandle, **kwargs: Any) -> None:
        if not await self._keeper.handoffs.has_started(self):
            return
        connection = self._rt_session
        with asking() as asked:
            await super()._realtime_reply_task(speech_handle=speech_handle, **kwargs)
        if not isinstance(connection, SafeRealtimeSession):
            return
        for reply in asked:
            # an interruption may come between the response and its being taken up
            if reply.done() and not reply.cancelled() and reply.exception() is None:
                with telemetry.guarded("answer the calls of a reply that nobody says"):
                    connection.skip_unless_taken(reply.result(), "interrupted")

    def _realtime_generation_task(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        speech_handle: SpeechHandle,
        generation_ev: GenerationCreatedEvent,
        model_settings: ModelSettings,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, None]:
        generation: Generation | None = None
        with telemetry.guarded("watch a reply of a realtime model", speech_id=speech_handle.id):
            if isinstance(self._rt_session, SafeRealtimeSession):
                generation = self._rt_session.take(generation_ev)
                generation.taken_up_by(speech_handle, without_tools=model_settings.tool_choice == "none")
        return self._say_generation(
            generation,
            speech_handle=speech_handle,
            generation_ev=generation_ev,
            model_settings=model_settings,
            **kwargs,
        )

    async def _say_generation(
        self,
        generation: Generation | None,
        *,
        speech_handle: SpeechHandle,
        generation_ev: GenerationCreatedEvent,
        **kwargs: Any,
    ) -> None:
        inference = generation.inference if generation is not None else None
        try:
            with self._step_of(inference, speech_handle), replying():
                with telemetry.guarded("watch the tools of toolsets", speech_id=speech_handle.id):
                    _adopt_executors_of(self.tools)
                await super()._realtime_generation_task(
                    speech_handle=speech_handle, generation_ev=generation_ev, **kwargs
                )
        finally:
            if generation is not None:
                with telemetry.guarded("answer the calls that livekit skips", speech_id=speech_handle.id):
                    generation.skip("failed" if generation.inference.over == "failed" else "interrupted")

    # -- handoffs

    async def start(self, **kwargs: Any) -> None:
        if (previous := self._keeper.handoffs.previous_of(self)) is not None:
            with telemetry.guarded("give an agent the calls that it is to know", agent_id=self._agent.id):
                self._keeper.inherit(self._agent, previous)
        await super().start(**kwargs)
        self._keeper.handoffs.arrived(self)

    async def resume(self, **kwargs: Any) -> None:
        await super().resume(**kwargs)
        _livekit.forget_old_words(self)
        self._keeper.handoffs.resumed(self)

    async def aclose(self) -> None:
        # the tool that awaited an AgentTask closes its agent, if there was a handoff away from the task
        with self._keeper.runs.spared(), self._keeper.handoffs.leaving(self):
            await super().aclose()

    @property
    def scheduling_paused(self) -> bool:
        """Whether it serves nothing new; one that is to start soon does, and one that leaves does not."""
        paused = super().scheduling_paused
        handoffs = self._keeper.handoffs
        if not is_serving():
            return paused
        if handoffs.coming(self) is not None:
            return False
        if _livekit.activity_of_this_code() is self:
            return paused and not _livekit.can_still_speak(self)
        return paused or handoffs.heir_of(self) is not None

    def say(self, *args: Any, **kwargs: Any) -> SpeechHandle:
        with serving(choosing=False):
            return super().say(*args, **kwargs)

    def _generate_reply(self, **kwargs: Any) -> SpeechHandle:
        if (turn := _spoken_turn.get()) is not None:
            turn.replied = True
        with serving(choosing=False):
            return super()._generate_reply(**kwargs)

    def _schedule_speech(self, speech: SpeechHandle, priority: int, force: bool = False) -> None:
        coming = self._keeper.handoffs.coming(self)
        if coming is not None:
            coming.speeches.append(speech)
            coming.arrivals.append(lambda: super(SafeAgentActivity, self)._schedule_speech(speech, priority))
            return
        if super().scheduling_paused and _livekit.activity_of_this_code() is self:
            # what its own tools and hooks still say is said before it gives way
            force = force or _livekit.can_still_speak(self)
        super()._schedule_speech(speech, priority, force=force)

    def on_end_of_turn(self, info: Any) -> bool:
        if not self._pass_on(info):
            return super().on_end_of_turn(info)
        return True

    async def _user_turn_completed_task(self, old_task: asyncio.Task[None] | None, info: Any) -> None:
        turn = _SpokenTurn()
        token = _spoken_turn.set(turn)
        try:
            await super()._user_turn_completed_task(old_task, info)
        finally:
            _spoken_turn.reset(token)
        if not turn.replied and not turn.handed_over and not info.skip_reply:
            self._pass_on(info)

    def _pass_on(self, info: Any) -> bool:
        """Let whoever follows answer what the caller said, if this one is on its way out."""
        heir = self._keeper.handoffs.heir_of(self)
        if heir is None or self._keeper.handoffs.session_state() == "closing":
            return False
        heir.arrivals.append(lambda: heir.activity.on_end_of_turn(info))
        return True

    @property
    def _keeper(self) -> CallKeeper:
        return cast("CallKeeper", keeper_of(cast("AgentSession[Any]", self._session)))


def _hold_each_call_once(agent: Agent) -> None:
    _livekit.set_stored_context(agent, hold_each_call_once(_livekit.stored_context(agent)))


def _adopt_executors_of(tools: list[Tool | Toolset]) -> None:
    for executor in _livekit.executors_of_toolsets(tools):
        if not isinstance(executor, SafeToolExecutor):
            _livekit.turn_into(executor, SafeToolExecutor)
