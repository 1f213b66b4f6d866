"""What a caller means, in English and in Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..menu import ALLERGENS
from .when import hear_day, hear_time
from .words import CHINESE_NUMBER, ENGLISH_NUMBER, number

_PEOPLE = re.compile(
    rf"({CHINESE_NUMBER})\s*(?:个人|位|人)"
    rf"|\b({ENGLISH_NUMBER}) (?:people|persons|guests|of us)\b"
    rf"|\b(?:(?:table|party|reservation) (?:for|of)|for a party of) ({ENGLISH_NUMBER})\b"
    rf"|\bmake (?:it|that) ({ENGLISH_NUMBER})\b(?!\s*(?:pm|o'clock))",
    re.IGNORECASE,
)
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
    rf"({CHINESE_NUMBER})份(?:{_DISHES})|\b({ENGLISH_NUMBER}) (?:(?:portions|orders) of )?(?:{_DISHES})",
    re.IGNORECASE,
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
_CANCELS = re.compile(r"取消(?!了吗)|\bcancel\b", re.IGNORECASE)
_LOOKS_UP = re.compile(
    r"(?:查一?下|有没有|是不是有).*预订"
    r"|\b(?:look up|find|have I(?: got)?|do I have) (?:a|my) (?:reservation|table)\b",
    re.IGNORECASE,
)
_DEPOSIT = re.compile(r"[扣付交]\S{0,2}定金|\b(?:charge|take|pay) (?:you )?the deposit\b", re.IGNORECASE)
_CHECKS = re.compile(
    r"对吧|对吗|是吗|(?:订好|取消)了吗|\b(right|correct|is it (?:booked|cancelled))\?", re.IGNORECASE
)
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
    looks_up: bool = False
    pays_deposit: bool = False
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
    day, text = hear_day(text)
    phone = _first(_PHONE, text)
    text = _PHONE.sub("", text)  # its digits are no order, no time and no party
    order = _first(_ORDER, text)
    dish = _DISH.search(text)
    about = _first(_ABOUT, text)
    callback, asks_number = bool(_CALLBACK.search(text)), bool(_ASKS_NUMBER.search(text))
    return Heard(
        people=_number(_first(_PEOPLE, text)),
        day=day,
        time=hear_time(text),
        name=_first(_NAME, text),
        order=order and order.zfill(3),
        dish=dish and dish[0].lower(),
        portions=_number(_first(_PORTIONS, text)),
        phone=phone and re.sub(r"\D", "", phone),
        about=about and _ZH_ABOUT.get(about, about.lower()),
        agrees=bool(_AGREES.search(text)),
        changes=bool(_CHANGES.search(text)),
        cancels=bool(_CANCELS.search(text)),
        looks_up=bool(_LOOKS_UP.search(text)),
        pays_deposit=bool(_DEPOSIT.search(text)),
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
    return None if word is None else number(word)
