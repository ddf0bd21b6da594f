"""Bytes of the terminal to named keys and pastes, by the grammar that both screens share (`tui/terminal/input.py`).

What a terminal sends for a key: control characters, and sequences of xterm, the kitty keyboard protocol, rxvt and the
Linux console. The names are those of `tui/keys/keys.py`.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Final, NamedTuple

from tenuto.tui.terminal.input import FOCUS_IN, FOCUS_OUT, Paste, TerminalInput
from tenuto.tui.terminal.modified_keys import MODIFIED_KEY, write_plainly

NamedKey = tuple[str, str | None]
"""A key's name, and what it types (`None`: nothing)."""

_FINALS: Final = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
    "P": "f1", "Q": "f2", "R": "f3", "S": "f4",
}  # fmt: skip
"""By the last character of `ESC [ 1 ; modifiers X` and `ESC O X`."""
_NUMBERS: Final = {
    1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end",
    11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10",
    23: "f11", 24: "f12", 25: "f13", 26: "f14", 28: "f15", 29: "f16", 31: "f17", 32: "f18", 33: "f19", 34: "f20",
}  # fmt: skip
"""By the number of `ESC [ number ; modifiers ~`."""
_RXVT: Final = {"^": 1 + 4, "$": 1 + 1, "@": 1 + 1 + 4}
"""What rxvt ends a sequence with instead of naming modifiers."""
_KEYPAD: Final = dict(zip("jklmnopqrstuvwxyX", "*+,-./0123456789=", strict=True))
"""By the last character of `ESC O X`, of a keypad that a program has left switched on."""
_CODES: Final = {8: "backspace", 9: "tab", 13: "enter", 27: "escape", 127: "backspace"}
_CONTROLS: Final = {
    0: "ctrl+space",
    10: "ctrl+j",
    28: "ctrl+backslash",
    29: "ctrl+]",
    30: "ctrl+^",
    31: "ctrl+underscore",
}
_CHARACTERS: Final = {"?": "question_mark"}
_SHIFT, _ALT, _CTRL, _SUPER = 1, 2, 4, 8
_CODE: Final = re.compile(r"\x1b\[([0-9]+);([0-9]+)u\Z")
_PLAIN_CODE: Final = re.compile(r"\x1b\[([0-9]+)u\Z")
_MOTION: Final = re.compile(r"\x1b(?:\[(?:1?(?:;([0-9]+))?)|O)([A-DHFPQRS])\Z")
_NUMBER: Final = re.compile(r"\x1b\[([0-9]+)(?:;([0-9]+))?([~^$@])\Z")
_RXVT_ARROW: Final = re.compile(r"\x1b([\[O])([abcd])\Z")
_CONSOLE: Final = re.compile(r"\x1b\[\[([A-E])\Z")


def read_keys(part: str) -> list[NamedKey]:
    """Return the keys of a text, or of one whole sequence; nothing for a sequence that is no key."""
    if not part.startswith("\x1b"):
        return [_name_of(character) for character in part]
    if part == "\x1b":
        return [("escape", None)]
    if part.startswith("\x1b\x1b"):
        return [(_with_alt(name), None) for name, _ in read_keys(part[1:])]
    if len(part) == 2:
        return _read_alt(part[1])
    plain = MODIFIED_KEY.sub(write_plainly, part)
    if "\x1b" not in plain:
        return [_name_of(character) for character in plain]
    name = _name_of_sequence(plain)
    return [(name, None)] if name else []


def _read_alt(character: str) -> list[NamedKey]:
    """Return the key of an ESC and a character: with Alt, but for control characters that Alt has no key with."""
    if character == "\t":
        return [("shift+tab", None)]  # the Linux console
    name, _ = _name_of(character)
    if character < " " and character not in "\r\n\b":
        return [("escape", None), (name, None)]
    return [(_with_alt(name), None)]


def _with_alt(name: str) -> str:
    return name if name.startswith("alt+") else f"alt+{name}"


def _name_of_sequence(sequence: str) -> str:
    """Return the name of the key that a sequence stands for, empty for none."""
    if sequence == "\x1b[Z":
        return "shift+tab"
    if match := _CODE.match(sequence):
        return _named(_CODES.get(int(match[1])) or _name_of(chr(int(match[1])))[0], int(match[2]))
    if match := _PLAIN_CODE.match(sequence):
        return _CODES.get(int(match[1])) or _name_of(chr(int(match[1])))[0]
    if match := _MOTION.match(sequence):
        return _named(_FINALS[match[2]], int(match[1] or 1))
    if (match := _NUMBER.match(sequence)) and (name := _NUMBERS.get(int(match[1]))):
        return _named(name, _RXVT.get(match[3]) or int(match[2] or 1))
    if match := _RXVT_ARROW.match(sequence):
        return _named(_FINALS[match[2].upper()], 1 + (_SHIFT if match[1] == "[" else _CTRL))
    if match := _CONSOLE.match(sequence):
        return f"f{'ABCDE'.index(match[1]) + 1}"
    if sequence.startswith("\x1bO") and sequence[2:] in _KEYPAD:
        return _KEYPAD[sequence[2:]]
    return ""


def _named(name: str, parameter: int) -> str:
    """Return a name with its modifiers; `parameter` is 1 and the sum of their bits."""
    bits = parameter - 1
    words = [word for bit, word in ((_CTRL, "ctrl"), (_SUPER, "super"), (_ALT, "alt"), (_SHIFT, "shift")) if bits & bit]
    return "+".join([*words, name.lower()])


def _name_of(character: str) -> NamedKey:
    """Return the name of a character as it comes, and what it types."""
    code = ord(character)
    if code in _CODES:
        return _CODES[code], None
    if code < 32:
        return _CONTROLS.get(code) or f"ctrl+{chr(code + 96)}", None
    if 0x7F < code < 0xA0:
        return "unknown", None
    return _CHARACTERS.get(character, character), character


ESCAPE_SECONDS = 0.05
"""Seconds without input after which a lone ESC is a key."""
SEQUENCE_SECONDS = 0.15
"""The same for what has begun as a sequence: a slow line may bring the rest of it yet."""
PASTE_SECONDS = 2.0
"""Seconds without input after which an unfinished paste counts as finished."""


class Press(NamedTuple):
    """A key with the name that `tui/keys/keys.py` knows it by, and what it types (`None`: nothing)."""

    name: str
    character: str | None = None


class Pasted(NamedTuple):
    """A whole paste, line ends as line feeds."""

    text: str


class KeyReader:
    """Feed it what was read. `focus` hears whether the user looks at the terminal, `background` whether that is light.

    Bytes that are no UTF-8 are replacement characters.
    """

    def __init__(self, focus: Callable[[bool], None], background: Callable[[bool], None]) -> None:
        self._focus = focus
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._input = TerminalInput(background)

    @property
    def timeout(self) -> float | None:
        """Seconds without input after which `give_up` is to be called; `None` while nothing is waited for."""
        if self._input.inside:
            return PASTE_SECONDS
        if self._input.holding:
            return SEQUENCE_SECONDS if self._input.has_sequence else ESCAPE_SECONDS
        return None

    def feed(self, data: bytes) -> list[Press | Pasted]:
        """Return the keys and pastes that are complete with `data`."""
        return self._read(self._input.feed(self._decoder.decode(data)))

    def give_up(self) -> list[Press | Pasted]:
        """Return what only waited for more, now that nothing came: a paste without its end, a beginning as a key."""
        return self._read(self._input.give_up())

    def _read(self, parts: list[str]) -> list[Press | Pasted]:
        read: list[Press | Pasted] = []
        for part in parts:
            if isinstance(part, Paste):
                read.append(Pasted(str(part)))
            elif part in (FOCUS_IN, FOCUS_OUT):
                self._focus(part == FOCUS_IN)
            else:
                read += [Press(name, character) for name, character in read_keys(part)]
        return read
