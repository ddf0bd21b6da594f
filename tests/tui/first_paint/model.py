"""What the keys of these tests mean: a plain model of the prompt, and random sequences of keys."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LETTERS = "abcxyzé漢😀ßΩ "


@dataclass(slots=True)
class Prompt:
    """The text, the cursor, and what was sent. `home_skips`: Home goes behind the spaces of a line's beginning."""

    text: str = ""
    cursor: int = 0
    sent: list[str] = field(default_factory=list)
    home_skips: bool = True

    def press(self, token: str) -> None:
        text, cursor = self.text, self.cursor
        match token.partition(":"):
            case ("left", _, _):
                self.cursor = max(0, cursor - 1)
            case ("right", _, _):
                self.cursor = min(len(text), cursor + 1)
            case ("home", _, _):
                self.cursor = self._home()
            case ("end", _, _):
                end = text.find("\n", cursor)
                self.cursor = len(text) if end < 0 else end
            case ("backspace", _, _):
                self.text = text[: max(0, cursor - 1)] + text[cursor:]
                self.cursor = max(0, cursor - 1)
            case ("delete", _, _):
                self.text = text[:cursor] + text[cursor + 1 :]
            case ("enter", _, _):
                if text.strip():
                    self.sent.append(text)
                    self.text, self.cursor = "", 0
            case ("paste" | "type", _, inserted):
                self.text = text[:cursor] + inserted + text[cursor:]
                self.cursor += len(inserted)
            case _:
                pass

    def _home(self) -> int:
        """The first letter of the line; from there or from the spaces before it, its beginning."""
        begin = self.text.rfind("\n", 0, self.cursor) + 1
        line = self.text[begin:].partition("\n")[0]
        indent = len(line) - len(line.lstrip()) if line.strip() else 0
        column = self.cursor - begin
        return begin + indent if self.home_skips and (column == 0 or column > indent) else begin


BYTES = {
    "left": b"\x1b[D",
    "right": b"\x1b[C",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "enter": b"\r",
    "f2": b"\x1bOQ",
}


def encode(token: str) -> bytes:
    kind, _, text = token.partition(":")
    if kind == "paste":
        return b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~"
    return text.encode() if kind == "type" else BYTES[kind]


def random_tokens(source: random.Random) -> list[str]:
    """Return 8 to 30 keys."""
    tokens: list[str] = []
    for _ in range(source.randint(8, 30)):
        kind = source.choices(
            ["type", "left", "right", "home", "end", "backspace", "delete", "paste", "enter", "f2"],
            [50, 8, 5, 3, 3, 8, 4, 5, 3, 1],
        )[0]
        if kind == "type":
            tokens.append("type:" + source.choice(LETTERS))
        elif kind == "paste":
            tokens.append("paste:" + source.choice(["one\ntwo", "plain 漢字", "a\n\nb é", "x"]))
        else:
            tokens.append(kind)
    return tokens
