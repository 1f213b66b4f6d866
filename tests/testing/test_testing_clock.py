import asyncio
import sys
import time
from collections.abc import Callable

import pytest
from livekit.agents import Agent, AgentSession

from safe_session.testing import Answer, Line, ScriptedModel, run


@pytest.fixture(autouse=True)
def no_loop_errors() -> None:
    """These tests make loops of their own."""


def test_virtual_time_passes_at_once() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(3600)
        return loop.time() - before

    started = time.monotonic()
    assert run(main()) == pytest.approx(3600)
    assert time.monotonic() - started < 5


def test_real_time_passes_as_it_does() -> None:
    started = time.monotonic()
    run(asyncio.sleep(0.05), virtual=False)
    assert time.monotonic() - started >= 0.049


def test_an_exception_comes_through_and_leftovers_are_cancelled() -> None:
    ended: list[str] = []

    async def leftover() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("leftover")

    async def main() -> None:
        main.task = asyncio.create_task(leftover())  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        run(main())
    assert ended == ["leftover"]


def test_threads_are_waited_for() -> None:
    async def main() -> str:
        return await asyncio.to_thread(lambda: "from a thread")

    assert run(main()) == "from a thread"


def test_it_names_the_extra_when_looptime_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "looptime", None)
    with pytest.raises(ImportError, match=r"safe-session\[testing\]"):
        run(asyncio.sleep(0))
    assert run(asyncio.sleep(0, "done"), virtual=False) == "done"


def test_it_refuses_inside_a_loop() -> None:
    async def main() -> None:
        run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="while an event loop runs"):
        run(main())


@pytest.mark.parametrize("virtual", [True, False])
def test_a_call_in_virtual_and_in_real_time(*, virtual: bool) -> None:
    async def main() -> list[str]:
        line = Line(words_per_second=20.0)
        model = ScriptedModel([Answer("One two three four five six seven eight"), Answer("Yes?")])
        session = AgentSession(llm=model, **line.options())
        line.connect(session)
        await session.start(Agent(instructions=""))
        await line.caller.say("Hello")
        await line.speaker.wait_started()
        await asyncio.sleep(0.12)
        await line.caller.say("Wait")
        await line.quiet()
        await session.aclose()
        return line.speaker.heard

    heard, answer = run(main(), virtual=virtual)
    assert answer == "Yes?"
    assert "One two three four five six seven eight".startswith(heard)
    if virtual:
        assert heard == "One two three"


async def test_the_tests_of_this_project_run_in_virtual_time(elapsed: Callable[[], float]) -> None:
    elapsed()
    await asyncio.sleep(3600)
    assert elapsed() == 3600
