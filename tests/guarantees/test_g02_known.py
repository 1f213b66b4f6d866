"""G2: every inference that begins after a call began is shown it: how it ended, or that it is running.

Each scene ends with the check that all of them were (`Scene.check`), so most tests only say who does what
when, and that no tool ran twice.
"""

import asyncio
import itertools

import pytest

from ._scenes import BOOK, CHARGE, NOTIFY, Host, diligent, either_path, shown, shown_running

TOOLS = ("book", "notify", "charge")
SECONDS = [(0.5, 8), (8, 0.5), *itertools.permutations((0.5, 2, 8))]


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("interrupts", [True, False], ids=["interrupts", "waits"])
@pytest.mark.parametrize("seconds", SECONDS, ids=str)
async def test_the_caller_speaks_while_some_have_ended(stage, seconds, interrupts):
    wanted = [BOOK, NOTIFY, CHARGE][: len(seconds)]
    host = Host(takes=dict(zip(TOOLS, seconds, strict=False)))
    async with stage(diligent(*wanted), host, interrupts=interrupts) as call:
        await call.says("Six!")
        await call.at(3)
        await call.says("Six?")
        await call.at(30)
    assert sorted(run.tool for run in host.runs) == sorted(call.name for call in wanted)


@pytest.mark.fails_on_plain(">=1.6")
@either_path
async def test_the_running_one_is_shown_as_running(stage):
    async with stage(diligent(BOOK, NOTIFY), Host(takes={"notify": 4})) as call:
        await call.says("Six!")
        await call.at(1.5)
        await call.says("Six?")
        await call.at(2)
        assert shown(call.inferences[1]).get("book") == "book 6 Miller is done"
        assert shown_running(call.inferences[1], "notify")
        await call.at(30)


def running(second):
    """The tool runs at that second; livekit waits for its end."""
    mark = pytest.mark.fails_on_plain("<1.6.5", realtime="<1.7")
    return pytest.param(second, marks=mark, id=f"running at {second}")


def ended(second):
    mark = pytest.mark.fails_on_plain(">=1.6", realtime="<1.7")
    return pytest.param(second, marks=mark, id=f"ended at {second}")


@pytest.mark.parametrize("second", [running(0.4), running(0.75), ended(1.0), ended(1.5)])
async def test_interrupted_by_the_program_which_asks_at_once(stage, second):
    """The new inference copies the context before livekit has put anything of the old turn into it."""
    async with stage(diligent(BOOK), Host()) as call:
        await call.says("Six!")
        await call.at(second)
        call.session.interrupt()
        call.session.generate_reply(user_input="Six?")
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]


@pytest.mark.pipeline_only("a reply of a realtime model is not given a context")
@pytest.mark.parametrize("second", [running(0.4), ended(1.0), ended(2.5)])
async def test_an_inference_with_a_context_copied_before(stage, second):
    async with stage(diligent(BOOK), Host()) as call:
        before = call.agent.chat_ctx.copy()
        await call.says("Six!")
        await call.at(second)
        call.session.interrupt()
        call.session.generate_reply(user_input="Six?", chat_ctx=before)
        await call.at(30)
    assert call.agent.did == ["book 6 Miller"]


class Pondering(Host):
    """Takes two seconds over each turn of the caller's."""

    async def on_user_turn_completed(self, turn_ctx, new_message):
        await asyncio.sleep(2)


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param([BOOK], marks=pytest.mark.fails_on_plain("<1.6.6"), id="one"),
        pytest.param([BOOK, NOTIFY], marks=pytest.mark.fails_on_plain(">=1.6"), id="two"),
    ],
)
@pytest.mark.parametrize("second", [2.5, 3, 4], ids="at {}".format)
async def test_a_tool_ends_during_a_slow_turn_hook(voice_stage, tools, second):
    """The first turn's tools begin at 2.25; the second turn's hook runs until 2 seconds after its word."""
    host = Pondering(takes={"book": 2, "notify": 9})
    async with voice_stage(diligent(*tools), host) as call:
        await call.says("Six!")
        await call.at(second)
        await call.says("Six?")
        await call.at(40)
    assert sorted(run.tool for run in host.runs) == sorted(call.name for call in tools)


@pytest.mark.fails_on_plain(">=1.6")
@pytest.mark.parametrize("commit_delay", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("second", [0.6, 1.5], ids="at {}".format)
async def test_a_preemptive_generation(voice_stage, second, commit_delay):
    """The inference begins with the caller's last word, and is used once the turn has ended."""
    model = diligent(BOOK, NOTIFY)
    async with voice_stage(model, Host(takes={"notify": 2}), preemptive=True) as call:
        await call.line.caller.say("Six!", commit_delay=commit_delay)
        await call.at(commit_delay + second)
        await call.line.caller.say("Six people?", commit_delay=commit_delay)
        await call.at(30)
    assert sorted(call.agent.did) == ["book 6 Miller", "notify 555"]


@pytest.mark.fails_on_plain(text=">=1.6", voice="<1.6.6", realtime=">=1.6")
async def test_the_caller_cuts_in_again_and_again(stage):
    async with stage(diligent(BOOK, NOTIFY), Host(takes={"notify": 2})) as call:
        for second in (0, 0.6, 1.2, 2.4, 3.6):
            await call.at(second)
            await call.says("Six?")
        await call.at(30)
    assert sorted(call.agent.did) == ["book 6 Miller", "notify 555"]
