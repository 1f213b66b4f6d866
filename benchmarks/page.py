"""The tables of docs/benchmarks.md, and the same on a terminal.

What stands around them in the page is written by hand, and stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from benchmarks.compare import Comparison, Spread

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"


@dataclass(frozen=True)
class Figures:
    """One table: what was measured, in what unit, and whether it has to meet a target.

    Attributes:
        name: Of its place in the page.
        title: Above it on a terminal.
        unit: Of the figures.
        rows: What was measured.
        scale: From the figures to the unit.
        verdicts: Whether each row meets its target; None if there is none.
    """

    name: str
    title: str
    unit: str
    rows: Sequence[Comparison]
    scale: float = 1.0
    verdicts: Sequence[bool] | None = None

    def cells(self) -> list[list[str]]:
        head = [self.unit, "AgentSession", "SafeAgentSession", "added", "ratio"]
        if self.verdicts is None:
            return [head, *(self._row(row) for row in self.rows)]
        judged = zip(self.rows, self.verdicts, strict=True)
        return [
            [*head, "target"],
            *([*self._row(row), "met" if verdict else "missed"] for row, verdict in judged),
        ]

    def _row(self, row: Comparison) -> list[str]:
        spreads = (row.plain, row.safe, row.added)
        ratio = "–" if row.ratio is None else _text(row.ratio, 1.0)
        return [row.what, *(_text(spread, self.scale) for spread in spreads), ratio]


def _text(spread: Spread, scale: float) -> str:
    """The median, and the quartiles where they differ from it."""
    low, median, high = (f"{value * scale:.2f}" for value in (spread.low, spread.median, spread.high))
    return median if low == high else f"{median} ({low} to {high})"


def show(figures: Figures, console: Console) -> None:
    """Print a table."""
    head, *rows = figures.cells()
    table = Table(head[0], title=figures.title)
    for heading in head[1:]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def write(tables: Sequence[Figures], made_on: str) -> None:
    """Put the tables into the page."""
    page = _replaced(PAGE.read_text(), "made-on", made_on)
    for figures in tables:
        head, *rows = figures.cells()
        rule = ["---", *(["---:"] * (len(head) - 1))]
        page = _replaced(
            page, figures.name, "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
        )
    PAGE.write_text(page)


def _replaced(page: str, name: str, text: str) -> str:
    """The page with `text` in the place of what stands between the two comments of that name."""
    marked = re.compile(f"(?<=<!-- {name} -->\n).*?(?=\n?<!-- /{name} -->)", re.DOTALL)
    if not marked.search(page):
        raise SystemExit(f"{PAGE} has no place for {name!r}")
    return marked.sub(lambda _: f"{text}\n", page)
