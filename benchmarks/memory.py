"""What a call leaves in memory, in a session whose contexts nobody trims."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc
from typing import TYPE_CHECKING

from benchmarks.caller import Clerk, ObedientModel, ask_for
from benchmarks.compare import Comparison
from safe_session.ledger import REMEMBERED_ENDINGS

if TYPE_CHECKING:
    from livekit.agents import AgentSession

AT_ONCE = 16
STEP = 64
CALLS = 4 * REMEMBERED_ENDINGS


async def memory_by_calls(kind: type[AgentSession]) -> list[float]:
    """Kilobytes that a session takes, before any call and after each `STEP` of them."""
    tracemalloc.start()
    session = kind(llm=ObedientModel())
    await session.start(Clerk())
    await session.generate_reply(user_input=ask_for("look_up"))  # what there is once, whatever is called
    before = _kilobytes()
    taken = [0.0]
    for _ in range(CALLS // STEP):
        for _ in range(STEP // AT_ONCE):
            await session.generate_reply(user_input=ask_for("look_up", times=AT_ONCE))
        taken.append(_kilobytes() - before)
    await session.aclose()
    tracemalloc.stop()
    return taken


def per_call(plain: list[float], safe: list[float]) -> list[Comparison]:
    """Kilobytes per call, while the ledger fills and once it forgets as many calls as it learns of."""
    full = REMEMBERED_ENDINGS // STEP
    return [
        Comparison.of(
            f"each of the first {REMEMBERED_ENDINGS} calls",
            _slopes(plain[: full + 1]),
            _slopes(safe[: full + 1]),
        ),
        Comparison.of("each call after them", _slopes(plain[full:]), _slopes(safe[full:])),
    ]


def main(kinds: tuple[type[AgentSession], type[AgentSession]]) -> tuple[list[float], list[float]]:
    """What each kind takes as the calls go on."""
    plain, safe = (asyncio.run(memory_by_calls(kind)) for kind in kinds)
    return plain, safe


def _slopes(taken: list[float]) -> list[float]:
    return [(after - before) / STEP for before, after in itertools.pairwise(taken)]


def _kilobytes() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1000
