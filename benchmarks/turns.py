"""What a turn costs: the CPU time of this process for a typed turn, whose model and tools take no time."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

from livekit.agents.llm import ChatContext, FunctionCall, FunctionCallOutput

from benchmarks.caller import Clerk, ObedientModel, ask_for
from benchmarks.compare import Comparison
from safe_session.ledger import REMEMBERED_ENDINGS

if TYPE_CHECKING:
    from livekit.agents import AgentSession

TOOLS = (0, 1, 4)
ITEMS = (10, 100, 1000)


def is_within_target(turn: Comparison) -> bool:
    """At most 2 % or 1 ms, whichever is more."""
    return turn.added.median <= max(0.02 * turn.plain.median, 0.001)


async def cost_of_a_turn(
    kinds: tuple[type[AgentSession], type[AgentSession]], *, tools: int, items: int, repetitions: int
) -> Comparison:
    """Seconds of CPU time for a turn that calls so many tools, with a history of so many items."""
    sessions = [await _with_history(kind, items) for kind in kinds]
    asked = ask_for("look_up", times=tools) if tools else "Good morning."
    taken: list[list[float]] = [[], []]
    for repetition in range(-3, repetitions):  # the first ones warm up
        for place in (0, 1) if repetition % 2 else (1, 0):
            seconds = await _turn(sessions[place], asked)
            await _trim(sessions[place], items)
            if repetition >= 0:
                taken[place].append(seconds)
    for session in sessions:
        await session.aclose()
    return Comparison.of(f"{counted(tools)}, {items} items", *taken)


def counted(tools: int) -> str:
    """How many tools, in words."""
    return "1 tool" if tools == 1 else f"{tools} tools"


async def _turn(session: AgentSession, asked: str) -> float:
    gc.collect(1)
    gc.disable()
    began = time.process_time()
    await session.generate_reply(user_input=asked)
    seconds = time.process_time() - began
    gc.enable()
    return seconds


async def _with_history(kind: type[AgentSession], items: int) -> AgentSession:
    """A session that has made calls; a safe one's ledger remembers as many as it ever does."""
    session = kind(llm=ObedientModel())
    await session.start(Clerk(chat_ctx=_history(items)))
    session.history.items.extend(_history(items).items)
    await session.generate_reply(user_input=ask_for("look_up", times=REMEMBERED_ENDINGS))
    await _trim(session, items)
    return session


def _history(items: int) -> ChatContext:
    """Questions that were each answered with the help of a tool, an hour ago."""
    history = ChatContext.empty()
    moment = time.time() - 3600
    while len(history.items) < items:
        number = len(history.items)
        asked, told = moment + number, moment + number + 0.5
        name, call_id = "look_up", f"earlier_{number}"
        history.add_message(role="user", content=f"What about {number}?", created_at=asked)
        history.insert(FunctionCall(name=name, call_id=call_id, arguments="{}", created_at=asked))
        output = FunctionCallOutput(
            name=name, call_id=call_id, output="It is there.", is_error=False, created_at=told
        )
        history.insert(output)
        history.add_message(role="assistant", content=f"{number} is there.", created_at=told)
    return history


async def _trim(session: AgentSession, items: int) -> None:
    agent = session.current_agent
    await agent.update_chat_ctx(agent.chat_ctx.copy().truncate(max_items=items))
    session.history.truncate(max_items=items)


def main(kinds: tuple[type[AgentSession], type[AgentSession]], repetitions: int) -> list[Comparison]:
    """Every number of tools with every length of the history."""
    return [
        asyncio.run(cost_of_a_turn(kinds, tools=tools, items=items, repetitions=repetitions))
        for tools in TOOLS
        for items in ITEMS
    ]
