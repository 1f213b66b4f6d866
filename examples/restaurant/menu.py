"""The dishes that callers ask about."""

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
