"""What is known of every call. The ledger is the truth; chat contexts are views of it.

Plain data: no event loop, and nothing of livekit's but the items that contexts are made of. Time here is
a count of what was told to the ledger, so that "before" and "after" are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from livekit.agents import Agent
    from livekit.agents.llm import FunctionCall, FunctionCallOutput

    from .policy import ToolPolicy

    CallItem: TypeAlias = FunctionCall | FunctionCallOutput

State = Literal["running", "released", "done", "failed", "cancelled", "unknown"]
Scope = Literal["activity", "session"]
Over = Literal["done", "interrupted", "failed"]

REMEMBERED_ENDINGS = 256
"""How many ended calls are remembered; every unfinished one is. Contexts keep all of them."""


@dataclass(eq=False)
class Inference:
    """One request to a model.

    Attributes:
        agent: whose inference it is.
        began: when it began.
        since: calls that ended after this moment (seconds since the epoch) may be lacking in its context.
        shown: the calls that it was shown, of those that were not settled when it began.
        calls: those that it made.
        response: the calls in its response so far, started or not; known of a realtime model's only.
        over: how its step ended, or None while that goes on; its tools may outlast it.

    """

    agent: Agent
    began: int
    since: float
    shown: frozenset[CallRecord]
    calls: list[CallRecord] = field(default_factory=list["CallRecord"])
    response: list[FunctionCall] = field(default_factory=list["FunctionCall"])
    over: Over | None = None


@dataclass(eq=False)
class Body:
    """What is known of the tool's own run, as opposed to what is told to models of it.

    Attributes:
        name: the tool's name.
        code: what runs, the same for every binding of the tool to an agent.
        arguments: the validated arguments, defaults included, without the run context.
        outcome: how the run ended, or None while it goes on.
        said: what the model is told of the result, apart from what became of the handoff.
        handoff: the agent that it returned, until it was handed over to, or given up.
        handed_over: whether the session has handed over to it.

    """

    name: str
    code: object
    arguments: object
    outcome: Literal["done", "failed", "cancelled"] | None = None
    said: str = ""
    handoff: Agent | None = None
    handed_over: bool = False

    def repeats(self, other: Body) -> bool:
        """Whether both are runs of one tool with the same arguments."""
        return (self.name, self.arguments) == (other.name, other.arguments) and self.code is other.code


@dataclass(eq=False)
class CallRecord:
    """One tool call of a model, from its start on.

    Attributes:
        call: the call as livekit reported it.
        owner: the agent that it was made under.
        speech_id: the speech that it belongs to.
        inference: the inference that made it, or None if it is not known.
        began: when it began.
        scope: whether it lives as long as its owner's activity, or as the session.
        state: ``running``, ``released``, then one of ``done``, ``failed``, ``cancelled``, ``unknown``.
        items: what contexts hold of it, in order: the call and its outputs.
        policy: of its tool.
        wording: the application's, for late replies.
        body: the run of the tool; None until it starts, and if it never does.
        twin: the call that stands for this one, if it was not run.
        audience: the agents whose stored context must hold its ending.
        settled: when an inference was first shown its ending, or None.
        shown_running: whether an inference was shown it as running.
        interrupted: whether it was released because the caller interrupted its turn.
        waiting: who is told when it ends, or is released.

    """

    call: FunctionCall
    owner: Agent
    speech_id: str
    inference: Inference | None
    began: int
    scope: Scope = "activity"
    state: State = "running"
    items: list[CallItem] = field(default_factory=list["CallItem"])
    policy: ToolPolicy | None = None
    wording: Any = None
    body: Body | None = None
    twin: CallRecord | None = None
    audience: set[Agent] = field(default_factory=set["Agent"])
    settled: int | None = None
    shown_running: bool = False
    interrupted: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def call_id(self) -> str:
        return self.call.call_id

    @property
    def ended(self) -> bool:
        return self.state not in {"running", "released"}

    @property
    def answer(self) -> FunctionCallOutput | None:
        """What the call itself was answered with: its output, or its first progress."""
        outputs = (item for item in self.items if item.type == "function_call_output")
        return next((output for output in outputs if output.call_id == self.call_id), None)

    @property
    def output(self) -> FunctionCallOutput | None:
        """The newest output, or None while the call runs."""
        return next((item for item in reversed(self.items) if item.type == "function_call_output"), None)


class CallLedger:
    """What is known of every call of one session."""

    def __init__(self) -> None:
        self._clock = itertools.count(1)
        # by the id of the call's item, as providers may give one call id several times
        self._unfinished: dict[str, CallRecord] = {}
        self._ended: dict[str, CallRecord] = {}
        self._unsettled: dict[str, CallRecord] = {}
        self._settled: dict[str, CallRecord] = {}  # in the order in which they were
        self._once: dict[str, list[CallRecord]] = {}
        self._inferences: dict[str, Inference] = {}

    def __iter__(self) -> Iterator[CallRecord]:
        """Every call that is remembered: the ended ones in the order of their ends, then the others."""
        yield from self._ended.values()
        yield from self._unfinished.values()

    def of(self, call: FunctionCall) -> CallRecord | None:
        """The record of that very call."""
        return self._unfinished.get(call.id) or self._ended.get(call.id)

    def get(self, call_id: str) -> CallRecord | None:
        """The newest call of that id; of those that run, one whose tool has ended or never started."""
        running = [record for record in self._unfinished.values() if record.call_id == call_id]
        answerable = [r for r in running if r.body is None or r.body.outcome is not None]
        if running:
            return (answerable or running)[-1]
        return next((r for r in reversed(self._ended.values()) if r.call_id == call_id), None)

    # -- inferences

    def begin_inference(
        self,
        agent: Agent,
        since: float,
        shown: Sequence[CallRecord],
        *,
        expecting: Sequence[CallRecord] = (),
        begun: Sequence[CallRecord] = (),
    ) -> Inference:
        """An inference begins, which is shown these of the calls that are not settled.

        Args:
            agent: whose inference it is.
            since: calls that ended after this moment (seconds since the epoch) may be lacking in its context.
            shown: how they ended, or that they run.
            expecting: the calls that it finds made and waits for; what it does not know is that they run.
            begun: those of which it is shown that they run, and not yet how they ended.
        """
        inference = Inference(agent, next(self._clock), since, frozenset((*shown, *begun)))
        for record in (*shown, *expecting):
            record.audience.add(agent)
            if not record.ended:
                record.shown_running = True
            elif record.settled is None:
                self._settle(record)
        return inference

    def spoken_in(self, speech_id: str, inference: Inference) -> None:
        """What `inference` gives is said in that speech."""
        self._inferences[speech_id] = inference

    def inference_of(self, speech_id: str) -> Inference | None:
        """The newest inference of that speech."""
        return self._inferences.get(speech_id)

    def speech_ended(self, speech_id: str) -> None:
        """No further inference of that speech will make a call."""
        self._inferences.pop(speech_id, None)

    def unsettled(self) -> list[CallRecord]:
        """The calls whose ending no inference was shown, then those that have none yet."""
        return [*self._unsettled.values(), *self._unfinished.values()]

    def settled_after(self, moment: float) -> list[CallRecord]:
        """The settled calls that ended after `moment` (seconds since the epoch)."""
        newer = itertools.takewhile(
            lambda record: record.items[-1].created_at > moment, reversed(self._ended.values())
        )
        return [record for record in newer if record.settled is not None]

    # -- calls

    def begin(self, call: FunctionCall, owner: Agent, speech_id: str) -> CallRecord:
        """A call begins."""
        inference = self._inferences.get(speech_id)
        record = CallRecord(call, owner, speech_id, inference, next(self._clock), audience={owner})
        if inference is not None:
            inference.calls.append(record)
        self._unfinished[call.id] = record
        return record

    def release(self, record: CallRecord, items: list[CallItem]) -> None:
        """The call goes on in the background; `items` are what contexts hold of it so far."""
        record.state, record.items = "released", items
        self._tell_waiting(record)

    def end(self, record: CallRecord, state: State, items: list[CallItem]) -> None:
        """The call ends; `items` are what contexts hold of it."""
        record.state, record.items, record.settled = state, items, None
        key = record.call.id
        self._unfinished.pop(key, None)
        self._ended.pop(key, None)
        self._settled.pop(key, None)
        self._ended[key] = self._unsettled[key] = record
        if len(self._ended) > REMEMBERED_ENDINGS:
            oldest = next(iter(self._ended))
            # what its inference was shown would keep each call before it in memory
            self._ended.pop(oldest).inference = None
            self._unsettled.pop(oldest, None)
            self._settled.pop(oldest, None)
        self._tell_waiting(record)

    def forget(self, record: CallRecord) -> None:
        """An ended call is to be as if it had never been made."""
        for calls in (self._ended, self._unsettled, self._settled):
            calls.pop(record.call.id, None)

    def handed_off(self, record: CallRecord) -> None:
        """The handoff that the call returned has happened: everyone can see its ending."""
        if record.ended and record.settled is None:
            self._settle(record)

    def remember_once(self, record: CallRecord) -> None:
        """Keep the call for as long as the conversation lasts (`ToolPolicy.repeat` is ``"once"``)."""
        self._once.setdefault(record.call.name, []).append(record)

    def unseen_twin(self, record: CallRecord) -> CallRecord | None:
        """The newest earlier call that `record` repeats without its model knowing of it (G3)."""
        made_by, body = record.inference, record.body
        if made_by is None or body is None:
            return None
        settled_since = itertools.takewhile(
            lambda other: other.settled is not None and other.settled > made_by.began,
            reversed(self._settled.values()),
        )
        newest_first = itertools.chain(
            reversed(self._unfinished.values()), reversed(self._unsettled.values()), settled_since
        )
        for other in newest_first:
            if (
                other.inference is not made_by
                and other not in made_by.shown
                and self._stands_for(other, body)
            ):
                return other
        return None

    def once_twin(self, record: CallRecord) -> CallRecord | None:
        """The earlier call of the conversation that `record` repeats, known or not."""
        body = record.body
        if body is None:
            return None
        return next((r for r in self._once.get(body.name, ()) if self._stands_for(r, body)), None)

    def _stands_for(self, record: CallRecord, body: Body) -> bool:
        if record.body is None or record.body is body or record.twin is not None:
            return False
        return record.state != "failed" and record.body.repeats(body)

    def _settle(self, record: CallRecord) -> None:
        record.settled = next(self._clock)
        self._unsettled.pop(record.call.id, None)
        if record.call.id in self._ended:  # else it is forgotten
            self._settled[record.call.id] = record

    @staticmethod
    def _tell_waiting(record: CallRecord) -> None:
        waiting, record.waiting = record.waiting, []
        for tell in waiting:
            tell()
