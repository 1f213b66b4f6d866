"""What happened in a call: plain data, taken down by `play.py` and drawn by `draw.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..book import Reservation
from ..restaurant import Meal, Work
from .callfile import CallFile

Known: TypeAlias = Literal["done", "failed", "running", "not shown"]


@dataclass(frozen=True)
class Said:
    """Something that one side said, and how much of it was heard.

    Attributes:
        cut_off: The other side talked over it, and it stopped.
        typed: It was sent as a text.
    """

    who: Literal["caller", "agent"]
    began: float
    ended: float
    text: str
    heard: str
    cut_off: bool = False
    typed: bool = False


@dataclass(frozen=True)
class Thought:
    """One inference: what the model was shown of the calls that had begun by then, and what it called.

    Attributes:
        shown: The tool and what was known of it, by the id of the call.
    """

    at: float
    shown: Mapping[str, tuple[str, Known]]
    called: Sequence[str]

    def tools(self, *known: Known) -> list[str]:
        """The tools of the calls that are so known, each once."""
        return list(dict.fromkeys(tool for tool, how in self.shown.values() if how in known))

    @property
    def again(self) -> list[str]:
        """The tools called although calls of them had begun, unknown to this inference."""
        return [tool for tool in self.called if tool in self.tools("not shown")]


@dataclass(frozen=True)
class Note:
    """Anything else that happened, such as a handoff or an error in the log."""

    at: float
    text: str


@dataclass
class Happened:
    """One call on one session class."""

    call: CallFile
    session_class: str
    seconds: float = 0.0
    said: list[Said] = field(default_factory=list[Said])
    work: list[Work] = field(default_factory=list[Work])
    thoughts: list[Thought] = field(default_factory=list[Thought])
    handoffs: list[Note] = field(default_factory=list[Note])
    decisions: list[Note] = field(default_factory=list[Note])
    errors: list[Note] = field(default_factory=list[Note])
    reservations: list[Reservation] = field(default_factory=list[Reservation])
    meals: list[Meal] = field(default_factory=list[Meal])
    kept: set[str] = field(default_factory=set[str])
    known: set[str] = field(default_factory=set[str])
    violations: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])

    @property
    def orders(self) -> list[str]:
        return [reservation.order for reservation in self.reservations]

    @property
    def heard(self) -> str:
        """All that the caller heard."""
        return " ".join(said.heard for said in self.said if said.who == "agent")

    def was_shown(self, work: Work) -> bool:
        """Whether any inference was shown how a tool's run ended."""
        known = [thought.shown.get(work.call_id, ("", "not shown"))[1] for thought in self.thoughts]
        return "done" in known or "failed" in known

    @property
    def silences(self) -> list[float]:
        """How long each of the caller's turns was followed by no word of the agent's, in seconds.

        A turn that is not answered counts up to the caller's next one, or to the end of the call.
        """
        turns = [said for said in self.said if said.who == "caller"]
        until = [*(turn.began for turn in turns[1:]), self.seconds][: len(turns)]
        words = [self._next_word(turn, end) for turn, end in zip(turns, until, strict=True)]
        return [max(0.0, word - turn.ended) for turn, word in zip(turns, words, strict=True)]

    def _next_word(self, turn: Said, end: float) -> float:
        """When the agent speaks after the turn, up to `end`."""
        words = (said for said in self.said if said.who == "agent" and said.heard)
        after = (s.began for s in words if s.began >= turn.ended or (s.ended > turn.ended and not s.cut_off))
        return min([*after, end])

    @property
    def silence(self) -> float:
        """The longest of these silences."""
        return max(self.silences, default=0.0)

    @property
    def wrong(self) -> list[str]:
        """All that should not be."""
        return self.unmet + [f"not kept: {violation}" for violation in self.violations]

    @property
    def unmet(self) -> list[str]:
        """What the file expects of the call and did not come."""
        expect = self.call.expect
        ran = Counter(work.tool for work in self.work)
        unmet = list(self.missed)
        if expect.orders is not None and expect.orders != len(self.orders):
            unmet.append(f"{count(len(self.orders), 'order')} in the book instead of {expect.orders}")
        for tool, times in expect.runs.items():
            if ran[tool] != times:
                unmet.append(f"{tool} ran {count(ran[tool], 'time')} instead of {times}")
        unmet += [f"the caller was never told {words!r}" for words in expect.told if words not in self.heard]
        unmet += [f"the history has no result of {tool}" for tool in expect.kept if tool not in self.kept]
        unmet += [f"the last agent does not know {tool}" for tool in expect.known if tool not in self.known]
        if expect.silence is not None and self.silence > expect.silence:
            unmet.append(f"{self.silence:.2f} s of silence instead of {expect.silence:g} s at most")
        if expect.errors is not None and len(self.errors) > expect.errors:
            unmet.append(f"{count(len(self.errors), 'error')} in the log instead of {expect.errors}")
        return unmet


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
