"""A language model that plays a script and remembers what it was shown."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from livekit.agents import APIError, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN

from ._words import split_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from livekit.agents.types import APIConnectOptions, NotGivenOr

_models = itertools.count(1)


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes.

    Attributes:
        name: The tool's name. It need not exist.
        arguments: A mapping, sent as JSON; or a string, sent as it is, so that it can be malformed.
        call_id: The id of the call; by default one that no other call of any `ScriptedModel` has.

    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    call_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Answer:
    """What the model says and calls in one inference. It is streamed: one chunk per word, one per call.

    Attributes:
        text: The text, streamed word by word.
        calls: The tool calls, in order.
        delay: Seconds before the first chunk.
        pace: Seconds between two chunks.
        error: Raised once everything was streamed. livekit-agents asks again (a new inference) after an
            `APIError` that is retryable, and gives up after any other exception.
        calls_first: Stream the calls before the text rather than after it.

    """

    text: str = ""
    calls: Sequence[Call] = ()
    delay: float = field(default=0.0, kw_only=True)
    pace: float = field(default=0.0, kw_only=True)
    error: Exception | None = field(default=None, kw_only=True)
    calls_first: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Inference:
    """One request that was made to the model.

    Attributes:
        shown: A copy of the context, taken when the request was made.
        tools: The names of the tools that were offered.
        tool_choice: The tool choice that was asked for, if any.
        at: The event loop's time of the request, in seconds.

    """

    shown: llm.ChatContext
    tools: tuple[str, ...]
    tool_choice: llm.ToolChoice | None
    at: float

    @property
    def calls(self) -> list[llm.FunctionCall]:
        """The tool calls that were shown, in order."""
        return [item for item in self.shown.items if isinstance(item, llm.FunctionCall)]

    @property
    def outputs(self) -> dict[str, llm.FunctionCallOutput]:
        """The outputs that were shown, by call id (of several with one id, the last)."""
        return {item.call_id: item for item in self.shown.items if isinstance(item, llm.FunctionCallOutput)}

    @property
    def user_said(self) -> list[str]:
        """The texts of the user's messages that were shown, in order."""
        return _texts(self.shown, "user")

    @property
    def assistant_said(self) -> list[str]:
        """The texts of the assistant's messages that were shown, in order."""
        return _texts(self.shown, "assistant")


Decide = Callable[[llm.ChatContext], Answer]


class ScriptedModel(llm.LLM[NoReturn]):
    """A model that plays given answers, or decides from the context that it is shown.

        model = ScriptedModel([Answer(calls=[Call("book", {"people": 6})]), Answer("Booked for six.")])
        model = ScriptedModel(lambda shown: Answer("It is done." if booked(shown) else "One moment."))

    One model may serve several agents and sessions; the answers go out in the order of the requests. An
    inference that is interrupted has used up its answer. A request beyond the script, and a `decide` that
    raises, fail that inference and are reported by `assert_complete()`.

    Args:
        script: The answers in order, one per inference; or a function from the context shown to the answer.

    """

    def __init__(self, script: Sequence[Answer] | Decide) -> None:
        super().__init__()
        self.inferences: list[Inference] = []
        self._decide = script if callable(script) else None
        self._answers: deque[Answer] = deque(() if callable(script) else script)
        self._problems: list[str] = []
        self._number = next(_models)
        self._call_ids = itertools.count(1)

    @property
    def model(self) -> str:
        """The name under which it appears in metrics."""
        return "scripted"

    @property
    def provider(self) -> str:
        """The provider under which it appears in metrics."""
        return "safe_session.testing"

    def chat(  # noqa: PLR0913 - the signature is livekit's
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[dict[str, Any]] = NOT_GIVEN,
    ) -> llm.LLMStream:
        """Record the inference and stream the next answer."""
        inference = Inference(
            shown=_snapshot(chat_ctx),
            tools=tuple(tool.id for tool in tools or ()),
            tool_choice=tool_choice or None,
            at=asyncio.get_running_loop().time(),
        )
        return _AnswerStream(self, inference, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)

    def assert_complete(self) -> None:
        """Check that the script was played to its end, and nothing beyond it was asked for.

        Raises:
            AssertionError: It says which answers were never asked for, and which inferences failed.

        """
        problems = list(self._problems)
        if self._answers:
            asked = f"never asked for in {len(self.inferences)} inferences"
            problems.append("\n  ".join([f"{len(self._answers)} answers {asked}:", *map(str, self._answers)]))
        if problems:
            raise AssertionError("\n".join(problems))

    def next_answer(self, inference: Inference) -> Answer | Exception:
        """Count one request in and return its answer, or the error it fails with."""
        self.inferences.append(inference)
        number = len(self.inferences)
        if self._decide is not None:
            try:
                return self._decide(inference.shown)
            except Exception as e:
                self._problems.append(f"decide() failed for inference {number}: {e!r}")
                return e
        if self._answers:
            return self._answers.popleft()
        problem = f"inference {number} is beyond the script; the user's messages: {inference.user_said}"
        self._problems.append(problem)
        # Not retryable: livekit-agents would ask again after seconds, in vain.
        return APIError(problem, retryable=False)

    def new_call_id(self) -> str:
        """Make an id for a call that was scripted without one."""
        return f"call_{self._number}_{next(self._call_ids)}"


class _AnswerStream(llm.LLMStream):
    """One answer on its way. livekit-agents calls `_run` once per attempt, each a request of its own."""

    def __init__(
        self,
        model: ScriptedModel,
        inference: Inference,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        conn_options: APIConnectOptions,
    ) -> None:
        self._model = model
        self._inference = inference
        # Taken now, not when the task starts: two requests made at once keep their order.
        self._answer: Answer | Exception | None = model.next_answer(inference)
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - livekit leaves LLM's parameter out
            model, chat_ctx=chat_ctx, tools=tools, conn_options=conn_options
        )

    async def _run(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            answer = self._model.next_answer(self._inference)
        if isinstance(answer, Exception):
            raise answer
        await self._stream(answer)
        if answer.error is not None:
            raise answer.error

    async def _stream(self, answer: Answer) -> None:
        request_id = f"scripted_{len(self._model.inferences)}"
        pause = answer.delay
        for delta in self._deltas(answer):
            if pause > 0:
                await asyncio.sleep(pause)
            self._event_ch.send_nowait(llm.ChatChunk(id=request_id, delta=delta))
            pause = answer.pace
        if not answer.text and not answer.calls and answer.delay > 0:
            await asyncio.sleep(answer.delay)

    def _deltas(self, answer: Answer) -> list[llm.ChoiceDelta]:
        text = [llm.ChoiceDelta(role="assistant", content=word) for word in split_words(answer.text)]
        calls = [llm.ChoiceDelta(role="assistant", tool_calls=[self._made(call)]) for call in answer.calls]
        return calls + text if answer.calls_first else text + calls

    def _made(self, call: Call) -> llm.FunctionToolCall:
        arguments = call.arguments
        return llm.FunctionToolCall(
            name=call.name,
            arguments=arguments
            if isinstance(arguments, str)
            else json.dumps(dict(arguments), ensure_ascii=False),
            call_id=call.call_id or self._model.new_call_id(),
        )


def _snapshot(context: llm.ChatContext) -> llm.ChatContext:
    """Copy a context so that later changes to it and its items don't reach the copy."""
    return llm.ChatContext([_copied(item) for item in context.items])


def _copied(item: llm.ChatItem) -> llm.ChatItem:
    if isinstance(item, llm.ChatMessage):  # not deeply: its content may hold video frames
        return item.model_copy(update={"content": list(item.content)})
    if isinstance(item, llm.FunctionCall | llm.FunctionCallOutput):
        return item.model_copy(deep=True)
    return item.model_copy()  # not deeply: some of them hold tools and agents


def _texts(context: llm.ChatContext, role: llm.ChatRole) -> list[str]:
    return [
        text
        for item in context.items
        if isinstance(item, llm.ChatMessage) and item.role == role and (text := item.text_content)
    ]
