"""When the restaurant seats guests, and which day a caller means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CLOSED = "Monday"
SEATINGS = ((time(11, 30), time(13, 30)), (time(17, 30), time(21, 30)))  # from the first guests to the last
QUARTER = timedelta(minutes=15)
DAYS_AHEAD = 90


class OpeningError(Exception):
    """Why no guests are seated then; worded for the caller."""


def seating(day: str, at: str, now: datetime) -> datetime:
    """When the guests come that a caller speaks of.

    Args:
        day: A weekday, "today" or "tomorrow", or a date such as 2025-12-24 or 12-24. It is the next one that
            has this name, and is not over.
        at: Time of day, such as 19:00.
        now: When the caller says so.

    Raises:
        OpeningError: That is no day or no time, or no guests are seated then.
    """
    hour = _hour(at)
    candidates = [datetime.combine(each, hour) for each in _days(day, now.date())]
    starts = next((candidate for candidate in candidates if candidate > now), None)
    if starts is None:
        raise OpeningError(f"{day} at {at} is over")
    _check(starts, now)
    return starts


def seatings_on(day: date) -> Iterator[datetime]:
    """Each quarter of an hour at which guests are seated on a day."""
    if WEEKDAYS[day.weekday()] == CLOSED:
        return
    for first, last in SEATINGS:
        at = datetime.combine(day, first)
        while at <= datetime.combine(day, last):
            yield at
            at += QUARTER


def _check(starts: datetime, now: datetime) -> None:
    if starts > now + timedelta(DAYS_AHEAD):
        raise OpeningError(f"the book is open for the next {DAYS_AHEAD} days, not for {starts:%Y-%m-%d}")
    if WEEKDAYS[starts.weekday()] == CLOSED:
        raise OpeningError(f"the restaurant is closed on {CLOSED}s")
    if starts not in seatings_on(starts.date()):
        hours = " and ".join(f"from {first:%H:%M} to {last:%H:%M}" for first, last in SEATINGS)
        raise OpeningError(f"guests are seated {hours}, each quarter of an hour, not at {starts:%H:%M}")


def _hour(at: str) -> time:
    if not re.fullmatch(r"\d{1,2}:\d\d", at):
        raise OpeningError(f"{at!r} is not a time of day such as 19:00")
    try:
        return time(*map(int, at.split(":")))
    except ValueError:
        raise OpeningError(f"{at!r} is not a time of day such as 19:00") from None


def _days(day: str, today: date) -> list[date]:
    """The days that a caller may mean, the nearest first."""
    if day.lower() in {"today", "tomorrow"}:
        return [today + timedelta(day.lower() == "tomorrow")]
    if day.capitalize() in WEEKDAYS:
        ahead = (WEEKDAYS.index(day.capitalize()) - today.weekday()) % 7
        return [today + timedelta(ahead), today + timedelta(ahead + 7)]
    if found := re.fullmatch(r"(?:(\d{4})-)?(\d\d)-(\d\d)", day):
        year, month, of_month = found.groups()
        years = [int(year)] if year else [today.year, today.year + 1]
        days: list[date] = []
        for each in years:
            with suppress(ValueError):  # no such day in that year
                days.append(date(each, int(month), int(of_month)))
        if days:
            return days
    raise OpeningError(f"{day!r} is not a day: it can be a weekday, today, tomorrow, or a date as 2025-12-24")
