"""What a model is shown, and how a call is put into a context. Both reply paths go through here.

Pure functions over chat contexts: no event loop, and of livekit only its public items.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeGuard, TypeVar

from livekit.agents.llm import ChatContext, FunctionCall, FunctionCallOutput

NotRun = Literal["no tools", "interrupted", "handed over", "failed"]
_NOT_RUN: Mapping[NotRun, str] = {
    "no tools": "Not run: this reply was not to call any tool.",
    "interrupted": "Not run: the caller interrupted first. If it is still wanted, make this call again.",
    "handed over": "Not run: the conversation was just handed over to another agent.",
    "failed": "Not run: the reply broke off first. If it is still wanted, make this call again.",
}

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from livekit.agents import Agent
    from livekit.agents.llm import ChatItem, ChatMessage

    from .ledger import CallItem, CallRecord

_Item = TypeVar("_Item", bound="ChatItem")

STILL_RUNNING = (
    "Still running, no result yet. It will be told here by itself: do not make this call again, and do not "
    "guess what it gives."
)

HANDED_OVER = "Handed over."
NO_RESULT = "It has ended, and gave no result."
CANCELLED = "Cancelled before it ended. It may already have taken effect."
UNKNOWN = "It did not end in time. It is not known whether it took effect."

_FAR_ENOUGH = 256
"""So many items in a row that are older than what is sought; calls that go on at once are out of order."""

_A_MESSAGE = 32
"""How many of those a message counts for, as there are few that are."""

_MARKER = "running/"
_STAND_IN = "stand-in/"
_CALL_ITEMS = ("function_call", "function_call_output")
_INSTRUCTING = ("system", "developer")


class CallContext(ChatContext):
    """A chat context that holds each tool item once, however often it is inserted.

    A call's items are put into a context as soon as the call ends. livekit inserts the same items when the
    whole step is over, and `ChatContext.insert` does not look for duplicates.
    """

    def insert(self, item: ChatItem | Sequence[ChatItem], *, since: float = -math.inf) -> None:
        """Insert by time of creation; a tool item that is there already keeps its place.

        Args:
            item: one or several.
            since: no item that is older (seconds since the epoch) can be one of those.
        """
        given: Sequence[ChatItem] = item if isinstance(item, Sequence) else [item]
        new = _put_in_place([each for each in given if is_call_item(each)], self.items, since)
        for each in given:
            if not is_call_item(each):
                super().insert(each)
            elif new.pop(each.id, None) is not None:
                _insert(each, self)


def hold_each_call_once(context: ChatContext) -> CallContext:
    """The same context, over the same list of items, as one that holds each call once."""
    return context if isinstance(context, CallContext) else CallContext(context.items)


def commit(items: Sequence[CallItem], contexts: Iterable[ChatContext]) -> None:
    """Put a call's items into stored contexts, each once."""
    since = min((item.created_at for item in items), default=math.inf)
    for context in contexts:
        hold_each_call_once(context).insert(items, since=since)


def inherit(context: ChatContext, previous: ChatContext, history: ChatContext, kept: Container[str]) -> bool:
    """Give a context that was built from another agent's the calls in it that livekit left out (G7).

    livekit leaves out the calls of tools that are not the new agent's own, and has not yet put in those of
    the step that hands over.

    Args:
        context: the new agent's own.
        previous: that of the agent before.
        history: the session's.
        kept: the names of the tools whose calls all agents may make.

    Returns:
        Whether `context` was built from another agent's.
    """
    own = {item.id for item in context.items if item.type != "message" or _is_said(item)}
    of_history, of_previous = _span_of(own, history), _span_of(own, previous)
    shared = [*history.items[of_history], *previous.items[of_previous]]
    wanted = {item.call_id for item in shared if is_call_item(item) and item.name in kept}
    if of_previous.stop:
        step = previous.items[of_previous.stop :]
        wanted |= {item.call_id for item in step if is_call_item(item)}
    # a call and its output may stand on either side of what was said last
    for known in (history, previous):
        context.insert([item for item in known.items if is_call_item(item) and item.call_id in wanted])
    return bool(shared)


def _span_of(own: Container[str], known: ChatContext) -> slice:
    """From the first to the last of `own` in `known`; from its beginning, if nothing said was trimmed."""
    shared = [place for place, item in enumerate(known.items) if item.id in own]
    if not shared:
        return slice(0)
    is_trimmed = any(_is_said(item) for item in known.items[: shared[0]])
    return slice(shared[0] if is_trimmed else 0, shared[-1] + 1)


def show(
    context: ChatContext, agent: Agent, records: Sequence[CallRecord], *, marked: bool
) -> tuple[ChatContext, list[CallRecord], list[CallRecord]]:
    """What an inference of `agent` is shown: `context`, and what it must know and lacks.

    Args:
        context: what livekit would show; it is not changed.
        agent: whose inference it is.
        records: the calls that it must know, and those that it may know: the ones that run, that no inference
            was shown the ending of, or that are newer than the context. An older one that is not in the
            context was trimmed on purpose, and stays out.
        marked: whether the context may hold calls as running that have ended since.

    Returns:
        The context to show, the calls that it holds of those given, and those of them that it lacked.
    """
    if not marked and _holds_all(context, records):
        return context, list(records), []
    seen = ChatContext([item for item in context.items if not is_marker(item)])
    present = {held_id for item in seen.items for held_id in _ids_of(item)}
    shown: list[CallRecord] = []
    lacked: list[CallRecord] = []
    for record in records:
        items = record.items or marker_of(record, is_shown=record.call.id in present)
        missing = [item for item in items if item.id not in present]
        if record.ended and agent not in record.audience and len(missing) == len(record.items):
            continue  # another agent's, of which this one was told nothing
        shown.append(record)
        if missing:
            lacked.append(record)
        for item in missing:
            _insert(item, seen)
    return seen, shown, lacked


def _holds_all(context: ChatContext, records: Sequence[CallRecord]) -> bool:
    """Whether the context holds what is known of the calls; looked for from the end, where it usually is."""
    if any(not record.items for record in records):
        return False
    sought = {item.id for record in records for item in record.items}
    for item in reversed(context.items):
        if not sought:
            break
        sought.discard(item.id)
    return not sought


def unanswered(context: ChatContext, records: Iterable[CallRecord]) -> list[CallRecord]:
    """The calls that the context holds without any output; a realtime model's server waits for one."""
    running = {record.call.id: record for record in records if not record.items}
    return [running[item.id] for item in context.items if item.id in running] if running else []


def lacking(items: Iterable[_Item], *contexts: ChatContext) -> list[_Item]:
    """Those of the items that none of the contexts holds."""
    items = list(items)
    if not items:
        return []  # as it is with most pushes; the contexts may be long
    held = {held_id for context in contexts for item in context.items for held_id in _ids_of(item)}
    return [item for item in items if item.id not in held]


def worth_telling(items: Iterable[ChatItem]) -> list[ChatItem]:
    """Those of the items that the server of a realtime model keeps: what was said, calls and outputs."""
    return [i for i in items if is_call_item(i) or (_is_said(i) and i.content)]


def unique(context: ChatContext) -> CallContext:
    """A copy that holds each item once, and no stand-in beside what it stands for."""
    items = {item.id: item for item in context.items}
    real = {_stand_in_id(i.type, i.call_id) for i in items.values() if is_call_item(i) and not is_stand_in(i)}
    return CallContext([item for item in items.values() if item.id not in real])


def newest_moment(context: ChatContext) -> float:
    """When the newest item was made (seconds since the epoch): the context is no older than that.

    Instructions say nothing of it, as they are put in when the agent starts. A context of nothing else was
    trimmed on purpose, and counts as new.
    """
    said = (i for i in reversed(context.items) if i.type != "message" or i.role not in _INSTRUCTING)
    return next((item.created_at for item in said), math.inf)


def marker_of(record: CallRecord, *, is_shown: bool = False) -> list[CallItem]:
    """What an inference is shown of a call that runs; stored contexts never hold it.

    Args:
        record: of the call.
        is_shown: whether the call itself is there (livekit stores a realtime model's as soon as it begins).
    """
    call = record.call.model_copy(update={"id": _own_id(_MARKER, "call", record.call.id)})
    output = FunctionCallOutput(
        id=_own_id(_MARKER, "output", record.call.id),
        call_id=record.call_id,
        name=call.name,
        output=STILL_RUNNING,
        is_error=False,
        created_at=call.created_at,
    )
    return [output] if is_shown else [call, output]


def is_marker(item: ChatItem) -> bool:
    """Whether the item says of a call that it runs; stored contexts never hold it."""
    return item.id.startswith(_MARKER)


def is_shown_running(context: ChatContext, record: CallRecord) -> bool:
    """Whether the context says of a call that goes on that it runs."""
    marker = _own_id(_MARKER, "output", record.call.id)
    return not record.ended and any(item.id == marker for item in context.items)


def not_run_output(call: FunctionCall, why: NotRun) -> FunctionCallOutput:
    """The output of a call whose tool livekit does not start."""
    return stand_in_output(call, _NOT_RUN[why], is_error=True)


def stand_in_call(output: FunctionCallOutput) -> FunctionCall:
    """A call of which livekit has reported the output only (an unknown tool, unreadable arguments)."""
    return FunctionCall(
        id=_stand_in_id("function_call", output.call_id),
        call_id=output.call_id,
        name=output.name,
        arguments="{}",
        created_at=output.created_at,
    )


def stand_in_final(call: FunctionCall, text: str, *, is_error: bool) -> list[CallItem]:
    """The ending of a released call for which livekit makes none, in the form that it gives one."""
    call_id = f"{call.call_id}_final"
    final = FunctionCall(
        id=_stand_in_id("function_call", call_id), call_id=call_id, name=call.name, arguments=call.arguments
    )
    return [final, stand_in_output(final, text, is_error=is_error)]


def stand_in_output(call: FunctionCall, text: str, *, is_error: bool) -> FunctionCallOutput:
    """The output of a call for which livekit makes none; gives way to livekit's own if it comes after all."""
    return FunctionCallOutput(
        id=_stand_in_id("function_call_output", call.call_id),
        call_id=call.call_id,
        name=call.name,
        output=text,
        is_error=is_error,
    )


def is_stand_in(item: ChatItem) -> bool:
    """Whether the item stands for one of livekit's that may still come."""
    return item.id.startswith(_STAND_IN)


def _ids_of(item: ChatItem) -> list[str]:
    """The ids under which a context holds what `item` says."""
    return [item.id, _stand_in_id(item.type, item.call_id)] if is_call_item(item) else [item.id]


def _is_said(item: ChatItem) -> TypeGuard[ChatMessage]:
    return item.type == "message" and item.role not in _INSTRUCTING


def _stand_in_id(kind: str, call_id: str) -> str:
    return _own_id(_STAND_IN, kind, call_id)


@functools.lru_cache(1024)
def _own_id(prefix: str, kind: str, key: str) -> str:
    """The same id for the same item each time; OpenAI's realtime server takes up to 32 characters."""
    return prefix + hashlib.blake2s(f"{kind} {key}".encode(), digest_size=8).hexdigest()


def is_call_item(item: ChatItem) -> TypeGuard[CallItem]:
    """Whether the item is a call or an output."""
    return item.type in _CALL_ITEMS  # `isinstance` takes ten times as long with pydantic's classes


def _insert(item: FunctionCall | FunctionCallOutput, context: ChatContext) -> None:
    """Insert by time of creation, but never before the instructions: they may be younger than a call."""
    leading = itertools.takewhile(lambda i: i.type == "message" and i.role in _INSTRUCTING, context.items)
    place = context.find_insertion_index(created_at=item.created_at)
    context.items.insert(max(place, sum(1 for _ in leading)), item)


def _put_in_place(given: Sequence[CallItem], items: list[ChatItem], since: float) -> dict[str, CallItem]:
    """Put each where `items` hold it or its stand-in, looked for from the end; returns those that are new."""
    new = {each.id: each for each in given}
    sought = {known_id: each for each in given for known_id in _ids_of(each)}
    older = 0
    for place in range(len(items) - 1, -1, -1):
        if not new or older >= _FAR_ENOUGH:
            break
        item = items[place]
        if (found := sought.get(item.id)) is not None:
            items[place] = found
            new.pop(found.id, None)
        elif item.created_at < since:
            older += 1 if is_call_item(item) else _A_MESSAGE
        else:
            older = 0
    return new
