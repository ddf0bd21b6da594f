"""Keys as kitty's protocol and xterm's `modifyOtherKeys` write them, written in one way for both screens. Pure.

Sources: the specification of kitty's keyboard protocol; what kitty, xterm, foot and alacritty really send. Left out are
the lock keys, which kitty reports with every key that types nothing (`ESC [ 1 ; 129 A` is Up with NumLock), releases,
and modifiers by themselves. A key that types is what it types: kitty 0.26 names no text for what is not ASCII. With
Ctrl or Alt a key of another script is the one in its place on a Latin keyboard, as terminals without the protocol have
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tenuto.tui.terminal.emulator import Emulator, is_xterm, recognise

MODIFIED_KEY: Final = re.compile(
    r"\x1b(?:\[(?:27;(?P<xterm>[0-9]+);(?P<code>[0-9]+)~|(?P<codes>[0-9:;?<=>]*)u"
    r"|(?P<motion>[0-9:;]*)(?P<final>[A-FHP-S~]))|(?P<konsole>OM))"
)
"""A whole sequence of such a key. `ESC O M` is Shift+Enter in Konsole; elsewhere Enter on a keypad that nobody has
switched to it.
"""
KEYS_TOLD_APART: Final = 1 | 4
"""Flags of kitty's protocol: keys that are ambiguous are told apart, with their place on a Latin keyboard.

Not 8, every key as a sequence: what is typed stays text, also what an input method or a compose key makes.
"""
_SHIFT: Final = 1
_OTHERS: Final = 2 | 4 | 8
"""Alt, Ctrl and Super, as bits. Hyper, Meta and the locks count for nothing."""
_CTRL: Final = 4
_RELEASE: Final = "3"
_LAST_CODE: Final = 0x10FFFF
MAX_DIGITS: Final = 6
_PRIVATE: Final = range(0xE000, 0xF900)
"""Code points that the kitty protocol uses for keys that are no characters."""
_KEYPAD: Final = {57_399 + place: ord(sign) for place, sign in enumerate("0123456789./*-+\r=,")}
_KEYPAD_MOTIONS: Final = dict(
    zip(range(57_417, 57_427), ("D", "C", "A", "B", "5~", "6~", "H", "F", "2~", "3~"), strict=True)
)
_NO_TEXT: Final = frozenset((8, 9, 13, 27, 127))
_WITHOUT_SHIFT: Final = (8, 27, 127)
"""Backspace and Esc: Shift, still held down after a capital, changes nothing in terminals without the protocol."""
_SAME_KEY: Final = {ord("i"): 9, ord("m"): 13, ord("["): 27, ord("?"): 127}
"""What Ctrl makes of these keys in terminals that do not tell them apart, for fingers that are used to it."""


def write_plainly(match: re.Match[str]) -> str:
    """Return a key of `MODIFIED_KEY` in one way: the text that it types, or a sequence; empty for what is no key."""
    if match["konsole"]:
        return "\x1b[13;2u"
    if match["final"]:
        return _write_motion(match["motion"], match["final"])
    if match["xterm"]:
        return _write(int(match["code"]), 0, int(match["xterm"]) - 1, "")
    codes, modifiers, text = [*match["codes"].split(";"), "", ""][:3]
    code, shifted, latin = [*codes.split(":"), "", ""][:3]
    bits, _, event = modifiers.partition(":")
    if not code.isdecimal() or not 0 < int(code) <= _LAST_CODE or event == _RELEASE:
        return ""
    held = _number(bits, 1) - 1
    if held & _OTHERS:
        return _write(*_place(int(code), _number(shifted), _number(latin), held), "")
    return _write(int(code), _number(shifted), held, "".join(map(_character, text.split(":"))))


def _place(code: int, shifted: int, latin: int, held: int) -> tuple[int, int, int]:
    """Return what a key is with Ctrl, Alt or Super: its Latin letter, its sign with Shift, else itself."""
    if code > 0x7F and chr(latin).isascii() and chr(latin).isalpha():
        return latin, 0, held
    if held & _SHIFT and 32 < shifted < 0x7F and not chr(shifted).isalpha():
        return shifted, 0, held & ~_SHIFT
    return code, 0, held


def _write(code: int, shifted: int, held: int, text: str) -> str:
    if code in _KEYPAD_MOTIONS:
        motion = _KEYPAD_MOTIONS[code]
        return _write_motion(f"{motion[:-1] or 1};{held + 1}", motion[-1])
    code = _KEYPAD.get(code, code)
    held &= _SHIFT | _OTHERS
    if held == _CTRL:
        code, held = (_SAME_KEY[code], 0) if code in _SAME_KEY else (code, held)
    if held == _SHIFT and code in _WITHOUT_SHIFT:
        held = 0
    if not held & _OTHERS and code not in _NO_TEXT:
        if text or code in _PRIVATE:
            return text
        return chr(shifted) if held and shifted else _upper(code) if held else _character(str(code))
    return f"\x1b[{code};{held + 1}u" if code in _NO_TEXT or (_character(str(code)) and code not in _PRIVATE) else ""


def _write_motion(parameters: str, final: str) -> str:
    """Return a key that has a sequence of its own; empty for one with parameters that no terminal sends."""
    number, modifiers = [*parameters.split(";"), ""][:2]
    bits, _, event = modifiers.partition(":")
    if event == _RELEASE or ":" in number or max(map(len, parameters.split(";"))) > MAX_DIGITS:
        return ""
    if final == "R":  # F3, or where the cursor is
        return "" if ":" in parameters else f"\x1b[{parameters}R"
    held = (_number(bits, 1) - 1) & (_SHIFT | _OTHERS)
    if held:
        return f"\x1b[{number or 1};{held + 1}{final}"
    return f"\x1b[{number}~" if final == "~" else f"\x1bO{final}" if final in "PQS" else f"\x1b[{final}"


def _upper(code: int) -> str:
    """Return a character with Shift where the terminal does not say what that is."""
    upper = _character(str(code)).upper()
    return upper if len(upper) == 1 else _character(str(code))


def _character(code: str) -> str:
    """Return the character of a code that was written, empty for one that cannot be typed."""
    number = _number(code)
    return chr(number) if 32 <= number <= _LAST_CODE and not 0x7F <= number < 0xA0 and number // 0x800 != 27 else ""


def _number(digits: str, default: int = 0) -> int:
    return min(int(digits), _LAST_CODE) if digits.isdecimal() else default


TELLING = frozenset[Emulator]({"kitty", "ghostty", "foot", "iterm2", "zed", "konsole"})
"""Terminals that tell all keys apart when they are asked to by kitty's protocol, as they come. Konsole has Shift+Enter
without it.
"""
MORE_KEYS, NO_MORE_KEYS = "\x1b[>4;1m", "\x1b[>4;0m"
"""Asks xterm and tmux, which do not know kitty's protocol, for the same (`modifyOtherKeys`)."""
ALT_SENDS_ESCAPE, ALT_AS_BEFORE = "\x1b[?1036s\x1b[?1036h", "\x1b[?1036r"
"""Asks xterm, where Alt with B types `â` by itself, for an Escape and the key; xterm remembers what it was before."""
NO_MORE_FLAGS = "\x1b7\x1b[<u"
"""Takes back what was asked for by kitty's protocol; where nothing was, nothing happens. Konsole takes it for "put the
cursor where it was saved", so it is saved before.
"""
CLEAN_KEYBOARD = "\x1b[=0;1u"
"""Takes back what a program that crashed has left switched on."""


def more_keys(environ: Mapping[str, str]) -> str:
    """Return what asks for keys told apart where kitty's protocol is not known, empty elsewhere."""
    asks = environ.get("TERM", "").startswith("xterm") and recognise(environ) not in ("kitty", "ghostty")
    asked = MORE_KEYS if environ.get("TMUX") or asks else ""
    return asked + (ALT_SENDS_ESCAPE if is_xterm(environ) else "")


def no_more_keys(environ: Mapping[str, str]) -> str:
    """Return what takes back what `more_keys` asked for."""
    return (NO_MORE_KEYS if more_keys(environ) else "") + (ALT_AS_BEFORE if is_xterm(environ) else "")
