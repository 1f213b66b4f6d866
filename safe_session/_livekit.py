"""The one place that knows livekit-agents' private names, and the check that they are there.

Everything that differs between supported releases stands here, each with the releases that need it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from livekit.agents import Agent, AgentSession, RunContext
    from livekit.agents.llm import (
        ChatContext,
        ChatItem,
        FunctionCall,
        RealtimeCapabilities,
        RealtimeSession,
        Tool,
        Toolset,
    )
    from livekit.agents.voice import SpeechHandle
    from livekit.agents.voice.run_result import RunResult

SUPPORTED = ">=1.6.0,<1.9"
_FIRST_LINE, _LAST_LINE = (1, 6), (1, 8)

_VOICE = "livekit.agents.voice"


class UnsupportedLivekitError(ImportError):
    """The installed livekit-agents is not one that safe_session works with."""

    def __init__(self, found: str, why: str) -> None:
        super().__init__(
            f"safe_session works with livekit-agents {SUPPORTED}, and found {found}: {why}. "
            f"Mend it with: pip install 'livekit-agents{SUPPORTED}'"
        )


@dataclass(frozen=True)
class _Seam:
    """A private name of livekit's that this package relies on.

    Attributes:
        where: the module, a colon, and what stands in it.
        parameters: those that are passed or overridden.
        sets: the attributes that calling it sets; they exist on instances only.

    """

    where: str
    parameters: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()


_SEAMS = (
    _Seam(f"{_VOICE}.agent:Agent.__init__", sets=("_chat_ctx", "_activity")),
    _Seam(
        f"{_VOICE}.agent_session:AgentSession.__init__",
        sets=(
            "_activity",
            "_activity_lock",
            "_chat_ctx",
            "_closing",
            "_closing_task",
            "_global_run_state",
            "_next_activity",
            "_update_activity_atask",
        ),
    ),
    _Seam(f"{_VOICE}.agent_session:AgentSession._update_activity", parameters=("agent",)),
    _Seam(f"{_VOICE}.agent_session:AgentSession._aclose_impl"),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity.__init__",
        parameters=("agent", "sess"),
        sets=(
            "_agent",
            "_session",
            "_tool_executor",
            "_mcp_tools",
            "_rt_session",
            "_scheduling_atask",
            "_user_silence_event",
        ),
    ),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity._pipeline_reply_task",
        parameters=("speech_handle", "chat_ctx", "tools"),
    ),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity._realtime_reply_task"),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity._realtime_generation_task",
        parameters=("speech_handle", "generation_ev", "model_settings"),
    ),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity._generate_reply"),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity._schedule_speech",
        parameters=("speech", "priority", "force"),
    ),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity._user_turn_completed_task",
        parameters=("old_task", "info"),
    ),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity.on_end_of_turn", parameters=("info",)),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity.update_chat_ctx", parameters=("chat_ctx",)),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity.wait_for_idle"),
    _Seam(f"{_VOICE}.agent_activity:_AgentActivityContextVar.get"),
    _Seam(f"{_VOICE}.agent_activity:ActivityClosedError"),
    _Seam(f"{_VOICE}.events:RunContext.update", parameters=("message", "template")),
    _Seam(f"{_VOICE}.events:RunContext.__init__", sets=("_first_update_fut",)),
    _Seam(f"{_VOICE}.run_result:RunResult._watch_handle", parameters=("handle",)),
    _Seam(f"{_VOICE}.run_result:RunResult._unwatch_handle", parameters=("handle",)),
    _Seam(f"{_VOICE}.run_result:RunResult._mark_done_if_needed", parameters=("handle",)),
    _Seam(f"{_VOICE}.run_result:_run_mock", parameters=("mock",)),
    _Seam(
        f"{_VOICE}.speech_handle:SpeechHandle.__init__",
        sets=("_interrupt_fut", "_done_fut", "_tasks", "_generations", "_authorize_event"),
    ),
    _Seam(
        f"{_VOICE}.speech_handle:SpeechHandle._add_item_added_callback",
        parameters=("callback",),
    ),
    _Seam(f"{_VOICE}.speech_handle:SpeechHandle._mark_done", parameters=("error",)),
    _Seam(
        f"{_VOICE}.tool_executor:_ToolExecutor.__init__",
        sets=("_owning_activity", "_reply_task", "_running_tasks", "_tool_options"),
    ),
    _Seam(
        f"{_VOICE}.tool_executor:_ToolExecutor.execute",
        parameters=("tool", "run_ctx", "raw_arguments", "mock"),
    ),
    _Seam(f"{_VOICE}.tool_executor:_ToolExecutor._enqueue_reply", parameters=("ctx", "items")),
    _Seam(f"{_VOICE}.tool_executor:_ToolExecutor.aclose"),
    _Seam(f"{_VOICE}.tool_executor:_ToolExecutor.drain"),
    _Seam("livekit.agents.llm.async_toolset:AsyncToolset.__init__", sets=("_executor",)),
)


def check(found: str, seams: Sequence[_Seam] = _SEAMS) -> None:
    """Raise `UnsupportedLivekitError` unless release `found` is supported and has every seam."""
    if not _FIRST_LINE <= _line_of(found) <= _LAST_LINE:
        raise UnsupportedLivekitError(found, "that release is out of the range")
    for seam in seams:
        if lacking := _lacking(seam):
            raise UnsupportedLivekitError(found, f"{seam.where} lacks {lacking}")


def _line_of(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:2])


def _lacking(seam: _Seam) -> str | None:
    module, _, path = seam.where.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for name in path.split("."):
            target = getattr(target, name)
    except (ImportError, AttributeError) as error:
        return f"a part of its name ({error})"
    function = inspect.unwrap(target)
    missing: list[str] = []
    if seam.parameters:
        taken = inspect.signature(function).parameters
        missing += [name for name in seam.parameters if name not in taken]
    if seam.sets:
        # what a function sets on self is among the names that its code uses
        code = getattr(function, "__code__", None)
        missing += [name for name in seam.sets if code is None or name not in code.co_names]
    return ", ".join(missing) or None


check(version("livekit-agents"))

# Private, so imported only once the check has passed.
from livekit.agents import llm  # noqa: E402
from livekit.agents.llm.async_toolset import AsyncToolset  # noqa: E402
from livekit.agents.voice import events  # noqa: E402
from livekit.agents.voice.agent_activity import (  # noqa: E402
    ActivityClosedError,
    AgentActivity,
    _AgentActivityContextVar,
)
from livekit.agents.voice.run_result import (  # noqa: E402
    _run_mock,  # pyright: ignore[reportUnknownVariableType]
)
from livekit.agents.voice.tool_executor import _ToolExecutor as ToolExecutor  # noqa: E402

__all__ = [
    "ActivityClosedError",
    "AgentActivity",
    "ToolExecutor",
    "UnsupportedLivekitError",
]

_T = TypeVar("_T")


# -- what livekit builds


def turn_into(instance: object, kind: type[_T]) -> _T:
    """Give an instance that livekit built the behaviour of `kind`, which must add no state."""
    instance.__class__ = kind
    return cast("_T", instance)


def set_executor(activity: AgentActivity, kind: type[_T]) -> None:
    """Give the executor of `activity` the behaviour of `kind`."""
    turn_into(activity._tool_executor, kind)


def executors_of_toolsets(tools: Sequence[Tool | Toolset]) -> list[ToolExecutor]:
    """The executors that toolsets among `tools`, nested ones too, carry of their own."""
    executors: list[ToolExecutor] = []
    for tool in tools:
        if isinstance(tool, AsyncToolset):
            executors.append(tool._executor)
        if isinstance(tool, llm.Toolset):
            executors += executors_of_toolsets(tool.tools)
    return executors


# -- contexts


def stored_context(agent: Agent) -> ChatContext:
    """The agent's own context; `Agent.chat_ctx` is a read-only view of it."""
    return agent._chat_ctx


def set_stored_context(agent: Agent, context: ChatContext) -> None:
    """Put `context` in the place of the agent's own."""
    agent._chat_ctx = context


def set_history(session: AgentSession[Any], history: ChatContext) -> None:
    """Put `history` in the place of the session's own."""
    session._chat_ctx = history


# -- speeches


def on_item_added(speech: SpeechHandle, callback: Callable[[ChatItem], None]) -> None:
    """Call back for each call and each output of `speech`, as the objects that livekit inserts later."""
    speech._add_item_added_callback(callback)


def on_interrupted(speech: SpeechHandle, callback: Callable[[object], object]) -> None:
    """Call back soon after `speech` is interrupted."""
    speech._interrupt_fut.add_done_callback(callback)


def fail(speech: SpeechHandle, error: BaseException) -> None:
    """End a speech that will never be spoken."""
    speech.interrupt(force=True)
    if speech._generations and speech._generations[-1].done():
        # it was spoken, and waits for another one that may never end: up to 1.8.9, a realtime model's
        # does so in a loop that nothing but this ends
        for task in cast("list[asyncio.Task[Any]]", speech._tasks):
            task.cancel()
        speech._authorize_event.set()  # what waits for that is shielded
    speech._mark_done(error)
    if not speech._done_fut.cancelled():
        # up to 1.6.x the error stands in the future, which nobody may come to look at
        speech._done_fut.exception()


# -- the states of sessions and agents


def current_activity(session: AgentSession[Any]) -> AgentActivity | None:
    """The activity that has the floor."""
    return session._activity


def activity_of(agent: Agent) -> AgentActivity | None:
    """The agent's activity, from its start until it is closed."""
    return agent._activity


def realtime_session_of(agent: Agent) -> RealtimeSession[Any] | None:
    """The connection that serves the agent, if its model is a realtime one and it has the floor."""
    activity = activity_of(agent)
    return cast("RealtimeSession[Any] | None", activity._rt_session) if activity is not None else None


def capabilities_of(connection: RealtimeSession[Any]) -> RealtimeCapabilities:
    """What the model's server can do."""
    # on some releases before 1.6.6 a connection does not say so itself
    return getattr(connection, "capabilities", connection.realtime_model.capabilities)


def activity_of_this_code() -> AgentActivity | None:
    """The activity of whose speeches, tools or hooks the running code is a part."""
    return _AgentActivityContextVar.get(None)


def can_still_speak(activity: AgentActivity) -> bool:
    """Whether an activity that is being paused or drained still speaks what its own tools and hooks say."""
    task = activity._scheduling_atask
    return task is not None and not task.done()


def forget_old_words(activity: AgentActivity) -> None:
    """Let an activity that has the floor again speak, if the caller does not.

    A caller who began to speak under it and stopped under its AgentTask would seem to it to speak for ever.
    """
    if activity.session.user_state != "speaking":
        activity._user_silence_event.set()


def handoff_task(session: AgentSession[Any]) -> asyncio.Task[None] | None:
    """The task of the newest handoff that was asked for."""
    return session._update_activity_atask


def is_switching(session: AgentSession[Any]) -> bool:
    """Whether one activity is just giving way to another."""
    return session._activity_lock.locked()


def is_closing(session: AgentSession[Any]) -> bool:
    """Whether the session closes, or has closed."""
    # a session that is started again keeps the task that closed it before
    closing = session._closing_task
    return session._closing or (closing is not None and not closing.done())


# -- runs under test (`AgentSession.run`)


def keep_run_open(session: AgentSession[Any], task: asyncio.Task[Any]) -> None:
    """Let the run under way wait for `task`."""
    run = cast("RunResult[Any] | None", session._global_run_state)
    if run is not None:
        run._watch_handle(task)


def let_run_end(session: AgentSession[Any], task: asyncio.Task[Any]) -> None:
    """Let the run under way end without `task`, which waits for something that only another run brings."""
    run = cast("RunResult[Any] | None", session._global_run_state)
    if run is not None and run._unwatch_handle(task):
        run._mark_done_if_needed(None)


# -- running tools


def scope_of(executor: ToolExecutor) -> Literal["activity", "session"]:
    """``"session"`` if the executor's calls outlive the activity that they were made in."""
    return "activity" if executor._owning_activity is not None else "session"


def is_of_toolset(executor: ToolExecutor) -> bool:
    """Whether it runs the tools of one toolset, rather than an activity's."""
    activity = executor._owning_activity
    return activity is None or activity._tool_executor is not executor


def names_of_own_toolsets(executor: ToolExecutor) -> set[str]:
    """The tools that end with the activity of `executor`, since it closes the toolsets that they are of."""
    activity = executor._owning_activity
    if activity is None:
        return set()
    own = [tool for tool in activity._agent.tools if isinstance(tool, llm.Toolset)]
    return names_of([*own, *activity._mcp_tools])


def names_of(tools: Sequence[Tool | Toolset]) -> set[str]:
    """The names of function tools, those of toolsets included."""
    return set(cast("dict[str, Any]", llm.ToolContext(tools).function_tools))


def sessions_of(executor: ToolExecutor) -> set[AgentSession[Any]]:
    """The sessions whose tools the executor runs, or may."""
    sessions: set[AgentSession[Any]] = {running.ctx.session for running in executor._running_tasks.values()}
    activity = executor._owning_activity
    return sessions if activity is None else {*sessions, activity.session}


def forget_running(executor: ToolExecutor, call_id: str) -> None:
    """Let the executor no longer wait for that call, nor stop it."""
    executor._running_tasks.pop(call_id, None)


async def release(ctx: RunContext[Any], message: str) -> bool:
    """Answer a call with `message` while its tool goes on; False if it has been answered already."""
    waiting = ctx._first_update_fut
    if waiting is None or waiting.done():
        return False
    await ctx.update(message, template=_as_it_is)
    return True


def _as_it_is(given: Mapping[str, Any]) -> str:
    return given["message"]


def has_progressed(call: FunctionCall) -> bool:
    """Whether the call was answered with progress, by its tool or by a release, before its tool ended."""
    return bool(call.extra.get("__livekit_agents_tool_non_blocking"))


def is_to_be_told(output: ChatItem) -> bool:
    """Whether a late result or progress asks for a reply; up to 1.6.x each does, and can't say so."""
    return getattr(output, "reply_required", True)


def reply_templates(executor: ToolExecutor) -> Any:
    """The application's wording for late replies (`AsyncToolOptions`)."""
    return executor._tool_options


async def run_mock(mock: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a mock of ``mock_tools`` with as much of a tool's arguments as it takes."""
    return await _run_mock(mock, *args, **kwargs)


def report_late_reply(
    session: AgentSession[Any],
    call_ids: list[str],
    speech: SpeechHandle,
    status: Literal["scheduled", "completed", "interrupted", "skipped"],
) -> None:
    """Emit livekit's own event about a late reply; releases that lack it have nothing to emit."""
    kind = getattr(events, "ToolReplyUpdated", None)
    if kind is not None:
        update = kind(update_ids=call_ids, status=status, speech_id=speech.id)
        session.emit("tool_execution_updated", events.ToolExecutionUpdatedEvent(update=update))
