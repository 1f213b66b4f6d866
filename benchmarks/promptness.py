"""How long a caller waits because a tool runs, on the virtual clock: the figures are exact."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from livekit.agents import Agent, RunContext, function_tool

from benchmarks.compare import Comparison
from safe_session import SafeOptions
from safe_session.testing import Answer, Call, Line, ScriptedModel, run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from livekit.agents import AgentSession

DURATIONS = (2.0, 4.0, 8.0, 16.0)
"""Seconds that the tools take."""


class Second(Agent):
    """Who the first agent hands over to."""

    def __init__(self) -> None:
        super().__init__(instructions="second")
        self.entered = asyncio.Event()

    async def on_enter(self) -> None:
        self.entered.set()


class First(Agent):
    """An agent with a slow tool, an async one, and a handoff."""

    def __init__(self, seconds: float) -> None:
        super().__init__(instructions="first")
        self.seconds = seconds
        self.second = Second()

    @function_tool
    async def look_up(self) -> str:
        """Look something up."""
        await asyncio.sleep(self.seconds)
        return "found"

    @function_tool
    async def order(self, ctx: RunContext) -> str:
        """Order something, which goes on in the background."""
        await ctx.update("ordering")
        await asyncio.sleep(self.seconds)
        return "ordered"

    @function_tool
    async def hand_over(self) -> Agent:
        """Hand over to the second agent."""
        return self.second


async def silence_after_talking_over(kind: type[AgentSession], seconds: float) -> float:
    """Seconds from the end of a caller's turn, spoken over a tool, to the next inference."""
    model = ScriptedModel(
        [Answer(calls=[Call("look_up")]), Answer("Yes, I am here."), *[Answer("Found.")] * 2]
    )
    line = Line()
    session = kind(llm=model, **line.options())
    line.connect(session)
    await session.start(First(seconds))
    await line.caller.say("Please look it up.")
    await asyncio.sleep(0.5)
    await line.caller.say("Are you there?")
    spoken = asyncio.get_running_loop().time()
    await line.speaker.wait_started(1)
    silence = model.inferences[1].at - spoken
    await asyncio.sleep(seconds + 5)
    await session.aclose()
    return silence


async def handoff_while_a_tool_runs(kind: type[AgentSession], seconds: float) -> float:
    """Seconds from a handoff to the next agent's ``on_enter``, while an async tool runs."""
    calls = [Call("order"), Call("hand_over")]
    # the first agent has nothing to say to it: what is spoken before a handoff delays that in both classes
    model = ScriptedModel([Answer(calls=calls), *[Answer()] * 3])
    line = Line()
    session = kind(llm=model, **line.options())
    line.connect(session)
    agent = First(seconds)
    await session.start(agent)
    await line.caller.say("Order it, and let me talk to the other one.")
    asked = asyncio.get_running_loop().time()
    await agent.second.entered.wait()
    waited = asyncio.get_running_loop().time() - asked
    await asyncio.sleep(seconds + 5)
    await session.aclose()
    return waited


def silences(kinds: tuple[type[AgentSession], type[AgentSession]]) -> list[Comparison]:
    """Silence by the tool's duration; exact, as the clock is virtual."""
    return [
        _compared(f"after talking over a {seconds:g} s tool", silence_after_talking_over, kinds, seconds)
        for seconds in DURATIONS
    ]


def handoffs(kinds: tuple[type[AgentSession], type[AgentSession]]) -> list[Comparison]:
    """Waits for a handoff by the duration of the async tool that runs."""
    return [
        _compared(f"while a {seconds:g} s async tool runs", handoff_while_a_tool_runs, kinds, seconds)
        for seconds in DURATIONS
    ]


def is_within_target(silence: Comparison) -> bool:
    """At most a tenth of a second more than the grace that tools get."""
    return silence.safe.median <= (SafeOptions().interruption_grace or 0.0) + 0.1


def _compared(
    what: str,
    measure: Callable[[type[AgentSession], float], Coroutine[Any, Any, float]],
    kinds: tuple[type[AgentSession], type[AgentSession]],
    seconds: float,
) -> Comparison:
    plain, safe = (run(measure(kind, seconds)) for kind in kinds)
    return Comparison.of(what, [plain], [safe])
