"""A drop-in `AgentSession` for livekit-agents that never loses a tool call and never repeats one.

from safe_session import SafeAgentSession as AgentSession
"""

from ._livekit import UnsupportedLivekitError
from .events import (
    CallCancelled,
    CallKept,
    CallNotRun,
    CallReleased,
    CallReplayed,
    CallShown,
    HandoffApplied,
    HandoffNotApplied,
    ReplyDropped,
    ReplyHeld,
    ReplyRedelivered,
    ReplyRetargeted,
    SafeEvent,
)
from .ledger import CallLedger, CallRecord
from .policy import SafeOptions, ToolPolicy, tool_policy
from .session import SafeAgentSession

__all__ = [
    "CallCancelled",
    "CallKept",
    "CallLedger",
    "CallNotRun",
    "CallRecord",
    "CallReleased",
    "CallReplayed",
    "CallShown",
    "HandoffApplied",
    "HandoffNotApplied",
    "ReplyDropped",
    "ReplyHeld",
    "ReplyRedelivered",
    "ReplyRetargeted",
    "SafeAgentSession",
    "SafeEvent",
    "SafeOptions",
    "ToolPolicy",
    "UnsupportedLivekitError",
    "tool_policy",
]
