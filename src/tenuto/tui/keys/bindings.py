"""Names of keys, and which key does what: the table of `tui/keys/keys.py` with what the user has changed, as one value.

A key has one canonical name for what the screens call it and what people write: modifiers in the order ctrl, super,
alt, shift, then a word ("enter", "pageup") or the character itself. A chord is two of them with a space between. Only
Shift on a character is that other character: `shift+a` is `A`. The state of the screen has the bindings
(`UiState.keys`), so that the keyboard, both screens, every hint and the help say the same.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from tenuto.text.matching import did_you_mean
from tenuto.tui.render.width import cell_width

MODIFIERS = ("ctrl", "super", "alt", "shift")
_MOTIONS = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown")
_FUNCTIONS = tuple(f"f{number}" for number in range(1, 25))
WORDS = frozenset(("enter", "escape", "tab", "backspace", "delete", "insert", "space", *_MOTIONS, *_FUNCTIONS))
MAX_CHORD = 2
_CHARACTER_WORDS = {"slash": "/", "backslash": "\\", "at": "@", "minus": "-", "plus": "+", "underscore": "_"}
_SPELLINGS = {
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "↑": "up",
    "↓": "down",
    "←": "left",
    "→": "right",
}
_MODIFIER_SPELLINGS = {
    **dict.fromkeys(("ctrl", "control", "c"), "ctrl"),
    **dict.fromkeys(("alt", "meta", "m", "option", "opt"), "alt"),
    **dict.fromkeys(("shift", "s"), "shift"),
    "super": "super",
}
_COMMAND_KEYS = frozenset({"cmd", "command", "win", "windows"})
_SAME_BYTE = {
    "ctrl+i": "Tab",
    "ctrl+m": "Enter",
    "ctrl+[": "Esc",
    "ctrl+h": "Backspace",
    "ctrl+?": "Backspace",
    "shift+escape": "Esc",
    "shift+backspace": "Backspace",
}
_SHOWN = {
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "escape": "Esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


class KeyNameError(ValueError):
    """What was written names no key that a terminal can send; the message says why."""


@functools.lru_cache(maxsize=1024)
def normal_key(name: str) -> str:
    """Return the canonical name of a key, or of a chord, that a screen or the table names."""
    if " " in name and name != " ":
        return " ".join(normal_key(part) for part in name.split())
    *modifiers, final = _split(name)
    return _join(set(modifiers), _character_of(final))


def parse_keys(text: str) -> str:
    """Return the canonical name of the key or chord that a user wrote. Raises `KeyNameError`."""
    parts = text.split() if text.strip() else [text]
    if len(parts) > MAX_CHORD:
        raise KeyNameError(f"“{text}” is a chord of {len(parts)} keys; {MAX_CHORD} are the most")
    return " ".join(_parse_key(part) for part in parts)


def key_label(key: str) -> str:
    """Return a key or chord as people read it: `Ctrl+O`, `Shift+Tab`, `PageUp`, `Ctrl+X Ctrl+E`."""
    if " " in key and key != " ":
        return " ".join(key_label(part) for part in key.split())
    *modifiers, final = _split(normal_key(key))
    shown = _SHOWN.get(final) or (final.capitalize() if len(final) > 1 or modifiers else final)
    return "+".join([*(word.capitalize() for word in modifiers), shown])


def typed_by(key: str, character: str | None) -> str | None:
    """Return what a key types: nothing with Ctrl or Alt held down, whatever character the terminal says it has.

    Characters without a look of their own are typed too: joiners hold emoji and Persian words together.
    """
    if character is None or "+" in normal_key(key)[:-1]:
        return None
    return character if character.isprintable() or character > "\x9f" else None


def types_text(key: str) -> bool:
    """Say whether a canonical key types a character, so that it cannot mean anything else where text is written."""
    return len(key) == 1 or key == "space"


def _split(name: str) -> list[str]:
    if len(name) > 1 and name.endswith("+"):
        return [*filter(None, name[:-1].split("+")), "+"]
    return name.split("+") if len(name) > 1 else [name]


def _join(modifiers: set[str], final: str) -> str:
    if final == "@" and "ctrl" in modifiers:
        final = "space"
    if len(final) == 1:
        if final.isalpha() and final != final.lower() and modifiers:
            modifiers, final = modifiers | {"shift"}, final.lower()
        elif modifiers == {"shift"}:
            modifiers, final = set(), final.upper() if len(final.upper()) == 1 else final
    return "+".join([*(word for word in MODIFIERS if word in modifiers), final])


def _character_of(final: str) -> str:
    """Return a key's name with the character in the place of the character's name (`question_mark`)."""
    if final == " ":
        return "space"
    if len(final) == 1 or final in WORDS:
        return final
    if final in _CHARACTER_WORDS:
        return _CHARACTER_WORDS[final]
    import unicodedata

    try:
        found = _ascii_names().get(final) or unicodedata.lookup(final.replace("_", " ").upper())
    except KeyError:
        return final
    return found if found.isprintable() else final


@functools.cache
def _ascii_names() -> dict[str, str]:
    import unicodedata

    signs = (chr(code) for code in range(33, 127))
    return {unicodedata.name(sign).lower().replace("-", "_").replace(" ", "_"): sign for sign in signs}


def _parse_key(text: str) -> str:
    word = f"ctrl+{text[1:]}" if text.startswith("^") and len(text) > 1 else text
    *prefixes, final = _pieces(word)
    modifiers: set[str] = set()
    for prefix in prefixes:
        if prefix.lower() in _COMMAND_KEYS:
            raise KeyNameError(
                f"“{text}”: terminals keep the Cmd or Windows key to themselves; where yours sends it (kitty's "
                f"protocol), write super+{final.lower()}"
            )
        modifier = _MODIFIER_SPELLINGS.get(prefix.lower())
        if modifier is None:
            raise KeyNameError(f"“{text}”: “{prefix}” is no modifier; there are ctrl, alt, shift and super")
        modifiers.add(modifier)
    key = _join(modifiers, _final_of(text, final, modified=bool(modifiers)))
    if key in _SAME_BYTE:
        raise KeyNameError(
            f"“{text}” cannot be told from {_SAME_BYTE[key]} in a terminal"
            + ("" if key in ("ctrl+h", "ctrl+?") else f"; write {_SAME_BYTE[key].lower()} if you mean that key")
        )
    if "ctrl" in modifiers and key[-1].isdecimal() and key[-2:-1] == "+":
        raise KeyNameError(f"“{text}”: terminals send no Ctrl with a digit")
    return key


def _pieces(word: str) -> list[str]:
    """Return modifiers and key of `Ctrl-X`, `C-x`, `ctrl+-`, `ctrl--`; a lone `-` or `+` is the key."""
    if len(word) == 1:
        return [word]
    last = word[-1:] if word.endswith(("+", "-")) else ""
    if not word or (last and word[-2] not in "+-"):
        raise KeyNameError(f"“{word}” names no key")
    pieces = [piece for piece in word.removesuffix(last).replace("-", "+").split("+") if piece]
    return [*pieces, last] if last else pieces


def _final_of(text: str, final: str, *, modified: bool) -> str:
    if len(final) == 1:
        return _SPELLINGS.get(final) or ("space" if final == " " else final.lower() if modified else final)
    word = final.lower().replace("_", "")
    word = _SPELLINGS.get(word, word)
    found = word if word in WORDS else _character_of(final.lower())
    if found not in WORDS and len(found) != 1:
        raise KeyNameError(f"“{text}”: there is no key “{final}”{did_you_mean(word, [*WORDS, *_SPELLINGS])}")
    return found


# --- bindings ---


PHRASE_MARK = " · "
CHORD_SECONDS = 3.0
"""So long the second key of a chord is waited for."""

ContextName = Literal[
    "approval",
    "feedback",
    "picker",
    "row",
    "help",
    "completion",
    "empty",
    "command",
    "shell",
    "prompt",
    "search",
    "found",
    "block",
    "child",
    "queue",
    "transcript",
    "global",
    "edit",
]


class IntentBase(Struct, frozen=True):
    """Base of all intents: structs, because their classes are made ten times as fast as dataclasses at every start."""


class Key(Struct, frozen=True):
    """One binding. `keys` are names of keys, or chords of two ("ctrl+x ctrl+e").

    `help` is empty for keys that need no line in the help. A row without an intent is done by the screen itself, by
    its id; one of the context "edit" by the editors, which know it by its first default key.
    """

    id: str
    keys: tuple[str, ...]
    context: ContextName
    intent: IntentBase | None
    help: str = ""


class Bindings:
    """Looks keys up. `changed` are the ids that the user has bound otherwise."""

    def __init__(
        self, rows: Sequence[Key], defaults: Sequence[Key] | None = None, changed: Collection[str] = ()
    ) -> None:
        self.rows = tuple(rows)
        self.changed = frozenset(changed)
        self._by_id = {row.id: row for row in rows}
        self._by_key: dict[tuple[str, str], Key] = {}
        self._prefixes: set[tuple[str, str]] = set()
        for row in rows:
            for key in map(normal_key, row.keys):
                self._by_key[row.context, key] = row
                if " " in key:
                    self._prefixes.add((row.context, key.split()[0]))
        self._editing = self._editing_keys(defaults or rows)

    def _editing_keys(self, defaults: Sequence[Key]) -> dict[str, str]:
        """Return what the editors are told for a key; empty for one that means nothing to them any more."""
        told = {normal_key(key): "" for row in defaults if row.context == "edit" for key in row.keys}
        for row in defaults:
            if row.context == "edit":
                told |= {normal_key(key): row.keys[0] for key in self._by_id[row.id].keys}
        return told

    def find(self, contexts: Sequence[ContextName], key: str) -> Key | None:
        """Return the binding of the topmost context that has the key, `None` when the key is for typing."""
        key = normal_key(key)
        return next((row for context in contexts if (row := self._by_key.get((context, key))) is not None), None)

    def begins_chord(self, contexts: Sequence[ContextName], key: str) -> bool:
        """Say whether a key is the first of a chord here, and not a binding of its own further up."""
        key = normal_key(key)
        for context in contexts:
            if (context, key) in self._by_key:
                return False
            if (context, key) in self._prefixes:
                return True
        return False

    def editing(self, key: str) -> str:
        """Return the key under which the editors know what this one is to do; empty: nothing."""
        return self._editing.get(normal_key(key), key)

    def label(self, id: str) -> str:
        """Return the first key of a binding as people read it, empty when it has none. Raises `KeyError`."""
        row = self._by_id[id]
        return key_label(row.keys[0]) if row.keys else ""

    def labels(self, id: str) -> str:
        """Return all keys of a binding as people read them. Raises `KeyError`."""
        return ", ".join(key_label(key) for key in self._by_id[id].keys)

    def newline_label(self, *, tells_shift_enter: bool) -> str:
        """Return the key that begins a new line: where Shift+Enter does not arrive, one that always does."""
        keys = self._by_id["newline"].keys
        arriving = [key for key in keys if tells_shift_enter or normal_key(key) != "shift+enter"]
        return key_label((arriving or keys)[0]) if keys else ""

    def phrase(self, id: str, does: str) -> str:
        """Return `Ctrl+E shows all`, or nothing when no key does it. Raises `KeyError`."""
        label = self.label(id)
        return f"{label} {does}" if label else ""


def join_phrases(*phrases: str) -> str:
    """Return what a hint says of several keys, without those that have none."""
    return PHRASE_MARK.join(phrase for phrase in phrases if phrase)


def fit_phrases(hint: str, kept: str, width: int) -> str:
    """Return a hint of joined phrases in `width` cells: the last ones go first, but never `kept`, the way out."""
    phrases = hint.split(PHRASE_MARK)
    while len(phrases) > 1 and cell_width(PHRASE_MARK.join(phrases)) > width:
        place = max(place for place, phrase in enumerate(phrases) if phrase != kept or place == 0)
        del phrases[place]
    return PHRASE_MARK.join(phrases)
