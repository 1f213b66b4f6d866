"""The route table of DESIGN.md, section 4, row by row."""

import itertools

import pytest

from safe_session.routing import route

OWNERS, SESSIONS, POLICIES = (
    ("current", "paused", "gone"),
    ("open", "handing off", "closing"),
    ("drop", "retarget"),
)


@pytest.mark.parametrize(
    ("scope", "owner", "session", "policy", "expected"),
    [
        ("activity", "current", "open", "drop", "deliver"),
        ("activity", "current", "open", "retarget", "deliver"),
        ("activity", "paused", "open", "drop", "hold"),
        ("activity", "paused", "open", "retarget", "hold"),
        ("activity", "gone", "open", "drop", "drop"),
        ("activity", "gone", "open", "retarget", "retarget"),
        ("session", "current", "open", "drop", "deliver"),
        ("session", "paused", "open", "drop", "retarget"),
        ("session", "gone", "open", "drop", "retarget"),
        ("session", "current", "handing off", "drop", "hold"),
        ("session", "gone", "handing off", "drop", "hold"),
    ],
)
def test_the_table(scope, owner, session, policy, expected):
    assert route(scope, owner, session, policy) == expected


def test_nothing_is_told_while_the_session_closes():
    for case in itertools.product(("activity", "session"), OWNERS, ["closing"], POLICIES):
        assert route(*case) == "drop"


def test_nothing_is_delivered_during_a_handoff():
    for case in itertools.product(("activity", "session"), OWNERS, ["handing off"], POLICIES):
        assert route(*case) in ("hold", "drop")
