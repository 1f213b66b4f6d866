"""What a caller means, in English and in Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..menu import ALLERGENS
from .words import DAYS, NUMBERS

_CHINESE = "一二三四五六七八九十"

_EN = rf"\d{{1,2}}|{'|'.join(NUMBERS)}"
_ZH = rf"\d{{1,2}}|十[一二]|[两{_CHINESE}]"

_PEOPLE = re.compile(
    rf"({_ZH})\s*(?:个人|位|人)"
    rf"|\b({_EN}) (?:people|persons|guests|of us)\b"
    rf"|\b(?:(?:table|party|reservation) (?:for|of)|for a party of) ({_EN})\b"
    rf"|\bmake (?:it|that) ({_EN})\b(?!\s*(?:pm|o'clock))",
    re.IGNORECASE,
)
_TIME = re.compile(
    rf"(?P<early>上午|早上)?(?P<zh>{_ZH})点(?P<half>半)?"
    rf"|(?P<half_past>half past )(?P<past>{_EN})\b"
    rf"|(?:\bat )?\b(?P<hour>\d{{1,2}}):(?P<minute>\d\d)\b"
    rf"|\b(?:at (?P<at>{_EN})|(?P<clock>{_EN}) ?(?:pm\b|o'clock))",
    re.IGNORECASE,
)
_DAY = re.compile(rf"(?:周|星期|礼拜)([一二三四五六日天])|\b({'|'.join(DAYS)})\b", re.IGNORECASE)
_NAME = re.compile(
    r"我姓([\u4e00-\u9fff])|我叫([\u4e00-\u9fff]{2,4})"
    r"|(?:[Mm]y name is|[Nn]ame's|[Tt]he name is|[Uu]nder|[Tt]his is) ([A-Z]\w+)"
)
_ORDER = re.compile(
    r"\b(0\d\d)\b|(?:order|number|订单|单号)号?\s*(?:is|是)?\s*(\d{1,4})(?!\d)", re.IGNORECASE
)
_DISHES = "|".join(map(re.escape, ALLERGENS))
_DISH = re.compile(_DISHES, re.IGNORECASE)
_PORTIONS = re.compile(
    rf"({_ZH})份(?:{_DISHES})|\b({_EN}) (?:(?:portions|orders) of )?(?:{_DISHES})", re.IGNORECASE
)
_PHONE = re.compile(r"(?<!\d)(\d[\d -]{4,}\d)(?!\d)")
_ABOUT = re.compile(
    r"\b(?:text|message) me (?:the |your )?(menu|directions)\b"
    r"|(?:短信|发).*?(菜单|路线)|(菜单|路线)(?=.*(?:短信|发))",
    re.IGNORECASE,
)
_ZH_ABOUT = {"菜单": "menu", "路线": "directions"}

_AGREES = re.compile(
    r"订吧|订了|订下|帮我订|就这样|好的|没问题|\b(yes|book it|go ahead|please do|that's fine|sounds good)\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"改|换成|\b(change|make (it|that)|instead)\b", re.IGNORECASE)
_CANCELS = re.compile(r"取消|\bcancel\b", re.IGNORECASE)
_CHECKS = re.compile(r"对吧|对吗|是吗|订好了吗|\b(right|correct|is it booked)\?", re.IGNORECASE)
_CONFIRM = re.compile(r"短信|\b(text me|text message|confirmation)\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"确认号|confirmation number", re.IGNORECASE)
_MANAGER = re.compile(r"经理|\bmanager\b", re.IGNORECASE)
_CALLBACK = re.compile(r"回电|回个电话|\bcall (me )?back\b|\bcallback\b", re.IGNORECASE)
_TAKEAWAY = re.compile(r"外卖|打包|\b(take ?away|take ?out|to go)\b", re.IGNORECASE)
_WAITS = re.compile(r"还?在吗|\bare you (still )?there\b|\bhello\?", re.IGNORECASE)
_THANKS = re.compile(r"谢谢|再见|\b(thanks|thank you|goodbye|bye)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Heard:
    """The details and the intentions in what a caller said at one time."""

    people: int | None = None
    day: str | None = None
    time: str | None = None
    name: str | None = None
    order: str | None = None
    dish: str | None = None
    portions: int | None = None
    phone: str | None = None
    about: str | None = None
    agrees: bool = False
    changes: bool = False
    cancels: bool = False
    checks: bool = False
    wants_text: bool = False
    wants_manager: bool = False
    wants_callback: bool = False
    wants_takeaway: bool = False
    asks_number: bool = False
    waits: bool = False
    thanks: bool = False


def hear(text: str) -> Heard:
    """Understand one thing that a caller said."""
    phone = _first(_PHONE, text)
    text = _PHONE.sub("", text)  # its digits are no order, no time and no party
    order = _first(_ORDER, text)
    dish = _DISH.search(text)
    about = _first(_ABOUT, text)
    callback, asks_number = bool(_CALLBACK.search(text)), bool(_ASKS_NUMBER.search(text))
    return Heard(
        people=_number(_first(_PEOPLE, text)),
        day=_day(text),
        time=_time(text),
        name=_first(_NAME, text),
        order=order and order.zfill(3),
        dish=dish and dish[0].lower(),
        portions=_number(_first(_PORTIONS, text)),
        phone=phone and re.sub(r"\D", "", phone),
        about=about and _ZH_ABOUT.get(about, about.lower()),
        agrees=bool(_AGREES.search(text)),
        changes=bool(_CHANGES.search(text)),
        cancels=bool(_CANCELS.search(text)),
        checks=bool(_CHECKS.search(text)),
        wants_text=bool(_CONFIRM.search(text)) and not about and not asks_number,
        wants_manager=bool(_MANAGER.search(text)) and not callback,
        wants_callback=callback,
        wants_takeaway=bool(_TAKEAWAY.search(text)),
        asks_number=asks_number,
        waits=bool(_WAITS.search(text)),
        thanks=bool(_THANKS.search(text)),
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return next((group for group in found.groups() if group), None) if found else None


def _number(word: str | None) -> int | None:
    if word is None:
        return None
    if word.isdigit():
        return int(word)
    if word.lower() in NUMBERS:
        return NUMBERS.index(word.lower()) + 1
    if word == "两":
        return 2
    return sum(_CHINESE.index(digit) + 1 for digit in word)  # 十二 is 10 + 2


def _day(text: str) -> str | None:
    day = _first(_DAY, text)
    if day is None:
        return None
    if day.capitalize() in DAYS:
        return day.capitalize()
    return DAYS["一二三四五六日".index(day.replace("天", "日"))]


def _time(text: str) -> str | None:
    found = _TIME.search(text)
    if found is None:
        return None
    hour = _number(found["zh"] or found["past"] or found["hour"] or found["at"] or found["clock"]) or 0
    minute = int(found["minute"] or (30 if found["half"] or found["half_past"] else 0))
    # Dinner is in the evening, unless the caller says otherwise.
    afternoon = hour < 12 and not found["early"]
    return f"{hour + 12 * afternoon:02}:{minute:02}"
