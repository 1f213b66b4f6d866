"""The dishes that callers ask about and order."""

from __future__ import annotations

from types import MappingProxyType

ALLERGENS = MappingProxyType(
    {
        "kung pao chicken": ("peanuts", "soy"),
        "宫保鸡丁": ("peanuts", "soy"),
        "spring rolls": ("gluten", "sesame"),
        "春卷": ("gluten", "sesame"),
        "steamed fish": ("fish", "soy"),
        "清蒸鱼": ("fish", "soy"),
    }
)


class MenuError(Exception):
    """Why a dish can't be had; worded for the caller."""


def allergens_of(dish: str) -> tuple[str, ...]:
    """What is in a dish, by its name in either language and in any case.

    Raises:
        MenuError: It is not on the menu.
    """
    try:
        return ALLERGENS[dish.casefold()]
    except KeyError:
        raise MenuError(f"{dish!r} is not on the menu") from None
