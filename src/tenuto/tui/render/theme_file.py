"""A user's own theme: TOML text to a theme, with a line for everything in it that does not fit. Pure.

base = "dark"
[colours]
accent = "#ff8800"
[styles]
"diff.added" = "bold green on added"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from tenuto.text.matching import did_you_mean
from tenuto.tui.render.theme import COLOUR_MEANINGS, MODIFIERS, PALETTES, STYLES, Palette, Style, Theme, build_theme

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


READABLE: Final = 4.5
"""WCAG 2.2, 1.4.3 (AA): the least contrast of text."""
SURFACES: Final = frozenset({"rule", "quote.bar", "panel", "selection"})
"""Lines and grounds: nothing is read in them by themselves."""
ON_CHANGES: Final = ("text", "code", "diff")
"""Beginnings of the names that stand on the grounds of a diff."""
GROUNDS: Final = ("diff.added", "diff.removed", "diff.added.word", "diff.removed.word")


class Weak(NamedTuple):
    """A style that cannot be read well on a ground (the name of the style that has it, or `page`)."""

    style: str
    ground: str
    ratio: float


def weak_styles(theme: Theme, least: float = READABLE) -> list[Weak]:
    """Return what is below `least`. Colours of the terminal's own are not known and are not judged."""
    found: list[Weak] = []
    for name, ground, style in _standing(theme):
        front, back = style.foreground or theme.foreground, style.background or theme.background
        if front and back and is_hex(front) and is_hex(back):
            ratio = contrast_ratio(front, back)
            if ratio < least:
                found.append(Weak(name, ground, round(ratio, 2)))
    return found


def _standing(theme: Theme) -> Iterator[tuple[str, str, Style]]:
    """Go through style, ground, and what the one looks like on the other."""
    texts = {name: style for name, style in theme.styles.items() if name not in SURFACES}
    for name, style in texts.items():
        yield name, "page", style
        yield name, "panel", _on(style, theme.styles["panel"])
        yield name, "selection", _over(style, theme.styles["selection"])
        if name.partition(".")[0] == "user":
            yield name, "user.text", _on(style, theme.styles["user.text"])
        if name.partition(".")[0] in ON_CHANGES:
            yield from ((name, ground, _on(style, theme.styles[ground])) for ground in GROUNDS)


def _on(style: Style, ground: Style) -> Style:
    return style if style.background else style._replace(background=ground.background)


def _over(style: Style, ground: Style) -> Style:
    """Selected: the ground's colours count, whatever the text had."""
    return style._replace(
        foreground=ground.foreground or style.foreground, background=ground.background or style.background
    )


TABLES = ("colours", "styles")
COLOUR_RULE = 'a colour is "#rrggbb", the number of a colour of the terminal (0 to 255), or "" for none'
STYLE_RULE = f"a style is made of {', '.join(sorted(MODIFIERS))}, a colour, and “on” before the colour of its ground"
SAME_GROUND = {
    "diff.added.sign": "diff.added",
    "diff.removed.sign": "diff.removed",
    "user.bar": "user.text",
    "user.pending": "user.text",
    "user.image": "user.text",
}
"""What stands in one row with another style, whose ground is the row's."""
WEAK_NAMED = 6
"""So many styles that cannot be read well are named one by one."""


def read_theme(name: str, text: str) -> tuple[Theme | None, list[str]]:
    """Return the theme and what is wrong with the file; what is wrong is left out of the theme.

    `None`: the text is not TOML at all.
    """
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, [f"it is not TOML: {error}"]
    problems = [
        f"“{key}” is not known here; there are base, colours, styles" for key in values.keys() - {"base", *TABLES}
    ]
    base = PALETTES[_base(values.get("base", "dark"), problems)]
    colours = {**base.colours, **_read_colours(_table(values, "colours", problems), problems)}
    own = _read_styles(_table(values, "styles", problems), colours, problems)
    styles = {**base.styles, **_on_own_grounds(own, {**STYLES, **base.styles}), **own}
    return build_theme(name, Palette(colours, styles)), problems


def describe_weakness(theme: Theme) -> str:
    """Return a sentence that names the styles which cannot be read well, empty when all can."""
    found = weak_styles(theme)
    if not found:
        return ""
    names = list(dict.fromkeys(weak.style for weak in sorted(found, key=lambda weak: weak.ratio)))
    more = f" and {len(names) - WEAK_NAMED} more" if len(names) > WEAK_NAMED else ""
    worst = min(found, key=lambda weak: weak.ratio)
    return (
        f"hard to read (contrast under {READABLE}): {', '.join(names[:WEAK_NAMED])}{more}; "
        f"worst is {worst.style} on {worst.ground} with {worst.ratio:.1f}"
    )


def _base(base: object, problems: list[str]) -> str:
    if isinstance(base, str) and base in PALETTES:
        return base
    problems.append(f"base = {base!r}: there are {', '.join(PALETTES)}")
    return "dark"


def _table(values: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, object]:
    table = values.get(name, {})
    if isinstance(table, dict):
        return dict(_flat(cast("dict[str, Any]", table)))
    problems.append(f"{name} must be a table: a line [{name}], and names with values below it")
    return {}


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    """Go through a table whose names may have been written with dots and without quotes."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{before}{key}.")
        else:
            yield before + key, value


def _read_colours(table: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    for name, value in table.items():
        if name not in COLOUR_MEANINGS:
            problems.append(f"[colours] {name}: no such colour{_hint(name, COLOUR_MEANINGS)}")
        elif (colour := _colour(value)) is None or (name in ("text", "page") and colour[:1].isdigit()):
            problems.append(f"[colours] {name} = {value!r}: {COLOUR_RULE}")
        else:
            read[name] = colour
    return read


def _colour(value: object) -> str | None:
    """Return the colour, `None` for what is none. Attributes have a place in styles."""
    if isinstance(value, bool):
        return None
    text = str(value).strip() if isinstance(value, int | str) else "?"
    if len(text) == 4 and text.startswith("#"):
        text = "#" + "".join(digit * 2 for digit in text[1:])
    number = text.isascii() and text.isdigit() and len(text) <= 3 and int(text) < 256
    return text if not text or number or is_hex(text) else None


def _read_styles(table: Mapping[str, object], colours: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    for name, value in table.items():
        if name not in STYLES:
            problems.append(f"[styles] {name}: no such style{_hint(name, STYLES)}")
        elif not isinstance(value, str):
            problems.append(f"[styles] {name} = {value!r}: {STYLE_RULE}")
        elif wrong := [word for word in value.split() if not _is_word(word, colours)]:
            problems.append(f"[styles] {name}: “{wrong[0]}”{_hint(wrong[0], colours)}: {STYLE_RULE}")
        else:
            read[name] = value
    return read


def _on_own_grounds(own: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the styles that stand in a row with one of the user's own, on its ground instead of the theme's."""
    return {
        name: f"{_parted(before[name])[0]} {_parted(own[row])[1]}".strip()
        for name, row in SAME_GROUND.items()
        if row in own
    }


def _parted(style: str) -> tuple[str, str]:
    """Return what a style says of the text, and what of the ground."""
    words = style.split()
    grounds = {place + 1 for place, word in enumerate(words) if word == "on"}
    front = [word for place, word in enumerate(words) if word != "on" and place not in grounds]
    ground = [words[place] for place in sorted(grounds) if place < len(words)]
    return " ".join(front), f"on {ground[-1]}" if ground else ""


def _is_word(word: str, colours: Mapping[str, str]) -> bool:
    return word == "on" or word in MODIFIERS or word in colours or _colour(word) is not None


def _hint(name: str, known: Mapping[str, str]) -> str:
    meant = did_you_mean(name, known)
    if meant:
        return meant
    return f"; there are {', '.join(known)}" if known is COLOUR_MEANINGS else ""
