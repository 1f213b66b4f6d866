"""Who plays a timeline: agents, their tools, and a model that does what the timeline says."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import re
from typing import TYPE_CHECKING, Any

from livekit.agents import (
    Agent,
    AgentTask,
    APIError,
    RunContext,
    function_tool,
)
from livekit.agents.llm import ToolError, ToolFlag
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import tool_policy
from safe_session.testing import Answer, Call, ScriptedModel

from .happened import Run, Thought

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livekit.agents import AgentSession
    from livekit.agents.llm import ChatItem, FunctionTool

    from safe_session.testing import Inference

    from .happened import Happened
    from .timeline import Decision, Desk, Timeline, Tool

WORDING = {"reply_at_tail_template": "TELL {call_ids}", "reply_maybe_covered_template": "TELL {call_ids}"}
"""How a session asks its model to tell late results."""

KEPT_WITHIN = 0.01
"""Virtual seconds after which the ending of a call is looked for; nothing that takes time is in between."""


def now() -> float:
    return asyncio.get_running_loop().time()


class Cast:
    """Everybody in one call.

    Attributes:
        happened: what they did.
        forms: the AgentTasks that have begun.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.model = Model(self)
        self.forms: list[FormTask] = []
        self.desks: list[tuple[int, DeskAgent]] = []
        self.happened: Happened
        self._names = itertools.count()
        self.session_tools = self.toolset("session", timeline.session_tools)

    @property
    def session(self) -> AgentSession[Any]:
        return self.happened.session

    def new_name(self, kind: str) -> str:
        return f"{kind}{next(self._names)}"

    def desk(self, number: int) -> DeskAgent:
        """The agent that is handed over to."""
        number %= len(self.timeline.desks)
        spec = self.timeline.desks[number]
        if spec.returns:
            gone = [desk for place, desk in self.desks if place == number and desk.has_left]
            if gone:
                return gone[-1]
        desk = DeskAgent(self, number, spec)
        self.desks.append((number, desk))
        return desk

    def toolset(self, name: str, tools: Iterable[Tool]) -> list[AsyncToolset]:
        made = self.tools(name, tools)
        return [AsyncToolset(id=name, tools=made)] if made else []

    def tools(self, prefix: str, tools: Iterable[Tool]) -> list[FunctionTool]:
        return [self._tool(f"{prefix}_{number}", tool) for number, tool in enumerate(tools)]

    def _tool(self, name: str, does: Tool) -> FunctionTool:
        scope = "session" if name.startswith("session") else "activity"

        async def body(ctx: RunContext, x: int = 0) -> Any:
            call_id = ctx.function_call.call_id
            thought = self.happened.thought_of(call_id)
            assert thought is not None
            run = Run(name, does, x, call_id, thought.agent, ctx.speech_handle, scope, now())
            self.happened.runs.append(run)
            return await self._work(ctx, run)

        policy = tool_policy(repeat=does.repeat, on_handoff=does.on_handoff)
        flags = ToolFlag.CANCELLABLE if does.cancellable else ToolFlag.NONE
        return policy(function_tool(body, name=name, description=name, flags=flags))

    async def _work(self, ctx: RunContext, run: Run) -> Any:
        does = run.does
        try:
            if does.asks:
                await self.form()
            for pause in does.reports:
                await asyncio.sleep(pause)
                run.reported = now() if run.reported is None else run.reported
                await ctx.update(f"{run.name} has begun")
            await asyncio.sleep(does.seconds)
            given = f"{run.call_id} gave this"
            run.given = given if does.ends in {"result", "agent and result"} else ""
            result = self._result(does, given)
        except asyncio.CancelledError:
            self._over(run, "cancelled")
            raise
        except BaseException:
            self._over(run, "failed")
            raise
        self._over(run, "done")
        return result

    def _result(self, does: Tool, given: str) -> Any:
        if does.ends == "error":
            raise ToolError("it went wrong")
        if does.ends == "nothing":
            return None
        if does.ends == "result":
            return given
        agent = self.desk(does.to)
        return agent if does.ends == "agent" else (agent, given)

    def _over(self, run: Run, how: Any) -> None:
        run.ended, run.how = now(), how
        asyncio.get_running_loop().call_later(KEPT_WITHIN, self._look_for, run)

    def _look_for(self, run: Run) -> None:
        """Note where the ending of a call is not to be found, although it has ended."""
        for where, context in (("the history", self.session.history), (run.owner.id, run.owner.chat_ctx)):
            outputs = run.endings_in(context)
            if not outputs or (run.given and run.how == "done" and run.given not in outputs[-1].output):
                run.missing.append(where)

    async def form(self) -> str:
        if any(not form.done() for form in self.forms):
            raise ToolError("one form at a time")  # livekit takes no more
        form = FormTask(self)
        self.forms.append(form)
        return await form

    def complete_forms(self) -> None:
        for form in self.forms:
            form.complete_once()


def _calls_within(items: list[ChatItem]) -> list[str]:
    """The calls before what was last said; those behind it look as if they had been cut off."""
    said = (place for place, item in enumerate(items) if item.type == "message" and item.text_content)
    return [item.call_id for item in items[: max(said, default=0)] if item.type == "function_call"]


class DeskAgent(Agent):
    """An agent of a timeline."""

    def __init__(self, cast: Cast, number: int, spec: Desk) -> None:
        self._cast, self._spec = cast, spec
        name = cast.new_name("A")
        tools = [*cast.tools(f"desk{number}", spec.tools), *cast.toolset(f"own{number}", spec.toolset)]
        kwargs: dict[str, Any] = {}
        if spec.knows and cast.desks:
            kwargs["chat_ctx"] = cast.session.current_agent.chat_ctx.copy()
            cast.happened.built_with[self] = _calls_within(kwargs["chat_ctx"].items)
        super().__init__(instructions=f"You are {name}.", id=name, tools=tools, **kwargs)
        if hasattr(cast, "happened"):
            cast.happened.agents[name] = self

    @property
    def has_left(self) -> bool:
        try:
            return self.session is None
        except RuntimeError:  # it has none
            return True

    async def on_enter(self) -> None:
        self._cast.happened.entered.append((self, now()))
        await asyncio.sleep(self._spec.enters)
        if self._spec.greets == "says":
            self.session.say("Hello there.")
        elif self._spec.greets == "replies":
            self.session.generate_reply(instructions="Greet.")

    async def on_exit(self) -> None:
        if self._spec.says_goodbye:
            self.session.say("Goodbye now.")
        await asyncio.sleep(self._spec.leaves)

    async def on_user_turn_completed(self, turn_ctx: object, new_message: object) -> None:
        await asyncio.sleep(self._spec.thinks)


class FormTask(AgentTask[str]):
    """The AgentTask of a timeline."""

    def __init__(self, cast: Cast) -> None:
        self._cast, self._spec = cast, cast.timeline.form
        self._name = name = cast.new_name("F")

        async def finish(x: int = 0) -> None:
            self.complete_once()

        tools = [function_tool(finish, name="finish", description="finish")]
        super().__init__(
            instructions=f"You are {name}.", tools=[*tools, *cast.tools("form", self._spec.tools)]
        )
        cast.happened.agents[name] = self

    @property
    def id(self) -> str:
        return self._name

    def complete_once(self) -> None:
        if not self.done():
            self.complete("filled")

    async def on_enter(self) -> None:
        self._cast.happened.entered.append((self, now()))
        await asyncio.sleep(self._spec.enters)
        if self._spec.asks:
            self.session.generate_reply(instructions="Ask.")
        if self._spec.completes is not None:
            await asyncio.sleep(self._spec.completes)
            self.complete_once()

    async def on_exit(self) -> None:
        await asyncio.sleep(self._spec.leaves)


class Model(ScriptedModel):
    """A model that makes a timeline's decisions, one after the other."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(lambda _: Answer("Well."))
        self._cast = cast

    def next_answer(self, inference: Inference) -> Answer | Exception:
        self.inferences.append(inference)
        made = len(self.inferences) - 1
        decisions = self._cast.timeline.decisions
        answer = self._answer(decisions[made], inference) if made < len(decisions) else Answer(f"said{made}")
        calls = [dataclasses.replace(call, call_id=self.new_call_id()) for call in answer.calls]
        system = "\n".join(
            i.text_content or "" for i in inference.shown.items if i.type == "message" and i.role == "system"
        )
        name = re.findall(r"You are (\w+)\.", system)[-1]
        asked = re.search(r"TELL \[(.*?)\]", system)
        self._cast.happened.thoughts.append(
            Thought(
                made,
                self._cast.happened.agents[name],
                inference,
                [call.call_id for call in calls if call.call_id],
                re.findall(r"'([^']+)'", asked.group(1)) if asked else [],
            )
        )
        return dataclasses.replace(answer, calls=calls)

    def _answer(self, decision: Decision, inference: Inference) -> Answer:
        names = [name for name in inference.tools if not name.startswith("lk_")]
        may_call = names and (inference.tool_choice != "none" or self._cast.timeline.medium == "realtime")
        calls = [Call(names[tool % len(names)], {"x": x}) for tool, x in decision.calls] if may_call else []
        # the first word says which inference it is of
        words = (
            [f"said{len(self.inferences) - 1}", *["word"] * (decision.words - 1)] if decision.words else []
        )
        return Answer(
            " ".join(words),
            calls,
            delay=decision.delay,
            pace=decision.pace,
            calls_first=decision.calls_first,
            error=APIError("the model failed, as it was meant to", retryable=False)
            if decision.fails
            else None,
        )
