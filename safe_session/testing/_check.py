"""Whether every tool call is where it has to be, once, with one output."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from livekit.agents import llm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from livekit.agents import Agent, AgentSession

Kind = Literal[
    "call_without_output",
    "output_without_call",
    "call_twice",
    "output_twice",
    "missing_in_history",
    "missing_in_agents",
]


@dataclass(frozen=True)
class Violation:
    """Something that is wrong with one tool call in one place.

    Attributes:
        kind: What is wrong.
        where: "history", or the id of the agent in whose context it is wrong.
        call_id: The call's id.
        tool: The tool's name ("" where only an output without a name is left of it).
        detail: The same in words.

    """

    kind: Kind
    where: str
    call_id: str
    tool: str
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.tool or '?'} ({self.call_id}): {self.detail}"


def check_guarantees(session: AgentSession[Any], *agents: Agent) -> list[Violation]:
    """List what is wrong with the tool calls in a session's history and in its agents' contexts.

    In each of them every call has exactly one output and every output its call; and a call that is in an
    agent's context is in the history too. Ask when nothing runs: a call that still runs has no output yet.

    Args:
        session: The session, running or closed.
        agents: The agents to look at; by default the current one, if there is one. If they are given,
            they count as all there were: a call of the history that none of them has is a violation.

    Returns:
        The violations, those of the history first. Empty if all is well.

    """
    history = session.history.items
    looked_at = agents or _current_agent(session)
    violations = violations_in("history", history)
    for agent in looked_at:
        violations += violations_in(agent.id, agent.chat_ctx.items)
        violations += _missing(
            history,
            agent.chat_ctx.items,
            where=agent.id,
            kind="missing_in_history",
            detail="is not in the history",
        )
    if agents:
        known = [item for agent in agents for item in agent.chat_ctx.items]
        violations += _missing(
            known, history, where="history", kind="missing_in_agents", detail="is in no agent's context"
        )
    return violations


def violations_in(where: str, items: Sequence[llm.ChatItem]) -> list[Violation]:
    """List what is wrong with the calls and outputs within one list of items."""
    calls = Counter(item.call_id for item in items if isinstance(item, llm.FunctionCall))
    outputs = Counter(item.call_id for item in items if isinstance(item, llm.FunctionCallOutput))
    found: list[Violation] = []
    for call_id, tool in _names(items).items():
        made, ended = calls[call_id], outputs[call_id]
        if made > 1:
            found.append(Violation("call_twice", where, call_id, tool, f"the call is there {made} times"))
        if ended > 1:
            found.append(
                Violation("output_twice", where, call_id, tool, f"the output is there {ended} times")
            )
        if not ended:
            found.append(Violation("call_without_output", where, call_id, tool, "the call has no output"))
        if not made:
            found.append(Violation("output_without_call", where, call_id, tool, "the output has no call"))
    return found


def _missing(
    known: Iterable[llm.ChatItem], items: Iterable[llm.ChatItem], *, where: str, kind: Kind, detail: str
) -> list[Violation]:
    """Give a violation for each call of `items` that is not among the `known` ones."""
    ids = {item.call_id for item in known if isinstance(item, llm.FunctionCall)}
    calls = {item.call_id: item.name for item in items if isinstance(item, llm.FunctionCall)}
    return [
        Violation(kind, where, i, name, f"the call {detail}") for i, name in calls.items() if i not in ids
    ]


def _names(items: Iterable[llm.ChatItem]) -> dict[str, str]:
    """Map every call id to its tool's name, in the order of first appearance."""
    names: dict[str, str] = {}
    for item in items:
        if isinstance(item, llm.FunctionCall | llm.FunctionCallOutput):
            names[item.call_id] = names.get(item.call_id) or item.name
    return names


def _current_agent(session: AgentSession[Any]) -> tuple[Agent, ...]:
    try:
        return (session.current_agent,)
    except RuntimeError:  # not started, or closed
        return ()
