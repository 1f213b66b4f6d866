"""The picture of a call: time runs to the right, and everyone has a lane."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from .happened import Happened

LABEL = 20  # columns
STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300)  # seconds between two marks on the axis

CALLER, AGENT, TOOL, MODEL = "cyan", "green", "yellow", "magenta"
CUT, DONE, BROKEN, HANDOFF = "╳", "●", "✗", "⇢"


class Picture:
    """Lanes that are all to one scale."""

    def __init__(self, happened: Happened, width: int, seconds: float) -> None:
        self._happened = happened
        self._seconds = seconds
        self._columns = max(20, width - LABEL - 1)
        self._scale = self._columns / max(seconds, 1.0)

    def lines(self) -> Iterator[Text]:
        happened = self._happened
        yield self._axis()
        caller, agent = self._lane("caller"), self._lane("agent")
        for said in happened.said:
            lane, style = (caller, CALLER) if said.who == "caller" else (agent, AGENT)
            lane.fill(said.began, said.ended, "━", style)
            if said.cut_off:
                lane.mark(said.ended, CUT, "bold red")
        for note in happened.handoffs:
            agent.mark(note.at, HANDOFF, "bold blue")
        yield caller.line()
        yield agent.line()
        for tool in dict.fromkeys(work.tool for work in happened.work):
            yield self._tool(tool)
        model = self._lane("model")
        for number, thought in enumerate(happened.thoughts, 1):
            model.mark(thought.at, str(number), MODEL, beside=True)
        yield model.line()

    def _tool(self, tool: str) -> Text:
        lane = self._lane(tool)
        for work in self._happened.work:
            if work.tool == tool:
                ended = self._happened.seconds if work.ended is None else work.ended
                lane.fill(work.started, ended, "▒", TOOL)
                lane.mark(ended, DONE if work.outcome == "done" else BROKEN, TOOL)
        return lane.line()

    def _axis(self) -> Text:
        lane = self._lane("seconds", style="dim")
        step = next((s for s in STEPS if s * self._scale >= 6), STEPS[-1])
        for second in range(0, int(self._seconds - 2 / self._scale), step):
            lane.mark(second, str(second), "dim")
        return lane.line()

    def _lane(self, label: str, style: str = "") -> _Lane:
        return _Lane(label, style, self._columns, self._scale)


class _Lane:
    def __init__(self, label: str, style: str, columns: int, scale: float) -> None:
        self._label = label
        self._style = style
        self._scale = scale
        self._cells: list[tuple[str, str]] = [("·", "dim")] * columns

    def fill(self, began: float, ended: float, cell: str, style: str) -> None:
        for column in range(self._column(began), self._column(ended) + 1):
            self._cells[column] = (cell, style)

    def mark(self, at: float, mark: str, style: str, *, beside: bool = False) -> None:
        """Put a mark; with `beside`, to the right of one that is there already."""
        column = self._column(at)
        while beside and self._cells[column][0] != "·" and column + 1 < len(self._cells):
            column += 1
        for place, character in enumerate(mark, column):
            if place < len(self._cells):
                self._cells[place] = (character, style)

    def line(self) -> Text:
        line = Text(f"{self._label:<{LABEL}.{LABEL}} ", style=self._style, no_wrap=True, overflow="crop")
        for cell, style in self._cells:
            line.append(cell, style=style)
        return line

    def _column(self, at: float) -> int:
        return min(len(self._cells) - 1, max(0, int(at * self._scale)))
