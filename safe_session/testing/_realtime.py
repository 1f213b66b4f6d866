"""A realtime model that plays a script, and whose server keeps the conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from livekit.agents import llm

from ._model import ScriptedModel
from ._realtime_context import Push
from ._realtime_session import ScriptedRealtimeSession

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ._model import Answer, Decide
    from ._realtime_context import Change
    from ._realtime_generation import Modality
    from ._realtime_server import RealtimeInference


class ScriptedRealtimeModel(llm.RealtimeModel):
    """A speech-to-speech model: it hears and speaks, and its server knows only what it was told.

        model = ScriptedRealtimeModel([Answer(calls=[Call("book", {"people": 6})]), Answer("Booked.")])
        session = AgentSession(llm=model)
        await session.start(agent)
        await model.server.hear("A table for six, please.")

    The script works as a `ScriptedModel`'s does, and an answer goes out with each generation. What an
    inference was shown is what the server's context held when its generation began.

    livekit-agents keeps the connection in a handoff to an agent with the same model, unless the agents differ
    in something that cannot be changed: the instructions, the tools, or the conversation. Then it closes it
    and opens another one, which knows what it is told at its start. Both stay in `sessions`.

    Attributes:
        sessions: The connections, in the order in which they were opened.
        inferences: The generations of all of them, in order.
        pushes: The pushes of all of them, in the order in which they were sent. One that would change nothing
            is not sent, and not counted.

    Args:
        script: The answers in order, one per generation; or a function from what is shown to the
            answer; or a `ScriptedModel`, which then counts these inferences as its own.
        turn_detection: Whether the server finds out by itself when the user's turn begins and ends.
        user_transcription: Whether it tells what it heard.
        audio_output: Whether it speaks. Otherwise it writes, and the session needs a text to speech.
        message_truncation: Whether it can be told how much was heard of what it said.
        auto_tool_reply_generation: Whether it replies by itself once all its calls have an output.
        manual_function_calls: Whether a call that is pushed to it can be answered later.
        mutable_chat_context: Whether its context can be changed at any time. If not, it takes the first push
            of a connection as it is, and of later ones nothing but outputs.
        mutable_instructions: Whether the instructions can be changed.
        mutable_tools: Whether the tools can be changed.
        per_response_tool_choice: Whether a response can have tools and a tool choice of its own.
        fail_pushes: Which pushes fail, counted from 1.
        push_delay: Seconds that a push takes.
        words_per_second: How fast the user and the model speak.

    """

    def __init__(  # noqa: PLR0913 - the capabilities are livekit's
        self,
        script: Sequence[Answer] | Decide | ScriptedModel,
        *,
        turn_detection: bool = False,
        user_transcription: bool = True,
        audio_output: bool = True,
        message_truncation: bool = True,
        auto_tool_reply_generation: bool = False,
        manual_function_calls: bool = True,
        mutable_chat_context: bool = True,
        mutable_instructions: bool = True,
        mutable_tools: bool = True,
        per_response_tool_choice: bool = True,
        fail_pushes: Collection[int] = (),
        push_delay: float = 0.0,
        words_per_second: float = 3.0,
    ) -> None:
        if words_per_second <= 0:
            raise ValueError(f"words_per_second must be more than 0, not {words_per_second}")
        if any(number < 1 for number in fail_pushes):
            raise ValueError(f"fail_pushes counts from 1, not {min(fail_pushes)}")
        super().__init__(
            capabilities=llm.RealtimeCapabilities(
                message_truncation=message_truncation,
                turn_detection=turn_detection,
                user_transcription=user_transcription,
                auto_tool_reply_generation=auto_tool_reply_generation,
                audio_output=audio_output,
                manual_function_calls=manual_function_calls,
                mutable_chat_context=mutable_chat_context,
                mutable_instructions=mutable_instructions,
                mutable_tools=mutable_tools,
                per_response_tool_choice=per_response_tool_choice,
            )
        )
        self.sessions: list[ScriptedRealtimeSession] = []
        self.inferences: list[RealtimeInference] = []
        self.pushes: list[Push] = []
        self.push_delay = push_delay
        self.words_per_second = words_per_second
        self._script = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
        self._fail_pushes = set(fail_pushes)

    @property
    def model(self) -> str:
        """The name under which it appears in metrics."""
        return "scripted_realtime"

    @property
    def provider(self) -> str:
        """The provider under which it appears in metrics."""
        return "safe_session.testing"

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """What its replies consist of."""
        return ("text", "audio") if self.capabilities.audio_output else ("text",)

    @property
    def server(self) -> ScriptedRealtimeSession:
        """The newest connection.

        Raises:
            RuntimeError: livekit-agents has opened none yet.
        """
        if not self.sessions:
            raise RuntimeError("there is no connection yet; start() a session with this model first")
        return self.sessions[-1]

    def session(self, *, turn_detection_disabled: bool = False) -> ScriptedRealtimeSession:
        """Open a connection."""
        detects = self.capabilities.turn_detection and not turn_detection_disabled
        session = ScriptedRealtimeSession(self, turn_detection=detects)
        self.sessions.append(session)
        return session

    async def aclose(self) -> None:
        """Close the connections that are open."""
        for session in self.sessions:
            await session.aclose()

    def fail_next_pushes(self, times: int = 1) -> None:
        """Let the next pushes fail, beginning with the next one that is sent."""
        self._fail_pushes.update(range(len(self.pushes) + 1, len(self.pushes) + 1 + times))

    def assert_complete(self) -> None:
        """Check that the script was played to its end, and nothing beyond it was asked for.

        Raises:
            AssertionError: It says which answers were never asked for, and which generations failed.

        """
        self._script.assert_complete()

    # for its sessions

    def next_answer(self, inference: RealtimeInference, given: Answer | None) -> Answer | Exception:
        """Count one generation in and return what it generates, or the error it fails with."""
        self.inferences.append(inference)
        if given is None:
            return self._script.next_answer(inference)
        self._script.inferences.append(inference)  # it counts them for what it reports
        return given

    def new_call_id(self) -> str:
        """Make an id for a call that was scripted without one."""
        return self._script.new_call_id()

    def new_push(self, change: Change) -> Push:
        """Count one push in."""
        number = len(self.pushes) + 1
        push = Push(
            number=number,
            items=change.items,
            removes=change.removes,
            failed=number in self._fail_pushes,
            at=asyncio.get_running_loop().time(),
        )
        self.pushes.append(push)
        return push
