"""G12: a drop-in for `AgentSession`, beside which a plain one behaves as it always did."""

import asyncio
import inspect
import sys
from dataclasses import dataclass

from livekit.agents import Agent, AgentSession, RunContext, function_tool, mock_tools
from livekit.agents.llm import ChatContext
from livekit.agents.llm.async_toolset import AsyncToolset
from livekit.agents.voice.agent_activity import AgentActivity

from safe_session import SafeAgentSession
from safe_session.testing import Answer, Call, ScriptedModel, check_guarantees

from ._scenes import BOOK, Host, Scene, diligent, either_path, realtime_model, shown


@dataclass
class Data:
    table: int


class HouseSession(SafeAgentSession[Data]):
    """A subclass with a constructor and a method of its own."""

    def __init__(self, *, table: int, **kwargs):
        super().__init__(userdata=Data(table), **kwargs)

    @property
    def table(self) -> int:
        return self.userdata.table


# -- the class


async def test_it_is_an_agent_session():
    assert issubclass(SafeAgentSession, AgentSession)
    assert isinstance(SafeAgentSession(), AgentSession)


async def test_it_is_generic_in_its_user_data():
    session = SafeAgentSession[Data](userdata=Data(5), max_tool_steps=7)
    assert session.userdata == Data(5)
    assert session.options.max_tool_steps == 7


# -- what is driven with it


def model_of(medium, script):
    return realtime_model(script) if medium == "realtime" else script


async def test_the_test_harness_works_on_both(session_class):
    async with session_class(llm=diligent(BOOK, pace=0)) as session:
        await session.start(Host())
        result = await session.run(user_input="Six!")
    message = "One moment, please, I do it."
    result.expect.next_event().is_message(role="assistant")
    assert result.events[0].item.text_content == message
    result.expect.next_event().is_function_call(name="book", arguments={"people": 6})
    result.expect.next_event().is_function_call_output(output="book 6 Miller is done", is_error=False)
    result.expect.next_event().is_message(role="assistant")
    result.expect.no_more_events()


@either_path
async def test_two_runs_in_a_row_on_both(session_class, medium):
    host = Host()
    async with session_class(llm=model_of(medium, diligent(BOOK))) as session:
        await session.start(host)
        await session.run(user_input="Six!")
        again = await session.run(user_input="Six?")
        assert check_guarantees(session) == []
    again.expect.next_event().is_message(role="assistant")
    again.expect.no_more_events()
    assert host.did == ["book 6 Miller"]


@either_path
async def test_mocked_tools_in_a_run_on_both(session_class, medium):
    host = Host()
    async with session_class(llm=model_of(medium, diligent(BOOK))) as session:
        await session.start(host)
        with mock_tools(Host, {"book": lambda: "mocked"}):
            result = await session.run(user_input="Six!")
    result.expect.contains_function_call_output(output="mocked")
    assert host.did == []


async def test_livekits_own_events_come_as_ever_on_both(stage):
    heard = []
    async with stage(diligent(BOOK), Host()) as call:
        for name in ("conversation_item_added", "function_tools_executed", "speech_created"):
            call.session.on(name, lambda event: heard.append(event.type))
        await call.says("Six!")
        await call.at(30)
    assert sorted(heard) == [*["conversation_item_added"] * 3, "function_tools_executed", "speech_created"]


async def test_a_subclass():
    async with HouseSession(table=5, llm=diligent(BOOK)) as session:
        await session.start(Host())
        await session.run(user_input="Six!")
        assert session.table == 5
        assert check_guarantees(session) == []


async def test_several_at_the_same_time():
    """Their models even give the same ids to their calls."""
    call = Call("book", {"people": 6}, call_id="call_1")
    hosts = [Host(takes={"book": seconds}) for seconds in (0.5, 1, 2)]
    models = [ScriptedModel([Answer("", [call]), Answer("Done.")]) for _ in hosts]

    async def talk(host, model):
        async with SafeAgentSession(llm=model) as session:
            await session.start(host)
            await session.run(user_input="Six!")
            assert check_guarantees(session) == []

    await asyncio.gather(*map(talk, hosts, models))
    assert [host.did for host in hosts] == [["book 6 Miller"]] * 3


@either_path
async def test_one_started_again_on_both(session_class, medium):
    session = session_class(llm=model_of(medium, diligent(BOOK)))
    first, second = Host(id="first"), Host(id="second")
    for host in (first, second):
        await session.start(host)
        await session.run(user_input="Six!")
        assert check_guarantees(session) == []
        await session.aclose()
    assert (first.did, second.did) == (["book 6 Miller"], ["book 6 Miller"])


async def test_one_agent_in_a_safe_and_in_a_plain_session():
    host = Host()
    for session_class in (SafeAgentSession, AgentSession, SafeAgentSession):
        async with session_class(llm=diligent(BOOK)) as session:
            await session.start(host)
            await session.run(user_input="Six!")
    assert host.did == ["book 6 Miller"]


# -- a plain session in the same process


async def play(session_class):
    """A call in which a plain session goes wrong; returns what ran, and what each inference was shown."""
    async with Scene(session_class, "text", diligent(BOOK), Host(), forgets=True) as call:
        await call.says("Six!")
        await call.at(1)
        await call.says("Six?")
        await call.at(30)
        kinds = (type(call.agent._activity), type(call.agent._chat_ctx), type(call.session.history))
    return call.agent.did, [shown(inference) for inference in call.inferences], kinds


async def test_a_plain_session_before_during_and_after_a_safe_one():
    before = await play(AgentSession)
    safe, during = await asyncio.gather(play(SafeAgentSession), play(AgentSession))
    after = await play(AgentSession)
    assert before == during == after
    assert before[0] == ["book 6 Miller"] * 2
    assert before[2] == (AgentActivity, ChatContext, ChatContext)
    assert safe[0] == ["book 6 Miller"]


def livekits_own():
    """Every attribute of livekit's modules and of the classes in them."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith("livekit.agents")}
    found = {}
    for module_name, module in modules.items():
        for name, value in vars(module).items():
            found[module_name, name] = value
            if inspect.isclass(value) and value.__module__.startswith("livekit.agents"):
                found.update({(value, attribute): item for attribute, item in vars(value).items()})
    return found


async def test_livekits_classes_and_modules_are_untouched():
    await play(AgentSession)
    before = livekits_own()
    await play(SafeAgentSession)
    after = livekits_own()
    changed = [where for where in before if after.get(where) is not before[where]]
    assert [where for where in changed if where[1] not in ("_abc_impl", "__annotations__")] == []
    ours = [where for where, value in after.items() if comes_from_us(value)]
    assert ours == []


def comes_from_us(value):
    return str(getattr(value, "__module__", "")).partition(".")[0] == "safe_session"


# -- a toolset of its own


def bookings(ran):
    @function_tool
    async def reserve(ctx: RunContext, people: int) -> str:
        """Reserve a table, and say so first."""
        await ctx.update("I am on it.")
        await asyncio.sleep(1)
        ran.append(people)
        return f"reserved for {people}"

    return AsyncToolset(id="bookings", tools=[reserve])


async def test_a_toolset_shared_by_plain_and_safe_sessions():
    ran = []
    toolset = bookings(ran)
    for session_class in (AgentSession, SafeAgentSession, AgentSession):
        model = diligent(Call("reserve", {"people": 6}))
        async with Scene(session_class, "text", model, Agent(instructions=""), tools=[toolset]) as call:
            await call.says("Six!")
            await call.at(10)
            told = [output.output for output in model.inferences[-1].outputs.values()]
            assert any("reserved for 6" in output for output in told)
    assert ran == [6, 6, 6]
