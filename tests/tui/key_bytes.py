"""What a terminal sends for a key: the old way where there is one, else by kitty's protocol."""

from __future__ import annotations

from tenuto.tui.inline.keys import KeyReader

LETTERS = {"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H"}
NUMBERS = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f12": 24}
CODES = {"enter": 13, "tab": 9, "escape": 27, "backspace": 127, "space": 32}
PLAIN = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ", "f1": "\x1bOP"}
BITS = {"shift": 1, "alt": 2, "ctrl": 4, "super": 8}


def bytes_of(key: str) -> str:
    """Return the bytes of a key, or of a chord, with a canonical name."""
    if " " in key:
        return "".join(map(bytes_of, key.split()))
    *modifiers, final = [*key[:-1].split("+")[:-1], key[-1]] if key.endswith("+") else key.split("+")
    parameter = 1 + sum(BITS[modifier] for modifier in modifiers)
    if final in LETTERS:
        return f"\x1b[1;{parameter}{LETTERS[final]}" if modifiers else f"\x1b[{LETTERS[final]}"
    if final in NUMBERS:
        return f"\x1b[{NUMBERS[final]};{parameter}~" if modifiers else f"\x1b[{NUMBERS[final]}~"
    if not modifiers:
        return PLAIN.get(final, final)
    if key == "shift+tab":
        return "\x1b[Z"
    if modifiers == ["ctrl"] and (final.isalpha() or final == "_") and len(final) == 1:
        return chr(ord(final.upper()) - 64)
    if modifiers == ["alt"] and len(final) == 1:
        return f"\x1b{final}"
    return f"\x1b[{CODES.get(final) or ord(final)};{parameter}u"


def key_reader() -> KeyReader:
    """Return the inline screen's reader, with nobody who looks."""
    return KeyReader(lambda _looked_at: None, lambda _light: None)
