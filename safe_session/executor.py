"""The tool lifecycle: what each tool's own run does, told to the keeper as it happens."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from livekit.agents import Agent, RunContext, StopResponse

from . import _livekit, telemetry
from ._livekit import ToolExecutor
from .keeper import has_gone_on, keeper_of
from .ledger import Body
from .policy import ToolPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable

    from livekit.agents.llm import ChatItem, FunctionTool, RawFunctionTool

    from .keeper import CallKeeper
    from .ledger import CallItem, CallRecord

    AnyTool: TypeAlias = FunctionTool[..., Any] | RawFunctionTool[..., Any]

_UNCHANGING = (str, int, float, bool, type(None))

_NOT_RUN_AGAIN = "Not run again: the same call with the same arguments was already made. "


class SafeToolExecutor(ToolExecutor):
    """livekit's executor, which also runs no tool that must not run.

    It adds no state, so that an executor that livekit built can be turned into one.
    """

    async def execute(
        self,
        *,
        tool: AnyTool,
        run_ctx: RunContext[Any],
        raw_arguments: dict[str, Any],
        mock: Callable[..., Any] | None = None,
    ) -> Any:
        """Run `tool`, unless an earlier call stands for this one."""
        keeper = keeper_of(run_ctx.session)  # a plain session may use the same toolset
        record = keeper.ledger.of(run_ctx.function_call) if keeper else None
        if keeper is None or record is None:
            return await super().execute(tool=tool, run_ctx=run_ctx, raw_arguments=raw_arguments, mock=mock)
        with telemetry.guarded("watch a tool", tool=record.call.name, call_id=record.call_id):
            record.scope = _livekit.scope_of(self)
            record.policy = keeper.options.policy_of(tool, record.call.name)
            record.wording = _livekit.reply_templates(self)
            tool, mock = _Run(keeper, record, run_ctx, self, tool, mock).as_tool(), None
        return await super().execute(tool=tool, run_ctx=run_ctx, raw_arguments=raw_arguments, mock=mock)

    async def _enqueue_reply(self, ctx: RunContext[Any], items: list[ChatItem], **kwargs: Any) -> None:
        keeper = keeper_of(ctx.session)
        record = keeper.ledger.of(ctx.function_call) if keeper else None
        if keeper is None or record is None:
            await super()._enqueue_reply(ctx, items, **kwargs)
            return
        try:
            tell = _livekit.is_to_be_told(items[-1])
            delivery = keeper.progressed(record, cast("list[CallItem]", items), tell=tell)
        except Exception:
            telemetry.report_failure("record a late result", call_id=record.call_id)
            await super()._enqueue_reply(ctx, items, **kwargs)
            return
        if delivery is not None:
            self._reply_task = delivery  # `RunContext.foreground` waits for it

    async def drain(self) -> None:
        for session in _livekit.sessions_of(self):
            if (keeper := keeper_of(session)) is not None:
                await keeper.runs.drain(self)
        await super().drain()

    async def aclose(self) -> None:
        self._reply_task = None  # the session's, and not to be cancelled with this executor
        await super().aclose()


@dataclass(eq=False)
class _Run:
    """The run of one call's tool, or what stands for it."""

    keeper: CallKeeper
    record: CallRecord
    ctx: RunContext[Any]
    executor: ToolExecutor
    tool: AnyTool
    mock: Callable[..., Any] | None

    def as_tool(self) -> AnyTool:
        """The tool with this run in the place of its function; livekit validates the arguments as ever."""

        async def run(*args: Any, **kwargs: Any) -> Any:
            return await self._run(args, kwargs)

        kind: Any = type(self.tool)
        return kind(functools.update_wrapper(run, self.tool), self.tool.info)

    async def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self.record.call.name
        body = self.record.body = Body(name, _code_of(self.tool), _comparable(args, kwargs))
        with telemetry.guarded("note that a tool runs", call_id=self.record.call_id):
            self.keeper.runs.started(self.record, self.ctx, self.executor, self.tool.info.flags)
        with _outcome_of(body):
            stand_in = await self._stand_in()
            if stand_in is not None:
                return stand_in
            result = await self._call_tool(args, kwargs)
            body.handoff = _agent_in(result)
            # its turn has gone on: livekit can't hand over any more, and says so as an error
            return _without_agent(result) if has_gone_on(self.record) else result

    async def _call_tool(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.mock is not None:
            return await _livekit.run_mock(self.mock, *args, **kwargs)
        return await self.tool(*args, **kwargs)

    async def _stand_in(self) -> str | None:
        """What is answered in the place of a run, or None if the tool is to run."""
        try:
            return await self._await_twin(self.record.policy or ToolPolicy())
        except Exception:
            telemetry.report_failure("look for an earlier call", call_id=self.record.call_id)
            return None

    async def _await_twin(self, policy: ToolPolicy) -> str | None:
        ledger, record = self.keeper.ledger, self.record
        if policy.repeat == "once":
            find: Callable[[CallRecord], CallRecord | None] = ledger.once_twin
            reason: Literal["unseen", "once"] = "once"
        elif policy.repeat == "knowingly":
            find, reason = ledger.unseen_twin, "unseen"
        else:
            return None
        # a twin that fails while it is waited for does not count: look again
        while (twin := find(record)) is not None:
            # an AgentTask that the twin awaits may itself have to wait for this call's turn
            if twin.state == "running" and not self.keeper.handoffs.gives_way(twin.owner):
                await _end_of(twin, or_else=self.keeper.handoffs.change())
                continue
            self.keeper.replayed(record, twin, reason)
            return replay_of(twin)
        if policy.repeat == "once":
            ledger.remember_once(record)
        return None


def replay_of(twin: CallRecord) -> str:
    """What a model is told in the place of the result, if `twin` stands for its call."""
    given = twin.output.output if twin.output is not None else ""
    if not twin.ended:
        return f"{_NOT_RUN_AGAIN}It is still running, and its result will be told when it is there. {given}"
    if twin.state in {"cancelled", "unknown"}:
        return f"{_NOT_RUN_AGAIN}{given}"
    return f"{_NOT_RUN_AGAIN}It gave: {given}" if given else f"{_NOT_RUN_AGAIN}It is done and gave no result."


async def _end_of(record: CallRecord, *, or_else: Coroutine[Any, Any, Any]) -> None:
    """Wait until the call ends, or is released; or for something else."""
    ended = asyncio.Event()
    record.waiting.append(ended.set)
    ways = [asyncio.ensure_future(way) for way in (ended.wait(), or_else)]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        if not ended.is_set():
            record.waiting.remove(ended.set)


@contextlib.contextmanager
def _outcome_of(body: Body) -> Generator[None]:
    body.outcome = None
    try:
        yield
    except asyncio.CancelledError:
        body.outcome = "cancelled"
        raise
    except StopResponse:
        body.outcome = "done"
        raise
    except BaseException:  # a library's own may be none of Exception's
        body.outcome = "failed"
        raise
    body.outcome = "done"


def _code_of(tool: AnyTool) -> object:
    """What the tool runs: the same object for each agent that it is bound to, or each time it is loaded."""
    function = inspect.unwrap(tool)
    return getattr(function, "__code__", function)


def _comparable(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Validated arguments as they are now: a tool may change what it is given."""
    given = [arg for arg in args if not isinstance(arg, RunContext)]
    named = {name: arg for name, arg in kwargs.items() if not isinstance(arg, RunContext)}
    if all(isinstance(arg, _UNCHANGING) for arg in (*given, *named.values())):
        return given, named
    try:
        return copy.deepcopy((given, named))
    except Exception:  # of a type of the application's own: compared as it is then
        return given, named


def _agent_in(result: object) -> Agent | None:
    """The agent that a tool returned, alone or beside its result."""
    if isinstance(result, Agent):
        return result
    if isinstance(result, list | tuple | set | frozenset):
        agents = [item for item in cast("Iterable[object]", result) if isinstance(item, Agent)]
        return agents[0] if len(agents) == 1 else None
    return None


def _without_agent(result: object) -> object:
    """What a tool returned beside its agent."""
    if _agent_in(result) is None:
        return result
    if isinstance(result, Agent):
        return None
    given = [item for item in cast("Iterable[object]", result) if not isinstance(item, Agent)]
    return given[0] if len(given) == 1 else given or None
