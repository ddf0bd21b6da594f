"""Takes pastes out of the terminal's input, whole, before keys are parsed. Pure: the time is passed in.

Textual's parser reads a paste character by character and loses escape sequences inside it. Here a paste of a megabyte
is one search and one join, and every character of it arrives (R-099). Hosts that write a paste without its marks are
known by their speed: more characters in one read than anybody types are a paste, so its line ends do not send.
"""

from __future__ import annotations

PASTE_BEGIN = "\x1b[200~"
PASTE_END = "\x1b[201~"
BURST_CHARACTERS = 64
"""More printable characters in one read are a paste."""
BURST_GAP = 0.05
"""Seconds within which the next read goes on with it."""
_KEYS = "\x1b", "\x1b["
"""Beginnings of a mark that may be keys, Escape and Alt+[; longer ones are none."""
_CONTROLS = frozenset(map(chr, [*range(9), 11, 12, *range(14, 32), *range(127, 160)]))


class Paste(str):
    """A text that came as one paste, line ends as line feeds."""

    __slots__ = ()


class PasteSplitter:
    """Feed it what was read, in any pieces; it returns plain input (`str`) and pastes (`Paste`) in order."""

    def __init__(self) -> None:
        self._pieces: list[str] | None = None
        self._held = ""
        self._given_up = ""
        self._burst_at = float("-inf")
        self._burst_has_lines = False

    @property
    def inside(self) -> bool:
        """Whether a paste has begun, if only with a part of its mark, and not ended."""
        return self._pieces is not None or (bool(self._held) and not self.holding)

    @property
    def holding(self) -> bool:
        """Whether something is held back that may be a key (a lone ESC): call `give_up` soon."""
        return self._pieces is None and self._held in _KEYS

    @property
    def has_sequence(self) -> bool:
        """Whether more than a lone ESC is held back: a key by then only if nothing comes for long."""
        return self.holding and len(self._held) > 1

    def feed(self, data: str, now: float = float("-inf")) -> list[str]:
        """Return what is complete. A possible beginning of a mark at the end is held back until the next call.

        `now` is seconds of a monotonic clock.
        """
        parts: list[str] = []
        rest, self._held = self._held + data, ""
        given_up, self._given_up = self._given_up, ""
        if given_up and rest.startswith(behind := PASTE_BEGIN.removeprefix(given_up)):
            # It took so long that its beginning was given away as a key. What is pasted is no key all the same.
            self._pieces, rest = [], rest.removeprefix(behind)
        while rest:
            rest = self._end_paste(rest, parts) if self._pieces is not None else self._find_paste(rest, parts, now)
        return parts

    def give_up(self) -> list[str]:
        """End a paste whose end mark never came, so that keys work again; return it. Also returns what is held back."""
        if self._pieces is None:
            self._given_up, self._held = self._held, ""
            return [self._given_up] if self._given_up else []
        text = "".join(self._pieces) + self._held
        self._pieces, self._held = None, ""
        return [_paste(text)]

    def _find_paste(self, rest: str, parts: list[str], now: float) -> str:
        plain, mark, after = rest.partition(PASTE_BEGIN)
        if mark:
            self._pieces = []
        elif held := _mark_beginning(plain, PASTE_BEGIN):
            plain, self._held = plain[:-held], plain[-held:]
        if plain:
            parts += self._find_burst(plain, now)
        return after

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

    def _end_paste(self, rest: str, parts: list[str]) -> str:
        assert self._pieces is not None
        text, mark, after = rest.partition(PASTE_END)
        if mark:
            self._pieces.append(text)
            parts.append(_paste("".join(self._pieces)))
            self._pieces = None
            return after
        if held := _mark_beginning(text, PASTE_END):
            text, self._held = text[:-held], text[-held:]
        self._pieces.append(text)
        return ""


def _mark_beginning(text: str, mark: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `mark`."""
    for size in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:size]):
            return size
    return 0


def _paste(text: str) -> Paste:
    # Terminals send a line end of a paste as a carriage return.
    return Paste(text.replace("\r\n", "\n").replace("\r", "\n"))
