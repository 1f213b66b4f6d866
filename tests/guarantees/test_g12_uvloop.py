"""G12: on uvloop, in real time: a virtual clock needs an event loop of asyncio's own."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from safe_session import SafeAgentSession, SafeOptions

from ._scenes import BOOK, NOTIFY, Host, Scene, diligent, now
from .test_g01_handoffs import TRANSFER, Transferring

uvloop = pytest.importorskip("uvloop")

Run = Callable[..., None]


@pytest.fixture
def together() -> Iterator[Run]:
    """Runs scenes at the same time, as they take theirs."""
    loop = uvloop.new_event_loop()

    async def gather(*scenes: Coroutine[Any, Any, None]) -> None:
        await asyncio.gather(*scenes)

    yield lambda *scenes: loop.run_until_complete(gather(*scenes))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


async def interrupted(medium: str) -> None:
    """The fast one of two tools has ended when the caller interrupts, the slow one is released."""
    host = Host(takes={"book": 0.2, "notify": 3})
    async with Scene(SafeAgentSession, medium, diligent(BOOK, NOTIFY), host) as call:
        released: list[str] = []
        call.session.on("call_released", lambda event: released.append(event.tool))
        await call.says("Six!")
        await call.at(1.5)
        await call.says("Well?")
        await call.at(6)
        assert released == ["notify"]
        assert sorted(host.did) == ["book 6 Miller", "notify 555"]
        assert "notify 555 is done" in call.result_of("notify").output


async def handed_over(medium: str) -> None:
    host = Transferring()
    async with Scene(SafeAgentSession, medium, diligent(TRANSFER), host, forgets=True) as call:
        await call.says("Manager!")
        await call.at(3)
        assert call.session.current_agent is host.manager


async def closed(medium: str) -> None:
    """A tool of half a minute gets half a second."""
    host = Host(takes={"book": 30})
    options = SafeOptions(close_timeout=0.5)
    async with Scene(SafeAgentSession, medium, diligent(BOOK), host, safe=options) as call:
        await call.says("Six!")
        await call.at(1)
        began = now()
        await call.session.aclose()
        assert now() - began < 10
        assert "It may already have taken effect." in call.result_of("book").output


def test_what_happens_on_asyncio_happens_on_uvloop(together):
    together(*(scene(medium) for scene in (interrupted, handed_over, closed) for medium in ("text", "voice")))
