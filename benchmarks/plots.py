"""The plots of docs/benchmarks.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.memory import STEP
from benchmarks.page import DOCS
from benchmarks.turns import ITEMS, TOOLS, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.compare import Comparison

PLAIN, SAFE = "#b4552d", "#1f6f8b"
mpl.rcParams.update({"svg.hashsalt": "safe_session", "font.size": 10, "axes.spines.top": False})
mpl.rcParams.update(
    {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3, "svg.fonttype": "none"}
)


def plot_turns(turns: Sequence[Comparison]) -> None:
    """CPU time added to a turn, by the length of the history."""
    figure, axes = _figure("items in the history", "CPU time added to a turn (ms)")
    axes.set_xscale("log")
    for place, tools in enumerate(TOOLS):
        added = [turn.added for turn in turns[place * len(ITEMS) : (place + 1) * len(ITEMS)]]
        medians = [1000 * spread.median for spread in added]
        below = [1000 * (spread.median - spread.low) for spread in added]
        above = [1000 * (spread.high - spread.median) for spread in added]
        where = [items * (0.94 + 0.06 * place) for items in ITEMS]  # beside each other
        axes.errorbar(where, medians, (below, above), fmt="o-", capsize=3, label=counted(tools))
    axes.axhline(1.0, color="grey", linestyle="--", label="1 ms")
    _save(figure, axes, "benchmark-turns")


def plot_silence(silence: Sequence[Comparison], durations: Sequence[float]) -> None:
    """Silence after the caller talks over a tool, by how long the tool takes."""
    figure, axes = _figure("the tool takes (s)", "silence (s)")
    axes.plot(durations, [each.plain.median for each in silence], "o-", color=PLAIN, label="AgentSession")
    axes.plot(durations, [each.safe.median for each in silence], "o-", color=SAFE, label="SafeAgentSession")
    _save(figure, axes, "benchmark-silence")


def plot_memory(plain: Sequence[float], safe: Sequence[float]) -> None:
    """What a session takes, by how many calls it has made."""
    figure, axes = _figure("calls", "memory of the session (MB)")
    calls = [STEP * place for place in range(len(plain))]
    axes.plot(calls, [taken / 1000 for taken in plain], color=PLAIN, label="AgentSession")
    axes.plot(calls, [taken / 1000 for taken in safe], color=SAFE, label="SafeAgentSession")
    _save(figure, axes, "benchmark-memory")


def _figure(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.add_subplot(xlabel=x, ylabel=y)
    return figure, axes


def _save(figure: Figure, axes: Axes, name: str) -> None:
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.legend(frameon=False)
    figure.savefig(DOCS / f"{name}.svg", metadata={"Date": None}, facecolor="white")
