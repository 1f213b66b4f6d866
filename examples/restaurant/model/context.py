"""Reads the context that the model is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from livekit.agents import ChatContext, FunctionCall, FunctionCallOutput
from livekit.agents.llm import ChatMessage

# An output that reports progress is not the result yet.
_RUNNING = re.compile(r"still (running|in progress)|is running|has not (ended|finished)", re.IGNORECASE)


@dataclass(frozen=True)
class Made:
    """A tool call, as the context shows it.

    Attributes:
        fresh: Its output came after the assistant last spoke, so the caller has not been told.
        to_tell: The instructions ask to tell its output, unless the caller knows it already.
    """

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    state: Literal["running", "done", "failed"]
    output: str = ""
    fresh: bool = False
    to_tell: bool = False


@dataclass(frozen=True)
class Turn:
    """What the caller said at one time, and which calls had been made by then."""

    text: str
    before: tuple[Made, ...]


@dataclass(frozen=True)
class Conversation:
    """All that the context tells.

    Attributes:
        open: The caller spoke last, and waits for an answer.
    """

    instructions: str
    turns: tuple[Turn, ...]
    answers: tuple[str, ...]
    made: tuple[Made, ...]
    open: bool

    @property
    def language(self) -> Literal["en", "zh"]:
        said = " ".join(turn.text for turn in self.turns)
        return "zh" if re.search(r"[\u4e00-\u9fff]", said) else "en"

    @property
    def role(self) -> str:
        """Who the instructions say that the model is."""
        found = re.search(r"You are the (host|manager|takeaway|clerk)\b", self.instructions)
        return found[1] if found else "host"

    @property
    def running(self) -> list[Made]:
        """The calls of which no ending is shown, each once."""
        same = [self.find(made.tool, made.arguments) for made in self.made]
        return list({made.call_id: made for made in same if made and made.state == "running"}.values())

    def was_said(self, sentence: str) -> bool:
        """Whether the assistant has said this sentence, to its end."""
        return any(sentence.strip() in answer for answer in self.answers)

    def find(self, tool: str, arguments: Mapping[str, Any]) -> Made | None:
        """The call with these arguments, if one is shown. How it ended counts more than that it ran."""
        same = [made for made in self.made if made.tool == tool and made.arguments == arguments]
        ended = [made for made in same if made.state != "running"]
        return (ended or same or [None])[-1]


def read(shown: ChatContext) -> Conversation:
    """Take the context apart."""
    calls = {item.call_id: item for item in shown.items if isinstance(item, FunctionCall)}
    spoke_last = _last_answer(shown)
    instructions: list[str] = []
    turns: list[Turn] = []
    answers: list[str] = []
    made: dict[str, Made] = {}
    is_open = False
    for position, item in enumerate(shown.items):
        if isinstance(item, FunctionCall):
            made[item.call_id] = Made(item.call_id, item.name, _arguments(item), "running")
        elif isinstance(item, FunctionCallOutput) and item.call_id in calls:
            made[item.call_id] = _ended(calls[item.call_id], item, fresh=position > spoke_last)
        elif isinstance(item, ChatMessage) and (text := item.text_content):
            if item.role == "user":
                turns.append(Turn(text, tuple(made.values())))
                is_open = True
            elif item.role == "assistant":
                answers.append(text)
                is_open = False
            else:
                instructions.append(text)
    instructed = "\n".join(instructions)
    calls_made = (replace(each, to_tell=f"'{each.call_id}'" in instructed) for each in made.values())
    return Conversation(instructed, tuple(turns), tuple(answers), tuple(calls_made), is_open)


def _last_answer(shown: ChatContext) -> int:
    spoken = [i for i, m in enumerate(shown.items) if isinstance(m, ChatMessage) and m.role == "assistant"]
    return spoken[-1] if spoken else -1


def _ended(call: FunctionCall, output: FunctionCallOutput, *, fresh: bool) -> Made:
    state = "failed" if output.is_error else "running" if _RUNNING.search(output.output) else "done"
    return Made(call.call_id, call.name, _arguments(call), state, output.output, fresh)


def _arguments(call: FunctionCall) -> dict[str, Any]:
    return {name: value for name, value in json.loads(call.arguments or "{}").items() if value is not None}
