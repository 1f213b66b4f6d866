"""How a text is split into the words that are streamed, spoken and heard."""

from __future__ import annotations

import re

# Chinese and Japanese put no space between words: each of their characters counts as a word.
_CJK = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_WORD = re.compile(rf"\s*(?:[{_CJK}]|[^\s{_CJK}]+)\s*")
_COMPLETE = re.compile(rf"(?:\s|[{_CJK}])\Z")


def split_words(text: str) -> list[str]:
    """Split a text into words, each with the white space around it: joined they are the text again."""
    words = _WORD.findall(text)
    return words or ([text] if text else [])


def end_of_word(n: int, words_per_second: float) -> float:
    """Give the time at which the n-th word ends, in seconds, rounded to what a virtual clock can tell."""
    return round(n / words_per_second, 6)


def take_words(pending: str) -> tuple[list[str], str]:
    """Split a text that still grows into its complete words and the rest, which may go on."""
    words = split_words(pending)
    if not words or not pending.strip():
        return [], pending
    if _COMPLETE.search(words[-1]):
        return words, ""
    return words[:-1], words[-1]
