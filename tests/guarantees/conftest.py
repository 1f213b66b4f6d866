from collections.abc import Callable, Iterator
from functools import partial

import pytest
from livekit.agents import AgentSession

from safe_session import SafeAgentSession

pytest.register_assert_rewrite(f"{__package__}._scenes")

from ._scenes import Scene  # noqa: E402


@pytest.fixture
def stage(session_class: type[AgentSession], medium: str) -> Callable[..., Scene]:
    """Sets a scene in text and in voice, with either class."""
    return partial(Scene, session_class, medium)


@pytest.fixture
def voice_stage(session_class: type[AgentSession]) -> Callable[..., Scene]:
    return partial(Scene, session_class, "voice")


@pytest.fixture
def safe_stage(medium: str) -> Callable[..., Scene]:
    return partial(Scene, SafeAgentSession, medium)


@pytest.fixture(autouse=True)
def our_own_layer_never_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    failures = [r.getMessage() for r in caplog.get_records("call") if r.levelname == "ERROR"]
    assert not [text for text in failures if "safe_session failed" in text]
