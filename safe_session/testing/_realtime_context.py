"""What the server of a realtime model knows of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from livekit.agents import llm

from ._words import end_of_word, split_words

Known = llm.ChatMessage | llm.FunctionCall | llm.FunctionCallOutput
"""What servers keep. Handoffs and the like are livekit-agents' own."""

Announce = Callable[[str | None, Known], None]

# A word counts as heard although livekit-agents gives its end in whole milliseconds.
_HAIR = 1e-3


@dataclass(frozen=True)
class Push:
    """One `update_chat_ctx()` that had something to tell the server.

    Attributes:
        number: Which one of the model's pushes it is, counted from 1.
        items: What it brings: items that the server does not have, and messages with another text.
        removes: The ids of the items that it takes away.
        failed: Whether it fails. Nothing of a push that fails reaches the server.
        at: The event loop's time at which it was sent, in seconds.

    """

    number: int
    items: tuple[llm.ChatItem, ...]
    removes: tuple[str, ...]
    failed: bool
    at: float

    @property
    def outputs(self) -> dict[str, llm.FunctionCallOutput]:
        """The outputs that it brings, by call id."""
        return {item.call_id: item for item in self.items if isinstance(item, llm.FunctionCallOutput)}


@dataclass(frozen=True)
class Change:
    """What a push does to the context that it was worked out for. False if it does nothing.

    Attributes:
        wanted: The context as it shall be.
        base: The ids of what was there then. What the server adds later is not taken away.
        items: Those of the wanted items that are new, or have a new text.
        removes: The ids of what is not wanted any more.

    """

    wanted: tuple[Known, ...]
    base: frozenset[str]
    items: tuple[Known, ...]
    removes: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.items or self.removes)


class ServerContext:
    """A list of items that the server adds to, and that pushes change.

    Attributes:
        items: The items, in order. They are this context's own: what comes in and goes out is copied.

    Args:
        announce: Told of every new item: the id of the item before it, and a copy.
    """

    def __init__(self, announce: Announce) -> None:
        self.items: list[Known] = []
        self._announce = announce

    @property
    def unanswered(self) -> list[str]:
        """The ids of the calls that have no output, in order."""
        calls = [item.call_id for item in self.items if isinstance(item, llm.FunctionCall)]
        return [call_id for call_id in calls if call_id not in self.answered]

    @property
    def answered(self) -> set[str]:
        """The ids of the calls that have an output."""
        return {item.call_id for item in self.items if isinstance(item, llm.FunctionCallOutput)}

    def snapshot(self) -> llm.ChatContext:
        """Copy the context."""
        return llm.ChatContext([copied(item) for item in self.items])

    def add(self, item: Known, *, announced_as: Known) -> None:
        """Put an item of the server's own at the end.

        Args:
            item: The item, which the server may still change.
            announced_as: As much of it as the client is told now: a message comes without its text, and a
                call without its arguments.
        """
        previous = self.items[-1].id if self.items else None
        self.items.append(item)
        self._announce(previous, announced_as)

    def plan(self, pushed: llm.ChatContext, *, outputs_only: bool = False) -> Change:
        """Work out what a pushed context would change here.

        Args:
            pushed: The context as the client wants it to be.
            outputs_only: Whether this is a server that takes nothing but the outputs of calls.
        """
        here = {item.id: item for item in self.items}
        wanted = self._wanted(pushed)
        if outputs_only:
            new = [i for i in wanted if i.id not in here and isinstance(i, llm.FunctionCallOutput)]
            wanted = [*self.items, *new]
        ids = {item.id for item in wanted}
        return Change(
            wanted=tuple(wanted),
            base=frozenset(here),
            items=tuple(copied(item) for item in wanted if _is_news(here.get(item.id), item)),
            removes=tuple(item_id for item_id in here if item_id not in ids),
        )

    def apply(self, change: Change) -> None:
        """Carry out a change. What the server has added or dropped since it was worked out stays so."""
        here = {item.id: item for item in self.items}
        news = {item.id: copied(item) for item in change.items}
        wanted = [news.get(i.id) or here[i.id] for i in change.wanted if i.id in news or i.id in here]
        ids = {item.id for item in wanted}
        self.items = wanted + [i for i in self.items if i.id not in change.base and i.id not in ids]
        previous: str | None = None
        for item in list(self.items):
            if item.id in news and item.id not in here:
                self._announce(previous, copied(item))
            previous = item.id

    def cut(self, message_id: str, text: str) -> None:
        """Leave of an interrupted message what was heard. One of which nothing was heard goes away."""
        for item in self.items:
            if isinstance(item, llm.ChatMessage) and item.id == message_id:
                item.content, item.interrupted = [text], True
        self.items = [item for item in self.items if text or item.id != message_id]

    def text_of(self, message_id: str) -> str:
        """Give the text of a message, or "" if there is none."""
        messages = [item for item in self.items if isinstance(item, llm.ChatMessage)]
        return "".join(item.text_content or "" for item in messages if item.id == message_id)

    def _wanted(self, pushed: llm.ChatContext) -> list[Known]:
        here = {item.id for item in self.items}
        wanted: dict[str, Known] = {}
        for item in pushed.items:
            # A message without text is livekit-agents' placeholder for one that the server has begun.
            if isinstance(item, Known) and (item.id in here or not _is_placeholder(item)):
                wanted.setdefault(item.id, item)
        return list(wanted.values())


def words_until(text: str, seconds: float, words_per_second: float) -> str:
    """Give the words of a text that have been spoken to their end after so many seconds."""
    words = split_words(text)
    ends = [end_of_word(n, words_per_second) for n in range(1, len(words) + 1)]
    return "".join(word for word, end in zip(words, ends, strict=True) if end <= seconds + _HAIR).strip()


def copied(item: Known) -> Known:
    """Copy an item so that later changes to it don't reach the copy."""
    if isinstance(item, llm.ChatMessage):  # not deeply: its content may hold video frames
        return item.model_copy(update={"content": list(item.content)})
    return item.model_copy(deep=True)


def _is_placeholder(item: Known) -> bool:
    return isinstance(item, llm.ChatMessage) and not item.content


def _is_news(here: Known | None, wanted: Known) -> bool:
    """Whether the server has to be told: livekit-agents' clients compare the texts of messages only."""
    if here is None:
        return True
    if not isinstance(here, llm.ChatMessage) or not isinstance(wanted, llm.ChatMessage):
        return False
    return not _is_placeholder(wanted) and wanted.text_content != here.text_content
