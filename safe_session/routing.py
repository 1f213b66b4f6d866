"""Where a late result goes: the route table, as one pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from .ledger import Scope
    from .policy import OnHandoff

Route: TypeAlias = Literal["deliver", "retarget", "hold", "drop"]

OwnerState: TypeAlias = Literal["current", "paused", "gone"]
"""Of the agent that made the call: it has the floor, an AgentTask of its own has it, or it has left."""

SessionState: TypeAlias = Literal["open", "handing off", "closing"]


def route(scope: Scope, owner: OwnerState, session: SessionState, on_handoff: OnHandoff) -> Route:
    """Where a late result goes.

    Args:
        scope: of the call.
        owner: the state of the agent that the call was made under.
        session: the state of the session.
        on_handoff: what the tool's policy says of a result whose agent has left.

    Returns:
        ``"deliver"``: the current agent tells it. ``"retarget"``: so it does, though it is not the one that
        made the call. ``"hold"``: it can't be said yet; ask again when a state has changed. ``"drop"``:
        nobody tells it; the contexts and the history have it.
    """
    if session == "closing":
        return "drop"
    if session == "handing off":
        return "hold"
    if owner == "current":
        return "deliver"
    if scope == "session":
        return "retarget"
    if owner == "paused":
        return "hold"
    return "retarget" if on_handoff == "retarget" else "drop"
