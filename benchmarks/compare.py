"""How a plain session's figures and a safe one's compare, with their spread."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Spread:
    """A median between two quartiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        return cls(*(quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3))


@dataclass(frozen=True)
class Comparison:
    """The same thing measured on both classes, in turns.

    Attributes:
        what: What was measured.
        plain: On `AgentSession`.
        safe: On `SafeAgentSession`.
        added: What a safe session takes more than the plain one measured beside it.
        ratio: How many times as much.
    """

    what: str
    plain: Spread
    safe: Spread
    added: Spread
    ratio: Spread | None

    @classmethod
    def of(cls, what: str, plain: Sequence[float], safe: Sequence[float]) -> Comparison:
        pairs = list(zip(plain, safe, strict=True))
        return cls(
            what,
            Spread.of(plain),
            Spread.of(safe),
            added=Spread.of([s - p for p, s in pairs]),
            ratio=Spread.of([s / p for p, s in pairs]) if all(plain) else None,
        )
