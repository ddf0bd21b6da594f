"""The editor before the editor: bytes of the terminal in, a text and a cursor out. Pure.

What it does not know for certain to mean the same in the real editor freezes it: that key and all after it stay, as
bytes, in `rest`. So it may stay small and is never wrong.
"""

from __future__ import annotations

from tenuto.tui.terminal import input as grammar
from tenuto.tui.terminal.colours import read_colour

BACKGROUND = grammar.BACKGROUND.encode()
PASTE_BEGIN, PASTE_END = grammar.PASTE_BEGIN.encode(), grammar.PASTE_END.encode()
PASTE_CHARACTERS, PASTE_LINES = 1_000, 15
"""A paste beyond this is folded in the real editor, so it is left for it (the figures of `complete/paste.py`)."""
MAX_PASTE_BYTES = 4 * PASTE_CHARACTERS
PATH_BEGINNINGS = ("/", "~", "'", '"')
MAX_SEQUENCE = 64
MAX_ANSWER = 1_024
INTERRUPT = 3
ENTER = 13
ESCAPE = 27
ESCAPE_KEY = b"\x1b[27u"
"""Escape as kitty writes it, which both front-ends read."""

_SEQUENCES = {
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
    b"\x1b[3~": "delete",
}


class EarlyEditor:
    """`text` with a `cursor` (an offset in characters), the texts `sent` with Enter, and the bytes left over.

    `columns` is the width of the screen in cells: in a text that may be wrapped, Home and End mean something else.
    `background` is what the terminal said of its own (`#rrggbb`, or empty); it has said all when it has `answered`.
    """

    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self.text = ""
        self.cursor = 0
        self.sent: list[str] = []
        self.frozen = False
        self.interrupted = False
        self.background = ""
        self.answered = False
        self._held = b""
        self._escape_alone = False

    @property
    def rest(self) -> bytes:
        """What is for the front-end to read: an incomplete sequence, or the key that froze this and all after it.

        An ESC after which nothing came is a key, written so that no key behind it can become one with Alt; but while an
        answer is due, it may be the first piece of it from a slow line, and the front-end has to find out.
        """
        if self._escape_alone and self.answered:
            return ESCAPE_KEY + self._held[1:]
        return self._held

    @property
    def waits_for_key(self) -> bool:
        """Whether a lone ESC is held: a key, unless more comes at once."""
        return self._held == b"\x1b" and not self.frozen

    def give_up_waiting(self) -> None:
        """Nothing came after a lone ESC."""
        if self.waits_for_key:
            self._escape_alone = self.frozen = True

    def feed(self, data: bytes, *, cooked: bool = False) -> None:
        """Do what was typed. `cooked`: the terminal was not raw yet, and a return came as a line feed."""
        self._held += data.replace(b"\n", b"\r") if cooked else data
        if _is_burst(self._held):
            self.frozen = True
        while self._held and not self.frozen and not self.interrupted:
            size = self._step(self._held)
            if size == 0:
                return
            if size < 0:
                self.frozen = True
                return
            self._held = self._held[size:]

    def _step(self, data: bytes) -> int:
        """Do the first key; return its size in bytes, 0 when it is incomplete, -1 when it is not for us."""
        first = data[0]
        if first == ESCAPE:
            return self._sequence(data)
        if first == INTERRUPT:
            self.interrupted = True
            return 1
        if first == ENTER:
            return self._enter()
        if first in (8, 127):
            self._delete(self.cursor - 1)
            return 1
        return -1 if first < 32 else self._character(data)

    def _character(self, data: bytes) -> int:
        first = data[0]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        try:
            character = data[:size].decode("utf-8")
        except UnicodeDecodeError as error:
            return 0 if len(data) < size and error.reason == "unexpected end of data" else -1
        if not character.isprintable() or (character == "?" and not self.text.strip()):
            return -1
        self._insert(character)
        return size

    def _enter(self) -> int:
        line = self.text.strip()
        if not line:
            return 1
        # Commands, files, the shell and a continued line are the machine's to judge.
        if line[0] in "/!" or "@" in line or self.text[: self.cursor].endswith("\\"):
            return -1
        self.sent.append(self.text)
        self.text, self.cursor = "", 0
        return 1

    # --- sequences ---

    def _sequence(self, data: bytes) -> int:
        is_report = data.startswith(b"\x1b]")
        known = data[: MAX_ANSWER if is_report else MAX_SEQUENCE]
        size = grammar.size_of(known.decode("latin-1"))
        if size == 0:
            return 0 if len(data) < (MAX_ANSWER if is_report else MAX_SEQUENCE) else -1
        sequence = data[:size]
        if is_report and size > 2:  # whatever the terminal says there, nobody else waits for it
            if sequence.startswith(BACKGROUND):
                value = sequence[len(BACKGROUND) :].rstrip(b"\x07\x1b\\")
                self.background = read_colour(value.decode("ascii", "replace")) or self.background
            return size
        if sequence == PASTE_BEGIN:
            return self._paste(data)
        # An answer of the terminal, to us or to a program that is gone.
        if sequence.startswith(b"\x1b[?") and sequence[-1] in b"cuny":
            self.answered = self.answered or sequence[-1] == ord("c")
            return size
        return self._press(sequence)

    def _press(self, sequence: bytes) -> int:
        match _SEQUENCES.get(sequence):
            case "left":
                self.cursor = max(0, self.cursor - 1)
            case "right":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "delete":
                self._delete(self.cursor)
            case "home" if self._is_one_row and not self.text[:1].isspace():
                self.cursor = 0
            case "end" if self._is_one_row:
                self.cursor = len(self.text)
            case _:
                return -1
        return len(sequence)

    @property
    def _is_one_row(self) -> bool:
        return "\n" not in self.text and "\t" not in self.text and 2 * len(self.text) < self.columns - 4

    def _paste(self, data: bytes) -> int:
        end = data.find(PASTE_END)
        if end < 0:
            return 0 if len(data) <= MAX_PASTE_BYTES else -1
        pasted = data[len(PASTE_BEGIN) : end].decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        if not pasted or pasted.lstrip()[:1] in PATH_BEGINNINGS or pasted.lstrip().startswith("file:"):
            return -1  # an image on the clipboard, or a dropped file
        if "\x1b" in pasted or len(pasted) > PASTE_CHARACTERS or pasted.count("\n") >= PASTE_LINES:
            return -1
        self._insert("".join(one for one in pasted if one in "\n\t" or one.isprintable() or one > "\x9f"))
        return end + len(PASTE_END)

    # --- the text ---

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _delete(self, index: int) -> None:
        if 0 <= index < len(self.text):
            self.text = self.text[:index] + self.text[index + 1 :]
            self.cursor = min(self.cursor, index)


def _is_burst(data: bytes) -> bool:
    """Say whether nobody can have typed this: the front-end decides what it is, and that its line ends do not send."""
    if len(data) <= grammar.BURST_CHARACTERS or len(data.decode("utf-8", "replace")) <= grammar.BURST_CHARACTERS:
        return False
    return not any((byte < 32 and byte not in b"\t\n\r") or byte == 127 for byte in data)
