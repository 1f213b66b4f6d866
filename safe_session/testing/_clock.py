"""Running a coroutine on a clock of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, virtual: bool = True) -> T:
    """Run a coroutine on a fresh event loop and return what it returns.

    Like `asyncio.run`, it leaves nothing behind: tasks that are still there are cancelled and waited
    for, asynchronous generators and the default executor are shut down, and the loop is closed.

    Args:
        main: The coroutine.
        virtual: True (the default) runs on a virtual clock, where waiting takes no real time: a call of
            ten minutes is over at once, and happens in the same order every time. False runs in real time.

    Raises:
        ImportError: `virtual` without the package `looptime`, installed by `safe-session[testing]`.
        RuntimeError: Called while an event loop runs in this thread.

    """
    try:
        _refuse_inside_a_loop()
        loop = _virtual_loop() if virtual else asyncio.new_event_loop()
    except BaseException:
        main.close()  # or Python warns of a coroutine that was never awaited
        raise
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            _cancel_leftovers(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("run() cannot be called while an event loop runs in this thread; await the coroutine")


def _virtual_loop() -> asyncio.AbstractEventLoop:
    try:
        import looptime  # noqa: PLC0415 - an extra: only the virtual clock needs it
    except ImportError as e:
        raise ImportError(
            "the virtual clock needs looptime: pip install 'safe-session[testing]' (or virtual=False)"
        ) from e
    # As fine as asyncio's own clock: looptime 0.7, the last for Python 3.10, never wakes up a sleep that is
    # not a whole number of its ticks (a third of a second, by default).
    return looptime.new_event_loop(start=0.0, resolution=1e-9)


def _cancel_leftovers(loop: asyncio.AbstractEventLoop) -> None:
    leftovers = asyncio.all_tasks(loop)
    for task in leftovers:
        task.cancel()
    if not leftovers:
        return
    loop.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
    for task in leftovers:
        if not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler(
                {"message": "a task failed while run() closed its loop", "exception": error, "task": task}
            )
