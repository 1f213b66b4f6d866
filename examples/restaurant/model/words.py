"""Numbers and months, which the model both hears and says."""

from __future__ import annotations

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_CHINESE = "一二三四五六七八九十"

ENGLISH_NUMBER = rf"\d{{1,2}}|{'|'.join(NUMBERS)}"
CHINESE_NUMBER = rf"\d{{1,2}}|十[一二]|[两{_CHINESE}]"


def number(word: str) -> int:
    """The number that one of these patterns has found."""
    if word.isdecimal():
        return int(word)
    if word.lower() in NUMBERS:
        return NUMBERS.index(word.lower()) + 1
    if word == "两":
        return 2
    return sum(_CHINESE.index(digit) + 1 for digit in word)  # 十二 is 10 + 2
