"""A hundred sessions in one process, with steady traffic: nothing grows with the calls that ended."""

import logging
import os
from collections import Counter

import pytest
from livekit.agents import AgentSession

from benchmarks.traffic import LASTS, TURNS
from safe_session import SafeAgentSession, ledger
from safe_session.testing import run

from ._census import censuses

SESSIONS_PER_TURN = 17
SESSIONS = SESSIONS_PER_TURN * len(TURNS)
ROUNDS = (len(TURNS), 2 * len(TURNS))  # turns of each session before the first count, and between the two
FIVE_MINUTES = {"turns": ROUNDS, "every": 300 / sum(ROUNDS)}
REAL_SECONDS = float(os.environ.get("LOAD_SECONDS", "10"))

AS_LIVEKITS = {
    "safe_session.activity.SafeAgentActivity": "livekit.agents.voice.agent_activity.AgentActivity",
    "safe_session.executor.SafeToolExecutor": "livekit.agents.voice.tool_executor._ToolExecutor",
    "safe_session.context.CallContext": "livekit.agents.llm.chat_context.ChatContext",
}
"""Ours that stand in the place of one of livekit's; livekit keeps some of each agent that has left."""

SPOKEN_TURN = "safe_session.activity._SpokenTurn"
"""Kept by livekit's record of events, with the task that answers the caller's turn."""


@pytest.fixture(autouse=True)
def remembered_endings(monkeypatch: pytest.MonkeyPatch) -> None:
    # a few minutes of a session make few calls: as many are forgotten as if it had gone on for hours
    monkeypatch.setattr(ledger, "REMEMBERED_ENDINGS", 1)


def ours(counted: Counter[str]) -> Counter[str]:
    """What there is of ours, apart from what livekit's record of events keeps."""
    kept = ("safe_session.testing", "safe_session.events", SPOKEN_TURN)
    return Counter(
        {
            name: n
            for name, n in counted.items()
            if name.startswith("safe_session.") and not name.startswith(kept)
        }
    )


@pytest.mark.timeout(600)
def test_nothing_grows_with_the_calls_in_five_minutes_of_virtual_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plain = run(censuses(AgentSession, sessions_per_turn=3, **FIVE_MINUTES))
    safe = run(censuses(SafeAgentSession, sessions_per_turn=SESSIONS_PER_TURN, **FIVE_MINUTES))

    made = safe[1].calls - safe[0].calls
    assert made == SESSIONS * 2 * 7  # two rounds of six turns, which make seven calls
    assert safe[0].tasks == safe[1].tasks
    more = ours(safe[1].instances) - ours(safe[0].instances)
    for name, livekits in AS_LIVEKITS.items():
        floor = plain[1].instances[livekits] - plain[0].instances[livekits]
        assert more.pop(name, 0) <= floor * SESSIONS_PER_TURN / 3, name
    assert not more
    floor = (plain[1].objects - plain[0].objects) / (plain[1].calls - plain[0].calls)
    assert (safe[1].objects - safe[0].objects) / made <= floor
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.timeout(300)
def test_nothing_grows_with_the_calls_in_real_time(caplog: pytest.LogCaptureFixture) -> None:
    turns = max(4, round(REAL_SECONDS / LASTS))
    real = censuses(SafeAgentSession, sessions_per_turn=SESSIONS_PER_TURN, turns=(2, turns - 2), every=LASTS)
    before, after = run(real, virtual=False)

    assert after.calls > before.calls
    assert before.tasks == after.tasks
    # of each session: the call that is remembered, and what the inference that made it knew
    crowds = {name: n for name, n in ours(after.instances).items() if n > 4 * SESSIONS}
    assert not crowds.keys() - AS_LIVEKITS
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
