"""Every timeline is written once, and played on `SafeAgentSession` and on a plain `AgentSession`.

On the safe one it has to pass, on every release. That it can fail at all is shown by the plain one:

    @pytest.mark.fails_on_plain("<1.7")                     # a plain session fails it on those releases
    @pytest.mark.fails_on_plain(text=">=1.6", voice="<1.7") # and where it matters how one talks to it
    @pytest.mark.fails_on_plain("<1.7", realtime=None)      # the others fail it, and it passes in this medium
    @pytest.mark.pipeline_only("it has no text to speech")  # it makes no sense with a realtime model
    async def test_...(stage): ...

The claim is exact: a plain session that passes where it should fail is an error, and so is one that fails
anywhere else. A test without a claim has to hold for both classes, and says so in its name (``..._on_both``).
"""

import asyncio
import gc
from collections.abc import Generator
from importlib.metadata import version

import pytest
from livekit.agents import AgentSession
from packaging.specifiers import SpecifierSet

from safe_session import SafeAgentSession

# In a test that is not async, looptime's plugin asks for the event loop. Python makes one then, unless it was
# told that there is none; nobody closes it, and that is an error in whatever test next collects the garbage.
asyncio.set_event_loop(None)

RELEASE = version("livekit-agents")
MEDIA = ("text", "voice", "realtime")
FIRST_AND_LAST = ("1.6.0", "1.8.9")
"""A claim has to hold for one of these, which CI runs."""


@pytest.fixture(params=["safe", "plain"])
def session_class(request: pytest.FixtureRequest) -> type[AgentSession]:
    return {"safe": SafeAgentSession, "plain": AgentSession}[request.param]


@pytest.fixture(params=MEDIA)
def medium(request: pytest.FixtureRequest) -> str:
    """How the caller and the session talk: through a pipeline, in text and in voice, or a realtime model."""
    return request.param


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fails_on_plain(releases, *, text, voice, realtime): the releases (a version specifier) on which a "
        "plain AgentSession fails this timeline; by medium, if they differ.",
    )
    config.addinivalue_line(
        "markers", "pipeline_only(reason): the timeline makes no sense with a realtime model."
    )


# CPython 3.11 cannot parse source while it collects tasks that livekit left behind. A report parses that of a
# test that fails, and plugins import modules when the session finishes.


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _makes_no_sense(item)]
    for item in items:
        if "session_class" in getattr(item, "fixturenames", ()):
            _expect_of_plain(item)


def _makes_no_sense(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("medium") == "realtime" and item.get_closest_marker("pipeline_only") is not None


def _expect_of_plain(item: pytest.Item) -> None:
    claims = [mark for mark in item.own_markers if mark.name == "fails_on_plain"]
    if not claims:
        if not item.name.partition("[")[0].endswith("_on_both"):
            raise pytest.UsageError(f"{item.nodeid}: claim fails_on_plain, or call it ..._on_both")
        return
    claim = claims[-1]  # a parameter's own claim stands after the function's
    every = {**dict.fromkeys((None, *MEDIA), *claim.args), **claim.kwargs}
    claimed = [SpecifierSet(releases) for releases in every.values() if releases]
    if not any(release in releases for releases in claimed for release in FIRST_AND_LAST):
        raise pytest.UsageError(f"{item.nodeid}: it has to fail on one of {', '.join(FIRST_AND_LAST)}")
    parameters = item.callspec.params  # type: ignore[attr-defined]
    releases = every.get(parameters.get("medium"))
    if releases and parameters["session_class"] == "plain" and RELEASE in SpecifierSet(releases):
        reason = f"a plain session fails it on {releases}"
        item.add_marker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason))
