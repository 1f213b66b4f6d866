"""The reply pipeline: what each inference is shown, and what became of its step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from . import _livekit, telemetry
from ._livekit import AgentActivity
from .executor import SafeToolExecutor
from .keeper import hold_each_call_once, keeper_of

if TYPE_CHECKING:
    from livekit.agents import Agent, AgentSession
    from livekit.agents.llm import ChatContext, Tool, Toolset
    from livekit.agents.voice import SpeechHandle

    from .keeper import CallKeeper
    from .ledger import Inference


class SafeAgentActivity(AgentActivity):
    """livekit's activity of one agent, which shows each inference the calls that it must know.

    It adds no state, so that an activity that livekit built can be turned into one.
    """

    @classmethod
    def adopt(cls, activity: AgentActivity) -> None:
        """Turn an activity that livekit built into one of these, before it starts."""
        if isinstance(activity, cls):
            return
        _livekit.turn_into(activity, cls)
        _livekit.set_executor(activity, SafeToolExecutor)
        _hold_each_call_once(activity.agent)

    async def _pipeline_reply_task(
        self,
        *,
        speech_handle: SpeechHandle,
        chat_ctx: ChatContext,
        tools: list[Tool | Toolset],
        **kwargs: Any,
    ) -> None:
        inference: Inference | None = None
        try:
            _adopt_executors_of(tools)
            inference, chat_ctx = self._keeper.begin_inference(speech_handle, self._agent, chat_ctx)
        except Exception:
            telemetry.report_failure("show an inference the calls it must know", speech_id=speech_handle.id)
        over = "failed"
        try:
            await super()._pipeline_reply_task(
                speech_handle=speech_handle, chat_ctx=chat_ctx, tools=tools, **kwargs
            )
            over = "interrupted" if speech_handle.interrupted else "done"
        finally:
            if inference is not None:
                self._keeper.end_inference(inference, over=over)

    async def update_chat_ctx(self, chat_ctx: ChatContext, **kwargs: Any) -> None:
        await super().update_chat_ctx(chat_ctx, **kwargs)
        _hold_each_call_once(self._agent)

    @property
    def _keeper(self) -> CallKeeper:
        return cast("CallKeeper", keeper_of(cast("AgentSession[Any]", self._session)))


def _hold_each_call_once(agent: Agent) -> None:
    _livekit.set_stored_context(agent, hold_each_call_once(_livekit.stored_context(agent)))


def _adopt_executors_of(tools: list[Tool | Toolset]) -> None:
    for executor in _livekit.executors_of_toolsets(tools):
        if not isinstance(executor, SafeToolExecutor):
            _livekit.turn_into(executor, SafeToolExecutor)
