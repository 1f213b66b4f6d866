"""A caller who asks for tool calls by number, and a model that makes just those and remembers nothing."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from livekit.agents import Agent, RunContext, function_tool, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

if TYPE_CHECKING:
    from livekit.agents.types import APIConnectOptions, NotGivenOr

_ASKED = re.compile(r"(\w+) (\d+) times, ([\d.]+) seconds")


def ask_for(tool: str, *, times: int = 1, seconds: float = 0.0) -> str:
    """What a caller says to have `tool` called `times` in one step, each taking `seconds`."""
    return f"{tool} {times} times, {seconds} seconds"


class Clerk(Agent):
    """An agent whose tools take as long as they are told to."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"instructions": "You are the clerk.", **kwargs})

    @function_tool
    async def look_up(self, number: int, seconds: float) -> str:
        """Look something up."""
        if seconds:
            await asyncio.sleep(seconds)
        return f"{number} is found"

    @function_tool
    async def order(self, ctx: RunContext, number: int, seconds: float) -> str:
        """Order something, which goes on in the background."""
        await ctx.update(f"{number} is being ordered")
        await asyncio.sleep(seconds)
        return f"{number} is ordered"

    @function_tool
    async def hand_over(self, number: int, seconds: float) -> Agent:
        """Hand over to a colleague."""
        await asyncio.sleep(seconds)
        return Clerk(chat_ctx=self.chat_ctx.copy())


class ObedientModel(llm.LLM[NoReturn]):
    """Calls what the caller asked for last, and says a word once that has an output.

    Attributes:
        requests: How many were made to it.
        calls: How many it has made. Each has a number of its own, so that none is another's twin.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self.calls = 0

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: NotGivenOr[Any],
    ) -> llm.LLMStream:
        return _Stream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class _Stream(llm.LLMStream):
    def __init__(self, model: ObedientModel, **kwargs: Any) -> None:
        self._model = model
        super().__init__(model, **kwargs)

    async def _run(self) -> None:
        self._model.requests += 1
        asked = _asked_last(self._chat_ctx)
        calls = [self._call(asked[1], float(asked[3])) for _ in range(int(asked[2]))] if asked else []
        delta = llm.ChoiceDelta(role="assistant", content=None if calls else "Yes.", tool_calls=calls)
        self._event_ch.send_nowait(llm.ChatChunk(id="said", delta=delta))

    def _call(self, tool: str, seconds: float) -> llm.FunctionToolCall:
        self._model.calls += 1
        number = self._model.calls
        arguments = json.dumps({"number": number, "seconds": seconds})
        return llm.FunctionToolCall(name=tool, arguments=arguments, call_id=f"call_{number}")


def _asked_last(shown: llm.ChatContext) -> re.Match[str] | None:
    """What the caller asked for, if it was the last thing to happen."""
    for item in reversed(shown.items):
        if item.type == "function_call_output":
            break
        if item.type == "message" and item.role == "user":
            return _ASKED.fullmatch(item.text_content or "")
    return None
