"""This package fails at each of its fault points: no call is lost, none is repeated, and the call goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from livekit.agents.llm import ChatContext, RealtimeError

from examples.timelines.happened import Happened, Run
from examples.timelines.player import play
from examples.timelines.properties import PROPERTIES
from examples.timelines.timeline import Decision, Desk, Event, Timeline, Tool
from safe_session import faults

Kind = Callable[[], Awaitable[None] | None]


def _fails() -> None:
    raise RuntimeError("failed, as it was meant to")


def _does_not_arrive() -> None:
    raise RealtimeError("failed, as it was meant to")


async def _takes_time() -> None:
    await asyncio.sleep(1.0)


async def _is_cancelled() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


SYNC = ("record.before", "record.after", "commit.before", "commit.after", "route.after")
ASYNC = ("route.before", "release.before", "release.after")
PUSHES = ("push.before", "push.after")
FAULTS: list[tuple[str, Kind]] = [
    *((point, _fails) for point in (*SYNC, *ASYNC)),
    *((point, kind) for point in ASYNC for kind in (_takes_time, _is_cancelled)),
    *((point, kind) for point in PUSHES for kind in (_does_not_arrive, _takes_time)),
]


class Fault:
    """Lets one point fail, the nth time that it is reached."""

    def __init__(self, point: str, kind: Kind, number: int) -> None:
        self.point, self.kind, self.number = point, kind, number
        self.reached = 0

    def __call__(self, name: str) -> Awaitable[None] | None:
        if name != self.point:
            return None
        self.reached += 1
        return self.kind() if self.reached == self.number else None


TALKED_OVER = Timeline(
    desks=(Desk(tools=(Tool(), Tool(seconds=4))),),
    decisions=(Decision(calls=((0, 1), (1, 1))),),
    events=(Event(act="says"), Event(after=2, act="says", words=2)),
)
REPORTING = replace(
    TALKED_OVER,
    desks=(Desk(tools=(Tool(seconds=2, reports=(0.0,)), Tool(seconds=1))),),
    events=(Event(act="says"), Event(after=8, act="says", words=2)),
)
HANDED_OVER = Timeline(
    desks=(Desk(tools=(Tool(seconds=1, ends="agent", to=1),)), Desk(knows=True)),
    session_tools=(Tool(seconds=3, reports=(0.0,)),),
    decisions=(Decision(calls=((0, 1), (1, 1))),),
    events=(Event(act="says"), Event(after=8, act="says", words=2)),
)
SCENES = {"talked over": TALKED_OVER, "reporting": REPORTING, "handed over": HANDED_OVER}


def _label(fault: tuple[str, Kind]) -> str:
    point, kind = fault
    return f"{point} {kind.__name__.strip('_').replace('_', ' ')}"


PLAYED = [
    pytest.param(by, fault, id=f"{by} {_label(fault)}")
    for by in ("voice", "realtime")
    for fault in FAULTS
    if by == "realtime" or fault[0] not in PUSHES
]

LIVEKITS_OWN = "failed to update the chat_ctx"
"""What livekit logs when it gives a new agent's context to a server that refuses it."""


@pytest.mark.parametrize(("by", "fault"), PLAYED)
def test_a_fault_costs_no_call(by: str, fault: tuple[str, Kind]) -> None:
    """In each scene, the first three times that its point is reached."""
    reached = 0
    for scene in SCENES.values():
        for number in (1, 2, 3):
            injected = Fault(*fault, number)
            with faults.injected(injected):
                call = play(replace(scene, medium=by))
            if injected.reached >= number:
                reached += 1
                check(call, fault[1])
    assert reached, "the point was never reached"


def check(call: Happened, kind: Kind) -> None:
    assert lost(call) == []
    assert list(PROPERTIES["G3"](call)) == []
    assert call.raised == []
    unexpected = [e for e in call.errors if "safe_session failed" not in e and LIVEKITS_OWN not in e]
    assert unexpected == []
    assert answers(call), "the conversation did not go on"
    if kind is _fails:
        assert any("livekit's own behaviour goes on" in error for error in call.errors)


def lost(call: Happened) -> list[str]:
    """The calls whose ending is not in the history, or in the context of no agent."""
    contexts = [agent.chat_ctx for agent in call.agents.values()]
    history = call.session.history
    missing = [f"{run} is not in the history" for run in call.runs if not ending_in(history, run)]
    unknown = [run for run in call.runs if not any(ending_in(context, run) for context in contexts)]
    return [*missing, *(f"no agent has {run}" for run in unknown)]


def ending_in(context: ChatContext, run: Run) -> bool:
    outputs = run.endings_in(context)
    return bool(outputs) and run.given in outputs[-1].output


def answers(call: Happened) -> bool:
    """Whether the caller's last turn was answered."""
    last = call.turns[-1]
    return any(last.words in t.inference.user_said for t in call.thoughts) and any(
        began >= (last.ended or 0.0) for began, _ in call.utterances
    )


def test_every_point_is_reached() -> None:
    reached: set[str] = set()

    def note(name: str) -> None:
        reached.add(name)

    with faults.injected(note):
        for scene in SCENES.values():
            for by in ("voice", "realtime"):
                play(replace(scene, medium=by))
    assert reached == {*SYNC, *ASYNC, *PUSHES}
