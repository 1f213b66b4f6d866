"""What the timelines of late results and handoffs are made of.

Agents that say their own name in all that they say, tools that take their time and write down what they
really did, a model that makes the calls that a message of the caller's asks for, and a scene that ends with a
strict check: nothing lost or doubled in any context, no error logged, no exception that nobody retrieved.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from livekit.agents import (
    Agent,
    AgentSession,
    AgentTask,
    RunContext,  # noqa: TC002 - livekit reads the annotations of tools
    function_tool,
)
from livekit.agents.llm import ToolFlag

from safe_session import SafeAgentSession
from safe_session.testing import Answer, Call, Line, ScriptedModel, check_guarantees

from ._scenes import realtime_model, settled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from livekit.agents.llm import ChatContext, FunctionTool

    from safe_session import SafeOptions
    from safe_session.testing import Inference

WORD = 0.25
"""Seconds that a word takes: the caller's to say, the agent's to speak."""

WORDING = {"reply_at_tail_template": "TELL {call_ids}", "reply_maybe_covered_template": "MAYBE {call_ids}"}
"""How a session asks its model to tell late results."""

WITHOUT_A_SERVER = "'NoneType' object has no attribute '(capabilities|chat_ctx)'"
"""What livekit logs of a realtime agent's step that ends after its agent has left."""

PATIENCE = 60
"""Virtual seconds after which something hangs."""


def now() -> float:
    return asyncio.get_running_loop().time()


# -- tools


@dataclass
class Run:
    """One real run of a tool's body."""

    tool: str
    began: float
    ended: float | None = None


class Work:
    """Makes tools, which all write down here what they did.

    Attributes:
        runs: In the order of their starts.

    """

    def __init__(self) -> None:
        self.runs: list[Run] = []

    @property
    def did(self) -> list[str]:
        return [run.tool for run in self.runs]

    def tool(  # noqa: PLR0913
        self,
        name: str,
        takes: float = 4.0,
        *,
        reports: bool = False,
        first: Callable[[RunContext], Any] | None = None,
        then: Callable[[RunContext], Any] | None = None,
        flags: ToolFlag = ToolFlag.NONE,
    ) -> FunctionTool:
        """A tool that gives ``"<name>-done"`` after `takes` seconds.

        Args:
            name: Of the tool.
            takes: Seconds.
            reports: Whether it calls `ctx.update()` as soon as it starts.
            first: What it does first.
            then: What it does at its end; its result is the tool's.
            flags: Of the tool.

        """

        async def body(ctx: RunContext) -> Any:
            run = Run(name, now())
            self.runs.append(run)
            if first is not None:
                await _result_of(first(ctx))
            if reports:
                await ctx.update(f"{name}-begun")
            await asyncio.sleep(takes)
            run.ended = now()
            return f"{name}-done" if then is None else await _result_of(then(ctx))

        return function_tool(body, name=name, description=name, flags=flags)


async def _result_of(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


# -- agents

Hook = Callable[[Agent], Awaitable[object]]


class _Hooks:
    """What an agent does when it comes and goes: seconds that it takes, or a function of the agent."""

    enter: float | Hook = 0.0
    leave: float | Hook = 0.0

    async def on_enter(self) -> None:
        await _do(self, self.enter)

    async def on_exit(self) -> None:
        await _do(self, self.leave)


async def _do(agent: Any, what: float | Hook) -> None:
    if callable(what):
        await what(agent)
    elif what:
        await asyncio.sleep(what)


class Desk(_Hooks, Agent):
    """An agent of that name."""

    def __init__(
        self, name: str, *tools: Any, enter: float | Hook = 0.0, leave: float | Hook = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(instructions=f"You are {name}.", id=name, tools=list(tools), **kwargs)
        self.enter, self.leave = enter, leave


class Form(_Hooks, AgentTask[str]):
    """An AgentTask of that name; it has the floor until `complete()`."""

    def __init__(
        self, name: str, *tools: Any, enter: float | Hook = 0.0, leave: float | Hook = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(instructions=f"You are {name}.", tools=list(tools), **kwargs)
        self._id = name
        self.enter, self.leave = enter, leave


async def filled(form: Form) -> str:
    """Await the form, as a tool or a hook does."""
    return await form


# -- the model


Ask: TypeAlias = "str | Callable[[ChatContext], Call]"
"""A call that the model is to make: the name of a tool, or what it makes of what it is shown."""


def clerk(asks: Mapping[str, Sequence[Ask]], *, says: str = "", **late: float) -> ScriptedModel:
    """A model that makes, once, the calls that the caller's newest message asks for, and then answers it.

    Asked to tell late results it tells them; those that it may have covered only if it has not. Asked
    "Result?" by the caller it tells all that it is shown.

    Args:
        asks: The calls, by what the caller says.
        says: What it says before it makes calls.
        **late: The delay and the pace of what it says of late results (see `Answer`).

    """
    return ScriptedModel(lambda shown: _decide(shown, asks, says, late))


def _decide(shown: ChatContext, asks: Mapping[str, Sequence[Ask]], says: str, late: Any) -> Answer:
    me = agent_of(shown)
    outputs = {i.call_id: i.output for i in shown.items if i.type == "function_call_output"}
    how, call_ids = asked_to_tell(shown)
    if how is not None:
        covered = _said_by_assistant(shown) if how == "MAYBE" else ""
        news = [outputs.get(call_id, "nothing") for call_id in call_ids]
        news = [text for text in news if text not in covered]
        return Answer(f"{me} tells {' '.join(news)}" if news else "", **late)
    said, since = _newest_of_caller(shown)
    if said == "Result?":
        return Answer(f"{me} tells {' '.join(text for text in outputs.values() if text.endswith('-done'))}")
    made = {i.name for i in since if i.type == "function_call"}
    wanted = [Call(ask) if isinstance(ask, str) else ask(shown) for ask in asks.get(said, ())]
    missing = [call for call in wanted if call.name not in made]
    return Answer(says, missing) if missing else Answer(f"{me} answers {said}")


def agent_of(shown: ChatContext) -> str:
    found = re.search(r"You are (\w+)\.", _system(shown))
    return found.group(1) if found else "nobody"


def asked_to_tell(shown: ChatContext) -> tuple[str | None, list[str]]:
    found = re.search(r"(TELL|MAYBE) \[(.*?)\]", _system(shown))
    return (found.group(1), re.findall(r"'([^']+)'", found.group(2))) if found else (None, [])


def _system(shown: ChatContext) -> str:
    return "\n".join(i.text_content or "" for i in shown.items if i.type == "message" and i.role == "system")


def _said_by_assistant(shown: ChatContext) -> str:
    return "\n".join(
        i.text_content or "" for i in shown.items if i.type == "message" and i.role == "assistant"
    )


def _newest_of_caller(shown: ChatContext) -> tuple[str, list[Any]]:
    for place in range(len(shown.items) - 1, -1, -1):
        item = shown.items[place]
        if item.type == "message" and item.role == "user":
            return item.text_content or "", shown.items[place + 1 :]
    return "", []


# -- the scene


class LateScene:
    """A call: ``async with late_stage(agent, {"Go!": ["look"]}) as call``; its end is the strict check.

    Attributes:
        session: The session.
        model: Its model.
        realtime: With a realtime model, that; it plays the script of `model`.
        line: In voice, the line; None in text.
        agents: Those that have had the floor.
        floor: Whose turn it was to have it, and from which second of the call on.
        events: Ours, as they were emitted.
        errors: What was logged as an error, or raised where nobody retrieved it.

    """

    def __init__(  # noqa: PLR0913
        self,
        session_class: type[AgentSession],
        medium: str,
        agent: Agent,
        asks: Mapping[str, Sequence[Ask]] | ScriptedModel | None = None,
        *,
        safe: SafeOptions | None = None,
        may_log: str | None = None,
        preemptive: bool = False,
        **kwargs: Any,
    ) -> None:
        self.model = asks if isinstance(asks, ScriptedModel) else clerk(asks or {})
        self.realtime = realtime_model(self.model) if medium == "realtime" else None
        self.line = Line(words_per_second=1 / WORD) if medium != "text" else None
        if self.line is not None:
            kwargs = {**self.line.options(preemptive=preemptive, realtime=medium == "realtime"), **kwargs}
        if issubclass(session_class, SafeAgentSession):
            kwargs["safe"] = safe
        kwargs.setdefault("tool_handling", {"async_options": WORDING})
        self.session = session_class(llm=self.realtime or self.model, **kwargs)
        if self.line is not None:
            self.line.connect(self.session)
        self.agents: list[Agent] = []
        self.floor: list[tuple[str, float]] = []
        self._said_at: list[float] = []
        self._began = now()
        self.events: list[Any] = []
        self.errors: list[str] = []
        self._may_log = may_log
        self._first = agent
        self._watch()

    def _watch(self) -> None:
        def on_item(event: Any) -> None:
            if event.item.type == "message" and event.item.role == "assistant":
                self._said_at.append(self.now)
            if event.item.type != "agent_handoff":
                return
            self.floor.append((event.item.new_agent_id, round(self.now, 3)))
            activity = self.session._activity  # `current_agent` is the one that was asked for last
            if activity is not None and activity.agent not in self.agents:
                self.agents.append(activity.agent)

        self.session.on("conversation_item_added", on_item)
        for name in EVENTS:
            self.session.on(name, self.events.append)

    async def __aenter__(self) -> LateScene:
        gc.freeze()  # only what this call makes is looked through at its end
        self._log = _Errors(self.errors)
        logging.getLogger().addHandler(self._log)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.errors.append(str(context)))
        await self.session.start(self._first)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        try:
            untold = self.untold()
            await self.within(PATIENCE, self.session.aclose())
            await asyncio.sleep(PATIENCE)
            if kind is None:
                self.check()
                assert untold == [], "a call has ended, and the model's server waits for it"
        finally:
            logging.getLogger().removeHandler(self._log)
        if kind is not None and issubclass(kind, RuntimeError):
            raise AssertionError(f"raised to the application: {error!r}")

    def check(self) -> None:
        """Nothing lost or doubled anywhere, no error, and no exception that nobody retrieved."""
        gc.collect()
        errors = [e for e in self.errors if not (self._may_log and re.search(self._may_log, e))]
        assert errors == [], errors
        wrong = [str(v) for v in check_guarantees(self.session, *self.agents)]
        assert wrong == [], wrong
        for inference in self.inferences:
            assert settled(inference), "an inference was shown a call without its end, or something twice"

    def untold(self) -> list[str]:
        """The calls that have an end in the history, and none for the server of a realtime model."""
        ended = [i.call_id for i in self.session.history.items if i.type == "function_call_output"]
        waits = self.realtime.server.unanswered_calls if self.realtime else []
        return [call_id for call_id in waits if call_id in ended]

    async def within(self, seconds: float, what: Awaitable[Any]) -> Any:
        """Await it, for at most so many seconds."""
        try:
            return await asyncio.wait_for(what, seconds)
        except asyncio.TimeoutError:
            raise AssertionError(f"it took more than {seconds} seconds") from None

    # -- what happens

    @property
    def now(self) -> float:
        """The second of the call."""
        return now() - self._began

    async def at(self, second: float) -> None:
        """Wait until that second of the call."""
        await asyncio.sleep(self._began + second - now())

    async def says(self, text: str) -> float:
        """The caller says something, or types it and interrupts; returns the second in which it ended."""
        if self.line is not None:
            ends = self.now + len(text.split()) * WORD
            await (self.realtime.server.hear(text) if self.realtime else self.line.caller.say(text))
            return ends
        self.session.interrupt()
        self.session.generate_reply(user_input=text)
        return self.now

    def types(self, text: str) -> Any:
        """The caller types something, which interrupts nobody."""
        return self.session.generate_reply(user_input=text)

    def hand_over(self, agent: Agent) -> None:
        self.session.update_agent(agent)

    # -- what became of it

    @property
    def inferences(self) -> list[Inference]:
        return self.model.inferences

    @property
    def said(self) -> list[str]:
        """What was said by agents, as the history has it."""
        return said_in(self.session.history)

    def tellings(self, tool: str) -> list[str]:
        """Who told the result of the tool, each time that it was said."""
        return [text.split()[0] for text in self.said if f"{tool}-done" in text and "tells" in text]

    def offers(self, tool: str) -> list[str]:
        """How the model was asked to tell the tool's results, each time: "TELL" or "MAYBE"."""
        asked = [(i, *asked_to_tell(i.shown)) for i in self.inferences]
        of_tool = {c.call_id for i in self.inferences for c in i.calls if c.name == tool}
        return [how for _, how, call_ids in asked if how is not None and of_tool.intersection(call_ids)]

    def emitted(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]

    def answers(self) -> list[float]:
        """The seconds of the call in which agents began to speak (in text: in which it was said)."""
        if self.line is None:
            return self._said_at
        return [utterance.started_at - self._began for utterance in self.line.speaker.utterances]

    def starts(self) -> list[tuple[str, float]]:
        """Who inferred, and in which second of the call."""
        return [(agent_of(i.shown), round(i.at - self._began, 3)) for i in self.inferences]


EVENTS = (
    "call_kept",
    "call_replayed",
    "call_released",
    "call_cancelled",
    "reply_held",
    "reply_retargeted",
    "reply_dropped",
    "reply_redelivered",
    "handoff_applied",
    "handoff_not_applied",
)


def safe_scene(agent: Agent, asks: Any = None, *, medium: str = "text", **kwargs: Any) -> LateScene:
    """A scene of something that a plain session does not have: a setting, an event."""
    return LateScene(SafeAgentSession, medium, agent, asks, **kwargs)


class _Errors(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        detail = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self._into.append(f"{record.name}: {record.getMessage()}{detail}")


def said_in(context: ChatContext) -> list[str]:
    """What agents said, in the order of the context."""
    return [
        text
        for i in context.items
        if i.type == "message" and i.role == "assistant" and (text := i.text_content)
    ]


def heard_in(context: ChatContext) -> list[str]:
    """What the caller said, in the order of the context."""
    return [
        text for i in context.items if i.type == "message" and i.role == "user" and (text := i.text_content)
    ]


def outputs_in(context: ChatContext, tool: str) -> list[str]:
    """The outputs of the tool, in the order of the context."""
    return [i.output for i in context.items if i.type == "function_call_output" and i.name == tool]


def result_in(agent_or_session: Any, tool: str) -> str:
    """The newest output of the tool in an agent's context, or a session's history."""
    context = (
        agent_or_session.history if isinstance(agent_or_session, AgentSession) else agent_or_session.chat_ctx
    )
    outputs = outputs_in(context, tool)
    assert outputs, f"nothing of {tool} is stored"
    return outputs[-1]


def shown_of(inference: Inference, tool: str) -> str | None:
    """The newest output of the tool that an inference was shown."""
    outputs = outputs_in(inference.shown, tool)
    return outputs[-1] if outputs else None
