"""What may be configured: `SafeOptions` for a session, `ToolPolicy` for one tool."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Repeat = Literal["knowingly", "once", "freely"]
OnHandoff = Literal["drop", "retarget"]
InterruptedHandoff = Literal["cancel", "apply", "forget"]

_ToolT = TypeVar("_ToolT", bound=Callable[..., Any])
_POLICY_ATTRIBUTE = "__safe_session_policy__"


@dataclass(frozen=True, kw_only=True)
class ToolPolicy:
    """How the calls of one tool are treated.

    Attributes:
        repeat: when a call that repeats an earlier one (same tool, same validated arguments) runs.
            ``"knowingly"`` (default): unless the model could not know of the earlier call.
            ``"once"``: never; the tool runs once per arguments and conversation, later calls get its
            result. A call that failed does not count.
            ``"freely"``: always.
        on_handoff: what becomes of a late result when the agent that made the call has left.
            ``"drop"`` (default): it is in the contexts and the history, nobody tells it.
            ``"retarget"``: the current agent tells it.

    Raises:
        ValueError: if a value is none of those named.

    """

    repeat: Repeat = "knowingly"
    on_handoff: OnHandoff = "drop"

    def __post_init__(self) -> None:
        _check_choice("ToolPolicy.repeat", self.repeat, get_args(Repeat))
        _check_choice("ToolPolicy.on_handoff", self.on_handoff, get_args(OnHandoff))


@dataclass(frozen=True, kw_only=True)
class SafeOptions:
    """How a `SafeAgentSession` keeps its guarantees.

    Attributes:
        interruption_grace: seconds that running tools get to end after the caller interrupted their turn,
            before they are released: the conversation goes on, and their results are told when they land.
            None: wait for them, as livekit does.
        close_timeout: seconds that running tools get to end when the session closes, before they are
            stopped. None: wait without a limit.
        redeliver: how often a late reply that was interrupted before anything of it was heard is offered
            again.
        interrupted_handoff: what becomes of a handoff that a tool returned in a turn which the caller
            interrupted. ``"cancel"`` (default): the call's record says that it did not happen.
            ``"apply"``: it happens. ``"forget"``: neither it nor its call leaves a trace in contexts and
            history, as in livekit up to 1.6.10; a model may then make the call anew.
        policies: the `ToolPolicy` of a tool, by the tool's name; for tools that can't be decorated with
            `tool_policy` (those of an MCP server). It wins over the decorator.

    Raises:
        ValueError: if a value is none of those named, or negative.
        TypeError: if a value is of the wrong type.

    """

    interruption_grace: float | None = 0.25
    close_timeout: float | None = 10.0
    redeliver: int = 1
    interrupted_handoff: InterruptedHandoff = "cancel"
    policies: Mapping[str, ToolPolicy] = field(default_factory=dict[str, ToolPolicy])

    def __post_init__(self) -> None:
        _check_seconds("SafeOptions.interruption_grace", self.interruption_grace)
        _check_seconds("SafeOptions.close_timeout", self.close_timeout)
        _check_count("SafeOptions.redeliver", self.redeliver)
        _check_choice(
            "SafeOptions.interrupted_handoff", self.interrupted_handoff, get_args(InterruptedHandoff)
        )
        for name, policy in self.policies.items():
            _check_policy(f"SafeOptions.policies[{name!r}]", policy)

    def policy_of(self, tool: object, name: str) -> ToolPolicy:
        """The policy for `tool`, which models call by `name`."""
        return self.policies.get(name) or getattr(tool, _POLICY_ATTRIBUTE, _DEFAULT)


def tool_policy(
    *, repeat: Repeat = "knowingly", on_handoff: OnHandoff = "drop"
) -> Callable[[_ToolT], _ToolT]:
    """Give a function tool its `ToolPolicy`; stands above ``@function_tool``, or below it.

        @tool_policy(repeat="once")
        @function_tool
        async def charge_card(self, ctx: RunContext, amount: int) -> str: ...

    Args:
        repeat: see `ToolPolicy`.
        on_handoff: see `ToolPolicy`.

    Raises:
        ValueError: if a value is none of those that `ToolPolicy` names.

    """
    policy = ToolPolicy(repeat=repeat, on_handoff=on_handoff)

    def decorate(tool: _ToolT) -> _ToolT:
        # livekit binds a tool to its agent by wrapping the plain function anew, which copies the
        # function's attributes and not the tool's.
        for target in (tool, getattr(tool, "__wrapped__", tool)):
            setattr(target, _POLICY_ATTRIBUTE, policy)
        return tool

    return decorate


def _check_choice(what: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{what} is {value!r}; it must be one of {', '.join(map(repr, choices))}")


def _check_seconds(what: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what} is {value!r}; it must be a number of seconds, or None")
    if not 0 <= value < math.inf:
        raise ValueError(f"{what} is {value!r}; it must be 0 or more seconds, or None for no limit")


def _check_count(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is {value!r}; it must be a whole number")
    if value < 0:
        raise ValueError(f"{what} is {value!r}; it must be 0 or more")


def _check_policy(what: str, value: object) -> None:
    if not isinstance(value, ToolPolicy):
        raise TypeError(f"{what} is {value!r}; it must be a ToolPolicy, such as ToolPolicy(repeat='once')")


_DEFAULT = ToolPolicy()
