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
    from collections.abc import Callable, Sequence

    from livekit.agents import Agent, AgentSession
    from livekit.agents.llm import ChatContext, ChatItem, Tool, Toolset
    from livekit.agents.voice import SpeechHandle

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
    _Seam(f"{_VOICE}.agent:Agent.__init__", sets=("_chat_ctx",)),
    _Seam(f"{_VOICE}.agent_session:AgentSession.__init__", sets=("_chat_ctx", "_next_activity")),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity.__init__", sets=("_agent", "_session", "_tool_executor")),
    _Seam(
        f"{_VOICE}.agent_activity:AgentActivity._pipeline_reply_task",
        parameters=("speech_handle", "chat_ctx", "tools"),
    ),
    _Seam(f"{_VOICE}.agent_activity:AgentActivity.update_chat_ctx", parameters=("chat_ctx",)),
    _Seam(f"{_VOICE}.tool_executor:_ToolExecutor.__init__", sets=("_owning_activity",)),
    _Seam(
        f"{_VOICE}.tool_executor:_ToolExecutor.execute",
        parameters=("tool", "run_ctx", "raw_arguments", "mock"),
    ),
    _Seam(f"{_VOICE}.tool_executor:_ToolExecutor._enqueue_reply", parameters=("ctx", "items")),
    _Seam(f"{_VOICE}.run_result:_run_mock", parameters=("mock",)),
    _Seam(
        f"{_VOICE}.speech_handle:SpeechHandle._add_item_added_callback",
        parameters=("callback",),
    ),
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
    parameters = inspect.signature(function).parameters
    missing = [name for name in seam.parameters if name not in parameters]
    # what a function sets on self is among the names that its code uses
    missing += [name for name in seam.sets if name not in function.__code__.co_names]
    return ", ".join(missing) or None


check(version("livekit-agents"))

# Private, so imported only once the check has passed.
from livekit.agents.llm import Toolset as _Toolset  # noqa: E402
from livekit.agents.llm.async_toolset import AsyncToolset as _AsyncToolset  # noqa: E402
from livekit.agents.voice.agent_activity import AgentActivity  # noqa: E402
from livekit.agents.voice.run_result import (  # noqa: E402
    _run_mock,  # pyright: ignore[reportUnknownVariableType]
)
from livekit.agents.voice.tool_executor import _ToolExecutor as ToolExecutor  # noqa: E402

__all__ = [
    "AgentActivity",
    "ToolExecutor",
    "UnsupportedLivekitError",
    "executors_of_toolsets",
    "on_item_added",
    "run_mock",
    "scope_of",
    "set_executor",
    "set_history",
    "set_stored_context",
    "stored_context",
    "turn_into",
]

_T = TypeVar("_T")


def turn_into(instance: object, kind: type[_T]) -> _T:
    """Give an instance that livekit built the behaviour of `kind`, which must add no state."""
    instance.__class__ = kind
    return cast("_T", instance)


def on_item_added(speech: SpeechHandle, callback: Callable[[ChatItem], None]) -> None:
    """Call back for each call and each output of `speech`, as the objects that livekit inserts later."""
    speech._add_item_added_callback(callback)


def stored_context(agent: Agent) -> ChatContext:
    """The agent's own context; `Agent.chat_ctx` is a read-only view of it."""
    return agent._chat_ctx


def set_stored_context(agent: Agent, context: ChatContext) -> None:
    """Put `context` in the place of the agent's own."""
    agent._chat_ctx = context


def set_history(session: AgentSession[Any], history: ChatContext) -> None:
    """Put `history` in the place of the session's own."""
    session._chat_ctx = history


def set_executor(activity: AgentActivity, kind: type[_T]) -> None:
    """Give the executor of `activity` the behaviour of `kind`."""
    turn_into(activity._tool_executor, kind)


def executors_of_toolsets(tools: Sequence[Tool | Toolset]) -> list[ToolExecutor]:
    """The executors that toolsets among `tools`, nested ones too, carry of their own."""
    executors: list[ToolExecutor] = []
    for tool in tools:
        if isinstance(tool, _AsyncToolset):
            executors.append(tool._executor)
        if isinstance(tool, _Toolset):
            executors += executors_of_toolsets(tool.tools)
    return executors


def scope_of(executor: ToolExecutor) -> Literal["activity", "session"]:
    """``"session"`` if the executor's calls outlive the activity that they were made in."""
    return "activity" if executor._owning_activity is not None else "session"


async def run_mock(mock: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a mock of ``mock_tools`` with as much of a tool's arguments as it takes."""
    return await _run_mock(mock, *args, **kwargs)
