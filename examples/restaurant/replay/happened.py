"""What happened in a call: plain data, taken down by `play.py` and drawn by `draw.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..book import Reservation
from ..restaurant import Work
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
    kept: set[str] = field(default_factory=set[str])
    violations: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])

    @property
    def orders(self) -> list[str]:
        return [reservation.order for reservation in self.reservations]

    def was_shown(self, work: Work) -> bool:
        """Whether any inference was shown how a tool's run ended."""
        known = [thought.shown.get(work.call_id, ("", "not shown"))[1] for thought in self.thoughts]
        return "done" in known or "failed" in known

    @property
    def wrong(self) -> list[str]:
        """All that should not be."""
        return self.unmet + [f"not kept: {violation}" for violation in self.violations]

    @property
    def unmet(self) -> list[str]:
        """What the file expects of the call and did not come."""
        expect = self.call.expect
        heard = " ".join(said.heard for said in self.said if said.who == "agent")
        unmet = list(self.missed)
        if expect.orders is not None and expect.orders != len(self.orders):
            unmet.append(f"{count(len(self.orders), 'order')} in the book instead of {expect.orders}")
        unmet += [f"the caller was never told {words!r}" for words in expect.told if words not in heard]
        unmet += [f"the history has no result of {tool}" for tool in expect.kept if tool not in self.kept]
        if expect.errors is not None and len(self.errors) > expect.errors:
            unmet.append(f"{count(len(self.errors), 'error')} in the log instead of {expect.errors}")
        return unmet


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
