"""Lines of the render layer in the colours of a theme, as escape sequences. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from tenuto.tui.render.line import Line
from tenuto.tui.render.theme import Style, Theme
from tenuto.tui.terminal.colours import has_true_colour
from tenuto.tui.terminal.emoji_width import pin, pin_row
from tenuto.tui.terminal.emulator import Hyperlinks, hyperlink

Depth = Literal["true", "256"]
ROW_END = "\x1b[0m\r\n"
"""Ends a printed row: the next one is plain."""
_LEVELS = (0, 95, 135, 175, 215, 255)
_ATTRIBUTES = (("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("reverse", "7"), ("strike", "9"))


def colour_depth(environ: Mapping[str, str]) -> Depth:
    """Return how many colours the terminal says that it has; the sixteen are its own anyway."""
    return "true" if has_true_colour(environ) else "256"


class Paint:
    """A theme on a terminal. `links` says which links are sent to it."""

    def __init__(self, theme: Theme, depth: Depth, *, links: Hyperlinks | None = None) -> None:
        self.theme = theme
        self._depth: Depth = depth
        self.links = links
        self._sgr: dict[str, str] = {}

    def choose(self, theme: Theme) -> None:
        """Paint with another theme from now on."""
        self.theme = theme
        self._sgr.clear()

    def row(self, line: Line) -> str:
        """Return a line as what is written to the terminal, without its end."""
        pieces: list[str] = []
        for text, name in line.spans:
            codes = self.codes(name)
            shown = f"\x1b[{codes}m{text}\x1b[0m" if codes else text
            target = self.links.target(self.theme.resolve(name).link) if self.links is not None else ""
            pieces.append(hyperlink(shown, target) if target else shown)
        return "".join(pieces)

    def rows(self, lines: Sequence[Line]) -> str:
        """Return lines as what is written to the terminal, each at the beginning of a row.

        What stood there is erased before: erased behind a row without room, its last character would go (most terminals
        have the cursor still on it).
        """
        return "".join([f"{self._ground(line)}{pin_row(self.row(line))}{ROW_END}" for line in lines])

    def standing(self, lines: Sequence[Line]) -> list[str]:
        """Return lines as what is written where each of them stands, on a terminal that does not wrap."""
        return [f"{self._ground(line)}{pin(self.row(line))}" for line in lines]

    def page(self, lines: Sequence[Line]) -> str:
        """Return lines as a text for a pager."""
        return "".join([f"{self._ground(line) if line.fill else ''}{self.row(line)}\n" for line in lines])

    def _ground(self, line: Line) -> str:
        codes = self.codes(line.fill) if line.fill else ""
        # Erasing to the end of the row paints it in the background of the moment.
        return f"\x1b[{codes}m\x1b[K\x1b[0m" if codes else "\x1b[K"

    def codes(self, style: str) -> str:
        """Return the numbers between `ESC [` and `m` for a style name, empty for plain text."""
        codes = self._sgr.get(style)
        if codes is None:
            codes = self._sgr[style] = sgr_codes(self.theme.resolve(style), self._depth)
        return codes


def sgr_codes(style: Style, depth: Depth) -> str:
    """Return the numbers between `ESC [` and `m`, empty for plain text."""
    codes = [code for name, code in _ATTRIBUTES if getattr(style, name)]
    if style.foreground:
        codes.append(_colour_codes(style.foreground, 30, depth))
    if style.background:
        codes.append(_colour_codes(style.background, 40, depth))
    return ";".join(codes)


def _colour_codes(colour: str, base: int, depth: Depth) -> str:
    """Return the codes of `#rrggbb` or of the number of a colour; `base` is 30 for text and 40 for what is behind."""
    if colour.startswith("#"):
        red, green, blue = _channels(colour)
        return f"{base + 8};2;{red};{green};{blue}" if depth == "true" else f"{base + 8};5;{nearest(red, green, blue)}"
    number = int(colour)
    if number < 8:
        return str(base + number)
    return str(base + 52 + number) if number < 16 else f"{base + 8};5;{number}"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def nearest_of(colour: str) -> int:
    """Return the number of the nearest of the 256 colours to `#rrggbb`."""
    return nearest(*_channels(colour))


@lru_cache(maxsize=512)
def nearest(red: int, green: int, blue: int) -> int:
    """Return the number of the nearest of the 240 colours that every terminal of 256 has alike."""
    return min(range(16, 256), key=lambda number: _distance(xterm_channels(number), (red, green, blue)))


def _distance(first: tuple[int, int, int], second: tuple[int, int, int]) -> int:
    return sum((one - other) ** 2 for one, other in zip(first, second, strict=True))


def xterm_channels(number: int) -> tuple[int, int, int]:
    """Return the red, green and blue of a colour from 16 on."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    place = number - 16
    return _LEVELS[place // 36], _LEVELS[place // 6 % 6], _LEVELS[place % 6]
