"""A session of 5,000 calls: what is done for an inference is the same at its end as at its beginning."""

import sys
from types import FrameType
from typing import Any

import pytest
from livekit.agents import AgentSession

import safe_session
from benchmarks.caller import Clerk, ObedientModel, ask_for
from safe_session import SafeAgentSession
from safe_session.ledger import REMEMBERED_ENDINGS

AT_ONCE = 200
CALLS = 5000


class Work:
    """Counts the bytecode instructions that our own code runs: the same for the same work, on any machine."""

    def __init__(self) -> None:
        self.instructions = 0

    def __enter__(self) -> "Work":
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(safe_session.__path__[0]):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._on_instruction

    def _on_instruction(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.instructions += event == "opcode"
        return self._on_instruction


async def work_of_a_turn(session: AgentSession) -> int:
    """A turn of four calls and two inferences."""
    with Work() as work:
        await session.generate_reply(user_input=ask_for("look_up", times=4))
    return work.instructions


@pytest.mark.timeout(300)
async def test_inferences_are_no_slower_after_5000_calls() -> None:
    session = SafeAgentSession(llm=ObedientModel())
    await session.start(Clerk())

    async def until(calls: int) -> None:
        for _ in range(calls // AT_ONCE):
            await session.generate_reply(user_input=ask_for("look_up", times=AT_ONCE))

    await until(REMEMBERED_ENDINGS + AT_ONCE)  # from then on, the ledger forgets
    at_first = await work_of_a_turn(session)
    await until(CALLS)
    at_last = await work_of_a_turn(session)

    assert len(list(session.keeper.ledger)) == REMEMBERED_ENDINGS
    assert len(session.history.items) > 2 * CALLS  # nothing is trimmed
    assert at_first > 0
    assert at_last <= 1.01 * at_first
    await session.aclose()
