"""How the model words its answers, in each language."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .context import Made
from .wishes import Wish

_FACTS = (
    re.compile(
        r"order (?P<order>\d+), (?P<name>.+), (?P<day>\w+) [\d-]+ (?P<time>\d\d:\d\d), (?P<people>\d+) people"
    ),
    re.compile(r"(?P<euros>\d+) euros"),
    re.compile(r"contains (?P<allergens>[\w, ]+)"),
    re.compile(r"confirmation number (?P<number>\d+)"),
    re.compile(r"ready in (?P<minutes>\d+) minutes"),
    re.compile(r"call (?P<name>.+) back on (?P<number>\d+)"),
)


@dataclass(frozen=True)
class Voice:
    """The sentences of one language. Those about a call are filled in from its arguments and its output."""

    greeting: str
    greetings: Mapping[str, str]
    goodbye: str
    anything_else: str
    ask_name: str
    ask_phone: str
    asks: Mapping[str, str]
    announces: Mapping[str, str]
    running: Mapping[str, str]
    done: Mapping[str, str]
    no_table: str
    text_number: str
    failed: str
    in_words: Callable[[str, Any], str]

    def ask(self, missing: Sequence[str]) -> str:
        return self.asks[missing[0]]

    def announce(self, wishes: Iterable[Wish]) -> str:
        return "".join(self._fill(self.announces[tool], arguments) for tool, arguments in wishes)

    def tell(self, made: Made) -> str:
        """How a call stands."""
        return self._fill(self._sentence(made), self._facts(made))

    def recall(self, text: Made) -> str:
        """The confirmation number of a text message."""
        return self._fill(self.text_number, self._facts(text)) if text.state == "done" else self.tell(text)

    def _facts(self, made: Made) -> dict[str, Any]:
        facts = {**made.arguments, "output": made.output}
        for pattern in _FACTS:
            facts.update(found.groupdict() if (found := pattern.search(made.output)) else {})
        return facts

    def _sentence(self, made: Made) -> str:
        if made.state == "failed":
            return self.failed
        if made.state == "running":
            return self.running[made.tool]
        if made.tool == "find_table" and "no free table" in made.output:
            return self.no_table
        return self.done[made.tool]

    def _fill(self, sentence: str, facts: Mapping[str, Any]) -> str:
        words = {name: self.in_words(name, value) for name, value in facts.items()}
        return sentence.format_map(defaultdict(lambda: "…", words))
