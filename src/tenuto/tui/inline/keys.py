"""Bytes of the terminal to named keys. Replaces prompt-toolkit's parser where that loses or invents keys.

It does not know the kitty keyboard protocol nor xterm's `modifyOtherKeys`: of an unknown sequence it makes an Escape,
which would interrupt, and text. It also has no way out of a paste whose end never comes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from tenuto.tui.terminal.answers import AnswerFilter
from tenuto.tui.terminal.modified_keys import MODIFIED_KEY, write_plainly
from tenuto.tui.terminal.paste_splitter import Paste, PasteSplitter

PASTE_SILENCE = 2.0
"""Seconds without input after which an unfinished paste counts as finished."""
SEQUENCE_SILENCE = 0.1
"""Seconds more than Escape has for what has begun as a sequence: a slow line may bring the rest of it yet."""
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1bO[ -~]"  # SS3
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS and their like: answers that nobody waits for
)
_BEGINNING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O|[\]PX^_][^\x07\x1b]*\x1b?)?\Z")
_CODE = re.compile(r"\x1b\[([0-9]+);([0-9]+)u\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHIFT, _ALT, _CTRL, _SUPER = 1, 2, 4, 8
_NAMED = {9: "tab", 13: "enter", 27: "escape", 127: "backspace", 8: "backspace"}
_PTK_NAMES = {
    "s-tab": "shift+tab",
    "c-m": "enter",
    "c-i": "tab",
    "c-h": "backspace",
    "c-@": "ctrl+space",
    "c-_": "ctrl+underscore",
    "c-\\": "ctrl+backslash",
}
_PTK_MODIFIERS = {"c": "ctrl", "s": "shift"}
_CHARACTER_NAMES = {"?": "question_mark"}


class Press(KeyPress):
    """A key with the name that `tui/keys/keys.py` knows it by, and what it types (`None`: nothing)."""

    def __init__(self, name: str, character: str | None = None) -> None:
        super().__init__(Keys.Any, character or "")
        self.name = name
        self.character = character


class Pasted(KeyPress):
    """A whole paste."""

    def __init__(self, text: str) -> None:
        super().__init__(Keys.BracketedPaste, text)


class KeyParser(Vt100Parser):
    """Gives `Press` and `Pasted` to `feed_key_callback`.

    `focus` hears whether the terminal is looked at, `background` whether that is light, `unended` that something has
    begun: after so many seconds without input `give_up` should be called.
    """

    def __init__(
        self,
        feed_key_callback: Callable[[KeyPress], None],
        focus: Callable[[bool], None],
        unended: Callable[[float], None],
        background: Callable[[bool], None] = lambda _light: None,
    ) -> None:
        super().__init__(feed_key_callback)
        self._focus = focus
        self._unended = unended
        self._splitter = PasteSplitter()
        self._answers = AnswerFilter(background)
        self._held = ""
        self.fed_at = float("-inf")

    def feed(self, data: str) -> None:
        """Take in what was read. Bytes that are no UTF-8, which come as surrogates, are replacement characters."""
        self.fed_at = time.monotonic()
        for part in self._splitter.feed(_SURROGATE.sub("\ufffd", data), self.fed_at):
            self._take(part)
        if self._splitter.inside:
            self._unended(PASTE_SILENCE)

    def flush(self) -> None:
        """Nothing more came for a moment: an Escape is a key. What is more than that has a little longer."""
        if len(self._held) > 1 or self._splitter.has_sequence:
            self._unended(SEQUENCE_SILENCE)
        elif not self._splitter.inside:
            self._give_up_keys()

    def give_up(self) -> None:
        """Nothing more came for so long that it must be lost: a paste ends, what may have been a beginning is a key."""
        if self._splitter.inside:
            for part in self._splitter.give_up():
                self._take(part)
        else:
            self._give_up_keys()

    def _give_up_keys(self) -> None:
        for part in self._splitter.give_up():
            self._take(part)
        self._take_text(self._answers.give_up())
        self._give_held()

    def _take(self, part: str) -> None:
        if isinstance(part, Paste):
            self._give_held()
            self.feed_key_callback(Pasted(str(part)))
        else:
            doubtful = self._answers.doubtful
            text = self._answers.feed(part)
            if doubtful and text.startswith(doubtful):  # it was a key, and what came now is another one
                self._take_text(doubtful)
                self._give_held()
                text = text.removeprefix(doubtful)
            self._take_text(text)

    def _take_text(self, part: str) -> None:
        text, self._held = self._held + part, ""
        place = 0
        while place < len(text):
            if text[place] != "\x1b":
                self._give(text[place], text[place])
                place += 1
            elif match := _SEQUENCE.match(text, place):
                self._give_sequence(match[0])
                place = match.end()
            elif _BEGINNING.match(text, place):
                self._held = text[place:]
                return
            else:
                place = self._give_alt(text, place + 1)

    def _give_alt(self, text: str, place: int) -> int:
        """Give the key behind an Escape as one with Alt; return where to go on."""
        match = _SEQUENCE.match(text, place)
        if match is None and text[place] == "\x1b":
            self._give("escape", None)
            return place
        end = match.end() if match else place + 1
        for name, _character in _named_keys(text[place:end]):
            self.feed_key_callback(Press(f"alt+{name.removeprefix('alt+')}"))
        return end

    def _give_held(self) -> None:
        held, self._held = self._held, ""
        if len(held) == 1:
            self._give("escape", None)
        elif len(held) == 2:
            self._give_alt(held, 1)

    def _give_sequence(self, sequence: str) -> None:
        if sequence in (FOCUS_IN, FOCUS_OUT):
            self._focus(sequence == FOCUS_IN)
            return
        for name, character in _named_keys(sequence):
            self._give(name, character)

    def _give(self, name: str, character: str | None) -> None:
        if len(name) == 1:
            name, character = _name_of(name)
        self.feed_key_callback(Press(name, character))


def _named_keys(sequence: str) -> list[tuple[str, str | None]]:
    """Return the keys that a sequence, or a single character, stands for; none for one that nobody knows."""
    if len(sequence) == 1:
        return [_name_of(sequence)]
    sequence = MODIFIED_KEY.sub(write_plainly, sequence)
    if "\x1b" not in sequence:
        return [_name_of(character) for character in sequence]
    if match := _CODE.match(sequence):
        return _modified(int(match[1]), int(match[2]))
    found = ANSI_SEQUENCES.get(sequence)
    if found is None or found in (Keys.Ignore, Keys.BracketedPaste):
        return []
    keys = found if isinstance(found, tuple) else (found,)
    if keys[0] == Keys.Escape and len(keys) > 1:
        return [(f"alt+{ptk_name(key)}", None) for key in keys[1:]]
    return [(ptk_name(key), None) for key in keys]


def _modified(code: int, parameter: int) -> list[tuple[str, str | None]]:
    """Return the key of a code point with modifiers (1 + the sum of their bits)."""
    bits = parameter - 1
    name = _NAMED.get(code) or _name_of(chr(code))[0]
    prefixes = [word for bit, word in ((_CTRL, "ctrl"), (_SUPER, "super"), (_ALT, "alt")) if bits & bit]
    prefixes += ["shift"] if bits & _SHIFT else []
    return [("+".join([*prefixes, name.lower()]), None)]


def _name_of(character: str) -> tuple[str, str | None]:
    """Return the name of a character as it comes, and what it types."""
    code = ord(character)
    if code in _NAMED:
        return _NAMED[code], None
    if character == "\n":
        return "ctrl+j", None
    if code < 32:
        return ptk_name(ANSI_SEQUENCES[character]), None
    if 0x7F < code < 0xA0:
        return "unknown", None
    return _CHARACTER_NAMES.get(character, character), character


def ptk_name(key: Keys | tuple[Keys, ...] | str) -> str:
    """Return our name for a key of prompt-toolkit: `c-s-left` is `ctrl+shift+left`."""
    word = key.value if isinstance(key, Keys) else str(key)
    if word in _PTK_NAMES:
        return _PTK_NAMES[word]
    *modifiers, name = word.split("-") if len(word) > 1 else [word]
    return "+".join([*(_PTK_MODIFIERS.get(one, one) for one in modifiers), name])
