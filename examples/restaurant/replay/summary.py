"""All calls in one table: how each went on both classes, and how long the caller waited for a word."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .happened import Happened

GOOD, BAD = ("✓", "bold green"), ("✗", "bold red")


def summary(played: Iterable[tuple[Happened, Happened]]) -> RenderableType:
    """The table, and how to see more.

    Args:
        played: Each call on a plain session and on a safe one.
    """
    pairs = list(played)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("call", style="bold", overflow="fold")
    for happened in pairs[0]:
        table.add_column(happened.session_class, overflow="fold")
    table.add_column("what differed", ratio=1)
    for plain, safe in pairs:
        table.add_row(plain.call.path.stem, _how(plain), _how(safe), _what_differed(plain, safe))
    return Group(
        table,
        Text("Seconds: the longest silence from the end of the caller's words to the agent's first word."),
        Text("To see one drawn: python -m examples.restaurant replay examples/restaurant/calls/CALL.yaml\n"),
    )


def _how(happened: Happened) -> Text:
    return Text.assemble(BAD if happened.wrong else GOOD, f" {happened.silence:.2f} s")


def _what_differed(plain: Happened, safe: Happened) -> Text:
    lines = [Text(plain.call.title, style="dim")]
    lines += [Text(f"{safe.session_class}: {problem}", style="bold red") for problem in safe.wrong]
    lines += [Text(problem) for problem in plain.wrong if problem not in safe.wrong]
    return Text("\n").join(lines)
