"""The tools that run: released at an interruption, taken over at a handoff, stopped at a close."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livekit.agents.llm import ToolFlag

from . import _livekit, telemetry
from .context import STILL_RUNNING
from .events import CallReleased

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """

    record: CallRecord
    ctx: RunContext[Any]
    executor: ToolExecutor | None
    flags: ToolFlag
    task: asyncio.Task[Any]


class Runs:
    """The tools of one session that run."""

    def __init__(self, keeper: CallKeeper) -> None:
        self._keeper = keeper
        self._runs: dict[CallRecord, Run] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self._deadline: asyncio.TimerHandle | None = None
        self._closing = False

    def started(
        self, record: CallRecord, ctx: RunContext[Any], executor: ToolExecutor, flags: ToolFlag
    ) -> None:
        """The tool of `record` starts to run, in the current task."""
        task = asyncio.current_task()
        if task is not None:
            self._runs[record] = Run(record, ctx, executor, flags, task)
            task.add_done_callback(lambda _: self._over(record, ctx.speech_handle))

    def _over(self, record: CallRecord, speech: SpeechHandle) -> None:
        self._runs.pop(record, None)
        self._keeper.went_silent(record, speech)

    # -- at an interruption

    def release_when_interrupted(self, speech: SpeechHandle) -> None:
        """Release what still runs of `speech` a grace after it is interrupted."""
        grace = self._keeper.options.interruption_grace
        if grace is not None:
            later = asyncio.get_running_loop().call_later
            _livekit.on_interrupted(speech, lambda _: later(grace, self._release_all_of, speech))

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
            run.record.interrupted = await _livekit.release(run.ctx, STILL_RUNNING)
        except Exception:
            telemetry.report_failure("release a tool", call_id=run.record.call_id)
            return
        if run.record.interrupted:
            self._keeper.announce(CallReleased, run.record)

    # -- at a handoff, and at a close

    def close_begins(self) -> None:
        """The session closes: what runs gets `SafeOptions.close_timeout` to end."""
        timeout = self._keeper.options.close_timeout
        if timeout is not None and not self._closing:
            # a draining session waits for a turn's tools before it comes to stop them
            self._deadline = asyncio.get_running_loop().call_later(timeout, self._cancel_all)
        self._closing = True

    async def close_ends(self) -> None:
        """Wait for what still runs, as long as it may; the session may be started again then."""
        await self._let_end(self._runs.values())
        if self._deadline is not None:
            self._deadline.cancel()
        self._closing, self._deadline = False, None

    async def drain(self, executor: ToolExecutor) -> None:
        """The activity that `executor` serves ends: the session takes over what need not end with it."""
        if self._closing:
            # those of other executors may be waiting for the AgentTask that ends here
            await self._let_end(run for run in self._runs.values() if run.executor in {executor, None})
            return
        ending = _livekit.names_of_own_toolsets(executor)
        mine = [run for run in self._runs.values() if run.executor is executor]
        for run in mine:
            if run.record.call.name not in ending and ToolFlag.CANCELLABLE not in run.flags:
                _livekit.forget_running(executor, run.record.call_id)
                run.executor = None
        await self._let_end(run for run in mine if run.record.call.name in ending)

    async def _let_end(self, runs: Iterable[Run]) -> None:
        """Give `runs` the time that is left to end, then stop them."""
        # a tool may close the session that it runs in
        by_task = {run.task: run for run in runs if run.task is not asyncio.current_task()}
        if by_task:
            _, late = await asyncio.wait(by_task, timeout=self._time_left())
            await self._stop([by_task[task] for task in late])

    def _time_left(self) -> float | None:
        if not self._closing:
            return self._keeper.options.close_timeout
        if self._deadline is None:
            return None
        return max(0.0, self._deadline.when() - asyncio.get_running_loop().time())

    def _cancel_all(self) -> None:
        for run in self._runs.values():
            run.task.cancel()

    async def _stop(self, runs: list[Run]) -> None:
        if not runs:
            return
        for run in runs:
            run.task.cancel()
        _, deaf = await asyncio.wait([run.task for run in runs], timeout=_PATIENCE)
        for run in runs:
            if run.task in deaf:
                telemetry.logger.error("a tool goes on although it was stopped", call_id=run.record.call_id)
                if run.executor is not None:
                    _livekit.forget_running(run.executor, run.record.call_id)
                await _livekit.release(run.ctx, STILL_RUNNING)
                self._keeper.lost(run.record)
