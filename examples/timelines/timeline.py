"""A timeline: who there is, what the models decide, and what happens when. A file can hold it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

Medium = Literal["text", "voice", "realtime"]
Ending = Literal["result", "error", "nothing", "agent", "agent and result"]
Act = Literal[
    "says",
    "types",
    "types over",
    "types twice",
    "interrupts",
    "announces",
    "asks for a reply",
    "hands over",
    "completes",
]


@dataclass(frozen=True)
class Tool:
    """What a tool does.

    Attributes:
        seconds: how long it works, after its reports.
        reports: the pauses before each `ctx.update()`.
        ends: what it gives.
        to: the number of the desk that it hands over to, if it gives an agent.
        asks: whether it awaits the form first.
        cancellable: whether a handoff cancels it.
        repeat: see `ToolPolicy`.
        on_handoff: see `ToolPolicy`.
    """

    seconds: float = 0.0
    reports: tuple[float, ...] = ()
    ends: Ending = "result"
    to: int = 0
    asks: bool = False
    cancellable: bool = False
    repeat: Literal["knowingly", "once", "freely"] = "knowingly"
    on_handoff: Literal["drop", "retarget"] = "drop"


@dataclass(frozen=True)
class Desk:
    """An agent.

    Attributes:
        tools: its tools.
        toolset: those of an `AsyncToolset` of its own.
        enters: seconds that its `on_enter` takes.
        greets: what it does at the end of that.
        leaves: seconds that its `on_exit` takes.
        says_goodbye: whether it says something in it.
        thinks: seconds that its `on_user_turn_completed` takes.
        knows: whether it is built with the context of the agent before.
        returns: whether a handoff to it goes to the agent that was there before, if that one has left.
    """

    tools: tuple[Tool, ...] = ()
    toolset: tuple[Tool, ...] = ()
    enters: float = 0.0
    greets: Literal["", "says", "replies"] = ""
    leaves: float = 0.0
    says_goodbye: bool = False
    thinks: float = 0.0
    knows: bool = False
    returns: bool = False


@dataclass(frozen=True)
class Form:
    """The AgentTask that tools await.

    Attributes:
        tools: its tools, beside the one that completes it.
        enters: seconds that its `on_enter` takes.
        asks: whether it then asks for a reply.
        completes: the seconds after which it is complete by itself, or None.
        leaves: seconds that its `on_exit` takes.
    """

    tools: tuple[Tool, ...] = ()
    enters: float = 0.0
    asks: bool = False
    completes: float | None = None
    leaves: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What a model does in one inference; those that follow the last decision answer the caller.

    Attributes:
        words: how many words it says.
        calls: its calls: which of the tools that it is offered, and with which argument.
        delay: seconds before the first word.
        pace: seconds between two words.
        calls_first: whether it makes its calls before it speaks.
        fails: whether it fails in the end.
    """

    words: int = 2
    calls: tuple[tuple[int, int], ...] = ()
    delay: float = 0.0
    pace: float = 0.0
    calls_first: bool = False
    fails: bool = False


@dataclass(frozen=True)
class Event:
    """Something that the caller or the application does.

    Attributes:
        after: seconds after the event before.
        act: what they do.
        words: how many words the caller says.
        to: the number of the desk that the application hands over to.
    """

    after: float = 0.0
    act: Act = "types"
    words: int = 1
    to: int = 0


@dataclass(frozen=True)
class Server:
    """The server of a realtime model.

    Attributes:
        replies_by_itself: whether it replies once all its calls are answered.
        mutable: whether its context and its instructions can be changed.
        fails: which pushes fail, counted from 1.
    """

    replies_by_itself: bool = False
    mutable: bool = True
    fails: tuple[int, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """One call.

    Attributes:
        medium: how the caller and the session talk.
        desks: the agents; the first one answers.
        form: the AgentTask.
        session_tools: the tools of an `AsyncToolset` of the session's.
        decisions: those of the model, in order.
        events: what happens.
        rests: seconds after the last event, before the session closes; None: until all is quiet.
        drains: whether it closes once all has been said.
        server: of the realtime model.
        preemptive: whether the session may start to generate before a turn has ended.
        grace: see `SafeOptions.interruption_grace`.
        close_timeout: see `SafeOptions`.
        interrupted_handoff: see `SafeOptions`.
    """

    medium: Medium = "text"
    desks: tuple[Desk, ...] = (Desk(),)
    form: Form = Form()
    session_tools: tuple[Tool, ...] = ()
    decisions: tuple[Decision, ...] = ()
    events: tuple[Event, ...] = ()
    rests: float | None = None
    drains: bool = False
    server: Server = Server()
    preemptive: bool = False
    grace: float = 0.25
    close_timeout: float = 2.0
    interrupted_handoff: Literal["cancel", "apply"] = "cancel"


_KIND = TypeAdapter(Timeline)


def loaded(written: dict[str, Any]) -> Timeline:
    return _KIND.validate_python(written)


def dumped(timeline: Timeline) -> dict[str, Any]:
    """As it can be written down; what is as it is by default is left out."""
    return _KIND.dump_python(timeline, mode="json", exclude_defaults=True)


class NoTimelineError(Exception):
    """What is wrong with a file."""


def is_one(path: Path) -> bool:
    """Whether the file holds a timeline, rather than anything else."""
    try:
        written = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return isinstance(written, dict) and not written.keys().isdisjoint(Timeline.__dataclass_fields__)


def load(path: Path) -> Timeline:
    """Read a timeline.

    Raises:
        NoTimelineError: The file does not hold one; the message says at which key.
    """
    try:
        return loaded(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise NoTimelineError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def save(timeline: Timeline, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dumped(timeline), sort_keys=False, allow_unicode=True), encoding="utf-8")
