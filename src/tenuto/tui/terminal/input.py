"""The one grammar of what a terminal sends: text, keys, pastes, the mouse, the focus, and its answers.

Whoever reads the terminal reads it with this: the early editor, both screens, and who gives the terminal away. It may
come in any pieces: no piece of a sequence is taken for a key, and no key for a piece of one. An answer may come late,
when the user has been typing for a while. Hosts that write a paste without its marks are known by their speed: more
characters in one read than anybody types are a paste, so its line ends do not send. No `re`: the first paint has this.
"""

from __future__ import annotations

import time

from tenuto.tui.terminal.colours import is_light, read_colour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ESC, CSI, OSC = "\x1b", "\x1b[", "\x1b]"
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
BACKGROUND_REPORTS, NO_BACKGROUND_REPORTS = "\x1b[?2031h", "\x1b[?2031l"
"""Mode 2031: whether the terminal says by itself when it has become dark or light."""
BACKGROUND = "\x1b]11;"
_CHANGES = {"\x1b[?997;1n": False, "\x1b[?997;2n": True}
"""What it says then; whether it is light now."""
ANSWER_SECONDS = 2.0
"""Seconds in which the question for the background is open, unless DA1 closes it: an ESC may begin an answer then."""
BURST_CHARACTERS = 64
"""More printable characters in one read are a paste."""
BURST_GAP = 0.05
"""Seconds within which the next read goes on with it."""
_NO_KEYS = BACKGROUND, "\x1b[?"
"""What no key begins with, but answers do."""
_STRINGS = "]PX^_"
_VALUE = frozenset("rgba:#0123456789abcdefABCDEF/")
_MOUSE = frozenset("<0123456789;-Na")
"""A report of the mouse; some terminals lose count, and say NaN."""
_ALT_FINALS = frozenset("ABCDEFGHPQRS~")
"""What ends the sequence of a key that some terminals write with an ESC before it when Alt is held down."""
_CONTROLS = frozenset(map(chr, [*range(9), 11, 12, *range(14, 32), *range(127, 160)]))


# --- where a sequence ends ---


def size_of(text: str, place: int = 0) -> int:
    """Return of how many characters is what begins at `place`: one, or a whole sequence; 0: its end has not come.

    An ESC that begins no sequence is a key with Alt together with the next character, and Escape before another ESC.
    """
    if text[place] != ESC:
        return 1
    kind, behind = text[place + 1 : place + 2], text[place + 2 : place + 3]
    if not kind or (not behind and kind in "[O\x1b"):
        return 0
    if kind == "[":
        return _control_size(text, place)
    if kind == "O":
        return 3 if " " <= behind <= "~" else 2
    if kind == ESC:
        return _alt_size(text, place) if behind in "[O" else 1
    return _string_size(text, place) if kind in _STRINGS else 2


def _alt_size(text: str, place: int) -> int:
    """Return the size of Alt and a key that has a sequence; 1, the key Escape, where the second ESC begins no key.

    Pastes, answers, the mouse and the focus are no keys: what begins them is read for itself.
    """
    end, known = place + 3, len(text)
    if text[place + 2] == "[":
        while end < known and text[end] in "0123456789;":
            end += 1
    if end == known:
        return 0
    is_key = text[end] in _ALT_FINALS and text.count(";", place, end) < 2
    return end + 1 - place if is_key and not text.startswith((PASTE_BEGIN, PASTE_END), place + 1) else 1


def _control_size(text: str, place: int) -> int:
    """Return the size of what begins with CSI; 2, a key with Alt, where it is none."""
    end, known = place + 2, len(text)
    if text[end] in "[M":  # a function key of a console; the mouse in its oldest form
        size = 4 if text[end] == "[" else 6
        return size if known >= place + size else 0
    if text[end] == "<":
        while end < known and text[end] in _MOUSE:
            end += 1
        return end - place + (text[end] in "Mm") if end < known else 0
    while end < known and "0" <= text[end] <= "?":
        end += 1
    if text[end : end + 1] == "$" and text[place + 2 : end].isdecimal():  # a key of rxvt
        return end + 1 - place
    while end < known and " " <= text[end] <= "/":
        end += 1
    if end == known:
        return 0
    return end + 1 - place if "@" <= text[end] <= "~" else 2


def _string_size(text: str, place: int) -> int:
    """Return the size of an OSC, a DCS or their like. One that something else follows was cut: it ends there."""
    end, known = place + 2, len(text)
    if text[place + 1] == "]":
        while end < known and "0" <= text[end] <= "9":
            end += 1
        if end < known and text[end] not in ";\x07\x1b":
            return 2
    is_value = text.startswith(BACKGROUND, place)
    while end < known:
        if text[end] == "\x07":
            return end + 1 - place
        if text[end] == ESC:
            behind = text[end + 1 : end + 2]
            return end - place + 2 * (behind == "\\") if behind else 0
        if is_value and end >= place + len(BACKGROUND) and text[end] not in _VALUE:
            return end - place
        end += 1
    return 0


# --- what was read, in pieces ---


class Paste(str):
    """A text that came as one paste, line ends as line feeds."""

    __slots__ = ()


class TerminalInput:
    """Feed it what was read; it returns text, whole sequences, each by itself, and pastes (`Paste`), in order.

    Answers are taken out: `on_background` gets whether the background is light, and the question for it is open
    from now on. `clock` is seconds. A paste is one search and one join, however long it is, and every character of it
    arrives (R-099).
    """

    def __init__(self, on_background: Callable[[bool], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._on_background = on_background
        self._clock = clock
        self._open_until = clock() + ANSWER_SECONDS
        self._pieces: list[str] | None = None
        self._held = ""
        self._held_at = 0.0
        self._lent = ""
        self._burst_at = float("-inf")
        self._burst_has_lines = False

    @property
    def inside(self) -> bool:
        """Whether a paste has begun, if only with a part of its mark that is no key, and not ended."""
        return self._pieces is not None or _is_mark_begun(self._held)

    @property
    def holding(self) -> bool:
        """Whether something is held back that may be a key: call `give_up` soon."""
        return bool(self._held) and not self.inside and not self._held.startswith(_NO_KEYS)

    @property
    def has_sequence(self) -> bool:
        """Whether more than a lone ESC is held back: a key by then only if nothing comes for long."""
        return self.holding and len(self._held) > 1

    def feed(self, text: str) -> list[str]:
        """Return what is complete. What has only begun is held back until the next call."""
        if not text:
            return []
        now = self._clock()
        if self._pieces is None and self._is_answer_begun() and now - self._held_at > ANSWER_SECONDS:
            self._held = ""  # its rest is lost
        data = self._take_back(text) if self._lent else self._held + text
        parts: list[str] = []
        self._held, self._held_at = "", now
        place, is_stretch = 0, True
        while place < len(data):
            if self._pieces is not None:
                place, is_stretch = self._end_paste(data, place, parts), True
            elif data[place] != ESC:
                end = data.find(ESC, place) % (len(data) + 1)  # -1: to its end
                is_stretch = is_stretch and PASTE_BEGIN.startswith(data[end : end + len(PASTE_BEGIN)])
                parts += self._find_burst(data[place:end], now) if is_stretch else [data[place:end]]
                place = end
            elif size := size_of(data, place):
                self._take(data[place : place + size], parts)
                place, is_stretch, self._lent = place + size, False, ""
            else:
                self._held = data[place:]
                break
        return parts

    def give_up(self) -> list[str]:
        """Nothing more came for a while: return what is no beginning then, and end a paste whose end mark is lost.

        Until the rest of an answer comes, its beginning stays held back.
        """
        held = self._held
        if self._pieces is not None:
            text, self._pieces, self._held = "".join(self._pieces) + held, None, ""
            return [_paste(text)]
        is_open = self._clock() < self._open_until
        if not held or held.startswith(_NO_KEYS) or (is_open and self._is_answer_begun()):
            return []
        lent, self._lent, self._held = self._lent, "", ""
        if lent:
            return [held.removeprefix(lent)]
        if held.startswith("\x1b\x1b"):
            held, escapes = held[1:], [ESC]
        else:
            escapes = []
        if escapes and _is_mark_begun(held):  # as long as without the Escape before it
            self._held = held
            return escapes
        if len(held) <= 2:
            self._lent = held
            return [*escapes, held]
        is_key = held[1] in _STRINGS and ";" not in held
        return [*escapes, *([held[:2], held[2:]] if is_key else [])]

    def _is_answer_begun(self) -> bool:
        """Say whether what is held back may be the beginning of an answer of the terminal."""
        return bool(self._lent and self._held) or self._held.startswith((OSC, "\x1b[?"))

    def _take_back(self, text: str) -> str:
        """Return what came with what was given away as a key before it, where that has begun something else.

        What is pasted is no key, however long its mark took; and an ESC may have begun an answer.
        """
        whole = (self._held or self._lent) + text
        is_answer = whole == CSI or BACKGROUND.startswith(whole) or whole.startswith(_NO_KEYS)
        is_due = bool(self._held) or (self._lent == ESC and self._clock() < self._open_until)
        if whole.startswith(PASTE_BEGIN) or (is_due and is_answer):
            return whole
        given, self._lent = self._lent, ""
        return whole.removeprefix(given)

    def _take(self, sequence: str, parts: list[str]) -> None:
        self._burst_at = float("-inf")
        if sequence == PASTE_BEGIN:
            self._pieces = []
        elif sequence.startswith("\x1b[?") and sequence.endswith("c"):  # DA1: all is said
            self._open_until = 0.0
        elif sequence in _CHANGES:
            self._on_background(_CHANGES[sequence])
        elif sequence.startswith(BACKGROUND):
            whole = sequence.endswith(("\x07", "\\"))
            if whole and (colour := read_colour(sequence[len(BACKGROUND) :].rstrip("\x07\x1b\\"))):
                self._on_background(is_light(colour))
        elif "NaN" not in sequence and (len(sequence) <= 2 or sequence[1] not in _STRINGS):
            parts.append(sequence)

    def _find_burst(self, plain: str, now: float) -> list[str]:
        """Return input without marks: as it is, or what nobody can have typed as a paste.

        A single line that ends in a return is text and Enter: so programs that type for somebody can send it.
        """
        goes_on = now - self._burst_at <= BURST_GAP
        if not (goes_on or len(plain) > BURST_CHARACTERS) or not _CONTROLS.isdisjoint(plain):
            self._burst_at = float("-inf")
            return [plain]
        if not goes_on:
            self._burst_has_lines = False
        self._burst_at = now
        body = plain.removesuffix("\r")
        self._burst_has_lines = self._burst_has_lines or "\r" in body or "\n" in body
        if body == plain or self._burst_has_lines:
            return [_paste(plain)]
        return [_paste(body), "\r"] if body else ["\r"]

    def _end_paste(self, data: str, place: int, parts: list[str]) -> int:
        assert self._pieces is not None
        end = data.find(PASTE_END, place)
        if end >= 0:
            parts.append(_paste("".join((*self._pieces, data[place:end]))))
            self._pieces = None
            return end + len(PASTE_END)
        held = next((size for size in range(len(PASTE_END) - 1, 0, -1) if data.endswith(PASTE_END[:size], place)), 0)
        end = len(data) - held
        self._pieces.append(data[place:end])
        self._held = data[end:]
        return len(data)


def _is_mark_begun(held: str) -> bool:
    """Say whether this is a part of the mark of a paste that is no key."""
    return len(held) > 2 and PASTE_BEGIN.startswith(held)


def _paste(text: str) -> Paste:
    # Terminals send a line end of a paste as a carriage return.
    return Paste(text.replace("\r\n", "\n").replace("\r", "\n"))
