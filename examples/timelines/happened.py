"""What happened in one call: what its tools really did, and what the session made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from livekit.agents import Agent, AgentSession
    from livekit.agents.llm import ChatContext, FunctionCallOutput
    from livekit.agents.voice import SpeechHandle

    from safe_session.testing import Inference

    from .timeline import Timeline, Tool


@dataclass(eq=False)
class Run:
    """One real run of a tool's body.

    Attributes:
        name: of the tool.
        does: what it does.
        argument: what it was given.
        call_id: of its call.
        owner: the agent under which the call was made.
        speech: the turn that it is of.
        scope: of the tool.
        began: when.
        ended: when, or None.
        how: it ended.
        given: what it gave, in words that no other run gives.
        reported: when it first reported, or None.
        missing: where its ending was not to be found as soon as it had ended.
    """

    name: str
    does: Tool
    argument: int
    call_id: str
    owner: Agent
    speech: SpeechHandle
    scope: Literal["activity", "session"]
    began: float
    ended: float | None = None
    how: Literal["done", "failed", "cancelled", ""] = ""
    given: str = ""
    reported: float | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def gives_agent(self) -> bool:
        return self.does.ends.startswith("agent")

    def endings_in(self, context: ChatContext) -> list[FunctionCallOutput]:
        """What the context holds of how its call ended, or of its progress if it holds no more, in order."""
        ids = {self.call_id, f"{self.call_id}_final"}
        return [i for i in context.items if i.type == "function_call_output" and i.call_id in ids]

    def __str__(self) -> str:
        ended = "..." if self.ended is None else f"{self.ended:.3f}"
        return f"{self.name}({self.argument}) [{self.call_id}, {self.began:.3f}-{ended} {self.how}]"


@dataclass(eq=False)
class Thought:
    """One inference.

    Attributes:
        number: counted from 0.
        agent: whose it was.
        inference: what it was shown.
        call_ids: of the calls that it made.
        asked: the call ids of the late results that it was asked to tell.
    """

    number: int
    agent: Agent
    inference: Inference
    call_ids: list[str]
    asked: list[str]

    @property
    def at(self) -> float:
        return self.inference.at

    def outputs_of(self, run: Run) -> list[str]:
        """What it was shown of the run, in order."""
        ids = {run.call_id, f"{run.call_id}_final"}
        return [
            i.output
            for i in self.inference.shown.items
            if i.type == "function_call_output"
            and (i.call_id in ids or i.call_id.startswith(f"{run.call_id}_update"))
        ]

    def knows_end_of(self, run: Run) -> bool:
        return bool(run.given) and any(run.given in output for output in self.outputs_of(run))

    def __str__(self) -> str:
        return f"inference {self.number} of {self.agent.id} at {self.at:.3f}"


@dataclass(eq=False)
class Reply:
    """What a speech handle stands for: a turn of the agent's, with its tools.

    Attributes:
        speech: the handle.
        began: when it was created.
        interrupted: when it was, or None.
        over: when the turn was over, or None.
    """

    speech: SpeechHandle
    began: float
    interrupted: float | None = None
    over: float | None = None


@dataclass(eq=False)
class Turn:
    """What the caller said or typed, in words that they say once."""

    words: str
    began: float
    ended: float | None = None
    speech: SpeechHandle | None = None


@dataclass(eq=False)
class Handoff:
    """One that the application asked for."""

    to: Agent
    asked: float


@dataclass(eq=False)
class Happened:
    """One call.

    Attributes:
        failures: when something failed for good, which may end the call.
        refusals: what was raised by what the caller or the application did, and when.
        replies: the turns of the agents', in the order of their creation.
    """

    timeline: Timeline
    session: AgentSession[Any]
    agents: dict[str, Agent] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    handoffs: list[Handoff] = field(default_factory=list)
    entered: list[tuple[Agent, float]] = field(default_factory=list)
    built_with: dict[Agent, list[str]] = field(default_factory=dict)
    events: list[tuple[float, Any]] = field(default_factory=list)
    failures: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    refusals: list[tuple[float, str]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    utterances: list[tuple[float, float]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    closed_by_itself: bool = False
    close_asked: float = 0.0
    close_took: float = 0.0
    left: list[str] = field(default_factory=list)

    @property
    def closing(self) -> float:
        """When the session began to close; if it did so by itself, the earliest that this may have been."""
        by_itself = any("closing due to unrecoverable error" in error for error in self.errors)
        failures = [at for at in self.failures if at <= self.close_asked]
        return failures[0] if by_itself and failures else self.close_asked

    def entered_after(self, handoff: Handoff) -> float | None:
        """When the agent that the application handed over to had the floor, if it came to that."""
        return next((at for who, at in self.entered if who is handoff.to and at >= handoff.asked), None)

    def is_handing_over(self, moment: float) -> bool:
        """Whether the application has asked for a handoff that is under way then."""
        return any(
            handoff.asked <= moment <= (self.entered_after(handoff) or self.close_asked)
            for handoff in self.handoffs
        )

    def thought_of(self, call_id: str) -> Thought | None:
        """The inference that made the call."""
        return next((thought for thought in self.thoughts if call_id in thought.call_ids), None)

    def reply_of(self, run: Run) -> Reply:
        """The turn whose tool ran."""
        return next(reply for reply in self.replies if reply.speech is run.speech)

    def emitted(self, kind: str) -> list[tuple[float, Any]]:
        return [(at, event) for at, event in self.events if event.type == kind]
