"""Cutting text without breaking what a reader sees as one character (R-074).

Everything here is pure and counts Python characters (code points). A cut never falls inside a grapheme: combining
marks, variation selectors, emoji joined by U+200D, flags, skin tones, Hangul syllables, CR LF.
"""

from __future__ import annotations

import unicodedata
from math import floor

import msgspec

from tenuto.text.late import late

_MAX_BACKTRACK = 64
_ZERO_WIDTH_JOINER = "\u200d"
_SURROGATE = late("[\ud800-\udfff]")
_PAIR = late("[\ud800-\udbff][\udc00-\udfff]")
_LINE_SHARE = 0.2
"""How much of an allowance may be given up to end a part at the end of a line."""


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """The two ends of a text that was too long; `omitted_lines` counts line ends in the part left out."""

    head: str
    tail: str
    omitted_chars: int
    omitted_lines: int

    def joined(self, notice: str) -> str:
        """Return head, notice on a line of its own, tail."""
        before = "" if not self.head or self.head.endswith("\n") else "\n"
        after = "" if not self.tail or self.tail.startswith("\n") else "\n"
        return f"{self.head}{before}{notice}{after}{self.tail}"


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _extends(char: str) -> bool:
    """Whether `char` belongs to the character before it."""
    if char < "\u0300":
        return False
    return (
        char == _ZERO_WIDTH_JOINER
        or "\ufe00" <= char <= "\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or "\udc00" <= char <= "\udfff"
        or "\u1160" <= char <= "\u11ff"
        or unicodedata.category(char) in {"Mn", "Mc", "Me"}
    )


def _splits_grapheme(text: str, index: int) -> bool:
    """Whether a cut before `text[index]` would break a grapheme."""
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return True
    if before == _ZERO_WIDTH_JOINER and after >= "\u2000":
        return True
    if _is_regional(before) and _is_regional(after):
        start = index
        while start > 0 and index - start < _MAX_BACKTRACK and _is_regional(text[start - 1]):
            start -= 1
        return (index - start) % 2 == 1
    return _extends(after)


def boundary_before(text: str, index: int) -> int:
    """Return the last place at or before `index` where a cut breaks no grapheme."""
    if index <= 0:
        return 0
    if index >= len(text):
        return len(text)
    place = index
    while place > 0 and index - place < _MAX_BACKTRACK and _splits_grapheme(text, place):
        place -= 1
    # A pile of hundreds of marks is no character that anyone reads: cut where asked.
    return index if place and _splits_grapheme(text, place) else place


def boundary_after(text: str, index: int) -> int:
    """Return the first place at or after `index` where a cut breaks no grapheme."""
    if index <= 0:
        return 0
    place = min(index, len(text))
    while place < len(text) and place - index < _MAX_BACKTRACK and _splits_grapheme(text, place):
        place += 1
    return index if place < len(text) and _splits_grapheme(text, place) else place


def cut_head(text: str, limit: int) -> str:
    """Return the start of `text`, at most `limit` characters, ending on a whole grapheme."""
    return text if len(text) <= limit else text[: boundary_before(text, max(limit, 0))]


def cut_tail(text: str, limit: int) -> str:
    """Return the end of `text`, at most `limit` characters, starting on a whole grapheme."""
    return text if len(text) <= limit else text[boundary_after(text, len(text) - max(limit, 0)) :]


def shorten(text: str, limit: int) -> str:
    """Return `text` on one line, cut to `limit` characters with an ellipsis where something is missing."""
    line = " ".join(text.split())
    return line if len(line) <= limit else cut_head(line, limit - 1) + "…"


def bound_middle(text: str, max_chars: int, max_lines: int | None = None) -> Bounded | None:
    """Cut the middle out of a text that is over a limit; `None` when it is within both.

    Half of each limit goes to either end; ends prefer whole lines.
    """
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    if len(text) <= max_chars and (max_lines is None or lines <= max_lines):
        return None
    head_end = _head_end(text, max_chars // 2, None if max_lines is None else max_lines // 2)
    tail_start = _tail_start(
        text, max_chars - max_chars // 2, None if max_lines is None else max_lines - max_lines // 2
    )
    tail_start = max(tail_start, head_end)
    return Bounded(
        head=text[:head_end],
        tail=text[tail_start:],
        omitted_chars=tail_start - head_end,
        omitted_lines=text.count("\n", head_end, tail_start),
    )


def head_length(text: str, max_chars: int) -> int:
    """Return how much of the start of `text` to keep: at most `max_chars`, to the end of a line in the last fifth."""
    return len(text) if len(text) <= max_chars else _head_end(text, max(max_chars, 0), None)


def tail_length(text: str, max_chars: int) -> int:
    """Return how much of the end of `text` to keep: at most `max_chars`, from a line's start in the first fifth."""
    return len(text) if len(text) <= max_chars else len(text) - _tail_start(text, max(max_chars, 0), None)


def take_head(text: str, max_chars: int, max_lines: int) -> str:
    """Return the start of `text` within both limits, whole lines if possible; all of it when it fits."""
    if len(text) <= max_chars and text.count("\n") < max_lines:
        return text
    return text[: _head_end(text, max_chars, max_lines)]


def take_tail(text: str, max_chars: int, max_lines: int) -> str:
    """Return the end of `text` within both limits, whole lines if possible; all of it when it fits."""
    if len(text) <= max_chars and text.count("\n") < max_lines:
        return text
    return text[_tail_start(text, max_chars, max_lines) :]


def _head_end(text: str, chars: int, lines: int | None) -> int:
    end = min(chars, len(text))
    if lines is not None:
        place = 0
        for _ in range(lines):
            found = text.find("\n", place, end)
            if found < 0:
                break
            place = found + 1
        else:
            return place
    newline = text.rfind("\n", int(end * (1 - _LINE_SHARE)), end)
    return newline + 1 if newline >= 0 else boundary_before(text, end)


def _tail_start(text: str, chars: int, lines: int | None) -> int:
    start = max(len(text) - chars, 0)
    if lines is not None:
        place = len(text) - (1 if text.endswith("\n") else 0)
        for _ in range(lines):
            found = text.rfind("\n", start, place)
            if found < 0:
                break
            place = found
        else:
            return place + 1
    newline = text.find("\n", start, start + int(chars * _LINE_SHARE))
    return newline + 1 if newline >= 0 else boundary_after(text, start)


def replace_surrogates(text: str) -> str:
    """Return `text` fit for UTF-8: paired halves become their character, lone ones U+FFFD (R-073)."""
    if _SURROGATE.search(text) is None:
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub("\ufffd", joined)


HARD_MAX_TOOL_RESULT_CHARS = 400_000
"""No result is longer than this, whatever the window; also where nobody knows the window."""
MIN_KEEP_CHARS = 2_000
"""Whatever is shortened keeps this much, so that the model can tell what it was."""
MAX_TOOL_RESULT_CONTEXT_SHARE = 0.3
"""Of the window: what one result may take."""
CHARS_PER_TOKEN = 4


def calculate_max_tool_result_chars(context_window_tokens: int) -> int:
    """Return the most characters that one result may have in a window of so many tokens."""
    max_tokens = floor(context_window_tokens * MAX_TOOL_RESULT_CONTEXT_SHARE)
    return min(max_tokens * CHARS_PER_TOKEN, HARD_MAX_TOOL_RESULT_CHARS)


def result_ceiling(window: int | None) -> int:
    """Return the same where the window may be unknown (`None`) or so small that too little would be left."""
    if window is None:
        return HARD_MAX_TOOL_RESULT_CHARS
    return max(calculate_max_tool_result_chars(window), MIN_KEEP_CHARS)
