"""For the tests of the restaurant."""

from dataclasses import replace

import pytest

from examples.restaurant.replay.callfile import CALLS, load
from examples.restaurant.replay.play import play
from safe_session import SafeAgentSession


@pytest.fixture(scope="session")
def recorded():
    """Play a call of `calls/`, once, with tools that take so many seconds where that is given."""
    played = {}

    async def play_recorded(name, session_class, **durations):
        which = (name, session_class, *durations.items())
        if which not in played:
            call = load(CALLS / f"{name}.yaml")
            changed = replace(call, durations={**call.durations, **durations})
            played[which] = await play(changed, session_class)
        return played[which]

    return play_recorded


@pytest.fixture
def written(tmp_path):
    """Play a call that is written down here."""

    async def play_written(text, session_class=SafeAgentSession):
        path = tmp_path / "call.yaml"
        path.write_text(text, encoding="utf-8")
        return await play(load(path), session_class)

    return play_written
