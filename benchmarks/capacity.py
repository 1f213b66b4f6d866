"""How many sessions a core carries: the CPU time of this process for steady traffic, on the virtual clock."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

from benchmarks.compare import Comparison
from benchmarks.traffic import TURNS, Conversation
from safe_session.testing import run

if TYPE_CHECKING:
    from livekit.agents import AgentSession

SESSIONS = 6
EVERY = 10.0


async def steady_traffic(kind: type[AgentSession]) -> tuple[float, float]:
    """How many sessions with a turn every ten seconds would fill a core, and how much each asks of its model.

    Returns:
        The sessions, and the requests of one in an hour.
    """
    conversations = [Conversation(kind, begins_with=place) for place in range(SESSIONS)]
    for conversation in conversations:
        await conversation.start()
    await asyncio.gather(*(each.talk(1, every=EVERY) for each in conversations))
    gc.collect()
    earlier = sum(each.requests for each in conversations)
    began = time.process_time()
    await asyncio.gather(*(each.talk(len(TURNS), every=EVERY) for each in conversations))
    used = time.process_time() - began
    requests = sum(each.requests for each in conversations) - earlier
    for conversation in conversations:
        await conversation.aclose()
    talked = SESSIONS * len(TURNS) * EVERY
    return talked / used, 3600 * requests / talked


def main(kinds: tuple[type[AgentSession], type[AgentSession]], repetitions: int) -> list[Comparison]:
    """Both kinds in turns, the first time to warm up."""
    counted: list[list[tuple[float, float]]] = [[], []]
    for repetition in range(-1, repetitions):
        for place in (0, 1) if repetition % 2 else (1, 0):
            figures = run(steady_traffic(kinds[place]))
            if repetition >= 0:
                counted[place].append(figures)
    (plain, of_plain), (safe, of_safe) = (zip(*figures, strict=True) for figures in counted)
    return [
        Comparison.of("sessions that fill a core", plain, safe),
        Comparison.of("requests to the model, of one session in an hour", of_plain, of_safe),
    ]
