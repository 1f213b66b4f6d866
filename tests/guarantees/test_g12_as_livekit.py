"""G12: where livekit's tests assert what is different here on purpose, an option restores livekit's way."""

import pytest

from safe_session import SafeOptions

from ._scenes import BOOK, diligent, tool_items_in
from .test_g01_handoffs import NOT_DONE, TRANSFER, Transferring, both_forms

FORGET = SafeOptions(interrupted_handoff="forget")
AS_LIVEKIT = SafeOptions(interruption_grace=None, interrupted_handoff="forget")

in_a_pipeline = pytest.mark.pipeline_only("a realtime model's server needs an answer to each call")


async def interrupted_transfer(call) -> None:
    """A call in which the caller interrupts a transfer, and the model is asked again."""
    await call.says("Manager!")
    await call.at(1)
    await call.says("Well?")
    await call.at(30)


def transfers_in(context):
    return [item.type for item in tool_items_in(context) if item.name == "transfer"]


@in_a_pipeline
@pytest.mark.fails_on_plain(">=1.7")
@both_forms
async def test_an_interrupted_handoff_is_forgotten(stage, says):
    """So that the model, which isn't shown it, asks for it again."""
    await asked_for_twice(stage, Transferring(says=says))


@pytest.mark.fails_on_plain(">=1.7")
@both_forms
async def test_a_handoff_that_the_next_turn_waits_for_is_forgotten(voice_stage, says):
    await asked_for_twice(voice_stage, Transferring(says=says, takes={"transfer": 3}))


async def asked_for_twice(stage, host):
    async with stage(diligent(TRANSFER), host, safe=AS_LIVEKIT, forgets=True) as call:
        await interrupted_transfer(call)
        assert call.session.current_agent is host.manager
        for context in (host.chat_ctx, call.session.history):
            assert transfers_in(context) == ["function_call", "function_call_output"]
    assert host.did == ["transfer", "transfer"]
    assert NOT_DONE not in call.result_of("transfer").output


@in_a_pipeline
async def test_released_it_is_forgotten_as_well(safe_stage):
    """The next inference is shown that it runs; nothing is told of it when it ends."""
    host = Transferring(takes={"transfer": 4})
    async with safe_stage(diligent(TRANSFER), host, safe=FORGET, forgets=True) as call:
        events = []
        call.session.on("handoff_not_applied", lambda event: events.append(event.reason))
        await interrupted_transfer(call)
        assert call.session.current_agent is host
        assert transfers_in(host.chat_ctx) == transfers_in(call.session.history) == []
        assert events == ["interrupted"]
    assert host.did == ["transfer"]


@in_a_pipeline
async def test_another_call_of_the_same_step_is_kept(safe_stage):
    host = Transferring(takes={"book": 0.2})
    async with safe_stage(diligent(BOOK, TRANSFER), host, safe=FORGET, forgets=True) as call:
        await call.says("Six, and the manager!")
        await call.at(2)
        call.session.interrupt()
        await call.at(5)
        for context in (host.chat_ctx, call.session.history):
            assert [item.name for item in tool_items_in(context)] == ["book", "book"]
    assert sorted(host.did) == ["book 6 Miller", "transfer"]


async def test_a_handoff_that_nobody_interrupts_is_not_forgotten(safe_stage):
    async with safe_stage(diligent(TRANSFER), Transferring(), safe=FORGET, forgets=True) as call:
        await call.says("Manager!")
        await call.at(30)
        assert call.session.current_agent is call.agent.manager
        assert transfers_in(call.session.history) == ["function_call", "function_call_output"]
