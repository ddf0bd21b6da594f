"""Takes out of the terminal's input what is no key: its answers about its background. Whole or in any pieces.

An answer may come late, when the user has been typing for a while, and parted at any byte; no piece of it may be
taken for a key, and no key for a piece of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from tenuto.tui.first_paint.colours import is_light, read_colour

BACKGROUND_REPORTS: Final = "\x1b[?2031h"
NO_BACKGROUND_REPORTS: Final = "\x1b[?2031l"
"""Mode 2031: whether the terminal says by itself when it has become dark or light."""
PATIENCE: Final = 2.0
"""Seconds in which the question is open, unless DA1 closes it: then an ESC may be the beginning of an answer."""
ESC, CSI = "\x1b", "\x1b["
_VALUE: Final = r"[rgba:#0-9A-Fa-f/]*"
_ANSWER: Final = re.compile(
    rf"\x1b\]11;(?P<colour>{_VALUE})(?:\x07|\x1b\\)"
    r"|(?P<fence>\x1b\[\?[0-9;]*c)"  # DA1
    r"|\x1b\[\?997;(?P<change>[12])n"  # mode 2031: it has just become dark, light
    rf"|\x1b\]11;{_VALUE}(?!{_VALUE}\x1b?\Z)"  # the rest of it was lost
)
_CERTAIN_BEGINNING: Final = re.compile(rf"\x1b\[\?[0-9;]*\$?\Z|\x1b\]11;{_VALUE}\x1b?\Z")
_POSSIBLE_BEGINNING: Final = re.compile(r"\x1b\](?:11?)?\Z")

_KNOWN: Final = (_ANSWER, _CERTAIN_BEGINNING, _POSSIBLE_BEGINNING)


class AnswerFilter:
    """`heard` is told whether the background is light, `clock` is seconds. The question is open from now on.

    `doubtful` is what was held back although nothing came for a moment: a key, unless its rest comes yet.
    """

    def __init__(self, heard: Callable[[bool], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._heard = heard
        self._clock = clock
        self._open_until = clock() + PATIENCE
        self._held: str = ""
        self._held_at = 0.0
        self._gave_escape: bool = False
        self._lent: bool = False
        self.doubtful = ""

    @property
    def holding(self) -> bool:
        """Whether something is held back that may be a key: call `give_up` after a moment."""
        return bool(self._held)

    def feed(self, text: str) -> str:
        """Return what of `text` is not an answer."""
        self.doubtful = ""
        if self._held and self._clock() - self._held_at > PATIENCE:
            self._held = ""  # its rest is lost
        # An ESC that was given away as a key, for want of more, may have begun what comes now.
        lent: bool = self._lent if self._held else self._gave_escape and self._is_open
        data = f"{self._held or (ESC if lent else '')}{text}"
        if lent and not (data == CSI or any(known.match(data) for known in _KNOWN)):
            data, lent = data[1:], False
        kept = _ANSWER.sub(self._hear, data) if ESC in data else data
        self._held = CSI if lent and data == CSI else self._beginning_at_end(kept)
        self._held_at = self._clock()
        kept = kept[: len(kept) - len(self._held)]
        self._lent = lent and self._held == data
        self._gave_escape = kept.endswith(ESC)
        return kept

    def give_up(self) -> str:
        """Nothing more came for a moment: return what was held back, if it may be a key and no answer is due."""
        if self._is_open or _CERTAIN_BEGINNING.match(self._held):
            self.doubtful = "" if self._lent else self._held
            return ""
        held, self._held = self._held, ""
        return held[1:] if self._lent else held

    @property
    def _is_open(self) -> bool:
        return self._clock() < self._open_until

    def _beginning_at_end(self, text: str) -> str:
        found = _CERTAIN_BEGINNING.search(text) or _POSSIBLE_BEGINNING.search(text)
        return found[0] if found else ""

    def _hear(self, answer: re.Match[str]) -> str:
        if answer["fence"]:
            self._open_until = 0.0
        elif answer["change"]:
            self._heard(answer["change"] == "2")
        elif colour := read_colour(answer["colour"] or ""):
            self._heard(is_light(colour))
        return ""
