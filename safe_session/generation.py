"""One generation of a realtime model: the calls that its server waits for an output of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from livekit.agents.utils import aio

from . import telemetry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable

    from livekit.agents import Agent
    from livekit.agents.llm import FunctionCall, GenerationCreatedEvent
    from livekit.agents.voice import SpeechHandle

    from .context import NotRun
    from .keeper import CallKeeper
    from .ledger import Inference


class Generation:
    """One generation, from its beginning until each of its calls has an output.

    livekit runs the tools of most calls, and answers them. There are some that it skips without a word: those
    of a reply that must not call tools, that was interrupted early, or that began during a handoff.

    Attributes:
        inference: what its model was shown.
        answers_caller: whether it answers what the caller said, rather than what the session asked for.
        watching: the task that sees to its calls.
    """

    def __init__(
        self,
        keeper: CallKeeper,
        agent: Agent,
        inference: Inference,
        event: GenerationCreatedEvent,
        *,
        answers_caller: bool,
    ) -> None:
        self.inference = inference
        self.answers_caller = answers_caller
        self._event = event  # kept, as it is found by its id
        self._keeper = keeper
        self._agent = agent
        self._speech_id = ""
        self._skipped: NotRun | None = None
        livekits, ours = aio.itertools.tee(self._noted(event.function_stream), 2)
        event.function_stream = livekits
        self.watching = asyncio.get_running_loop().create_task(self._watch(ours), name="calls_of_generation")

    def taken_up_by(self, speech: SpeechHandle, *, without_tools: bool) -> None:
        """livekit says it in `speech`."""
        self._speech_id = speech.id
        self._keeper.says(speech, self._agent, self.inference)
        if without_tools:
            self.skip("no tools")

    def skip(self, why: NotRun) -> None:
        """From now on livekit starts none of its calls; those that it did not start are answered."""
        self._skipped = self._skipped or why
        for call in self.inference.response:
            self._answer(call)

    async def _noted(self, calls: AsyncIterable[FunctionCall]) -> AsyncGenerator[FunctionCall]:
        async for call in calls:
            self.inference.response.append(call)
            yield call

    async def _watch(self, calls: AsyncIterable[FunctionCall]) -> None:
        with telemetry.guarded("answer the calls that livekit skips", speech_id=self._speech_id):
            async for call in calls:
                self._answer(call)

    def _answer(self, call: FunctionCall) -> None:
        started = any(record.call.id == call.id for record in self.inference.calls)
        if self._skipped is not None and not started:
            self._keeper.not_run(call, self._agent, self._skipped, speech_id=self._speech_id)
