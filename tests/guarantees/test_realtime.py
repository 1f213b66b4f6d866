"""What only a realtime model can do: its server keeps a context of its own, and waits for each call's output.

The caller's first word takes until 0.25, and a server's generation begins when the caller has spoken.
"""

import asyncio
import gc
from collections.abc import Sequence

import pytest
from livekit.agents import Agent, AgentSession, AgentTask, RunContext, function_tool
from livekit.agents.llm import FunctionCallOutput, Toolset
from livekit.agents.llm.async_toolset import AsyncToolset

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import Answer, Call, Line, ScriptedRealtimeModel, check_guarantees

from ._scenes import BOOK, NOTIFY, WORD, Host, now, shown
from .test_g01_handoffs import NOT_DONE, TRANSFER, Transferring

MODELS = {
    "as it is": {},
    "replies by itself": {"auto_tool_reply_generation": True},
    "a new connection": {"mutable_instructions": False},
    "immutable": {"mutable_chat_context": False, "mutable_instructions": False},
    "immutable, replies by itself": {
        "mutable_chat_context": False,
        "mutable_instructions": False,
        "auto_tool_reply_generation": True,
    },
}


class Talk:
    """A call on a line, to a realtime model that plays a script; its end is a check that all calls were kept.

    Attributes:
        model: The model.
        session: The session.
        agents: Those whose contexts are looked at in the end.
    """

    def __init__(
        self,
        session_class: type[AgentSession],
        script: object,
        *agents: Agent,
        safe: SafeOptions | None = None,
        turn_detection: bool = True,
        tools: Sequence[Toolset] = (),
        **model: object,
    ) -> None:
        self.model = ScriptedRealtimeModel(
            script, turn_detection=turn_detection, words_per_second=1 / WORD, **model
        )
        self.agents = agents
        self.line = Line(words_per_second=1 / WORD)
        options = self.line.options(realtime=True) | {"tools": list(tools)}
        if not turn_detection:
            options["turn_handling"]["turn_detection"] = "manual"
        if issubclass(session_class, SafeAgentSession):
            options["safe"] = safe
        self.session = session_class(llm=self.model, **options)
        self.line.connect(self.session)

    async def __aenter__(self):
        await self.session.start(self.agents[0])
        self._began = now()
        return self

    async def __aexit__(self, kind, *_):
        try:
            if kind is None:
                assert [str(v) for v in check_guarantees(self.session, *self.agents)] == []
                assert self.model.server.unanswered_calls == []
        finally:
            await self.session.aclose()
            gc.collect()  # what nobody retrieved is reported here, and not while pytest reads its sources

    async def at(self, second: float) -> None:
        await asyncio.sleep(self._began + second - now())

    async def says(self, text: str) -> None:
        """The caller says it; when their turn begins and ends the server finds out, or we say so."""
        if self.model.server.turn_detection:
            await self.model.server.hear(text)
            return
        self.session.interrupt()
        await self.model.server.hear(text)
        self.session.commit_user_turn(transcript_timeout=0)

    def known(self, connection: int = -1) -> dict[str, str]:
        """What a server holds of each call: its newest output, by the tool's name."""
        items = self.model.sessions[connection].server_context.items
        return {item.name: item.output for item in items if isinstance(item, FunctionCallOutput)}


def two_tools(**first):
    """A model that calls a fast and a slow tool, then answers the caller, then tells what has landed."""
    calls = Answer("One moment.", [BOOK, NOTIFY], calls_first=True, **first)
    return [calls, *[Answer("All right.")] * 4]


# -- each output arrives when its call ends


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("model", [MODELS["as it is"], MODELS["replies by itself"]], ids=["", "auto"])
async def test_the_fast_ones_output_does_not_wait_for_the_slow_one(session_class, model):
    async with Talk(session_class, two_tools(), Host(takes={"notify": 6}), **model) as call:
        await call.says("Six!")
        await call.at(2)
        assert call.known() == {"book": "book 6 Miller is done"}
        await call.at(20)


turns = pytest.mark.parametrize("turn_detection", [True, False], ids=["its own turns", "our turns"])


@pytest.mark.fails_on_plain(">=1.6")
@turns
async def test_it_is_known_to_the_reply_that_the_caller_asks_for_meanwhile(session_class, turn_detection):
    host = Host(takes={"notify": 6})
    async with Talk(session_class, two_tools(), host, turn_detection=turn_detection) as call:
        await call.says("Six!")
        await call.at(2)
        await call.says("Well, is it done?")
        await call.at(4)
        assert shown(call.model.inferences[1]).get("book") == "book 6 Miller is done"
        await call.at(20)
    assert call.agents[0].did == ["book 6 Miller", "notify 555"]


@pytest.mark.fails_on_plain("<1.7")
@turns
async def test_the_output_of_an_interrupted_reply_arrives(session_class, turn_detection):
    async with Talk(
        session_class,
        [Answer("One moment.", [BOOK], calls_first=True), Answer("Yes?"), Answer("It is done.")],
        Host(takes={"book": 2}),
        turn_detection=turn_detection,
    ) as call:
        await call.says("Six!")
        await call.at(0.5)
        await call.says("Hello?")
        await call.at(20)
        assert call.known().get("book") == "book 6 Miller is done"


# -- a push that fails


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("times", [1, 3], ids=["once", "three times"])
@turns
async def test_a_push_that_fails_costs_nothing(session_class, times, turn_detection):
    script = [Answer("One moment.", [BOOK], calls_first=True), Answer("It is done."), Answer("Yes.")]
    host = Host(takes={"book": 2})
    async with Talk(session_class, script, host, turn_detection=turn_detection) as call:
        call.model.fail_next_pushes(times)
        await call.says("Six!")
        await call.at(20)
        assert shown(call.model.inferences[1]) == {"book": "book 6 Miller is done"}


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("times", [1, 3], ids=["once", "three times"])
async def test_what_a_failed_push_owes_is_there_before_the_caller_is_answered(session_class, times):
    """It fails while the agent still speaks of it; the server answers the caller's next words by itself."""
    script = [
        Answer("One moment, please, this will take a while.", [BOOK], calls_first=True),
        Answer("It is done."),
        Answer("Yes."),
    ]
    async with Talk(session_class, script, Host(takes={"book": 1})) as call:
        call.model.fail_next_pushes(times)
        await call.says("Six!")
        await call.at(1)
        call.session.interrupt()
        await call.at(10)
        await call.says("Well, is it done?")
        await call.at(30)
        assert shown(call.model.inferences[-1]) == {"book": "book 6 Miller is done"}


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_typed_message_survives_a_failed_push(session_class):
    async with Talk(session_class, [Answer("Hello."), Answer("Yes.")], Host()) as call:
        call.model.fail_next_pushes(1)
        call.session.generate_reply(user_input="Hello?")
        await call.at(5)
        assert [inference.user_said for inference in call.model.inferences] == [["Hello?"]]


class Reporting(Agent):
    """An agent whose tool tells of its progress."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the host.")
        self.ended = False

    @function_tool
    async def book(self, ctx: RunContext) -> str:
        """Book a table."""
        await ctx.update("Asking.")
        await asyncio.sleep(2)
        await ctx.update("Still asking.")
        await asyncio.sleep(2)
        self.ended = True
        return "It is booked."


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize(("first", "times"), [(1, 4), (2, 1), (3, 1), (2, 4)])
async def test_a_failed_push_of_progress_does_not_stop_the_tool(session_class, first, times):
    model = {"fail_pushes": range(first, first + times)}
    script = [Answer("One moment.", [Call("book")]), *[Answer("So it is.")] * 5]
    async with Talk(session_class, script, Reporting(), **model) as call:
        await call.says("Six!")
        await call.at(30)
        assert call.agents[0].ended
        assert "It is booked." in call.known().values()
        assert "It is booked." in shown(call.model.inferences[-1]).values()


async def test_what_the_application_pushes_itself_raises_on_both(session_class):
    async with Talk(session_class, [], Host()) as call:
        call.model.fail_next_pushes(1)
        context = call.agents[0].chat_ctx.copy()
        context.add_message(role="user", content="I was here before.")
        with pytest.raises(Exception, match="push 1 failed"):
            await call.agents[0].update_chat_ctx(context)


# -- each call has an output on the server


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_call_of_a_reply_that_must_not_call_tools(session_class):
    script = [Answer("One moment.", [BOOK]), Answer("Yes.")]
    async with Talk(session_class, script, Host()) as call:
        call.session.generate_reply(user_input="Six!", tool_choice="none")
        await call.at(5)
        assert call.known().get("book", "").startswith("Not run:")
        await call.says("Well?")
        await call.at(10)
        assert shown(call.model.inferences[1]).get("book", "").startswith("Not run:")
    assert call.agents[0].did == []


@pytest.mark.fails_on_plain("<1.8.3")
async def test_a_call_of_an_unknown_tool(session_class):
    script = [Answer("One moment.", [Call("fly")]), Answer("I can't.")]
    async with Talk(session_class, script, Host()) as call:
        await call.says("Six!")
        await call.at(5)
        assert "nknown" in shown(call.model.inferences[1]).get("fly", "")


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_call_of_a_reply_that_was_interrupted_before_its_turn(session_class):
    """The server has generated two replies, and the caller does not want to hear the first one out."""
    script = [Answer("Let me tell you everything about our tables."), Answer("Yes.")]
    async with Talk(session_class, script, Host(), turn_detection=False) as call:
        call.session.generate_reply(user_input="Well?")
        await call.at(0.5)
        call.model.server.interrupt()
        call.model.server.start_generation(Answer("I book it.", [BOOK]))
        await call.at(1)
        call.session.interrupt()
        await call.at(5)
        call.session.generate_reply(user_input="Stop!")
        await call.at(10)
        assert shown(call.model.inferences[2]).get("book", "").startswith("Not run: the caller interrupted")
    assert call.agents[0].did == []


# -- handoffs


class Leaver(Host):
    """A host that takes its time to leave, so that its window is open for so long."""

    def __init__(self, *, leaves: float, **kwargs) -> None:
        super().__init__(**kwargs)
        self.leaves = leaves

    async def on_exit(self) -> None:
        await asyncio.sleep(self.leaves)


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("model", [MODELS["as it is"], MODELS["a new connection"]], ids=["reused", "new"])
async def test_a_call_that_the_server_makes_during_a_handoff(session_class, model):
    first, second = Leaver(leaves=2, id="first"), Host(id="second", instructions="You are the second.")
    script = [Answer("One moment.", [BOOK]), Answer("The second answers.")]
    async with Talk(session_class, script, first, second, **model) as call:
        call.session.update_agent(second)
        await call.at(0.5)
        await call.says("A table for six!")
        await call.at(1.8)
        assert call.model.sessions[0].unanswered_calls == []
        assert call.known(0).get("book", "").startswith("Not run:")
        await call.at(10)
        assert call.model.inferences[1].user_said == ["A table for six!"]
        assert "You are the second." in call.model.inferences[1].agent_instructions
    assert first.did == second.did == []


def late(booked: list[int], *, takes: float) -> AsyncToolset:
    """A tool of the session's own, which outlives the agent that calls it."""

    @function_tool
    async def book(ctx: RunContext, people: int) -> str:
        """Book a table."""
        booked.append(people)
        await ctx.update("Asking the kitchen.")
        await asyncio.sleep(takes)
        return f"{people} is booked"

    return AsyncToolset(id="bookings", tools=[book])


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
async def test_a_late_result_is_known_to_the_next_agent_before_it_tells_it(session_class, model):
    """The tool of the session's ends at 2.25, while its agent still talks and is about to leave."""
    first = Agent(id="first", instructions="You are the first.")
    second = Agent(id="second", instructions="You are the second.")
    booked: list[int] = []

    def decide(shown):
        calls = [item for item in shown.items if item.type == "function_call"]
        return (
            Answer("One moment, please, that may take a little while.", [BOOK], calls_first=True)
            if not calls
            else Answer("So it is.")
        )

    async with Talk(session_class, decide, first, second, tools=[late(booked, takes=2)], **model) as call:
        await call.says("Six!")
        await call.at(2.5)
        call.session.update_agent(second)
        await call.at(20)
        teller = call.model.inferences[-1]
        assert "You are the second." in teller.agent_instructions
        assert "6 is booked" in [output.output for output in teller.outputs.values()]
        assert "6 is booked" in [i.output for i in second.chat_ctx.items if i.type == "function_call_output"]
    assert booked == [6]


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("says", [None, "The manager comes."], ids=["alone", "beside a result"])
async def test_a_handoff_that_was_interrupted_is_told_to_the_server_as_it_is_recorded(session_class, says):
    host = Transferring(says=says)
    script = [Answer("One moment, please.", [TRANSFER], calls_first=True), Answer("Yes?"), Answer("Well.")]
    async with Talk(session_class, script, host) as call:
        await call.says("Manager!")
        await call.at(0.6)
        await call.says("Well?")
        await call.at(5)
        await call.says("And?")
        await call.at(10)
        recorded = [i.output for i in host.chat_ctx.items if i.type == "function_call_output"]
        assert [NOT_DONE in output for output in recorded] == [True]
        assert [shown(call.model.inferences[-1])["transfer"]] == recorded


@pytest.mark.parametrize("model", [MODELS["as it is"], MODELS["replies by itself"]], ids=["", "auto"])
async def test_it_is_told_as_soon_as_it_is_decided(model):
    """livekit pushes the output before, and no other push may follow for long."""
    script = [Answer("One moment, please.", [TRANSFER], calls_first=True), *[Answer("Yes?")] * 3]
    async with Talk(SafeAgentSession, script, Transferring(), **model) as call:
        await call.says("Manager!")
        await call.at(0.6)
        call.session.interrupt()
        await call.at(2)
        assert NOT_DONE in call.known()["transfer"]


class Form(AgentTask[str]):
    """A task that its own tool completes."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the form.")

    @function_tool
    async def fill(self) -> None:
        """Fill it in."""
        self.complete("filled")


class Asking(Agent):
    """An agent whose tool asks the caller."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the host.")
        self.form = Form()

    @function_tool
    async def ask(self) -> str:
        """Ask the caller."""
        return await self.form


@pytest.mark.parametrize("model", [MODELS["as it is"], MODELS["a new connection"]], ids=["reused", "new"])
async def test_no_stored_context_says_that_a_call_runs_on_both(session_class, model):
    """The form's model is shown that the tool which asks runs."""
    host = Asking()
    script = [Answer("", [Call("ask")]), Answer("", [Call("fill")]), *[Answer("Thank you.")] * 3]
    async with Talk(session_class, script, host, host.form, **model) as call:
        await call.says("Ask me!")
        await call.at(2)
        await call.says("Miller.")
        await call.at(10)
        for context in (host.chat_ctx, host.form.chat_ctx, call.session.history):
            assert [i for i in context.items if "running" in i.id] == []
    assert call.known()["ask"] == "filled"


# -- a connection that breaks


@pytest.mark.fails_on_plain(">=1.6")
async def test_a_connection_that_comes_back_knows_what_it_knew(session_class):
    script = [
        Answer("One moment.", [BOOK, NOTIFY], calls_first=True),
        Answer("One is done."),
        Answer("All is."),
    ]
    async with Talk(session_class, script, Host(takes={"notify": 4})) as call:
        await call.says("A table for six!")
        await call.at(3)
        call.model.server.reconnect(keep_context=False)
        await call.at(10)
        call.model.server.reconnect(keep_context=False)
        await call.at(15)
        await call.says("Well?")
        await call.at(20)
        last = call.model.inferences[-1]
        assert shown(last) == {"book": "book 6 Miller is done", "notify": "notify 555 is done"}
        assert last.user_said == ["A table for six!", "Well?"]
    assert call.agents[0].did == ["book 6 Miller", "notify 555"]
