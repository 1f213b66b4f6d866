"""Faults that were found by attacking the package, each as the timeline that showed it."""

import asyncio
import gc

import pytest
from livekit.agents import NOT_GIVEN, Agent, AgentTask, RunContext, StopResponse, function_tool
from livekit.agents.llm import ChatContext
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import Answer, Call, Line, ScriptedModel, check_guarantees

from ._scenes import realtime_model, settled


def outputs_in(context):
    return [item.output for item in context.items if item.type == "function_call_output"]


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

    @function_tool
    async def stop(self, ctx: RunContext) -> None:
        await ctx.update("stopping")
        raise StopResponse

    @function_tool
    async def transfer(self, ctx: RunContext) -> Agent:
        await ctx.update("transferring")
        return Second(NOT_GIVEN)

    @function_tool
    async def late(self, ctx: RunContext) -> str:
        await ctx.update("begun")
        await asyncio.sleep(3)
        return "late-done"


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


class Leaving(Agent):
    def __init__(self):
        super().__init__(instructions="Leave.")

    async def on_exit(self):
        await asyncio.sleep(2)
        await self.session.generate_reply(instructions="Say goodbye.")

    @function_tool
    async def save(self) -> str:
        await asyncio.sleep(30)
        return "saved"


class Form(AgentTask[str]):
    def __init__(self):
        super().__init__(instructions="Form.")

    @function_tool
    async def finish(self) -> None:
        self.complete("filled")


class Asking(Agent):
    def __init__(self):
        super().__init__(instructions="Ask.")

    @function_tool
    async def ask(self) -> str:
        return await Form()


class SlowForm(Form):
    async def on_exit(self):
        await asyncio.sleep(0.5)


class AskingBesides(Agent):
    """Has a slow tool, and one that awaits an AgentTask."""

    def __init__(self, where):
        async def save() -> str:
            await asyncio.sleep(30)
            return "saved"

        async def ask() -> str:
            return await SlowForm()

        tools = [function_tool(tool, name=tool.__name__, description="Do it.") for tool in (save, ask)]
        if where == "toolset":
            tools = [AsyncToolset(id="own", tools=tools)]
        super().__init__(instructions="Ask.", tools=tools)


@pytest.fixture(params=["pipeline", "realtime"])
async def play(request):
    sessions = []
    realtime = request.param == "realtime"

    async def start(agent, *answers, **options):
        model = ScriptedModel([*answers, *[Answer("All right.")] * 5])
        llm = realtime_model(model) if realtime else model
        line = Line().options(realtime=realtime)
        session = SafeAgentSession(llm=llm, safe=SafeOptions(**options), **line)
        sessions.append(session)
        await session.start(agent)
        return session, model

    yield start
    for session in sessions:
        await session.aclose()
    # up to 1.6.6, a reply task of livekit's that outlives its connection raises what nobody retrieves
    gc.collect()


async def test_a_tool_that_ends_right_upon_its_progress(play):
    agent = Searching()
    session, model = await play(agent, Answer(calls=[Call("search"), Call("other")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(3)
    assert [inference for inference in model.inferences if not settled(inference)] == []
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
    assert [inference for inference in model.inferences if not settled(inference)] == []
    assert [item.type for item in agent.second.chat_ctx.items if item.type.startswith("function_call")] == [
        "function_call",
        "function_call_output",
    ]


async def close_of(session):
    """The seconds that it takes."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.wait_for(session.aclose(), 60)
    return loop.time() - began


async def test_a_tool_that_starts_after_the_time_to_stop_it(play):
    agent = Leaving()
    session, _ = await play(agent, Answer("Bye.", [Call("save")]), close_timeout=1)
    assert await close_of(session) < 4
    assert "may already have taken effect" in agent.chat_ctx.items[-1].output


async def test_a_close_after_a_handoff_away_from_an_agent_task(play):
    """Nobody completes the task any more, so the tool that awaits it would wait for ever."""
    agent = Asking()
    session, _ = await play(agent, Answer(calls=[Call("ask")]), close_timeout=2)
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(1)
    session.update_agent(Leaving())
    await asyncio.sleep(1)
    assert await close_of(session) < 6
    assert check_guarantees(session, agent) == []
    assert any(item.type == "function_call_output" for item in agent.chat_ctx.items)


@pytest.mark.parametrize("where", ["agent", "toolset"])
async def test_a_close_while_the_tool_that_awaited_an_agent_task_closes_its_agent(play, where):
    """It is not stopped halfway, or the close would wait for the task for ever."""
    agent = AskingBesides(where)
    session, _ = await play(agent, Answer(calls=[Call("save"), Call("ask")]), close_timeout=1)
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(1)
    session.update_agent(Leaving())
    await asyncio.sleep(0.1)  # the task is leaving
    assert await close_of(session) < 4
    assert check_guarantees(session, agent) == []


async def test_a_call_whose_twin_awaits_an_agent_task(play):
    """The task waits until the turn of that call is over, so the call must not wait for its twin."""
    session, model = await play(Asking(), *[Answer("One moment.", [Call("ask")])] * 2)
    session.generate_reply(user_input="Go!")
    session.generate_reply(user_input="Go on!")
    await asyncio.sleep(3)
    session.generate_reply(user_input="Hello?")
    await asyncio.sleep(1)
    assert "Hello?" in model.inferences[-1].user_said


async def test_a_tool_that_stops_right_upon_its_progress(play):
    agent = Searching()
    session, _ = await play(agent, Answer(calls=[Call("stop")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(3)
    assert outputs_in(agent.chat_ctx)[-1] == "It has ended, and gave no result."
    assert check_guarantees(session, agent) == []


async def test_a_tool_that_hands_over_right_upon_its_progress(play, caplog):
    agent = Searching()
    session, _ = await play(agent, Answer(calls=[Call("transfer")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(3)
    assert isinstance(session.current_agent, Second)
    assert outputs_in(agent.chat_ctx)[-1] == "Handed over."
    # asyncio may report here what other tests have left
    errors = [record for record in caplog.records if record.levelname == "ERROR" and record.name != "asyncio"]
    assert errors == []


async def leave_while_a_tool_runs(play):
    """The session, and the agent that has left it while a tool of its own goes on."""
    agent = Searching()
    session, _ = await play(agent, Answer(calls=[Call("late")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(1)
    session.update_agent(Second(NOT_GIVEN))
    await asyncio.sleep(1)
    return session, agent


async def test_the_context_of_an_agent_that_has_left_is_replaced(play):
    """The late result of a tool of its own is put into it once all the same."""
    session, agent = await leave_while_a_tool_runs(play)
    await agent.update_chat_ctx(agent.chat_ctx.copy())
    await asyncio.sleep(3)
    assert check_guarantees(session, agent) == []
    assert agent.chat_ctx.items[-1].output == "late-done"


async def test_the_close_event_comes_when_the_tools_have_ended(play):
    """Those too that a handoff had made the session take over: it is the moment to save the history."""
    session, _ = await leave_while_a_tool_runs(play)
    saved = []
    session.on("close", lambda _: saved.extend(session.history.items))
    await session.aclose()
    assert "late-done" in outputs_in(ChatContext(saved))


async def test_a_handoff_while_a_late_result_waits_for_the_caller_to_be_silent(play):
    agent = Searching()
    tools = [AsyncToolset(id="late", tools=agent.tools)]
    line = Line()
    model = ScriptedModel([Answer(calls=[Call("late")]), *[Answer("All right.")] * 6])
    session = SafeAgentSession(llm=model, tools=tools, **line.options())
    line.connect(session)
    second = Second(NOT_GIVEN)
    await session.start(Second(NOT_GIVEN))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(2.5)
    saying = asyncio.ensure_future(line.caller.say("I have a lot to say about this, and say it now."))
    await asyncio.sleep(1)
    session.update_agent(second)
    await saying
    await asyncio.sleep(10)
    assert "late-done" in [
        item.output for item in second.chat_ctx.items if item.type == "function_call_output"
    ]
    await session.aclose()


def tell_what_is_new(shown):
    """Make two calls, and then tell each result that came since the agent last spoke."""
    if not any(item.type == "function_call" for item in shown.items):
        return Answer(calls=[Call("late"), Call("ask")])
    new = []
    for item in shown.items:
        if item.type == "message" and item.role == "assistant":
            new.clear()
        if item.type == "function_call_output" and item.output in {"late-done", "filled"}:
            new.append(item.output)
    return Answer(" and ".join(new))


async def test_a_result_held_under_a_task_is_told_by_the_step_that_awaited_it():
    """The late reply and the step's own would begin together, and neither see what the other says."""
    forms = []

    class Host(Searching):
        @function_tool
        async def ask(self) -> str:
            forms.append(Form())
            return await forms[0]

    line = Line()
    session = SafeAgentSession(llm=ScriptedModel(tell_what_is_new), **line.options())
    line.connect(session)
    await session.start(Host())
    await line.caller.say("Go!")
    await asyncio.sleep(5)
    forms[0].complete("filled")
    await asyncio.sleep(15)
    assert line.speaker.heard == ["late-done and filled"]
    await session.aclose()


async def test_a_caller_who_begins_to_speak_under_an_agent_and_stops_under_its_task():
    """The agent would wait for ever for the caller to be silent, once it has the floor again."""
    form = Form()

    class Host(Agent):
        async def on_enter(self):
            await asyncio.sleep(0.1)
            await form

    line = Line()
    session = SafeAgentSession(llm=ScriptedModel([Answer("All right.")] * 6), **line.options())
    line.connect(session)
    await session.start(Host(instructions="Host."))
    await line.caller.say("Hello, is anybody there?")
    await asyncio.sleep(3)
    form.complete("filled")
    await asyncio.sleep(1)
    session.generate_reply(instructions="Go on.")
    await asyncio.sleep(3)
    assert line.speaker.heard[-1] == "All right."
    assert len(line.speaker.heard) == 2
    await session.aclose()


async def test_an_agent_built_from_a_task_while_the_tool_that_awaits_it_runs(play, caplog):
    """It is to know how that call ends; there is nothing of it to hold yet."""
    agent = Asking()
    session, _ = await play(agent, Answer(calls=[Call("ask")]))
    session.generate_reply(user_input="Go!")
    await asyncio.sleep(1)
    form = session.current_agent
    assert isinstance(form, Form)
    session.generate_reply(user_input="Which form?")
    await asyncio.sleep(1)
    second = Second(form.chat_ctx.copy())
    session.update_agent(second)
    await asyncio.sleep(1)
    form.complete("filled")
    await asyncio.sleep(1)
    assert not [record for record in caplog.records if record.name == "safe_session" and record.exc_info]
    assert [output for output in outputs_in(second.chat_ctx) if output == "filled"] == ["filled"]


async def test_the_step_after_a_call_of_a_tool_that_nobody_has_is_shown_it_once():
    """livekit names that call only when the step is over; 1.6.1 to 1.6.4 then merge the stored context."""
    model = ScriptedModel([Answer("", [Call("cook", {})]), Answer("Nobody cooks here.")])
    async with SafeAgentSession(llm=model) as session:
        await session.start(Agent(instructions="Host."))
        await session.run(user_input="Noodles!")
        assert [call.name for call in model.inferences[-1].calls] == ["cook"]
        assert check_guarantees(session) == []
