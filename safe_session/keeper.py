"""What is done about a call: it is written down, put into the contexts that must hold it, and announced.

Both reply paths and the executors tell a session's keeper what happens; it tells the ledger, and makes the
contexts, the history and the delivery of late results follow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from livekit.agents import ConversationItemAddedEvent
from livekit.agents.llm import ChatContext, FunctionCall, FunctionCallOutput

from . import _livekit, faults, telemetry
from .context import (
    CANCELLED,
    NO_RESULT,
    UNKNOWN,
    commit,
    inherit,
    is_shown_running,
    is_stand_in,
    lacking,
    newest_moment,
    not_run_output,
    show,
    stand_in_call,
    stand_in_final,
    stand_in_output,
    unanswered,
)
from .delivery import Delivery, LateResult
from .events import (
    CallCancelled,
    CallKept,
    CallNotRun,
    CallReplayed,
    CallShown,
)
from .handoff import Handoffs
from .ledger import CallLedger
from .returned import ReturnedAgents, returned_agent
from .runs import Runs
from .server import SafeRealtimeSession

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from livekit.agents import Agent, AgentSession, SpeechCreatedEvent
    from livekit.agents.llm import ChatItem, ChatMessage, RealtimeSession
    from livekit.agents.voice import SpeechHandle

    from .context import NotRun
    from .events import SafeEvent
    from .ledger import CallItem, CallRecord, Inference, Over, State
    from .policy import SafeOptions


def keeper_of(session: AgentSession[Any]) -> CallKeeper | None:
    """The keeper of a `SafeAgentSession`; None for any other session."""
    keeper = getattr(session, "keeper", None)
    return keeper if isinstance(keeper, CallKeeper) else None


class CallKeeper:
    """Keeps the calls of one session.

    Attributes:
        ledger: what is known of every call.
        options: the session's.
        handoffs: who has the floor, and who is to have it.
        runs: the tools that run.
        returned: the agents that tools returned.
    """

    def __init__(self, session: AgentSession[Any], options: SafeOptions) -> None:
        self.ledger = CallLedger()
        self.options = options
        self.handoffs = Handoffs(session)
        self.runs = Runs(self)
        self.returned = ReturnedAgents(session, self)
        self._delivery = Delivery(session, self, self.handoffs)
        self._session = session
        self._speeches: set[SpeechHandle] = set()
        session.on("speech_created", self._on_speech)

    # -- inferences

    def begin_inference(
        self, speech: SpeechHandle, agent: Agent, context: ChatContext
    ) -> tuple[Inference, ChatContext]:
        """An inference begins; returns it, and what it is shown in the place of `context` (G2)."""
        previous = self.ledger.inference_of(speech.id)
        # livekit makes a later step's context from that of the first, so it is no newer in what it holds
        since = previous.since if previous is not None else newest_moment(context)
        unsettled = [record for record in self.ledger.unsettled() if not self.returned.may_forget(record)]
        records = [*unsettled, *self.ledger.settled_after(since)]
        marked = previous is not None and bool(previous.shown)
        shown: list[CallRecord] = []
        if records or marked:
            context, shown, lacked = show(context, agent, records, marked=marked)
            for record in lacked:
                self.announce(CallShown, record, shown_to=agent.id, as_running=not record.ended)
        inference = self._begin(agent, since, shown)
        self.says(speech, agent, inference)
        return inference, context

    def begin_generation(self, agent: Agent, connection: RealtimeSession[Any]) -> Inference:
        """A realtime model begins to generate: it is shown what its server's context holds now."""
        records = self.ledger.unsettled()
        if not records:
            return self._begin(agent, math.inf, [])
        server = connection.chat_ctx
        open_calls = unanswered(server, records)
        _, shown, lacked = show(server, agent, _without(open_calls, records), marked=True)
        known = [each for each in shown if each not in lacked or is_shown_running(server, each)]
        # how these ended is on its way to the server
        begun = [each for each in lacked if each.ended and each.answer in server.items]
        return self._begin(agent, math.inf, known, expecting=open_calls, begun=begun)

    def _begin(
        self,
        agent: Agent,
        since: float,
        shown: Sequence[CallRecord],
        **known: Sequence[CallRecord],
    ) -> Inference:
        """An inference begins; whoever is shown how a call ended knows it from then on (G7)."""
        new = [record for record in shown if record.ended and agent not in record.audience]
        inference = self.ledger.begin_inference(agent, since, shown, **known)
        for record in new:
            with telemetry.guarded("remember a call that was shown", call_id=record.call_id):
                self.commit(record)
        return inference

    def says(self, speech: SpeechHandle, agent: Agent, inference: Inference) -> None:
        """What `inference` gives is said in `speech`."""
        if self.ledger.inference_of(speech.id) is None:
            self._listen(speech, agent)
        self.ledger.spoken_in(speech.id, inference)

    def end_inference(self, inference: Inference, *, over: Over) -> None:
        """The step that the inference decided is over: what it left open is settled."""
        inference.over = over
        self.handoffs.step_ended(inference.agent)
        self.returned.step_ended(inference, over)

    def _listen(self, speech: SpeechHandle, agent: Agent) -> None:
        def on_item(item: ChatItem) -> None:
            with telemetry.guarded("keep a call", speech_id=speech.id):
                if isinstance(item, FunctionCall):
                    faults.point("record.before")
                    self.ledger.begin(item, agent, speech.id)
                    faults.point("record.after")
                elif isinstance(item, FunctionCallOutput):
                    self.answered(item, agent, speech)

        _livekit.on_item_added(speech, on_item)
        self.runs.release_when_interrupted(speech)
        speech.add_done_callback(lambda speech: self.ledger.speech_ended(speech.id))

    def _on_speech(self, event: SpeechCreatedEvent) -> None:
        self._speeches.add(event.speech_handle)
        event.speech_handle.add_done_callback(self._speeches.discard)

    def session_closed(self) -> None:
        """Up to 1.8.9, what still waits for its turn to speak does so for ever."""
        for speech in list(self._speeches):
            _livekit.fail(speech, RuntimeError("the session closed before this was said"))

    # -- calls

    def answered(self, output: FunctionCallOutput, owner: Agent, speech: SpeechHandle) -> None:
        """livekit reports the output of a call: its ending, or its first progress."""
        record = self.ledger.get(output.call_id)
        if record is not None and record.ended and record.answer is None:
            self._answered_last(record, output)
            return
        if record is None or (record.ended and not is_stand_in(record.items[-1])):
            # livekit starts no tool for an unknown name or unreadable arguments, and names no call
            step = self.ledger.inference_of(speech.id)
            call = self._responded(output, step) or stand_in_call(output)
            record = self.ledger.begin(call, owner, speech.id)
        # a call that is released just as it reports may have reported already
        reported = [i for i in record.items if i.call_id != record.call_id and not is_stand_in(i)]
        items: list[CallItem] = [record.call, output, *reported]
        if record.state == "unknown":
            self._note_end(record, "unknown", items)
        elif record.body is not None and (
            record.body.outcome is None or _livekit.has_progressed(record.call)
        ):
            self._note_release(record, items)
        else:
            self._ended_in_step(record, output, items, speech)
        if speech.interrupted or not self._livekit_pushes(record):
            self.push(record)

    def _ended_in_step(
        self, record: CallRecord, output: FunctionCallOutput, items: list[CallItem], speech: SpeechHandle
    ) -> None:
        self._end(record, output, items)
        if record.inference is not None and record.inference.over is not None:
            self.returned.settle(record, record.inference.over)
        if speech.interrupted or speech.done():
            self.announce(CallKept, record, state=record.state)
            if record.shown_running and output.output:
                self._deliver(record, output)  # an inference was told to expect it, and this turn is over

    def not_run(self, call: FunctionCall, owner: Agent, why: NotRun, *, speech_id: str) -> None:
        """livekit does not start the tool of a realtime model's call, which would wait for an output."""
        if self.ledger.of(call) is not None:
            return
        record = self.ledger.begin(call, owner, speech_id)
        self._note_end(record, "failed", [call, not_run_output(call, why)])
        self.announce(CallNotRun, record, reason=why)
        self.push(record)

    def named(self, calls: Sequence[FunctionCall]) -> None:
        """livekit names the calls of a step at its end; until then, some of them have a stand-in."""
        for call in calls:
            record = self.ledger.get(call.call_id)
            if record is not None and record.items and is_stand_in(record.items[0]):
                record.items = [call, *record.items[1:]]
                self.commit(record)

    def _answered_last(self, record: CallRecord, output: FunctionCallOutput) -> None:
        """The first progress of a call is reported after its ending, if the tool ends right upon it."""
        output.created_at = record.call.created_at  # contexts are in the order of creation
        self._note_end(record, record.state, [record.call, output, *record.items])

    def progressed(
        self, record: CallRecord, items: list[CallItem], *, tell: bool
    ) -> asyncio.Task[None] | None:
        """More is known of a released call: further progress, or its ending.

        Returns:
            The task that tells it, if it is to be told.
        """
        output = items[-1]
        if not isinstance(output, FunctionCallOutput):
            return None
        items = [*(item for item in record.items if not is_stand_in(item)), *items]
        if record.body is None or record.body.outcome is None:
            self._note_release(record, items)
            return self._deliver(record, output, is_progress=True) if tell else None
        self._end(record, output, items)
        handoff, record.body.handoff = record.body.handoff, None
        if handoff is not None and record.interrupted and self.options.interrupted_handoff != "apply":
            self.returned.give_up(record, handoff, "interrupted")
            handoff = None
        elif handoff is not None:
            self.commit(record)
        elif not output.output and not tell:
            # what stands before it in the contexts says that the tool runs
            output.output = NO_RESULT
        if tell or handoff is not None:
            return self._deliver(record, output if tell else None, handoff=handoff)
        return None

    def went_silent(self, record: CallRecord, speech: SpeechHandle) -> None:
        """The tool is over, and whatever livekit says of it has been said: nothing goes unanswered."""
        if record.ended or record.body is None:
            return
        is_error = record.body.outcome != "done"
        if has_gone_on(record):
            self.progressed(record, stand_in_final(record.call, "", is_error=is_error), tell=False)
        else:
            self.answered(stand_in_output(record.call, "", is_error=is_error), record.owner, speech)

    def lost(self, record: CallRecord) -> None:
        """The tool could not be stopped: it is not known how the call ends, unless it comes to say so."""
        if record.state == "released":
            ending = [*record.items, *stand_in_final(record.call, UNKNOWN, is_error=True)]
        else:
            ending = [record.call, stand_in_output(record.call, UNKNOWN, is_error=True)]
        self._note_end(record, "unknown", ending)

    def replayed(self, record: CallRecord, twin: CallRecord, reason: Literal["unseen", "once"]) -> None:
        """The call is not run: `twin` stands for it (G3)."""
        record.twin = twin
        self.announce(CallReplayed, record, twin_id=twin.call_id, reason=reason)

    def _end(self, record: CallRecord, output: FunctionCallOutput, items: list[CallItem]) -> None:
        body = record.body
        if body is None:
            self._note_end(record, "failed" if output.is_error else "done", items)
            return
        if body.outcome == "cancelled":
            output.output, output.is_error = CANCELLED, True
            self.announce(CallCancelled, record)
        body.said = output.output
        self._note_end(record, body.outcome or "done", items)

    def _note_release(self, record: CallRecord, items: list[CallItem]) -> None:
        faults.point("record.before")
        self.ledger.release(record, items)
        faults.point("record.after")
        self.commit(record)

    def _note_end(self, record: CallRecord, state: State, items: list[CallItem]) -> None:
        faults.point("record.before")
        self.ledger.end(record, state, items)
        faults.point("record.after")
        self.commit(record)

    def _deliver(
        self,
        record: CallRecord,
        output: FunctionCallOutput | None,
        *,
        is_progress: bool = False,
        handoff: Agent | None = None,
    ) -> asyncio.Task[None]:
        return self._delivery.add(LateResult(record, output, is_progress=is_progress, handoff=handoff))

    # -- what the caller said

    def pass_on(self, heard: list[ChatMessage]) -> None:
        """Nobody answers what the caller said to a realtime model's server: whoever follows does (G8).

        Args:
            heard: what the server has transcribed of it, and will.
        """
        heir = self.handoffs.next_to_serve()
        if heir is not None and self.handoffs.session_state() != "closing":
            heir.arrivals.append(lambda: self._answer(heard, heir.activity.agent))

    def _answer(self, heard: list[ChatMessage], agent: Agent) -> None:
        stored, history = _livekit.stored_context(agent), self._session.history
        stored.insert(lacking(heard, stored))
        for message in lacking(heard, history):
            history.insert(message)
            self._session.emit("conversation_item_added", ConversationItemAddedEvent(item=message))
        connection = _livekit.realtime_session_of(agent)
        if isinstance(connection, SafeRealtimeSession):
            connection.owe(heard)
        self._session.generate_reply()

    # -- contexts

    def remember(self, record: CallRecord, agent: Agent) -> None:
        """From now on, the stored context of `agent` holds what is known of the call (G7)."""
        if agent not in record.audience:
            record.audience.add(agent)
            self.commit(record)

    def inherit(self, agent: Agent, previous: Agent) -> None:
        """`agent` follows on `previous`: it knows what it will tell, and keeps its context's calls (G7)."""
        context, theirs = _livekit.stored_context(agent), _livekit.stored_context(previous)
        kept = _livekit.names_of(self._session.tools)
        is_built_from_another = inherit(context, theirs, self._session.history, kept=kept)
        held = {item.id for item in context.items}
        for record in self.ledger:
            goes_on = not record.ended and is_built_from_another and previous in record.audience
            if goes_on or not held.isdisjoint([record.call.id, *(item.id for item in record.items)]):
                self.remember(record, agent)  # all of a call, or nothing
        self._delivery.introduce(agent)

    def inherit_open_calls(self, agent: Agent, previous: Agent) -> None:
        """`agent` talks to the server that served `previous`, which still knows the calls of then."""
        for record in self.ledger.unsettled():
            if previous in record.audience:
                self.remember(record, agent)

    def completed(self, context: ChatContext, agent: Agent) -> ChatContext:
        """What a realtime model's server is told in the place of `context` (G2)."""
        records = self.ledger.unsettled()
        # what is told of a returned agent depends on whether it is handed over to
        undecided = [record for record in records if returned_agent(record)]
        premature = {record.items[-1].id for record in undecided}
        context = ChatContext([item for item in context.items if item.id not in premature])
        records = _without([*undecided, *unanswered(context, records)], records)
        return show(context, agent, records, marked=True)[0]

    def commit(self, record: CallRecord) -> None:
        """Put what is known of the call where it belongs: into stored contexts, the history, on servers."""
        faults.point("commit.before")
        if not self.returned.may_forget(record):
            commit(record.items, self._contexts_of(record))
        faults.point("commit.after")
        if returned_agent(record) is None:
            for connection in self._connections_of(record):
                connection.owe(record.items)

    def forget(self, record: CallRecord) -> None:
        """Nothing holds the call any more, but for a realtime model's server, which waits for its output."""
        for connection in self._connections_of(record):
            connection.owe(record.items)
        ids = {item.id for item in record.items}
        for context in self._contexts_of(record):
            context.items[:] = [item for item in context.items if item.id not in ids]
        self.ledger.forget(record)

    def _contexts_of(self, record: CallRecord) -> list[ChatContext]:
        return [*(_livekit.stored_context(agent) for agent in record.audience), self._session.history]

    def push(self, record: CallRecord) -> None:
        """Tell the servers what they are owed without waiting for an occasion."""
        for connection in self._connections_of(record):
            connection.push()

    def _connections_of(self, record: CallRecord) -> list[SafeRealtimeSession]:
        """The connections to the servers whose models are to know of the call."""
        connections = (_livekit.realtime_session_of(agent) for agent in record.audience)
        return [each for each in connections if isinstance(each, SafeRealtimeSession)]

    def _livekit_pushes(self, record: CallRecord) -> bool:
        """Whether livekit is about to push the outputs of the call's step, all of which are there."""
        step = record.inference
        return step is not None and step.over is None and all(call.items for call in step.calls)

    @staticmethod
    def _responded(output: FunctionCallOutput, inference: Inference | None) -> FunctionCall | None:
        """The call that `output` answers, if it is known from the model's response."""
        response = inference.response if inference is not None else []
        return next((call for call in reversed(response) if call.call_id == output.call_id), None)

    def announce(self, kind: Callable[..., SafeEvent], record: CallRecord, **fields: Any) -> None:
        """Emit an event about a call, and report it."""
        event = kind(call_id=record.call_id, tool=record.call.name, agent_id=record.owner.id, **fields)
        telemetry.report(event)
        emit: Any = self._session.emit  # typed for livekit's own events only
        emit(event.type, event)


def has_gone_on(record: CallRecord) -> bool:
    """Whether the call's turn has gone on without its result; livekit may not have reported that yet."""
    return record.state == "released" or _livekit.has_progressed(record.call)


def _without(left_out: list[CallRecord], records: list[CallRecord]) -> list[CallRecord]:
    return [record for record in records if record not in left_out]
