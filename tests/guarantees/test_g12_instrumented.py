"""G12: other packages wrap methods of `AgentSession`, and sessions run within tools of other sessions."""

import asyncio
import contextvars
import functools

import pytest
import wrapt
from livekit.agents import Agent, AgentSession, RunContext, function_tool

from safe_session import SafeAgentSession, _livekit
from safe_session.testing import Call, check_guarantees

from ._scenes import BOOK, Host, Scene, diligent
from .test_g01_handoffs import TRANSFER, Transferring

WRAPPED = ("start", "emit", "update_agent", "generate_reply", "_update_activity")


# -- wrapped by other packages


def wrap_with_wrapt(monkeypatch, name, seen):
    def wrapper(wrapped, instance, args, kwargs):
        seen.append((name, type(instance)))
        return wrapped(*args, **kwargs)

    monkeypatch.setattr(AgentSession, name, wrapt.FunctionWrapper(getattr(AgentSession, name), wrapper))


def wrap_by_hand(monkeypatch, name, seen, wraps=functools.wraps):
    original = getattr(AgentSession, name)

    @wraps(original)
    def wrapper(self, *args, **kwargs):
        seen.append((name, type(self)))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(AgentSession, name, wrapper)


by_each = pytest.mark.parametrize("wrap", [wrap_with_wrapt, wrap_by_hand])


async def play(session_class):
    """A call in which a plain session books twice, then one that hands over."""
    async with Scene(session_class, "text", diligent(BOOK), Host(), forgets=True) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        await call.at(30)
    model = diligent(TRANSFER)
    async with Scene(session_class, "text", model, Transferring(), forgets=True) as transfer:
        await transfer.says("Manager!")
        await transfer.at(10)
        assert transfer.session.current_agent is transfer.agent.manager
    return call.agent.did


@by_each
async def test_a_wrapped_method_sees_what_it_sees_of_a_plain_session(monkeypatch, wrap):
    unwrapped = [await play(SafeAgentSession), await play(AgentSession)]
    seen = []
    for name in WRAPPED:
        wrap(monkeypatch, name, seen)
    assert [await play(SafeAgentSession), await play(AgentSession)] == unwrapped
    for session_class in (SafeAgentSession, AgentSession):
        assert {name for name, kind in seen if kind is session_class} == set(WRAPPED)
    for name in ("start", "update_agent"):
        assert seen.count((name, SafeAgentSession)) == seen.count((name, AgentSession))


@by_each
async def test_a_wrapped_emit_sees_each_event_once(monkeypatch, wrap):
    """livekit's own events, and those of ours."""
    heard, emitted = [], []

    def count(session, event, *args):
        emitted.append(event)

    original = AgentSession.emit
    monkeypatch.setattr(AgentSession, "emit", lambda self, *args: (count(self, *args), original(self, *args)))
    wrap(monkeypatch, "emit", [])
    async with Scene(SafeAgentSession, "text", diligent(BOOK), Host(takes={"book": 3})) as call:
        for event in ("function_tools_executed", "speech_created", "call_released"):
            call.session.on(event, lambda event: heard.append(event.type))
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        await call.at(30)
    assert heard == [event for event in emitted if event in set(heard)]
    assert "call_released" in heard


@by_each
def test_the_check_looks_through_a_wrapper(monkeypatch, wrap):
    """Another package may have been there first, before ours is imported."""
    for name in (*WRAPPED, "__init__"):
        wrap(monkeypatch, name, [])
    _livekit.check("1.8.9")


@pytest.mark.parametrize("name", ["start", "emit", "update_agent", "generate_reply"])
def test_the_check_needs_nothing_of_a_public_method(monkeypatch, name):
    """Not every package leaves the name of what it wraps in its wrapper."""
    wrap_by_hand(monkeypatch, name, [], wraps=lambda _: lambda wrapper: wrapper)
    _livekit.check("1.8.9")


async def test_one_session_wrapped_in_its_life(monkeypatch):
    """A package that is set up late, when a session runs already."""
    seen = []
    async with Scene(SafeAgentSession, "text", diligent(BOOK), Host()) as call:
        await call.says("Six!")
        await call.at(1)
        for name in WRAPPED:
            wrap_by_hand(monkeypatch, name, seen)
        await call.says("Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]
    assert {name for name, _ in seen} == {"emit", "generate_reply"}


# -- within another session


class Head(Agent):
    """An agent whose tool asks another agent, in a session of its own."""

    def __init__(self, inner_class) -> None:
        super().__init__(instructions="You ask others.", id="head")
        self.inner_class = inner_class
        self.hosts: list[Host] = []
        self.outputs: list[str] = []

    @function_tool
    async def ask_the_host(self, ctx: RunContext) -> str:
        """Have the host book a table."""
        # livekit lets what is asked for within a tool's own context make no calls
        return await contextvars.Context().run(asyncio.ensure_future, self.ask())

    async def ask(self) -> str:
        self.hosts.append(Host())
        async with self.inner_class(llm=diligent(BOOK)) as inner:
            await inner.start(self.hosts[-1])
            result = await inner.run(user_input="Six!")
            assert check_guarantees(inner) == []
        return next(e.item.output for e in result.events if e.type == "function_call_output")


ASK = Call("ask_the_host", {})
inner_class = pytest.mark.parametrize("inner_class", [SafeAgentSession, AgentSession])


@inner_class
async def test_a_session_within_a_tool_on_both(stage, inner_class):
    async with stage(diligent(ASK), Head(inner_class)) as call:
        await call.says("Six!")
        await call.at(30)
        assert call.result_of("ask_the_host").output == "book 6 Miller is done"
    (host,) = call.agent.hosts
    assert host.did == ["book 6 Miller"]


@inner_class
async def test_the_outer_one_is_interrupted_while_the_inner_one_runs(medium, inner_class):
    """The tool is released, and goes on with its session."""
    async with Scene(SafeAgentSession, medium, diligent(ASK), Head(inner_class)) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
        assert "book 6 Miller is done" in call.result_of("ask_the_host").output
    (host,) = call.agent.hosts
    assert host.did == ["book 6 Miller"]


async def test_two_sessions_of_one_agent_class_at_the_same_time_in_different_states():
    """One closes while the other is in the middle of a call."""
    short, long = Host(takes={"book": 1}), Host(takes={"book": 4})

    async def talk(host, seconds):
        async with Scene(SafeAgentSession, "text", diligent(BOOK), host) as call:
            await call.says("Six!")
            await call.at(seconds)
            return call.result_of("book").output

    assert await asyncio.gather(talk(short, 3), talk(long, 8)) == ["book 6 Miller is done"] * 2
