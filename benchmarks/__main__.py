"""Measure both classes and print how they compare: ``python -m benchmarks``.

With ``--write``, the tables and plots of docs/benchmarks.md as well.
"""

from __future__ import annotations

import argparse
import logging
import platform
from importlib.metadata import version

from livekit.agents import AgentSession
from rich.console import Console

from benchmarks import capacity, memory, page, promptness, turns
from safe_session import SafeAgentSession

KINDS = (AgentSession, SafeAgentSession)


def main() -> None:
    """Print, and perhaps write, every figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and its plots")
    parser.add_argument("--repetitions", type=int, default=100, help="of each turn (100)")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # livekit reports the interruption timeouts that are measured here
    console = Console()
    tables: list[page.Figures] = []

    def shown(figures: page.Figures) -> None:
        tables.append(figures)
        page.show(figures, console)

    silences = promptness.silences(KINDS)
    verdicts = [promptness.is_within_target(silence) for silence in silences]
    shown(page.Figures("silence", "silence after an interruption", "seconds", silences, verdicts=verdicts))
    shown(page.Figures("handoff", "time to a handoff", "seconds", promptness.handoffs(KINDS)))
    costs = turns.main(KINDS, arguments.repetitions)
    verdicts = [turns.is_within_target(cost) for cost in costs]
    shown(page.Figures("turns", "CPU time of a turn", "milliseconds", costs, scale=1000, verdicts=verdicts))
    taken = memory.main(KINDS)
    shown(page.Figures("memory", "memory per call", "kilobytes", memory.per_call(*taken)))
    carried = capacity.main(KINDS, max(2, arguments.repetitions // 10))
    shown(page.Figures("capacity", "steady traffic", "a turn every ten seconds", carried))
    if arguments.write:
        from benchmarks import plots  # noqa: PLC0415 - only what is written needs matplotlib

        page.write(tables, _made_on())
        plots.plot_silence(silences, promptness.DURATIONS)
        plots.plot_turns(costs)
        plots.plot_memory(*taken)


def _made_on() -> str:
    """What the figures hold for."""
    livekit, python = version("livekit-agents"), platform.python_version()
    machine = f"{platform.system()} ({platform.machine()})"
    return f"Measured with livekit-agents {livekit} and Python {python} on {machine}."


if __name__ == "__main__":
    main()
