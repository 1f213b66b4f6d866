"""Plays a timeline on a session class, and tells what happened."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import traceback
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any

from safe_session import SafeAgentSession, SafeOptions
from safe_session.events import SafeEvent
from safe_session.testing import Line, ScriptedRealtimeModel, run

from .cast import WORDING, Cast, now
from .happened import Handoff, Happened, Reply, Turn

if TYPE_CHECKING:
    from livekit.agents import AgentSession

    from .timeline import Event, Timeline

WORDS_PER_SECOND = 4
LONG = 2000
"""Virtual seconds after which a call hangs."""

EVENTS = [kind.model_fields["type"].default for kind in SafeEvent.__subclasses__()]


_OURS = ("play", "through")


def play(
    timeline: Timeline, session_class: type[AgentSession[Any]] = SafeAgentSession, *, virtual: bool = True
) -> Happened:
    """Play a timeline to its end, on a virtual clock or in real time."""
    errors: list[str] = []
    raised: list[str] = []
    played: list[_Player] = []

    async def through() -> None:
        played.append(_Player(timeline, session_class))
        asyncio.current_task().set_name(_OURS[0])
        playing = asyncio.get_running_loop().create_task(played[0].through(), name=_OURS[1])
        await asyncio.wait_for(playing, LONG)

    gc.freeze()  # only what this call makes is looked through at its end
    with _errors_noted(errors):
        try:
            run(through(), virtual=virtual)
        except asyncio.TimeoutError:
            raised.append("the call hangs")
        except Exception as error:
            raised.append("".join(traceback.format_exception(error)))
        gc.collect()
    happened = played[0].happened
    happened.errors += errors
    happened.raised += raised
    return happened


class _Player:
    def __init__(self, timeline: Timeline, session_class: type[AgentSession[Any]]) -> None:
        self.timeline = timeline
        self.cast = Cast(timeline)
        self.realtime = _realtime_model(timeline, self.cast) if timeline.medium == "realtime" else None
        self.line: Line | None = None
        session = session_class(llm=self.realtime or self.cast.model, **self._options(session_class))
        self.happened = self.cast.happened = Happened(timeline, session)
        self.first = self.cast.desk(0)
        self.session = session
        self._closed = asyncio.Event()
        self._speaking = False
        self._background: set[asyncio.Task[None]] = set()
        session.on("close", lambda _: self._closed.set())
        session.on("speech_created", self._on_speech)
        session.on("error", self._on_error)
        for name in EVENTS:
            session.on(name, self._note)  # pyright: ignore[reportArgumentType]

    def _options(self, session_class: type[AgentSession[Any]]) -> dict[str, Any]:
        timeline = self.timeline
        options: dict[str, Any] = {}
        if timeline.medium != "text":
            self.line = Line(words_per_second=WORDS_PER_SECOND)
            options = self.line.options(
                preemptive=timeline.preemptive, realtime=timeline.medium == "realtime"
            )
        if issubclass(session_class, SafeAgentSession):
            options["safe"] = SafeOptions(
                interruption_grace=timeline.grace,
                close_timeout=timeline.close_timeout,
                interrupted_handoff=timeline.interrupted_handoff,
            )
        options["tools"] = self.cast.session_tools
        options["tool_handling"] = {"async_options": WORDING}
        return options

    def _on_error(self, event: Any) -> None:
        if not event.error.recoverable:
            self.happened.failures.append(now())

    def _on_speech(self, event: Any) -> None:
        reply = Reply(event.speech_handle, now())
        self.happened.replies.append(reply)
        self._in_background(self._follow(reply))

    async def _follow(self, reply: Reply) -> None:
        over = asyncio.get_running_loop().create_future()

        def is_over(_: object) -> None:
            reply.over = now()
            over.set_result(None)

        reply.speech.add_done_callback(is_over)
        await reply.speech.wait_if_not_interrupted([over])
        if reply.speech.interrupted:
            reply.interrupted = now()

    def _note(self, event: SafeEvent) -> None:
        self.happened.events.append((now(), event))

    async def through(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.happened.errors.append(_told(context)))
        if self.line is not None:
            self.line.connect(self.session)
        await self.session.start(self.first)
        for event in self.timeline.events:
            await self._wait(event.after)
            if self._closed.is_set():
                break
            self._do(event)
        await self._come_to_rest()
        await self._close()
        for task in self._background:
            task.cancel()
        await asyncio.sleep(self.timeline.close_timeout + 3)
        self.happened.left = [repr(task) for task in asyncio.all_tasks() if task.get_name() not in _OURS]

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)

    async def _come_to_rest(self) -> None:
        if self.timeline.rests is not None:
            await self._wait(self.timeline.rests)
            return
        for _ in range(8):
            await self._wait(10)
            self.cast.complete_forms()

    async def _close(self) -> None:
        self.happened.closed_by_itself = self._closed.is_set()
        self.happened.close_asked = now()
        if self.timeline.drains:
            self.session.shutdown(drain=True)
            await self._closed.wait()
            await asyncio.sleep(0.1)
        else:
            await self.session.aclose()
        self.happened.close_took = now() - self.happened.close_asked
        if self.line is not None:
            heard = self.line.speaker.utterances
            self.happened.utterances = [(u.started_at, u.ended_at or now()) for u in heard]

    # -- what happens

    def _do(self, event: Event) -> None:
        act = event.act
        if act == "says" and self.line is None:
            act = "types over"
        try:
            getattr(self, f"_{act.replace(' ', '_')}")(event)
        except RuntimeError:
            self.happened.refusals.append((now(), f"{act}: {traceback.format_exc()}"))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _turn(self, event: Event) -> Turn:
        words = [f"turn{len(self.happened.turns)}", *["please"] * (event.words - 1)]
        turn = Turn(" ".join(words), now())
        self.happened.turns.append(turn)
        return turn

    def _says(self, event: Event) -> None:
        if self._speaking:
            return
        self._speaking = True
        turn = self._turn(event)
        self._in_background(self._say(turn))

    async def _say(self, turn: Turn) -> None:
        assert self.line is not None
        try:
            with contextlib.suppress(RuntimeError):  # nobody hears it: the connection or the session closed
                if self.realtime is not None:
                    await self.realtime.server.hear(turn.words)
                else:
                    await self.line.caller.say(turn.words)
                turn.ended = now()
        finally:
            self._speaking = False

    def _types(self, event: Event) -> None:
        turn = self._turn(event)
        turn.speech = self.session.generate_reply(user_input=turn.words)
        turn.ended = now()

    def _types_twice(self, event: Event) -> None:
        self._types(event)
        self._types(event)

    def _types_over(self, event: Event) -> None:
        self._interrupts(event)
        self._types(event)

    def _interrupts(self, _: Event) -> None:
        with contextlib.suppress(RuntimeError):  # what is being said may forbid it
            self.session.interrupt()

    def _announces(self, _: Event) -> None:
        if self.realtime is None:
            self.session.say("One word from us.")

    def _asks_for_a_reply(self, event: Event) -> None:
        choice = "none" if event.words == 1 else "auto"
        self.session.generate_reply(instructions="Say something.", tool_choice=choice)

    def _hands_over(self, event: Event) -> None:
        agent = self.cast.desk(event.to)
        self.happened.handoffs.append(Handoff(agent, now()))
        self.session.update_agent(agent)

    def _completes(self, _: Event) -> None:
        if self.cast.forms:
            self.cast.forms[-1].complete_once()


def _realtime_model(timeline: Timeline, cast: Cast) -> ScriptedRealtimeModel:
    server = timeline.server
    return ScriptedRealtimeModel(
        cast.model,
        turn_detection=True,
        words_per_second=WORDS_PER_SECOND,
        auto_tool_reply_generation=server.replies_by_itself,
        mutable_chat_context=server.mutable,
        mutable_instructions=server.mutable,
        fail_pushes=server.fails,
    )


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    detail = "".join(traceback.format_exception(error)) if error is not None else ""
    return f"the event loop: {context.get('message')} {detail}"


class _Errors(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        detail = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        failed_to = getattr(record, "failed_to", "")
        self._into.append(f"{record.name}: {record.getMessage()} {failed_to} {detail}")


@contextlib.contextmanager
def _errors_noted(errors: list[str]) -> Generator[None]:
    handler = _Errors(errors)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
