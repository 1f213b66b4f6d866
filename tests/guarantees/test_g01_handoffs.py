"""G1, of tools that return an agent: the record says whether the handoff happened."""

import pytest
from livekit.agents import Agent, function_tool

from safe_session import SafeAgentSession, SafeOptions
from safe_session.testing import Call

from ._scenes import Host, Scene, calls_in, diligent

NOT_DONE = "The handoff did not happen."
TRANSFER = Call("transfer", {})


class Transferring(Host):
    """A host who can transfer the caller to the manager."""

    def __init__(self, *, says: str | None = None, **kwargs) -> None:
        super().__init__(**kwargs)
        self.manager = Agent(instructions="You are the manager.", id="manager")
        self.says = says

    @function_tool
    async def transfer(self):
        """Transfer the caller."""
        result = self.manager if self.says is None else (self.manager, self.says)
        self.then["transfer"] = lambda: result
        return await self.work("transfer", "transfer")


both_forms = pytest.mark.parametrize("says", [None, "The manager comes."], ids=["alone", "beside a result"])


@pytest.mark.fails_on_plain(">=1.6")
@both_forms
async def test_interrupted_before_the_handoff_it_is_cancelled(stage, says):
    async with stage(diligent(TRANSFER), Transferring(says=says)) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
        assert call.session.current_agent is call.agent
    told = call.result_of("transfer").output
    assert NOT_DONE in told
    assert (says or "") in told
    assert call.agent.did == ["transfer"]


@pytest.mark.fails_on_plain(">=1.6")
@both_forms
async def test_interrupted_before_the_handoff_it_is_applied(stage, says):
    options = SafeOptions(interrupted_handoff="apply")
    async with stage(diligent(TRANSFER), Transferring(says=says), safe=options, forgets=True) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
        assert call.session.current_agent is call.agent.manager
    assert NOT_DONE not in call.result_of("transfer").output
    assert call.agent.did == ["transfer"]


@pytest.mark.parametrize(
    "apply",
    [
        pytest.param(False, marks=pytest.mark.fails_on_plain(">=1.6"), id="cancelled"),
        pytest.param(
            True,
            marks=pytest.mark.fails_on_plain(text=">=1.6.5", voice=">=1.7", realtime=">=1.6"),
            id="applied",
        ),
    ],
)
async def test_interrupted_while_the_transfer_runs(stage, apply):
    options = SafeOptions(interrupted_handoff="apply" if apply else "cancel")
    async with stage(
        diligent(TRANSFER), Transferring(takes={"transfer": 3}), safe=options, forgets=True
    ) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
        assert (call.session.current_agent is call.agent.manager) == apply
    assert (NOT_DONE in call.result_of("transfer").output) == (not apply)


@pytest.mark.parametrize("takes", [0.5, 3], ids=["done", "running"])
async def test_interrupted_it_is_forgotten_if_that_is_asked_for(medium, takes):
    """A model that is no longer shown the call may make it anew; then that one stays."""
    host = Transferring(takes={"transfer": takes})
    options = {"safe": SafeOptions(interrupted_handoff="forget"), "forgets": True}
    async with Scene(SafeAgentSession, medium, diligent(TRANSFER), host, **options) as call:
        await call.says("Manager!")
        await call.at(1)
        await call.says("Well?")
        await call.at(30)
        handed_over = call.session.current_agent is host.manager
    assert len(calls_in(host.chat_ctx)) == len(calls_in(call.session.history)) == int(handed_over)
    assert len(host.did) == 1 + handed_over


async def test_a_handoff_that_nobody_interrupts_happens_on_both(stage):
    async with stage(diligent(TRANSFER), Transferring(says="The manager comes."), forgets=True) as call:
        await call.says("Manager!")
        await call.at(30)
        assert call.session.current_agent is call.agent.manager
    assert call.result_of("transfer").output == "The manager comes."
