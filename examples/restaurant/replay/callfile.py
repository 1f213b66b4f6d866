"""A call written down in a file. `calls/README.md` describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ..book import Book, BookError
from ..model.decide import THINKING
from ..opening import OpeningError
from ..restaurant import DURATIONS
from .nodes import Node, read_yaml

T = TypeVar("T")

NOW = datetime(2025, 12, 2, 12, 0)  # a Tuesday: when every call of a file takes place
CALLS = Path(__file__).parents[1] / "calls"

MOMENTS = (
    "agent speaks",
    "agent stops",
    "all is quiet",
    *(f"{tool} {moment}" for tool in DURATIONS for moment in ("starts", "ends")),
)
Action = Literal["says", "types", "hangs up"]
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True)
class Step:
    """Something that the caller does, and when.

    Attributes:
        at: Seconds after the call began; or None, and `moment` says when.
        moment: One of `MOMENTS`, the next time that it comes after the step before.
        after: Seconds after that moment.
        action: What the caller does.
        words: What the caller says or types.
    """

    action: Action
    words: str = ""
    at: float | None = None
    moment: str | None = None
    after: float = 0.0


@dataclass(frozen=True)
class Expect:
    """What must be true after the call.

    Attributes:
        orders: How many reservations stand in the book.
        runs: How often tools must have run.
        told: Words that the caller must have heard.
        kept: Tools whose results must be in the session's history.
        known: Tools whose results the agent that talks last must have in its context.
        silence: How many seconds the caller may have waited for a word.
        errors: How many errors livekit-agents may have logged.
    """

    orders: int | None = None
    runs: Mapping[str, int] = field(default_factory=dict[str, int])
    told: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    silence: float | None = None
    errors: int | None = None


@dataclass(frozen=True)
class CallFile:
    """A call: what the caller does, how long the tools and the model take, and what must come of it.

    Attributes:
        book: The reservations from before the call, as the book takes them.
    """

    path: Path
    title: str
    report: str
    durations: Mapping[str, float]
    thinking: float
    timeline: tuple[Step, ...]
    expect: Expect
    book: tuple[Mapping[str, Any], ...] = ()


def load(path: Path) -> CallFile:
    """Read a call.

    Raises:
        FileError: The file is not as it should be; the message names the line.
    """
    document = read_yaml(path)
    call = document.mapping(("title", "report", "book", "durations", "thinking", "timeline", "expect"))
    if "timeline" not in call:
        raise document.error("a call needs a timeline")
    return CallFile(
        path=path,
        title=call.take("title", Node.text, path.stem),
        report=call.take("report", Node.text, ""),
        durations={**DURATIONS, **call.take("durations", lambda node: _by_tool(node, Node.number), {})},
        thinking=call.take("thinking", Node.number, THINKING),
        timeline=tuple(_step(item) for item in call["timeline"].items()),
        expect=call.take("expect", _expect, Expect()),
        book=call.take("book", _reservations, ()),
    )


def _reservations(node: Node) -> tuple[dict[str, Any], ...]:
    with closing(Book(now=lambda: NOW)) as book:
        return tuple(_reservation(item, book) for item in node.items())


def _reservation(node: Node, book: Book) -> dict[str, Any]:
    """A reservation that the book takes."""
    fields = {"name": Node.text, "day": Node.text, "time": Node.text, "people": Node.whole_number}
    written = node.mapping(tuple(fields))
    if missing := [field for field in fields if field not in written]:
        raise node.error(f"a reservation needs {' and '.join(missing)}")
    reservation = {field: read(written[field]) for field, read in fields.items()}
    try:
        book.create(**reservation)
    except (BookError, OpeningError) as error:
        raise node.error(str(error)) from None
    return reservation


def _by_tool(node: Node, read: Callable[[Node], T]) -> dict[str, T]:
    return {tool: read(value) for tool, value in node.mapping(tuple(DURATIONS), "tool").items()}


def _step(node: Node) -> Step:
    step = node.mapping(("at", "when", "after", *ACTIONS))
    actions: list[Action] = [action for action in ACTIONS if step.get(action)]
    if len(actions) != 1:
        raise node.error(f"a step needs one action, of: {', '.join(ACTIONS)}")
    action = actions[0]
    if ("at" in step) == ("when" in step):
        raise node.error("a step needs either 'at' (seconds) or 'when' (a moment)")
    if "after" in step and "at" in step:
        raise step["after"].error("'after' goes with 'when', not with 'at'")
    return Step(
        action=action,
        words="" if action == "hangs up" and step[action].true() else step[action].text(),
        at=step.take("at", Node.number, None),
        moment=step.take("when", lambda when: when.one_of(MOMENTS, "moment"), None),
        after=step.take("after", Node.number, 0.0),
    )


def _expect(node: Node) -> Expect:
    expect = node.mapping(("orders", "runs", "told", "kept", "known", "silence", "errors"))
    return Expect(
        orders=expect.take("orders", Node.whole_number, None),
        runs=expect.take("runs", lambda runs: _by_tool(runs, Node.whole_number), {}),
        told=expect.take("told", lambda told: tuple(words.text() for words in told.items()), ()),
        kept=expect.take("kept", _tools, ()),
        known=expect.take("known", _tools, ()),
        silence=expect.take("silence", Node.number, None),
        errors=expect.take("errors", Node.whole_number, None),
    )


def _tools(node: Node) -> tuple[str, ...]:
    return tuple(item.one_of(tuple(DURATIONS), "tool") for item in node.items())
