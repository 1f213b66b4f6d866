from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, function_tool, llm

from safe_session.testing import Answer, Call, ScriptedModel, Violation, check_guarantees


@function_tool
async def book(people: int) -> str:
    """Book a table."""
    return "order 1"


class Host(Agent):
    """A subclass, because every plain `Agent` has the id "default_agent"."""


def made(call_id: str = "c1") -> llm.FunctionCall:
    return llm.FunctionCall(call_id=call_id, name="book", arguments='{"people": 6}')


def ended(call_id: str = "c1") -> llm.FunctionCallOutput:
    return llm.FunctionCallOutput(call_id=call_id, name="book", output="order 1", is_error=False)


def agent_with(*items: llm.ChatItem, name: str = "host") -> Agent:
    return Host(instructions="", id=name, tools=[book], chat_ctx=llm.ChatContext(list(items)))


def session_with(*items: llm.ChatItem) -> AgentSession[Any]:
    session: AgentSession[Any] = AgentSession(
        llm=ScriptedModel([]), vad=None, turn_handling={"turn_detection": None}
    )
    session.history.insert(list(items))
    return session


def kinds(violations: list[Violation]) -> list[tuple[str, str, str]]:
    return [(v.kind, v.where, v.call_id) for v in violations]


async def test_all_is_well() -> None:
    assert check_guarantees(session_with(made(), ended()), agent_with(made(), ended())) == []


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ([made()], "call_without_output"),
        ([ended()], "output_without_call"),
        ([made(), made(), ended()], "call_twice"),
        ([made(), ended(), ended()], "output_twice"),
    ],
)
async def test_within_one_place(items: list[llm.ChatItem], kind: str) -> None:
    assert kinds(check_guarantees(session_with(*items))) == [(kind, "history", "c1")]
    whole = session_with(made(), ended())
    assert kinds(check_guarantees(whole, agent_with(*items), agent_with(made(), ended(), name="b"))) == [
        (kind, "host", "c1")
    ]


async def test_a_call_that_is_in_one_place_only() -> None:
    session = session_with(made("c1"), ended("c1"))
    host = agent_with(made("c2"), ended("c2"))
    assert kinds(check_guarantees(session, host)) == [
        ("missing_in_history", "host", "c2"),
        ("missing_in_agents", "history", "c1"),
    ]


async def test_a_call_of_one_agent_need_not_be_in_the_other() -> None:
    session = session_with(made("c1"), ended("c1"), made("c2"), ended("c2"))
    agents = agent_with(made("c1"), ended("c1")), agent_with(made("c2"), ended("c2"), name="other")
    assert check_guarantees(session, *agents) == []


async def test_a_violation_reads_well() -> None:
    (violation,) = check_guarantees(session_with(made("c1")))
    assert str(violation) == "history: book (c1): the call has no output"


async def test_the_current_agent_is_looked_at_by_default() -> None:
    model = ScriptedModel([Answer(calls=[Call("book", {"people": 6}, call_id="c1")]), Answer("Booked.")])
    async with AgentSession[Any](llm=model) as session:
        host = agent_with()
        await session.start(host)
        await session.run(user_input="Six")
        assert check_guarantees(session) == check_guarantees(session, host) == []
        context = host.chat_ctx.copy()
        context.items = [item for item in context.items if item.type != "function_call_output"]
        await host.update_chat_ctx(context)
        assert kinds(check_guarantees(session)) == [("call_without_output", "host", "c1")]
