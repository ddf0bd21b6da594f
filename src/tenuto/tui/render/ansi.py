"""Output of programs: colours become styles, everything else that a terminal would act on vanishes (R-088)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from tenuto.guard.terminal import sanitize_keeping_colour
from tenuto.tui.render.line import Span

_COLOUR = re.compile(r"\x1b\[([0-9;:]*)m")
_OVERSTRUCK = re.compile(r"[^\b\n]\x08")
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
_MAX_PARAMETERS = 64


class _Pen(Struct):
    foreground: str = ""
    background: str = ""
    attributes: tuple[str, ...] = ()

    def style(self, base: str) -> str:
        """Return the style name that the pen draws with."""
        if not (self.foreground or self.background or self.attributes):
            return base
        return " ".join(filter(None, (base, self.foreground, self.background, *self.attributes)))

    def select(self, parameters: str) -> None:
        """Apply one SGR sequence; what it does not know it leaves out."""
        codes = iter(_codes(parameters))
        for code in codes:
            if code == 0:
                self.foreground, self.background, self.attributes = "", "", ()
            elif code in _ATTRIBUTES:
                if _ATTRIBUTES[code] not in self.attributes:
                    self.attributes = (*self.attributes, _ATTRIBUTES[code])
            elif code in _ENDS:
                self.attributes = tuple(name for name in self.attributes if name not in _ENDS[code])
            elif code in (38, 48):
                self._colour(code == 38, _extended(codes))
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.foreground = f"fg={code - 30 if code < 90 else code - 82}"
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.background = f"bg={code - 40 if code < 100 else code - 92}"
            elif code == 39:
                self.foreground = ""
            elif code == 49:
                self.background = ""

    def _colour(self, is_foreground: bool, colour: str) -> None:
        if colour and is_foreground:
            self.foreground = f"fg={colour}"
        elif colour:
            self.background = f"bg={colour}"


def _codes(parameters: str) -> list[int]:
    codes: list[int] = []
    for group in parameters.split(";")[:_MAX_PARAMETERS]:
        fields = group.split(":")
        if len(fields) >= 6 and fields[0] in ("38", "48") and fields[1] == "2":
            fields.pop(2)  # the colour space, which only the colon form has
        if len(fields) > 1 and fields[0] not in ("38", "48"):
            fields = ["24"] if fields == ["4", "0"] else fields[:1]
        codes.extend(int(field) if field.isdecimal() and len(field) < 4 else 0 for field in fields)
    return codes


def _extended(codes: Iterator[int]) -> str:
    kind = next(codes, 0)
    if kind == 5:
        return str(min(next(codes, 0), 255))
    if kind == 2:
        red, green, blue = (min(next(codes, 0), 255) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    return ""


def ansi_lines(text: str, style: str = "output") -> list[list[Span]]:
    """Return the rows of a program's output; tabs stay, and of a row written over by carriage returns the last."""
    if "\b" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = "\n".join([_last_written(line) for line in text.split("\n")])
    pen = _Pen()
    return [_row(line, pen, style) for line in sanitize_keeping_colour(text).split("\n")]


def _last_written(line: str) -> str:
    before, _return, last = line.rstrip("\r").rpartition("\r")
    return "".join(match[0] for match in _COLOUR.finditer(before)) + last


def _row(line: str, pen: _Pen, style: str) -> list[Span]:
    spans: list[Span] = []
    position = 0
    for match in _COLOUR.finditer(line):
        if match.start() > position:
            spans.append((line[position : match.start()], pen.style(style)))
        position = match.end()
        pen.select(match[1])
    if position < len(line):
        spans.append((line[position:], pen.style(style)))
    return spans
