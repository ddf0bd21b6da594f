"""Whether a theme can be read: every style of text on every ground that it can stand on. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tenuto.tui.render.colour import contrast_ratio, is_hex
from tenuto.tui.render.theme import Style, Theme

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
