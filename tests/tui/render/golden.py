"""Golden files: rows as they show, and below each which styles they have. `scripts/golden` writes them anew.

Look at the difference before committing it. A style is a letter, explained at the end of the file; what a style looks
like in each theme stands in `styles.txt`, so that another colour changes one line and not every file.
"""

import os
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from tenuto.tui.render.line import Line
from tenuto.tui.render.theme import Style
from tenuto.tui.render.width import cell_width

FOLDER = Path(__file__).parent / "golden"
_LETTERS = string.ascii_lowercase + string.ascii_uppercase + "αβγδεζηθικλμνξοπρστυφχψω"
PLAIN = ("", "text")


def check(name: str, text: str, folder: Path = FOLDER) -> None:
    path = folder / (name if "." in name else f"{name}.txt")
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == expected, f"{path.name} looks different now: scripts/golden, then git diff"


class Sheet:
    """Draws rows; the letters of the styles are given in the order of their first use."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._letters: dict[str, str] = {}
        self._rows: list[str] = []

    def add(self, lines: Iterable[Line]) -> None:
        for line in lines:
            assert line.width <= self.width, line.text
            self._rows.append(line.text.rstrip(" ") + ("⏎" if line.soft else ""))
            styles = "".join(self._letter(style) * cell_width(text) for text, style in line.spans)
            fill = f" →{self._letter(line.fill)}" if line.fill else ""
            if (styles + fill).strip("·"):
                self._rows.append(f"{styles}{fill}")

    def title(self, text: str) -> None:
        self._rows += ["", f"=== {text}"]

    def text(self) -> str:
        legend = [f"{letter}  {style}" for style, letter in self._letters.items()]
        return "\n".join([*self._rows, "", "=== styles", *legend, ""])

    def _letter(self, style: str) -> str:
        if style in PLAIN:
            return "·"
        return self._letters.setdefault(style, _LETTERS[len(self._letters)])


def drawn(lines: Sequence[Line], width: int) -> str:
    sheet = Sheet(width)
    sheet.add(lines)
    return sheet.text()


def describe(style: Style) -> str:
    """A style in words: `bold #e5a663 on #16181d`."""
    words = [name for name in ("bold", "dim", "italic", "underline", "strike", "reverse") if getattr(style, name)]
    words += [style.foreground] if style.foreground else []
    words += ["on", style.background] if style.background else []
    return " ".join(words) or "-"
