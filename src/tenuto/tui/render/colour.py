"""Colours as numbers: how well one can be read on another (WCAG 2.2). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_HEX: Final = frozenset("0123456789abcdefABCDEF")


def is_hex(colour: str) -> bool:
    """Say whether this is `#rrggbb`."""
    return len(colour) == 7 and colour[0] == "#" and _HEX.issuperset(colour[1:])


def contrast_ratio(first: str, second: str) -> float:
    """Return the WCAG contrast of two `#rrggbb` colours: 1 (none) to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=256)
def _luminance(colour: str) -> float:
    channels = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
