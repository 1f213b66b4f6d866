"""What the timelines are made of: a host whose tools write down what they really did, a model that makes a
call unless it is shown that it was made, and a scene in which a caller talks to both.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, RunContext, function_tool
from livekit.agents.llm import ChatContext, FunctionCall, FunctionCallOutput

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import (
    Answer,
    Call,
    Inference,
    Line,
    RealtimeInference,
    ScriptedModel,
    ScriptedRealtimeModel,
    Violation,
    check_guarantees,
)

WORD = 0.25
"""Seconds that a word takes: the caller's to say or to type, the model's to stream, the agent's to speak."""

either_path = pytest.mark.parametrize("medium", ["text", "realtime"])
"""For a timeline that one medium of each path is enough for."""

spoken = pytest.mark.parametrize("medium", ["voice", "realtime"])
"""For a timeline in which it matters how long the caller or the agent speaks."""

BOOK = Call("book", {"people": 6})
NOTIFY = Call("notify", {"number": "555"})
CHARGE = Call("charge", {"euros": 20})


@dataclass
class Run:
    """One real run of a tool's body."""

    tool: str
    what: str
    began: float
    ended: float | None = None
    given: object = None


class Host(Agent):
    """A host with three tools.

    Attributes:
        runs: The runs of its tools, in the order of their starts.

    Args:
        takes: Seconds that a tool takes; half a second if it isn't named.
        then: What a tool does at its very end, before it returns: its result is the tool's, if there is one.
        **kwargs: Whatever an `Agent` takes.

    """

    def __init__(
        self,
        *,
        takes: Mapping[str, float] | None = None,
        then: Mapping[str, Callable[[], Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"instructions": "You are the host.", **kwargs})
        self.takes = dict(takes or {})
        self.then = dict(then or {})
        self.runs: list[Run] = []

    @property
    def did(self) -> list[str]:
        """What its tools have done, in the order in which they began it."""
        return [run.what for run in self.runs]

    async def work(self, tool: str, what: str) -> Any:
        run = Run(tool, what, began=now())
        self.runs.append(run)
        await asyncio.sleep(self.takes.get(tool, 0.5))
        given = self.then[tool]() if tool in self.then else None
        run.ended, run.given = now(), given if given is not None else f"{what} is done"
        return run.given

    @function_tool
    async def book(self, ctx: RunContext, people: int, name: str = "Miller") -> Any:
        """Book a table."""
        return await self.work("book", f"book {people} {name}")

    @function_tool
    async def notify(self, number: str) -> Any:
        """Send a message."""
        return await self.work("notify", f"notify {number}")

    @function_tool
    async def charge(self, euros: int) -> Any:
        """Charge a card."""
        return await self.work("charge", f"charge {euros}")


def diligent(*wanted: Call, says: str = "One moment, please, I do it.", **how: Any) -> ScriptedModel:
    """A model that makes each of these calls unless it is shown that it was made.

    It makes them first and then streams a text, at the pace of speech unless `how` (an `Answer`'s options)
    says otherwise.
    """

    def decide(shown: ChatContext) -> Answer:
        options = {"pace": WORD, "calls_first": True, **how}
        known = [(c.name, json.loads(c.arguments)) for c in calls_in(shown)]
        missing = [call for call in wanted if (call.name, call.arguments) not in known]
        if missing:
            return Answer(says, missing, **options)
        return Answer("All is done now, thank you.", **options)

    return ScriptedModel(decide)


class Scene:
    """A call: ``async with stage(model, agent) as call``. Its end is a check that all calls were kept (G1).

    It is also a check that every inference was shown what its agent's tools had done by then (G2).

    Args:
        session_class: `SafeAgentSession` or `AgentSession`.
        medium: "text": the caller types, which interrupts, and has the answer at once. "voice": on a `Line`.
            "realtime": on a `Line`, to a realtime model that plays the same script and hears for itself.
        model: The session's model.
        agent: The first agent.
        safe: The options, if the session is a safe one.
        interrupts: Whether the caller interrupts by speaking or typing; if not, the agent talks on.
        preemptive: See `Line.options`.
        forgets: Not every inference knows all that the first agent did: its context is trimmed, or another's.
        **kwargs: Whatever an `AgentSession` takes.

    """

    def __init__(  # noqa: PLR0913 - a scene is all of these
        self,
        session_class: type[AgentSession],
        medium: str,
        model: ScriptedModel,
        agent: Agent,
        *,
        safe: SafeOptions | None = None,
        interrupts: bool = True,
        preemptive: bool = False,
        forgets: bool = False,
        **kwargs: Any,
    ) -> None:
        self.model = model
        self.agent = agent
        self.realtime = realtime_model(model, interrupts=interrupts) if medium == "realtime" else None
        self.line = Line(words_per_second=1 / WORD) if medium != "text" else None
        self.interrupts = interrupts
        self.forgets = forgets
        if self.line is not None:
            kwargs = {**self.line.options(preemptive=preemptive, realtime=medium == "realtime"), **kwargs}
            kwargs["turn_handling"]["interruption"]["enabled"] = interrupts
            if self.realtime is not None and not interrupts:
                kwargs["turn_handling"]["turn_detection"] = "manual"  # a server's own can't be kept from it
        if issubclass(session_class, SafeAgentSession):
            kwargs["safe"] = safe
        self.session = session_class(llm=self.realtime or model, **kwargs)
        if self.line is not None:
            self.line.connect(self.session)

    async def __aenter__(self) -> "Scene":
        await self.session.start(self.agent)
        self._began = now()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            await self.session.aclose()

    def check(self) -> None:
        """Check that every call was kept, and known to each inference that began after it."""
        assert [str(violation) for violation in self.violations()] == []
        for inference in self.inferences:
            assert settled(inference), "an inference was shown a call without its end, or something twice"
            if not self.forgets and isinstance(self.agent, Host):
                assert [run for run in self.agent.runs if not knows(inference, run)] == []
        assert self.realtime is None or self.realtime.server.unanswered_calls == []

    def violations(self) -> list[Violation]:
        first = [v for v in check_guarantees(self.session, self.agent) if v.where == self.agent.id]
        return [*check_guarantees(self.session), *first]

    @property
    def now(self) -> float:
        """The second of the call."""
        return now() - self._began

    async def at(self, second: float) -> None:
        """Wait until that second of the call."""
        await asyncio.sleep(self._began + second - now())

    async def says(self, text: str = "Six!") -> None:
        """The caller says something, or types it and interrupts; it takes the time of its words."""
        if self.realtime is not None and self.interrupts:
            await self.realtime.server.hear(text)
            return
        if self.line is not None and self.realtime is None:
            await self.line.caller.say(text)
            return
        await asyncio.sleep(len(text.split()) * WORD)
        if self.interrupts:
            self.session.interrupt()
        self.session.generate_reply(user_input=text)

    # -- what became of it

    @property
    def inferences(self) -> list[Inference]:
        return self.model.inferences

    @property
    def stored(self) -> list[FunctionCall | FunctionCallOutput]:
        """The calls and outputs in the first agent's context."""
        return tool_items_in(self.agent.chat_ctx)

    def result_of(self, tool: str) -> FunctionCallOutput:
        """The newest output of the tool in the first agent's context."""
        outputs = [item for item in self.stored if item.type == "function_call_output" and item.name == tool]
        assert outputs, f"no result of {tool} is stored"
        return outputs[-1]


def realtime_model(script: ScriptedModel, *, interrupts: bool = True) -> ScriptedRealtimeModel:
    """A realtime model that plays the script of another; whoever speaks to it interrupts, or types."""
    return ScriptedRealtimeModel(script, turn_detection=interrupts, words_per_second=1 / WORD)


def settled(inference: Inference) -> bool:
    """Whether each call that was shown has one output; to a realtime model, one without it runs."""
    made, ended = (
        Counter(item.call_id for item in inference.shown.items if item.type == kind)
        for kind in ("function_call", "function_call_output")
    )
    if isinstance(inference, RealtimeInference):
        return ended <= made and set(made.values()) <= {1}
    return ended == made


def knows(inference: Inference, run: Run) -> bool:
    """Whether an inference was shown how a run ended, or that it goes on; in one instant, either will do."""
    if run.began >= inference.at:
        return True
    outputs = [output for output in inference.outputs.values() if output.name == run.tool]
    if run.ended is None or run.ended >= inference.at or not isinstance(run.given, str):
        return bool(outputs) or shown_running(inference, run.tool)
    return any(run.given in output.output for output in outputs)


def now() -> float:
    return asyncio.get_running_loop().time()


def calls_in(context: ChatContext) -> list[FunctionCall]:
    return [item for item in context.items if isinstance(item, FunctionCall)]


def tool_items_in(context: ChatContext) -> list[FunctionCall | FunctionCallOutput]:
    return [item for item in context.items if isinstance(item, FunctionCall | FunctionCallOutput)]


def shown(inference: Inference) -> dict[str, str]:
    """What an inference was shown of each tool: its output, by the tool's name."""
    return {output.name: output.output for output in inference.outputs.values()}


def shown_running(inference: Inference, tool: str) -> bool:
    """Whether an inference was shown that the tool runs; a realtime model sees it by the missing end."""
    told = shown(inference).get(tool)
    if told is None and isinstance(inference, RealtimeInference):
        return tool in [call.name for call in inference.calls]
    return "running" in (told or "")
