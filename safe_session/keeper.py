"""What is done about a call: it is written down, put into the contexts that must hold it, and announced.

Both reply paths and the executors tell a session's keeper what happens; it tells the ledger, and makes the
contexts and the history follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from livekit.agents.llm import FunctionCall, FunctionCallOutput

from . import _livekit, telemetry
from .context import CallContext, commit, show, stand_in_call, stand_in_output
from .events import CallKept, CallReplayed, CallShown, HandoffApplied, HandoffNotApplied
from .ledger import CallLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livekit.agents import Agent, AgentSession
    from livekit.agents.llm import ChatContext, ChatItem
    from livekit.agents.voice import SpeechHandle

    from .events import SafeEvent
    from .ledger import CallItem, CallRecord, Inference
    from .policy import SafeOptions

CANCELLED = "Cancelled before it ended. It may already have taken effect."
HANDOFF_NOT_APPLIED = "The handoff did not happen."
_WHY_NOT = {
    "interrupted": "The caller interrupted first. If it is still wanted, call this tool again.",
    "cancelled": "The application cancelled it.",
    "ambiguous": "More than one tool asked for one at the same time.",
    "failed": "The reply broke off first. If it is still wanted, call this tool again.",
}


def keeper_of(session: AgentSession[Any]) -> CallKeeper | None:
    """The keeper of a `SafeAgentSession`; None for any other session."""
    keeper = getattr(session, "keeper", None)
    return keeper if isinstance(keeper, CallKeeper) else None


class CallKeeper:
    """Keeps the calls of one session."""

    def __init__(self, session: AgentSession[Any], options: SafeOptions) -> None:
        self.ledger = CallLedger()
        self.options = options
        self._session = session

    # -- inferences

    def begin_inference(
        self, speech: SpeechHandle, agent: Agent, context: ChatContext
    ) -> tuple[Inference, ChatContext]:
        """An inference begins; returns it, and what it is shown in the place of `context` (G2)."""
        previous = self.ledger.inference_of(speech.id)
        if previous is None:
            self._listen(speech, agent)
        newest = context.items[-1].created_at if context.items else float("inf")
        unsettled, settled = self.ledger.unsettled(), self.ledger.settled_after(newest)
        shown: list[CallRecord] = []
        if unsettled or settled or (previous is not None and previous.shown):
            context, shown, lacked = show(context, agent, unsettled, settled)
            for record in lacked:
                self.announce(CallShown, record, shown_to=agent.id, as_running=not record.ended)
        return self.ledger.begin_inference(speech.id, agent, shown), context

    def end_inference(self, inference: Inference, *, over: Literal["done", "interrupted", "failed"]) -> None:
        """The step that the inference decided is over: what it left open is settled."""
        inference.over = over
        returned = [r for r in self.ledger if r.inference is inference and self._awaits_handoff(r)]
        for record in returned:
            self._settle_handoff(record, over if len(returned) == 1 else "ambiguous")

    def _listen(self, speech: SpeechHandle, agent: Agent) -> None:
        def on_item(item: ChatItem) -> None:
            if isinstance(item, FunctionCall):
                self.ledger.begin(item, agent, speech.id)
            elif isinstance(item, FunctionCallOutput):
                self.answered(item, agent, speech)

        _livekit.on_item_added(speech, on_item)
        speech.add_done_callback(lambda speech: self.ledger.speech_ended(speech.id))

    # -- calls

    def answered(self, output: FunctionCallOutput, owner: Agent, speech: SpeechHandle) -> None:
        """Livekit reports the output of a call: its ending, or its first progress."""
        record = self.ledger.get(output.call_id)
        if record is None or record.ended:
            # livekit starts no tool for an unknown name or unreadable arguments, and names no call
            record = self.ledger.begin(stand_in_call(output), owner, speech.id)
        body = record.body
        items = [record.call, output]
        if body is not None and body.outcome is None:
            self.ledger.release(record, items)
        elif body is None:
            self.ledger.end(record, "failed" if output.is_error else "done", items)
        else:
            if body.outcome == "cancelled":
                output.output, output.is_error = CANCELLED, True
            body.said = output.output
            self.ledger.end(record, body.outcome or "done", items)
        self._commit(record)
        if record.ended and (speech.interrupted or speech.done()):
            self.announce(CallKept, record, state=record.state)
        if record.inference is not None and record.inference.over and self._awaits_handoff(record):
            self._settle_handoff(record, record.inference.over)

    def progressed(self, record: CallRecord, items: list[CallItem]) -> None:
        """More is known of a released call: further progress, or its ending."""
        items = [*record.items, *items]
        if record.body is not None and record.body.outcome is not None:
            self.ledger.end(record, record.body.outcome, items)
        else:
            self.ledger.release(record, items)
        self._commit(record)

    def went_silent(self, record: CallRecord, speech: SpeechHandle) -> None:
        """The tool is over, and whatever livekit has to say of it has been said: nothing goes unanswered."""
        outcome = record.body.outcome if record.body is not None else "failed"
        if record.ended or outcome is None:
            return
        text = CANCELLED if outcome == "cancelled" else ""
        output = stand_in_output(record.call, text, is_error=outcome != "done")
        if record.state == "released":
            self.progressed(record, [output])
        else:
            self.answered(output, record.owner, speech)

    def replayed(self, record: CallRecord, twin: CallRecord, reason: Literal["unseen", "once"]) -> None:
        """The call is not run: `twin` stands for it (G3)."""
        record.twin = twin
        self.announce(CallReplayed, record, twin_id=twin.call_id, reason=reason)

    # -- handoffs

    def handed_over_to(self, agent: Agent) -> None:
        """The session hands over to `agent`; if a call returned it, that is how the call ended."""
        for record in self.ledger:
            if record.body is not None and record.body.handoff is agent:
                self.ledger.handed_off(record)

    def handoff_cancelled(self, call_ids: set[str]) -> None:
        """A listener of ``function_tools_executed`` cancelled the handoff of that step."""
        for record in self.ledger:
            if record.call_id in call_ids and self._awaits_handoff(record):
                self._give_up_handoff(record, "cancelled")

    @staticmethod
    def _awaits_handoff(record: CallRecord) -> bool:
        return record.ended and record.body is not None and record.body.handoff is not None

    def _settle_handoff(
        self, record: CallRecord, why: Literal["done", "interrupted", "failed", "ambiguous"]
    ) -> None:
        """Livekit did not hand over: give the handoff up, or apply it."""
        body, output = record.body, record.output
        if body is None or body.handoff is None or output is None:
            return
        # 1.6.0 to 1.6.x forget a returned agent if a later tool of the step returns none ("done")
        apply = why == "done" or self.options.interrupted_handoff == "apply"
        if why == "ambiguous" or not apply:
            self._give_up_handoff(record, why)
            return
        output.output, output.is_error = body.said, False
        self.announce(HandoffApplied, record, to_agent_id=body.handoff.id)
        self._session.update_agent(body.handoff)

    def _give_up_handoff(self, record: CallRecord, why: Any) -> None:
        body, output = record.body, record.output
        if body is None or body.handoff is None or output is None:
            return
        # contexts hold this very object, so all of them are told
        note = f"{HANDOFF_NOT_APPLIED} {_WHY_NOT[why]}"
        if body.said:
            output.output, output.is_error = f"{body.said}\n({note})", False
        else:
            output.output, output.is_error, record.state = note, True, "failed"
        self.announce(HandoffNotApplied, record, to_agent_id=body.handoff.id, reason=why)
        body.handoff = None

    # -- what follows from the ledger

    def _commit(self, record: CallRecord) -> None:
        contexts = [_livekit.stored_context(agent) for agent in record.audience]
        commit(record.items, [*contexts, self._session.history])

    def announce(self, kind: Callable[..., SafeEvent], record: CallRecord, **fields: Any) -> None:
        """Emit an event about a call, and report it."""
        event = kind(call_id=record.call_id, tool=record.call.name, agent_id=record.owner.id, **fields)
        telemetry.report(event)
        self._session.emit(event.type, event)  # type: ignore[arg-type]  # livekit's own names are a Literal


def hold_each_call_once(context: ChatContext) -> CallContext:
    """The same context, over the same list of items, as one that holds each call once."""
    return context if isinstance(context, CallContext) else CallContext(context.items)
