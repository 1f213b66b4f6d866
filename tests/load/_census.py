"""What is there while many sessions talk, at two points between which only calls have ended."""

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass

from livekit.agents import AgentSession

from benchmarks.traffic import TURNS, Conversation


@dataclass
class Census:
    """How much there is.

    Attributes:
        instances: How many of each class.
        objects: How many objects of all kinds, without what livekit's own record of events keeps.
        tasks: How many tasks that are not done.
        calls: How many calls were made so far.
    """

    instances: Counter[str]
    objects: int
    tasks: int
    calls: int

    @classmethod
    def of(cls, conversations: list[Conversation]) -> "Census":
        _collect()
        instances = Counter(map(_name_of, gc.get_objects()))
        for conversation in conversations:
            conversation.session._recorded_events.clear()  # it holds each speech, with all its tasks
        _collect()
        return cls(
            instances=instances,
            objects=len(gc.get_objects()),
            tasks=len(asyncio.all_tasks()),
            calls=sum(conversation.calls for conversation in conversations),
        )


async def censuses(
    kind: type[AgentSession], *, sessions_per_turn: int, turns: tuple[int, int], every: float
) -> list[Census]:
    """Let sessions of that kind talk, and count after the first number of turns and after the second.

    As many of them begin with each turn of the traffic, so that at each count as many have just had it.
    """
    conversations = [
        Conversation(kind, begins_with=n) for n in range(len(TURNS)) for _ in range(sessions_per_turn)
    ]

    async def talk(place: int, turns: int) -> None:
        await asyncio.sleep(every * place / len(conversations))
        await conversations[place].talk(turns, every=every)

    for conversation in conversations:
        await conversation.start()
    counts: list[Census] = []
    for number in turns:
        await asyncio.gather(*(talk(place, number) for place in range(len(conversations))))
        await asyncio.gather(*(conversation.quiet() for conversation in conversations))
        counts.append(Census.of(conversations))
    for conversation in conversations:
        await conversation.aclose()
    return counts


def _collect() -> None:
    for _ in range(3):  # what a finalizer lets go is found by the next one
        gc.collect()


def _name_of(thing: object) -> str:
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"
