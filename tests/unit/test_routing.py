"""The route table of a late result, row by row and then over everything that there is."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from safe_session.ledger import Scope
from safe_session.policy import OnHandoff
from safe_session.routing import OwnerState, Route, SessionState, route

SCOPES, OWNERS, SESSIONS, POLICIES = map(get_args, (Scope, OwnerState, SessionState, OnHandoff))

any_scope = pytest.mark.parametrize("scope", SCOPES)
any_owner = pytest.mark.parametrize("owner", OWNERS)
any_session = pytest.mark.parametrize("session", SESSIONS)
any_policy = pytest.mark.parametrize("on_handoff", POLICIES)


@any_policy
def test_an_activitys_result_is_delivered_by_its_owner_which_is_current(on_handoff):
    assert route("activity", "current", "open", on_handoff) == "deliver"


@any_policy
def test_an_activitys_result_is_held_while_its_owner_is_paused(on_handoff):
    assert route("activity", "paused", "open", on_handoff) == "hold"


def test_an_activitys_result_is_dropped_once_its_owner_has_left():
    assert route("activity", "gone", "open", "drop") == "drop"


def test_an_activitys_result_is_retargeted_once_its_owner_has_left_if_the_policy_says_so():
    assert route("activity", "gone", "open", "retarget") == "retarget"


@any_owner
@any_policy
def test_a_sessions_result_is_told_by_the_current_agent(owner, on_handoff):
    assert route("session", owner, "open", on_handoff) == ("deliver" if owner == "current" else "retarget")


@any_scope
@any_owner
@any_policy
def test_any_result_is_held_while_the_session_hands_off(scope, owner, on_handoff):
    assert route(scope, owner, "handing off", on_handoff) == "hold"


@any_scope
@any_owner
@any_policy
def test_any_result_is_dropped_while_the_session_closes(scope, owner, on_handoff):
    assert route(scope, owner, "closing", on_handoff) == "drop"


EVERYTHING = list(itertools.product(SCOPES, OWNERS, SESSIONS, POLICIES))


def test_there_is_a_route_for_everything():
    assert len(EVERYTHING) == 36
    assert {route(*case) for case in EVERYTHING} == set(get_args(Route))


@pytest.mark.parametrize(("scope", "owner", "session", "on_handoff"), EVERYTHING)
def test_nobody_else_tells_an_activitys_result_unless_the_policy_says_so(scope, owner, session, on_handoff):
    where = route(scope, owner, session, on_handoff)
    told = where in {"deliver", "retarget"}
    assert (where == "deliver") == (told and owner == "current")
    if told:
        assert session == "open"
        assert owner == "current" or scope == "session" or (owner == "gone" and on_handoff == "retarget")


@any_session
@any_owner
def test_a_session_result_is_dropped_by_a_close_only(owner, session):
    assert (route("session", owner, session, "drop") == "drop") == (session == "closing")


@any_scope
@any_owner
@any_session
def test_retarget_never_holds_or_drops_what_drop_tells(scope, owner, session):
    without, with_it = (route(scope, owner, session, policy) for policy in ("drop", "retarget"))
    assert with_it == without or (without, with_it) == ("drop", "retarget")
