"""What a `SafeAgentSession` decides, as events: ``session.on(event.type, callback)``.

Every event names the call that it is about. None of them carries what a caller said or a tool returned.
"""

from __future__ import annotations

import time
from typing import Literal

from pydantic import BaseModel, Field


class SafeEvent(BaseModel, frozen=True):
    """One decision about one call.

    Attributes:
        type: the event's name.
        call_id: the call's id.
        tool: the name of the tool.
        agent_id: the id of the agent under which the call was made.
        created_at: when it was decided, in seconds since the epoch.

    """

    type: str
    call_id: str
    tool: str
    agent_id: str
    created_at: float = Field(default_factory=time.time)


class CallKept(SafeEvent, frozen=True):
    """A call's ending was recorded although the reply that made it was interrupted or failed."""

    type: Literal["call_kept"] = "call_kept"
    state: Literal["done", "failed", "cancelled"]


class CallReplayed(SafeEvent, frozen=True):
    """A call was not run: an earlier one of the same tool and arguments stands for it.

    Attributes:
        twin_id: the id of the earlier call.
        reason: ``"unseen"``: the model could not know of it. ``"once"``: the tool's policy says so.

    """

    type: Literal["call_replayed"] = "call_replayed"
    twin_id: str
    reason: Literal["unseen", "once"]


class CallNotRun(SafeEvent, frozen=True):
    """A realtime model made a call whose tool livekit does not start; it was answered as not run.

    Attributes:
        reason: ``"no tools"``: the reply was not to call any. ``"interrupted"``: the caller interrupted the
            reply first. ``"handed over"``: the reply began during a handoff. ``"failed"``: the reply failed.
    """

    type: Literal["call_not_run"] = "call_not_run"
    reason: Literal["no tools", "interrupted", "handed over", "failed"]


class CallShown(SafeEvent, frozen=True):
    """An inference was shown a call that its context lacked.

    Attributes:
        shown_to: the id of the agent whose inference it is.
        as_running: whether it was shown as running, or with its ending.

    """

    type: Literal["call_shown"] = "call_shown"
    shown_to: str
    as_running: bool


class HandoffNotApplied(SafeEvent, frozen=True):
    """A tool returned an agent, and the handoff did not happen.

    Attributes:
        to_agent_id: the id of the agent that was not handed over to.
        reason: ``"interrupted"``: the caller interrupted the turn. ``"cancelled"``: a listener of
            ``function_tools_executed`` cancelled it. ``"ambiguous"``: several tools of one step each
            returned an agent. ``"failed"``: the reply failed before it.
            ``"left"``: the agent that made the call has left. ``"closing"``: the session closes.

    """

    type: Literal["handoff_not_applied"] = "handoff_not_applied"
    to_agent_id: str
    reason: Literal["interrupted", "cancelled", "ambiguous", "failed", "left", "closing"]


class HandoffApplied(SafeEvent, frozen=True):
    """A handoff that livekit gives up was applied: late, or after an interruption."""

    type: Literal["handoff_applied"] = "handoff_applied"
    to_agent_id: str


class CallReleased(SafeEvent, frozen=True):
    """A tool's turn was interrupted, so the conversation goes on without it; its result is told later."""

    type: Literal["call_released"] = "call_released"


class CallCancelled(SafeEvent, frozen=True):
    """A call was stopped before it ended; it may already have taken effect."""

    type: Literal["call_cancelled"] = "call_cancelled"


class ReplyHeld(SafeEvent, frozen=True):
    """A late result can't be told yet.

    Attributes:
        reason: ``"paused"``: an AgentTask of its agent has the floor. ``"handing off"``: the next agent has
            not started.
    """

    type: Literal["reply_held"] = "reply_held"
    reason: Literal["paused", "handing off"]


class ReplyRetargeted(SafeEvent, frozen=True):
    """A late result is told by another agent than the one that made the call.

    Attributes:
        told_by: the id of the agent that tells it.
    """

    type: Literal["reply_retargeted"] = "reply_retargeted"
    told_by: str


class ReplyDropped(SafeEvent, frozen=True):
    """A late result is told by nobody; the contexts and the history have it.

    Attributes:
        reason: ``"gone"``: its agent has left. ``"closing"``: the session closes.
    """

    type: Literal["reply_dropped"] = "reply_dropped"
    reason: Literal["gone", "closing"]


class ReplyRedelivered(SafeEvent, frozen=True):
    """A late reply was interrupted before anything of it was heard, and is offered again."""

    type: Literal["reply_redelivered"] = "reply_redelivered"
