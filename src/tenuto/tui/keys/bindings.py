"""Which key does what: the table of `tui/keys/keys.py` with what the user has changed, as one value.

The state of the screen has it (`UiState.keys`), so that the keyboard, both screens, every hint and the help say the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from tenuto.tui.keys.key_names import key_label, normal_key
from tenuto.tui.render.width import cell_width

PHRASE_MARK = " · "
ContextName = Literal[
    "approval",
    "feedback",
    "picker",
    "row",
    "help",
    "completion",
    "empty",
    "shell",
    "prompt",
    "search",
    "found",
    "block",
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
