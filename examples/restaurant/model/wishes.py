"""The calls that the caller's words ask for, whether or not they have been made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .context import Conversation, Made
from .ears import Heard, hear

Wish: TypeAlias = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Details:
    """What the caller has told so far."""

    people: int | None = None
    day: str | None = None
    time: str | None = None
    name: str | None = None
    phone: str | None = None
    agreed: bool = False
    looks_up: bool = False

    def after(self, heard: Heard) -> Details:
        """These details, with what was just heard."""
        fields = ("people", "day", "time", "name", "phone")
        told = {field: value for field in fields if (value := getattr(heard, field)) is not None}
        looks_up = self.looks_up or heard.looks_up
        return replace(self, **told, agreed=self.agreed or heard.agrees, looks_up=looks_up)

    def missing(self) -> list[str]:
        return [field for field in ("day", "time", "people") if getattr(self, field) is None]

    @property
    def table(self) -> dict[str, Any]:
        return {"day": self.day, "time": self.time, "people": self.people}


@dataclass(frozen=True)
class Wishes:
    """Everything asked for in a conversation, what the last turn asked for, and the details by then."""

    all: tuple[Wish, ...]
    latest: tuple[Wish, ...]
    details: Details


def wishes(conversation: Conversation) -> Wishes:
    """Go through what the caller said, turn by turn."""
    details = Details()
    everything: list[Wish] = []
    latest: tuple[Wish, ...] = ()
    for turn in conversation.turns:
        heard = hear(turn.text)
        known, details = details, details.after(heard)
        latest = tuple(_asked_for(heard, known, details, turn.before))
        everything += [wish for wish in latest if wish not in everything]
    if details.name and details.phone:
        everything.append(("note_contact", {"name": details.name, "number": details.phone}))
    return Wishes(tuple(everything), latest, details)


def _asked_for(heard: Heard, known: Details, details: Details, before: Sequence[Made]) -> Iterator[Wish]:
    yield from _errands(heard)
    booked = _booked(before)
    news = {field: value for field, value in details.table.items() if value != known.table[field]}
    which = heard.order or booked or details.name
    if heard.cancels and which:
        yield "cancel_reservation", {"order": which}
    elif news and which and (booked or (heard.changes and not _offered(before))):
        yield "change_reservation", {"order": which, **news}
    elif not booked and details.looks_up and which:
        yield "find_reservation", {"name_or_order": which}
    elif not booked and not details.missing():
        yield from _table(heard, details, before, new=bool(news))
    if booked and heard.pays_deposit:
        yield "charge_deposit", {"order": booked}
    if (booked or heard.cancels) and heard.wants_text and details.name:
        yield "send_confirmation", {"name": details.name}


def _errands(heard: Heard) -> Iterator[Wish]:
    """What has nothing to do with a table; what takes the caller elsewhere comes last."""
    if heard.dish and heard.portions:
        yield "order_meal", {"dish": heard.dish, "portions": heard.portions}
    elif heard.dish:
        yield "check_allergens", {"dish": heard.dish}
    if heard.about:
        yield "send_text", {"about": heard.about}
    if heard.wants_callback:
        yield "request_callback", {}
    if heard.wants_takeaway or heard.portions:
        yield "transfer_to_takeaway", {}
    if heard.wants_manager:
        yield "transfer_to_manager", {}


def _table(heard: Heard, details: Details, before: Sequence[Made], *, new: bool) -> Iterator[Wish]:
    """A table is looked for, offered, and booked once the caller agrees."""
    if _offered(before) and details.agreed:
        if details.name and (heard.agrees or heard.name or new):
            yield "create_reservation", {"name": details.name, **details.table}
            yield "send_confirmation", {"name": details.name}
    elif new:
        yield "find_table", details.table


def _offered(before: Sequence[Made]) -> bool:
    return any(made.tool == "find_table" and made.state != "failed" for made in before)


def _booked(before: Sequence[Made]) -> str | None:
    """The order number of the caller's reservation; their name while the number is not known."""
    for made in reversed(before):
        if made.tool == "cancel_reservation" and made.state != "failed":
            return None
        if made.tool in {"create_reservation", "find_reservation"} and made.state != "failed":
            number = re.search(r"\border (\d+)", made.output)
            return number[1] if number else str(made.arguments.get("name") or made.arguments["name_or_order"])
    return None
