"""Print every figure for the plain session, for the safe one, and how they compare."""

from __future__ import annotations

import logging
from importlib.metadata import version

from livekit.agents import AgentSession
from rich.console import Console
from rich.table import Table

from benchmarks.promptness import handoff_while_a_tool_runs, silence_after_talking_over
from safe_session import SafeAgentSession
from safe_session.testing import run

_MEASURES = (
    *((f"silence after talking over a {n} s tool", silence_after_talking_over, n) for n in (2.0, 4.0, 8.0)),
    ("handoff while a 4 s async tool runs", handoff_while_a_tool_runs, 4.0),
)


def main() -> None:
    logging.disable(logging.CRITICAL)  # livekit reports the interruption timeouts that are measured here
    table = Table("measured (seconds)", title=f"livekit-agents {version('livekit-agents')}")
    for heading in ("AgentSession", "SafeAgentSession", "ratio"):
        table.add_column(heading, justify="right")
    for name, measure, seconds in _MEASURES:
        plain = run(measure(AgentSession, seconds))
        safe = run(measure(SafeAgentSession, seconds))
        ratio = f"{safe / plain:.2f}" if plain else "–"
        table.add_row(name.replace(".0", ""), f"{plain:.2f}", f"{safe:.2f}", ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
