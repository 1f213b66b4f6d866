"""What the server of a realtime model is told, and what it still has to be told.

Such a server keeps the context that its model is shown. What is put into an agent's stored context is pushed
to its server as well, and is owed to it until a push has brought it there.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from livekit.agents.llm import ChatMessage, RealtimeError, RealtimeSession

from . import _livekit, faults, telemetry
from .context import CallContext, is_call_item, is_marker, lacking, unique, worth_telling
from .generation import Generation

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from livekit.agents import Agent
    from livekit.agents.llm import ChatContext, ChatItem, GenerationCreatedEvent, InputTranscriptionCompleted

    from .context import NotRun
    from .keeper import CallKeeper

_ATTEMPTS = 3
"""How often in a row a push is tried before it waits for the next occasion."""

_REFUSALS = 10
"""How often a server may leave out an item that it was told, until that is given up."""

_PATIENCE = 8.0
"""Seconds that a reply waits for a push of what its model should know; OpenAI's client gives a push 5."""

_OWN_REPLY = 2.0
"""Seconds that a model gets to reply to an output by itself, if it is one that does."""

_asked: contextvars.ContextVar[list[asyncio.Future[GenerationCreatedEvent]] | None] = contextvars.ContextVar(
    "safe_session_asked", default=None
)


@contextlib.contextmanager
def asking() -> Generator[list[asyncio.Future[GenerationCreatedEvent]]]:
    """While livekit asks for a reply; a push that fails meanwhile costs the reply nothing.

    Yields:
        The generations that were asked for.
    """
    futures: list[asyncio.Future[GenerationCreatedEvent]] = []
    token = _asked.set(futures)
    try:
        yield futures
    finally:
        _asked.reset(token)


@contextlib.contextmanager
def replying() -> Generator[None]:
    """While a reply is under way: what its tools push of their own fails as livekit lets it fail."""
    token = _asked.set(None)
    try:
        yield
    finally:
        _asked.reset(token)


@dataclass(eq=False)
class _Told:
    """What is known of a server.

    Attributes:
        keeper: of the calls.
        agent: whose context it keeps.
        owed: what it must still be told.
        calls: the ids of the calls and outputs that it was told last.
        refusals: how often the server has left out an item that it was told.
        lock: held during a push.
        pushing: the task that pushes what is owed.
        generations: those that have begun, by the id of their event, until livekit takes them up.
        watching: the tasks that see to the calls of generations.
        own_reply: done when the model has replied by itself, if that is waited for.
        caller_spoke: whether the caller has spoken since the last generation.
        heard: what they have said since they last began to speak, as far as it has been transcribed.
        closed: whether the connection is closed.
    """

    keeper: CallKeeper
    agent: Agent
    owed: CallContext = field(default_factory=lambda: CallContext([]))
    calls: set[str] = field(default_factory=set[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pushing: asyncio.Task[None] | None = None
    generations: dict[int, Generation] = field(default_factory=dict[int, Generation])
    watching: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    own_reply: asyncio.Future[GenerationCreatedEvent] | None = None
    caller_spoke: bool = False
    heard: list[ChatMessage] = field(default_factory=list[ChatMessage])
    closed: bool = False


class SafeRealtimeSession(RealtimeSession[Any]):
    """livekit's connection to a realtime model's server, which tells it what its model must know.

    A connection that livekit opened is turned into one of these, of a class that is also its own.
    """

    told: _Told

    @property
    def _theirs(self) -> Any:
        """The connection as livekit opened it."""
        return super()

    @classmethod
    def adopt(cls, connection: RealtimeSession[Any], keeper: CallKeeper, agent: Agent) -> None:
        """From now on, `connection` serves `agent`."""
        if not isinstance(connection, cls):
            _livekit.turn_into(connection, _safe_kind(type(connection))).told = _Told(keeper, agent)
            return
        told = connection.told
        previous, told.agent = told.agent, agent
        if previous is agent:
            return
        if _livekit.capabilities_of(connection).mutable_chat_context:
            told.owed.items.clear()  # livekit gives it the context of the new agent
        else:
            keeper.inherit_open_calls(agent, previous)

    # -- pushes

    def owe(self, items: Iterable[ChatItem]) -> None:
        """The server must be told these items."""
        if self.told.closed:
            return
        self.told.owed.insert(list(items))
        # to one that replies by itself to what it is told, it is told when that is to be said
        if not _livekit.capabilities_of(self).auto_tool_reply_generation:
            self.push()

    def push(self) -> None:
        """Tell the server what is owed to it."""
        told = self.told
        if told.owed.items and not told.closed and (told.pushing is None or told.pushing.done()):
            told.pushing = asyncio.get_running_loop().create_task(self._push_owed(), name="push_owed")

    async def update_chat_ctx(self, chat_ctx: ChatContext) -> None:
        """Push a context, and with it what is owed.

        Raises:
            RealtimeError: as livekit's own; what did not arrive is owed, and goes out with the next push.
        """
        # what the server got to know while this push waits for another one is not to be taken away by it
        before = self.chat_ctx if self.told.lock.locked() else None
        async with self.told.lock:
            pushed = chat_ctx
            with telemetry.guarded("tell a realtime model's server what it must know"):
                newer = lacking(self.chat_ctx.items, before) if before is not None else []
                pushed = self._completed(chat_ctx, newer)
            try:
                await faults.wait("push.before")
                self.told.calls = {item.id for item in pushed.items if is_call_item(item)}
                await self._theirs.update_chat_ctx(pushed)
                await faults.wait("push.after")
            except (RealtimeError, asyncio.TimeoutError) as error:
                self._failed(pushed, error)
                if _asked.get() is None:
                    raise
            else:
                self._arrived(pushed)

    async def _push_owed(self) -> None:
        for _ in range(_ATTEMPTS):
            if not self.told.owed.items or self.told.closed:
                return
            try:
                await self.update_chat_ctx(self.chat_ctx.copy())
            except (RealtimeError, asyncio.TimeoutError):
                continue  # it was logged
            except Exception:
                telemetry.report_failure("tell a realtime model's server what it must know")
                return

    def _completed(self, context: ChatContext, newer: Iterable[ChatItem]) -> ChatContext:
        completed = unique(context)
        completed.insert(lacking([*newer, *self.told.owed.items], completed))
        return self.told.keeper.completed(completed, self.told.agent)

    def _arrived(self, pushed: ChatContext) -> None:
        # from 1.7 on, OpenAI's client raises nothing if its server refuses an item
        owed = lacking(self.told.owed.items, self.chat_ctx)
        self.told.refusals.update(item.id for item in owed if item in pushed.items)
        refused = [item for item in owed if self.told.refusals[item.id] >= _REFUSALS]
        if refused:
            telemetry.logger.error(
                "a realtime model's server refuses what it is told; its model will not know it",
                agent_id=self.told.agent.id,
                item_ids=[item.id for item in refused],
            )
        self.told.owed = CallContext([item for item in owed if item not in refused])

    def _failed(self, pushed: ChatContext, error: Exception) -> None:
        telemetry.logger.warning(
            "a push to the realtime model's server failed; it goes out with the next one",
            agent_id=self.told.agent.id,
            error=str(error),
        )
        self._owe_lacking(pushed)
        if asyncio.current_task() is not self.told.pushing:
            self.push()

    def _owe_lacking(self, context: ChatContext) -> None:
        """What the server lacks of `context` is owed to it."""
        owed = self.told.owed
        owed.insert(lacking(worth_telling(context.items), self.chat_ctx, owed))

    # -- generations

    def generate_reply(self, **kwargs: Any) -> asyncio.Future[GenerationCreatedEvent]:
        """Ask for a reply, once the server knows what its model must know."""
        if self.told.owed.items and not self.told.closed:
            reply = asyncio.ensure_future(self._tell_and_generate(kwargs))
        else:
            reply = self._theirs.generate_reply(**kwargs)
        if (asked := _asked.get()) is not None:
            asked.append(reply)
        return reply

    async def _tell_and_generate(self, kwargs: dict[str, Any]) -> GenerationCreatedEvent:
        told = self.told
        outputs = any(item.type == "function_call_output" for item in told.owed.items)
        own: asyncio.Future[GenerationCreatedEvent] | None = None
        if outputs and _livekit.capabilities_of(self).auto_tool_reply_generation:
            own = told.own_reply = asyncio.get_running_loop().create_future()
        try:
            self.push()
            if told.pushing is not None:
                await asyncio.wait([told.pushing], timeout=_PATIENCE)
            if own is not None:
                await asyncio.wait([own], timeout=_OWN_REPLY)
                if own.done():
                    return own.result()
        finally:
            told.own_reply = None
        return await self._theirs.generate_reply(**kwargs)

    def _generation_of(self, event: GenerationCreatedEvent) -> Generation:
        told = self.told
        generation = told.generations.get(id(event))
        if generation is None:
            inference = told.keeper.begin_generation(told.agent, self)
            generation = told.generations[id(event)] = Generation(
                told.keeper, told.agent, inference, event, answers_caller=told.caller_spoke
            )
            told.caller_spoke = False
            told.watching.add(generation.watching)
            generation.watching.add_done_callback(told.watching.discard)
        return generation

    @property
    def caller_waits(self) -> bool:
        """Whether the server is about to answer the caller."""
        return self.told.caller_spoke

    def take(self, event: GenerationCreatedEvent) -> Generation:
        """livekit takes up the generation that `event` announces."""
        generation = self._generation_of(event)
        del self.told.generations[id(event)]
        return generation

    def skip_unless_taken(self, event: GenerationCreatedEvent, why: NotRun) -> None:
        """If livekit did not take up the generation that `event` announced, nobody will."""
        generation = self.told.generations.pop(id(event), None)
        if generation is None:
            return
        generation.skip(why)
        if generation.answers_caller:
            self.told.keeper.pass_on(self.told.heard)

    def emit(self, event: Any, *args: Any) -> None:
        """Emit an event, as livekit does."""
        is_ours = False
        with telemetry.guarded("note what a realtime model's server does", event_name=str(event)):
            is_ours = self._note(event, *args)
        if not is_ours:
            super().emit(event, *args)
        if event == "generation_created" and not args[0].user_initiated:
            with telemetry.guarded("answer what a realtime model does during a handoff"):
                self.skip_unless_taken(args[0], "handed over")

    def _is_for_the_heir(self, event: GenerationCreatedEvent) -> bool:
        """Whether it answers the caller although its agent leaves; up to 1.8.0 a task that leaves says it."""
        generation = self.told.generations.get(id(event))
        heir = self.told.keeper.handoffs.next_to_serve()
        return (
            generation is not None
            and generation.answers_caller
            and not event.user_initiated
            and heir is not None
            and heir.activity.agent is not self.told.agent
        )

    def _note(self, event: str, *args: Any) -> bool:
        """Note what the server does; returns whether livekit must not hear of it."""
        if event == "generation_created":
            generation: GenerationCreatedEvent = args[0]
            self._generation_of(generation)
            self.told.keeper.handoffs.changed()  # the caller no longer waits for it
            own = self.told.own_reply
            if own is not None and not own.done() and not generation.user_initiated:
                generation.user_initiated = True  # it is what was about to be asked for
                own.set_result(generation)
            return self._is_for_the_heir(generation)
        if event == "remote_item_added":
            return self._is_our_own(args[0].item)
        if event == "input_audio_transcription_completed" and args[0].is_final:
            words: InputTranscriptionCompleted = args[0]
            self.told.heard.append(ChatMessage(id=words.item_id, role="user", content=[words.transcript]))
        elif event == "input_speech_started":
            self.told.caller_spoke, self.told.heard = True, []
            self.push()  # the server may be about to start a generation by itself
        elif event == "session_reconnected":
            # some of it is on its way: OpenAI's client replays what it knew, but for calls up to 1.8.0
            self._owe_lacking(_livekit.stored_context(self.told.agent))
        return False

    def _is_our_own(self, item: ChatItem) -> bool:
        """Whether the server got the item from us; livekit might put it into the agent's stored context."""
        return is_marker(item) or item.id in self.told.calls

    async def aclose(self) -> None:
        told = self.told
        told.closed = True
        for task in told.watching:
            task.cancel()
        if told.pushing is not None:
            told.pushing.cancel()
        await self._theirs.aclose()


@functools.cache
def _safe_kind(kind: type[RealtimeSession[Any]]) -> type[SafeRealtimeSession]:
    return type(f"Safe{kind.__name__}", (SafeRealtimeSession, kind), {})
