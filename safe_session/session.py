"""`SafeAgentSession`: the drop-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from livekit.agents import AgentSession, FunctionToolsExecutedEvent

from . import _livekit
from .activity import SafeAgentActivity
from .keeper import CallKeeper, hold_each_call_once
from .policy import SafeOptions

if TYPE_CHECKING:
    from livekit.agents import Agent

    from ._livekit import AgentActivity

Userdata_T = TypeVar("Userdata_T")


class SafeAgentSession(AgentSession[Userdata_T]):
    """An `AgentSession` that never loses a tool call and never repeats one unknowingly.

    Everything that `AgentSession` takes, emits and does stays as it is; what is promised beyond it stands in
    ``docs/guarantees.md``. Each decision is an event of `safe_session.events` on the session.

    Args:
        safe: how the guarantees are kept; the defaults are meant for production.
        **kwargs: whatever the `AgentSession` of the installed livekit-agents takes.

    Raises:
        TypeError: if `safe` is not a `SafeOptions`.

    """

    def __init__(self, *, safe: SafeOptions | None = None, **kwargs: Any) -> None:
        if safe is not None and not isinstance(safe, SafeOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"safe is {safe!r}; it must be a SafeOptions")
        super().__init__(**kwargs)
        self.keeper = CallKeeper(self, safe or SafeOptions())
        _livekit.set_history(self, hold_each_call_once(self.history))

    def update_agent(self, agent: Agent) -> None:
        """Hand over to `agent`, as `AgentSession.update_agent` does."""
        self.keeper.handed_over_to(agent)
        super().update_agent(agent)

    def emit(self, event: Any, arg: Any) -> None:
        """Emit an event, as `AgentSession.emit` does."""
        handoff = isinstance(arg, FunctionToolsExecutedEvent) and arg.has_agent_handoff
        super().emit(event, arg)
        if handoff and not arg.has_agent_handoff:
            self.keeper.handoff_cancelled({call.call_id for call in arg.function_calls})

    # livekit assigns each new activity to this name before it starts it: the moment to make it safe
    @property
    def _next_activity(self) -> AgentActivity | None:
        return self.__dict__["_next_activity"]

    @_next_activity.setter
    def _next_activity(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, activity: AgentActivity | None
    ) -> None:
        if activity is not None:
            SafeAgentActivity.adopt(activity)
        self.__dict__["_next_activity"] = activity
