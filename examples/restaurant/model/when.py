"""The day and the time of which a caller speaks."""

from __future__ import annotations

import re

from ..opening import WEEKDAYS
from .words import CHINESE_NUMBER, ENGLISH_NUMBER, MONTHS, number

_WEEKDAY = re.compile(rf"(?:周|星期|礼拜)([一二三四五六日天])|\b({'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_SOON = re.compile(r"(?P<today>今天|今晚|\btoday\b|\btonight\b)|明天|明晚|\btomorrow\b", re.IGNORECASE)
_MONTH = rf"(?P<name>{'|'.join(MONTHS)})"
_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?P<date>\d{4}-\d\d-\d\d)"),
    re.compile(r"(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]"),
    re.compile(rf"\b{_MONTH} {_OF_MONTH}\b", re.IGNORECASE),
    re.compile(rf"\b{_OF_MONTH}(?: of)? {_MONTH}\b", re.IGNORECASE),
)
_TIME = re.compile(
    rf"(?P<early>上午|早上)?(?P<zh>{CHINESE_NUMBER})点(?P<half>半)?"
    rf"|(?P<half_past>half past )(?P<past>{ENGLISH_NUMBER})\b"
    rf"|(?:\bat )?\b(?P<hour>\d{{1,2}}):(?P<minute>\d\d)\b"
    rf"|\b(?:at (?P<at>{ENGLISH_NUMBER})|(?P<clock>{ENGLISH_NUMBER}) ?(?:pm\b|o'clock))",
    re.IGNORECASE,
)


def hear_day(text: str) -> tuple[str | None, str]:
    """The day as the restaurant's tools take it, if there is one, and the text without a date's digits."""
    for pattern in _DATES:
        if found := pattern.search(text):
            return _date(found), text[: found.start()] + text[found.end() :]
    if found := _WEEKDAY.search(text):
        chinese, english = found.groups()
        day = WEEKDAYS["一二三四五六日".index(chinese.replace("天", "日"))] if chinese else english
        return day.capitalize(), text
    if found := _SOON.search(text):
        return "today" if found["today"] else "tomorrow", text
    return None, text


def hear_time(text: str) -> str | None:
    """The time of day. Dinner is in the evening, unless the caller says otherwise."""
    found = _TIME.search(text)
    if found is None:
        return None
    hour = number(found["zh"] or found["past"] or found["hour"] or found["at"] or found["clock"])
    minute = int(found["minute"] or (30 if found["half"] or found["half_past"] else 0))
    afternoon = hour < 12 and not found["early"]
    return f"{hour + 12 * afternoon:02}:{minute:02}"


def _date(found: re.Match[str]) -> str:
    parts = found.groupdict()
    if "date" in parts:
        return parts["date"]
    month = int(parts["month"]) if "month" in parts else MONTHS.index(parts["name"].capitalize()) + 1
    return f"{month:02}-{int(parts['day']):02}"
