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

    """

    type: Literal["handoff_not_applied"] = "handoff_not_applied"
    to_agent_id: str
    reason: Literal["interrupted", "cancelled", "ambiguous", "failed"]


class HandoffApplied(SafeEvent, frozen=True):
    """A handoff that livekit had given up was applied (`SafeOptions.interrupted_handoff`)."""

    type: Literal["handoff_applied"] = "handoff_applied"
    to_agent_id: str
