"""The agents that tools returned: handed over to, or given up, and the call's record says which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _livekit
from .context import HANDED_OVER
from .events import HandoffApplied, HandoffNotApplied

if TYPE_CHECKING:
    from livekit.agents import Agent, AgentSession

    from .keeper import CallKeeper
    from .ledger import CallRecord, Inference, Over

_NOT_APPLIED = "The handoff did not happen."
_WHY_NOT = {
    "interrupted": "The caller interrupted first. If it is still wanted, call this tool again.",
    "cancelled": "The application cancelled it.",
    "ambiguous": "More than one tool asked for one at the same time.",
    "failed": "The reply broke off first. If it is still wanted, call this tool again.",
    "left": "The agent that asked for it has left.",
    "closing": "The session ended first.",
}
WhyNot = Literal["interrupted", "cancelled", "ambiguous", "failed", "left", "closing"]


def returned_agent(record: CallRecord) -> Agent | None:
    """The agent that an ended call returned, and that nobody handed over to."""
    return record.body.handoff if record.ended and record.body is not None else None


class ReturnedAgents:
    """The handoffs that the tools of one session ask for by what they return."""

    def __init__(self, session: AgentSession[Any], keeper: CallKeeper) -> None:
        self._session = session
        self._keeper = keeper

    def handed_over_to(self, agent: Agent) -> None:
        """The session hands over to `agent`; if a call returned it, that is how the call ended."""
        for record in self._keeper.ledger:
            if record.body is not None and record.body.handoff is agent:
                record.body.handoff, record.body.handed_over = None, True
                self._keeper.commit(record)
                self._keeper.ledger.handed_off(record)

    def may_forget(self, record: CallRecord) -> bool:
        """Whether it is still to be decided if the handoff happens, or is forgotten and the call with it."""
        return self._keeper.options.interrupted_handoff == "forget" and returned_agent(record) is not None

    def cancelled(self, call_ids: set[str]) -> None:
        """A listener of ``function_tools_executed`` cancelled the handoff of that step."""
        for record in self._keeper.ledger:
            if record.call_id in call_ids and (agent := returned_agent(record)):
                self.give_up(record, agent, "cancelled")

    def step_ended(self, inference: Inference, over: Over) -> None:
        """The step that `inference` decided is over, and with it livekit's own handing over."""
        for record in inference.calls:
            # livekit, which knows of this step only, has said that it did not happen
            if over == "interrupted" and record.body is not None and record.body.handed_over:
                self._note_handed_over(record)
        returned = [record for record in inference.calls if returned_agent(record)]
        for record in returned:
            self.settle(record, over if len(returned) == 1 else "ambiguous")

    def settle(self, record: CallRecord, why: Literal["ambiguous"] | Over) -> None:
        """livekit did not hand over in the call's own step: give the handoff up, or apply it."""
        agent = returned_agent(record)
        if agent is None:
            return
        if _livekit.is_closing(self._session):
            self.give_up(record, agent, "closing")
        elif why == "done":
            # up to 1.6.x, livekit forgets a returned agent if a later tool of the step returns none
            self.apply(record, agent)
        elif why != "ambiguous" and self._keeper.options.interrupted_handoff == "apply":
            self.apply(record, agent)
        else:
            self.give_up(record, agent, why)

    def give_up(self, record: CallRecord, agent: Agent, why: WhyNot) -> None:
        """The handoff to `agent` that the call returned will not happen: the record says so."""
        body, output = record.body, record.output
        if body is None or output is None:
            return
        body.handoff = None
        note = f"{_NOT_APPLIED} {_WHY_NOT[why]}"
        # contexts hold this very object, so all of them are told
        if body.said:
            output.output, output.is_error = f"{body.said}\n({note})", False
        else:
            output.output, output.is_error, record.state = note, True, "failed"
        if why == "interrupted" and self._keeper.options.interrupted_handoff == "forget":
            self._keeper.forget(record)
        else:
            self._keeper.commit(record)
            self._keeper.push(record)  # livekit pushed what it knew of it before this was decided
        self._keeper.announce(HandoffNotApplied, record, to_agent_id=agent.id, reason=why)

    def apply(self, record: CallRecord, agent: Agent) -> None:
        """The handoff to `agent` that the call returned happens after all."""
        if record.body is not None:
            record.body.handoff = None
        self._note_handed_over(record)
        self._keeper.announce(HandoffApplied, record, to_agent_id=agent.id)
        self._keeper.ledger.handed_off(record)
        if not self._keeper.handoffs.is_paused(agent):  # or it has the floor again after its AgentTask
            self._session.update_agent(agent)

    def _note_handed_over(self, record: CallRecord) -> None:
        if record.output is not None and record.body is not None:
            record.output.output, record.output.is_error = record.body.said or HANDED_OVER, False
            self._keeper.commit(record)
