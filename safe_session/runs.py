"""The tools that run: released at an interruption, taken over at a handoff, stopped at a close."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livekit.agents.llm import ToolFlag

from . import _livekit, faults, telemetry
from .context import STILL_RUNNING, UNKNOWN
from .events import CallReleased

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from livekit.agents import RunContext
    from livekit.agents.voice import SpeechHandle

    from ._livekit import ToolExecutor
    from .keeper import CallKeeper
    from .ledger import CallRecord

_PATIENCE = 1.0
"""Seconds that a tool gets to end after it was stopped; one that goes on is left behind."""


@dataclass(eq=False)
class Run:
    """A tool that runs.

    Attributes:
        record: its call.
        ctx: what livekit gave the tool.
        executor: the executor that runs it; None once the session has taken it over.
        flags: of the tool.
        task: the task that it runs in.
        over: done when it has ended, or was given up.
        spared: whether it is closing something, and is not stopped halfway.
    """

    record: CallRecord
    ctx: RunContext[Any]
    executor: ToolExecutor | None
    flags: ToolFlag
    task: asyncio.Task[Any]
    over: asyncio.Future[None]
    spared: bool = False

    def take_over(self) -> None:
        """Let the executor neither wait for it nor stop it: it is the session's from now on."""
        if self.executor is not None:
            _livekit.forget_running(self.executor, self.record.call_id)
            self.executor = None


class Runs:
    """The tools of one session that run."""

    def __init__(self, keeper: CallKeeper) -> None:
        self._keeper = keeper
        self._runs: dict[CallRecord, Run] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self._stopping: asyncio.Task[None] | None = None
        self._closing = False

    def started(
        self, record: CallRecord, ctx: RunContext[Any], executor: ToolExecutor, flags: ToolFlag
    ) -> None:
        """The tool of `record` starts to run, in the current task."""
        task = asyncio.current_task()
        if task is not None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            run = self._runs[record] = Run(record, ctx, executor, flags, task, over)
            task.add_done_callback(lambda _: self._over(run))
            if ctx.speech_handle.interrupted:
                self._release_after_grace(ctx.speech_handle)  # an earlier release may not have found it
            if self._closing:
                self._keeper.handoffs.changed()  # the time to stop it may be over

    def _over(self, run: Run) -> None:
        if not run.over.done():
            run.over.set_result(None)
            self._runs.pop(run.record, None)
            self._keeper.went_silent(run.record, run.ctx.speech_handle)

    # -- at an interruption

    def release_when_interrupted(self, speech: SpeechHandle) -> None:
        """Release what still runs of `speech` a grace after it is interrupted."""
        _livekit.on_interrupted(speech, lambda _: self._release_after_grace(speech))

    def _release_after_grace(self, speech: SpeechHandle) -> None:
        grace = self._keeper.options.interruption_grace
        if grace is not None:
            asyncio.get_running_loop().call_later(grace, self._release_all_of, speech)

    def _release_all_of(self, speech: SpeechHandle) -> None:
        if not speech.allow_interruptions:
            return  # one that forbade interruptions (as an AgentTask does) was interrupted by force
        for run in list(self._runs.values()):
            if run.record.speech_id == speech.id and run.record.state == "running":
                release = asyncio.get_running_loop().create_task(self._release(run))
                self._releases.add(release)
                release.add_done_callback(self._releases.discard)

    async def _release(self, run: Run) -> None:
        try:
            await faults.wait("release.before")
            run.record.interrupted = await _livekit.release(run.ctx, STILL_RUNNING)
            await faults.wait("release.after")
        except Exception:
            telemetry.report_failure("release a tool", call_id=run.record.call_id)
            return
        if run.record.interrupted:
            self._keeper.announce(CallReleased, run.record)

    # -- at a handoff, and at a close

    def close_begins(self) -> None:
        """The session closes: what runs gets `SafeOptions.close_timeout` to end."""
        timeout = self._keeper.options.close_timeout
        if timeout is not None and self._stopping is None:
            # a session that drains waits for a turn's tools before it comes to stop them
            stopping = self._stop_all_after(timeout)
            self._stopping = asyncio.get_running_loop().create_task(stopping, name="stop_tools_at_close")
        self._closing = True

    async def close_ends(self) -> None:
        """Wait for what still runs, as long as it may; the session may be started again then."""
        await self._wait_for(self._runs.values())
        if self._stopping is not None:
            self._stopping.cancel()
        self._closing, self._stopping = False, None

    async def drain(self, executor: ToolExecutor) -> None:
        """What `executor` serves ends: the session takes over the tools that need not end with it."""
        mine = [run for run in self._runs.values() if run.executor is executor]
        for closing in [run for run in mine if run.spared]:
            # it waits for this executor to end
            closing.take_over()
            mine.remove(closing)
        if self._closing:
            # those of other executors may be waiting for the AgentTask that ends here
            if not _livekit.is_of_toolset(executor):
                mine += [run for run in self._runs.values() if run.executor is None]
            await self._wait_for(mine)
        elif _livekit.scope_of(executor) == "activity":
            ending = _livekit.names_of_own_toolsets(executor)
            for run in mine:
                if run.record.call.name not in ending and ToolFlag.CANCELLABLE not in run.flags:
                    run.take_over()
            await self._end([run for run in mine if run.record.call.name in ending])

    async def _wait_for(self, runs: Iterable[Run]) -> None:
        waited_for = list(runs)
        own = self._own()
        if own is not None and own in waited_for:
            # a tool that closes its own session can't be waited for, nor stopped
            own.take_over()
            waited_for.remove(own)
        if waited_for:
            await asyncio.wait([run.over for run in waited_for])

    @contextlib.contextmanager
    def spared(self) -> Generator[None]:
        """While the running code closes something: a tool that does so is stopped once that is done."""
        own = self._own()
        if own is None:
            yield
            return
        before, own.spared = own.spared, True
        try:
            yield
        finally:
            own.spared = before
            self._keeper.handoffs.changed()

    def _own(self) -> Run | None:
        """The tool that runs in the current task, if one does."""
        task = asyncio.current_task()
        return next((run for run in self._runs.values() if run.task is task), None)

    async def _end(self, runs: Sequence[Run]) -> None:
        """Give `runs` the time that a close gives to end, then stop them."""
        if runs:
            await asyncio.wait([run.over for run in runs], timeout=self._keeper.options.close_timeout)
            await self._stop([run for run in runs if not run.over.done()])

    async def _stop_all_after(self, timeout: float) -> None:
        await asyncio.sleep(timeout)
        while True:
            if running := [run for run in self._runs.values() if self._may_stop(run)]:
                await self._stop(running)
            else:
                await self._keeper.handoffs.change()

    def _may_stop(self, run: Run) -> bool:
        """Whether the tool may be stopped; one that awaits an AgentTask ends with it, and that is ended."""
        if run.spared:
            return False
        return run.record.state != "running" or not self._keeper.handoffs.is_paused(run.record.owner)

    async def _stop(self, runs: Sequence[Run]) -> None:
        if not runs:
            return
        for run in runs:
            run.task.cancel()
        await asyncio.wait([run.over for run in runs], timeout=_PATIENCE)
        for run in runs:
            if not run.over.done():
                await self._give_up(run)

    async def _give_up(self, run: Run) -> None:
        record = run.record
        telemetry.logger.error(
            "a tool goes on although it was stopped", tool=record.call.name, call_id=record.call_id
        )
        run.take_over()
        self._keeper.lost(record)
        await _livekit.release(run.ctx, UNKNOWN)  # or its turn would wait for it
        self._over(run)
