"""Bytes of the terminal to named keys and pastes, by the grammar that both screens share (`tui/terminal/input.py`)."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import NamedTuple

from tenuto.tui.terminal.input import FOCUS_IN, FOCUS_OUT, Paste, TerminalInput
from tenuto.tui.terminal.sequences import read_keys

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
