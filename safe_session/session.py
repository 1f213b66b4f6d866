"""`SafeAgentSession`: the drop-in."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

from livekit.agents import AgentSession, FunctionToolsExecutedEvent

from . import _livekit, telemetry
from ._livekit import AgentActivity
from .activity import SafeAgentActivity, mark_handed_over
from .context import hold_each_call_once
from .handoff import HandoffFailedError, is_serving, serving
from .keeper import CallKeeper
from .policy import SafeOptions

if TYPE_CHECKING:
    import asyncio

    from livekit.agents import Agent
    from livekit.agents.voice import SpeechHandle

Userdata_T = TypeVar("Userdata_T")


def _takes_livekits_keywords(init: Any) -> Any:
    """Tell `inspect`, and what is built on it, the keywords that are passed on."""
    theirs = inspect.signature(cast("Any", AgentSession).__init__)
    ours = inspect.signature(init).parameters["safe"]
    init.__signature__ = theirs.replace(parameters=[*theirs.parameters.values(), ours])
    return init


class SafeAgentSession(AgentSession[Userdata_T]):
    """An `AgentSession` that never loses a tool call and never repeats one unknowingly.

    Everything that `AgentSession` takes, emits and does stays as it is; what is promised beyond it stands in
    ``docs/guarantees.md``. Each decision is an event of `safe_session.events` on the session.

    Args:
        safe: how the guarantees are kept; the defaults are meant for production.
        **kwargs: whatever the `AgentSession` of the installed livekit-agents takes.

    Attributes:
        keeper: keeps the calls of this session.

    Raises:
        TypeError: if `safe` is not a `SafeOptions`.
    """

    @_takes_livekits_keywords
    def __init__(self, *, safe: SafeOptions | None = None, **kwargs: Any) -> None:
        if safe is not None and not isinstance(safe, SafeOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"safe is {safe!r}; it must be a SafeOptions")
        super().__init__(**kwargs)
        self.keeper = CallKeeper(self, safe or SafeOptions())
        _livekit.set_history(self, hold_each_call_once(self.history))

    def generate_reply(self, **kwargs: Any) -> SpeechHandle:
        """Generate a reply, as `AgentSession.generate_reply` does; during a handoff the next agent does."""
        with serving():
            return super().generate_reply(**kwargs)

    def say(self, *args: Any, **kwargs: Any) -> SpeechHandle:
        """Say something, as `AgentSession.say` does; during a handoff the next agent does."""
        with serving():
            return super().say(*args, **kwargs)

    def update_agent(self, agent: Agent) -> None:
        """Hand over to `agent`, as `AgentSession.update_agent` does."""
        mark_handed_over()
        with telemetry.guarded("note how a call ended that returned an agent", agent_id=agent.id):
            self.keeper.returned.handed_over_to(agent)
        before = _livekit.handoff_task(self)
        super().update_agent(agent)
        handoff = _livekit.handoff_task(self)
        if handoff is not None and handoff is not before:
            self._promise(agent, handoff)

    def emit(self, event: Any, arg: Any) -> None:
        """Emit an event, as `AgentSession.emit` does."""
        if not isinstance(arg, FunctionToolsExecutedEvent):
            super().emit(event, arg)
            return
        with telemetry.guarded("keep the calls that livekit names at the end of their step"):
            self.keeper.named(arg.function_calls)
        handoff = arg.has_agent_handoff
        super().emit(event, arg)
        if handoff and not arg.has_agent_handoff:
            with telemetry.guarded("note that the application cancelled a handoff"):
                self.keeper.returned.cancelled({call.call_id for call in arg.function_calls})

    def _promise(self, agent: Agent, handoff: asyncio.Task[None]) -> None:
        """Build the activity that is to follow, so that what arrives has a place to go (G8)."""
        try:
            activity = AgentActivity(agent, self)
        except Exception:
            return  # livekit builds it again in its own task, where it raises the same, and is logged
        SafeAgentActivity.adopt(activity)
        self.keeper.handoffs.promise(activity)

        def over(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            self.keeper.handoffs.failed(activity, error or HandoffFailedError(agent))

        handoff.add_done_callback(over)

    async def _update_activity(self, agent: Agent, **kwargs: Any) -> None:
        failure: BaseException | None = None
        try:
            await super()._update_activity(agent, **kwargs)
        except BaseException as error:
            failure = error
            raise
        finally:
            self.keeper.handoffs.switched_to(agent, failure)

    async def _aclose_impl(self, **kwargs: Any) -> None:
        activity = _livekit.current_activity(self)
        self.keeper.runs.close_begins()
        self.keeper.handoffs.changed()
        try:
            with self.keeper.runs.spared():
                await super()._aclose_impl(**kwargs)
        finally:
            await self.keeper.runs.close_ends()
            if activity is not None and _livekit.can_still_speak(activity):
                # up to 1.8.9, an AgentTask's is left if a handoff comes at the same time
                await activity.aclose()
            self.keeper.session_closed()

    # livekit assigns each new activity to this name before it starts it: the moment to make it safe
    @property
    def _next_activity(self) -> AgentActivity | None:
        if is_serving() and (promised := self.keeper.handoffs.last_promised()) is not None:
            return promised
        return self.__dict__["_next_activity"]

    @_next_activity.setter
    def _next_activity(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, activity: AgentActivity | None
    ) -> None:
        if activity is not None:
            SafeAgentActivity.adopt(activity)
            activity = self.keeper.handoffs.take(activity)
        self.__dict__["_next_activity"] = activity
