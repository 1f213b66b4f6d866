"""Faults that were found by attacking the package, each as the timeline that showed it."""

import asyncio
from collections import Counter

import pytest
from livekit.agents import Agent, RunContext, function_tool

from safe_session import SafeAgentSession
from safe_session.testing import Answer, Call, Line, ScriptedModel, check_guarantees


def unbalanced(shown):
    """The call ids that have not just as many outputs as calls, as a provider sees them."""
    calls = Counter(item.call_id for item in shown.items if item.type == "function_call")
    outputs = Counter(item.call_id for item in shown.items if item.type == "function_call_output")
    return [call_id for call_id in calls | outputs if calls[call_id] != outputs[call_id]]


class Searching(Agent):
    def __init__(self):
        super().__init__(instructions="Search.")

    @function_tool
    async def search(self, ctx: RunContext) -> str:
        await ctx.update("searching")
        return "found 3"  # no await in between: the result is there before the progress is reported

    @function_tool
    async def other(self) -> str:
        await asyncio.sleep(0.5)
        return "other-done"


class Second(Agent):
    def __init__(self, chat_ctx):
        super().__init__(instructions="Second.", chat_ctx=chat_ctx)


class First(Agent):
    def __init__(self):
        super().__init__(instructions="First.")
        self.second = None

    @function_tool
    async def transfer(self):
        await asyncio.sleep(1)
        self.second = Second(self.chat_ctx.copy())
        return self.second, "transferring"


@pytest.fixture
async def play():
    sessions = []

    async def start(agent, *answers):
        model = ScriptedModel([*answers, *[Answer("All right.")] * 5])
        session = SafeAgentSession(llm=model, **Line().options())
        sessions.append(session)
        await session.start(agent)
        return session, model

    yield start
    for session in sessions:
        await session.aclose()


async def test_a_tool_that_ends_right_upon_its_progress(play):
    agent = Searching()
    session, model = await play(agent, Answer(calls=[Call("search"), Call("other")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(3)
    assert [
        unbalanced(inference.shown) for inference in model.inferences if unbalanced(inference.shown)
    ] == []
    # the inference that answers both tools was shown how the search ended, not only that it had begun
    assert "found 3" in [output.output for output in model.inferences[-1].outputs.values()]
    assert check_guarantees(session, agent) == []


async def test_something_is_said_while_a_tool_builds_the_next_agent(play):
    agent = First()
    session, model = await play(agent, Answer("One moment.", [Call("transfer")]))
    session.generate_reply(user_input="Transfer me.")
    await asyncio.sleep(0.5)
    session.generate_reply(instructions="Ask for patience.")
    await asyncio.sleep(2)
    session.generate_reply(user_input="Hello?")
    await asyncio.sleep(1)
    assert [
        unbalanced(inference.shown) for inference in model.inferences if unbalanced(inference.shown)
    ] == []
    assert [item.type for item in agent.second.chat_ctx.items if item.type.startswith("function_call")] == [
        "function_call",
        "function_call_output",
    ]
