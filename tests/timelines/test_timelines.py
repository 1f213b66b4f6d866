"""Timelines, the same ones each time; and each property fails on a plain session."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from livekit.agents import AgentSession

from examples.timelines.player import play
from examples.timelines.properties import PROPERTIES, violations
from examples.timelines.timeline import Decision, Desk, Event, Form, Timeline, Tool, load, save
from safe_session import SafeAgentSession

from .shrinking import REPLAY, smallest
from .strategies import timelines

TIMELINES = {"text": 140, "voice": 180, "realtime": 180}

newest = pytest.mark.skipif(version("livekit-agents") != "1.8.9", reason="what livekit itself logs differs")


@newest
@pytest.mark.timeout(600)
@pytest.mark.parametrize("by", TIMELINES)
def test_nothing_is_wrong_with_any_timeline(by: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / f"{by}.yaml"

    @settings(
        max_examples=TIMELINES[by],
        derandomize=True,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(timelines(by))
    def holds(timeline: Timeline) -> None:
        if wrong := violations(play(timeline)):
            save(smallest(timeline), file)
            pytest.fail("\n".join([f"{REPLAY} {file}", *wrong]))

    holds()


FOUND = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@newest
@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_nothing_is_wrong_any_more_with_what_was_found(file: Path) -> None:
    assert violations(play(load(file))) == []


# -- the properties can fail

FAST, SLOW = Tool(), Tool(seconds=8)
BOTH_THEN_FAST = (Decision(calls=((0, 1), (1, 1))), Decision(calls=((0, 1),)))
TALKED_OVER = Timeline(
    desks=(Desk(tools=(FAST, SLOW)),),
    decisions=BOTH_THEN_FAST,
    events=(Event(after=4), Event(after=1, act="types over")),
)
LATE = Timeline(
    desks=(Desk(tools=(Tool(seconds=4, reports=(0.0,)),)),),
    decisions=(Decision(calls=((0, 1),)),),
    events=(Event(),),
)
PLAIN_FAILS = {
    "G1": TALKED_OVER,
    "G2": TALKED_OVER,
    # both replies are decided before either has made its call
    "G3": Timeline(
        desks=(Desk(tools=(Tool(seconds=2),)),),
        decisions=(Decision(calls=((0, 1),)), Decision(calls=((0, 1),))),
        events=(Event(act="types twice"),),
    ),
    "G4": replace(
        TALKED_OVER,
        medium="voice",
        decisions=BOTH_THEN_FAST[:1],
        events=(Event(after=4, act="says"), Event(after=2, act="says")),
    ),
    # the reply about it thinks for two seconds, and the caller speaks before its first word
    "G5": replace(
        LATE,
        decisions=(*LATE.decisions, Decision(), Decision(delay=2.0)),
        events=(Event(), Event(after=5, act="types over")),
    ),
    "G6": replace(LATE, desks=(Desk(tools=(Tool(seconds=1, reports=(0.0,), ends="agent"),)),)),
    "G7": Timeline(
        desks=(Desk(tools=(Tool(asks=True),)),),
        form=Form(completes=10.0),
        session_tools=(Tool(seconds=4, reports=(0.0,)),),
        decisions=(Decision(calls=((0, 1), (1, 1))),),
        events=(Event(),),
    ),
    "G8": replace(
        LATE,
        desks=(Desk(tools=(Tool(seconds=40, reports=(0.0,)),)), Desk()),
        events=(Event(), Event(after=20, act="hands over", to=1)),
    ),
    "G9": Timeline(
        desks=(Desk(tools=(Tool(seconds=60),)),),
        decisions=(Decision(calls=((0, 1),)),),
        events=(Event(),),
        rests=1.0,
    ),
}


@newest
@pytest.mark.parametrize("number", PROPERTIES)
def test_a_plain_session_violates_it_and_a_safe_one_does_not(number: str) -> None:
    judge = PROPERTIES[number]
    assert list(judge(play(PLAIN_FAILS[number], AgentSession)))
    assert violations(play(PLAIN_FAILS[number], SafeAgentSession)) == []


def test_a_timeline_is_the_same_from_a_file(tmp_path: Path) -> None:
    for number, timeline in PLAIN_FAILS.items():
        save(timeline, tmp_path / number)
        assert load(tmp_path / number) == timeline
