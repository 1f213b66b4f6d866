"""Draws what happened in a call on the terminal."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..restaurant import Work
from .callfile import CallFile
from .happened import Happened, Said, Thought, count
from .lanes import AGENT, CALLER, CUT, MODEL, TOOL, Picture


def title(call: CallFile) -> RenderableType:
    heading = Text(call.title, style="bold")
    return Group(Rule(heading, style="dim"), Text(call.report, style="dim", justify="center"))


def drawing(happened: Happened, width: int, seconds: float) -> RenderableType:
    """One call on one session class: its lanes, its story, the reservations, and whether it went well.

    Args:
        width: Columns.
        seconds: How much time the picture has room for.
    """
    return Group(
        Text(f"\n{happened.session_class} on livekit-agents {version('livekit-agents')}\n", style="bold"),
        *Picture(happened, width, seconds).lines(),
        Text(),
        _story(happened),
        _reservations(happened),
        _meals(happened),
        Text(f"The longest the caller waits for a word is {happened.silence:.2f} s.", style="dim"),
        _verdict(happened),
    )


def difference(plain: Happened, safe: Happened) -> Text:
    """One line that says what differed."""
    line = Text("\nThe difference: ", style="bold")
    if len(plain.orders) != len(safe.orders):
        line.append(f"{_orders(plain)} on {plain.session_class}, {_orders(safe)} on {safe.session_class}.")
    elif plain.wrong != safe.wrong:
        line.append(f"{plain.session_class}: {'; '.join(plain.wrong) or 'all as expected'}. ")
        line.append(f"{safe.session_class}: {'; '.join(safe.wrong) or 'all as expected'}.")
    else:
        line.append("none in what the file expects.")
    if again := [(n, thought.again[0]) for n, thought in enumerate(plain.thoughts, 1) if thought.again]:
        number, tool = again[0]
        line.append(
            f" {plain.session_class} did not show inference {number} that {tool} had run, so it ran again."
        )
    return line.append("\n")


def _story(happened: Happened) -> RenderableType:
    """Everything in the order of time."""
    rows: list[tuple[float, Text, Text]] = []
    rows += [(said.began, *_said(said)) for said in happened.said]
    rows += [(thought.at, *_thought(n, thought)) for n, thought in enumerate(happened.thoughts, 1)]
    rows += [(work.ended or happened.seconds, *_work(happened, work)) for work in happened.work]
    for who, style, notes in (
        ("handoff", "blue", happened.handoffs),
        ("safe_session", "blue", happened.decisions),
        ("error", "bold red", happened.errors),
    ):
        rows += [(note.at, Text(who, style=style), Text(note.text)) for note in notes]
    story = Table.grid(padding=(0, 2))
    story.add_column(justify="right", style="dim", no_wrap=True)
    story.add_column(no_wrap=True)
    story.add_column(overflow="fold")
    for at, who, what in sorted(rows, key=lambda row: row[0]):
        story.add_row(f"{at:.1f}", who, what)
    return story


def _work(happened: Happened, work: Work) -> tuple[Text, Text]:
    text = Text(f"{work.outcome} after {(work.ended or happened.seconds) - work.started:.1f} s")
    if not happened.was_shown(work):
        text.append("; the model is never shown it", style="red")
    return Text(work.tool, style=TOOL), text


def _said(said: Said) -> tuple[Text, Text]:
    who = Text(said.who, style=CALLER if said.who == "caller" else AGENT)
    if said.typed:
        who.append(" types", style="dim")
    text = Text(said.heard)
    if said.cut_off:
        text.append(f" {CUT} cut off", style="bold red")
    return who, text


def _thought(number: int, thought: Thought) -> tuple[Text, Text]:
    text = Text()
    for template, style, tools in (
        ("knows {}", "", thought.tools("done", "failed")),
        ("sees {} running", "", thought.tools("running")),
        ("is not shown {}", "bold red", thought.tools("not shown")),
    ):
        if tools:
            text.append("; " if text else "").append(template.format(", ".join(tools)), style=style)
    if thought.called:
        text.append(f"{' ' if text else ''}→ calls {', '.join(thought.called)}", style="bold")
    return Text(f"model {number}", style=MODEL), text or Text("–", style="dim")


def _meals(happened: Happened) -> RenderableType:
    meals = ", ".join(map(str, happened.meals))
    return Text(f"The kitchen cooks, to take away: {meals}.", style="dim") if meals else Group()


def _reservations(happened: Happened) -> RenderableType:
    if not happened.reservations:
        return Padding(Text("The book has no reservations.", style="dim"), (1, 0, 0, 0))
    table = Table("order", "name", "day", "time", "people", box=SIMPLE_HEAD, title_justify="left")
    for r in happened.reservations:
        table.add_row(r.order, r.name, r.day, r.time, str(r.people))
    return table


def _verdict(happened: Happened) -> Text:
    if not happened.wrong:
        return Text(f"{happened.session_class}: all as expected, every tool call kept.", style="bold green")
    return Text("\n").join(
        Text(f"{happened.session_class}: {problem}", style="bold red") for problem in happened.wrong
    )


def _orders(happened: Happened) -> str:
    numbers = f" ({', '.join(happened.orders)})" if happened.orders else ""
    return f"{count(len(happened.orders), 'order')}{numbers}"


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or 100 columns where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return Console(stderr=stderr, width=width, highlight=False)
