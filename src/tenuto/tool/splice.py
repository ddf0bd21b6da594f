"""Putting new lines into a text so that every line that was not asked to change keeps its bytes (R-089)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from tenuto.tool.diff import common_ends, compare_lines

_LINE_END = re.compile(r"(\r\n|\n)")


def _same(line: str) -> str:
    return line


def splice_lines(original: str, old: str, new: str, newline: str, adapt: Callable[[str], str] = _same) -> str:
    """Return `original` with the change from `old` to `new` made to it.

    `old` has as many lines as `original` and stands for it; both it and `new` have LF only. Lines that `old` and `new`
    have in common stay as they are in `original`, line end included; a changed line keeps the line end of the one in
    its place, an added one gets `newline`. `adapt` is applied to changed and added lines.
    """
    pieces = _LINE_END.split(original)
    texts, ends = pieces[0::2], pieces[1::2]
    old_lines, new_lines = old.split("\n"), new.split("\n")
    last = len(new_lines) - 1
    out: list[str] = []
    for tag, start, stop, new_start, new_stop in compare_lines(old_lines, new_lines):
        for index in range(new_start, new_stop):
            place = start + index - new_start
            if tag == "equal":
                out.append(texts[place])
            elif place < stop:
                out.append(_merge_line(texts[place], old_lines[place], new_lines[index], adapt))
            else:
                out.append(adapt(new_lines[index]))
            if index < last:
                out.append(ends[place] if place < min(stop, len(ends)) else newline)
    return "".join(out)


def _merge_line(original: str, old: str, new: str, adapt: Callable[[str], str]) -> str:
    """Return a changed line; where `old` differs from `original` only in look-alikes, the rest of it stays."""
    if original == old or len(original) != len(old):
        return adapt(new)
    start, end = common_ends(old, new)
    return original[:start] + new[start : len(new) - end] + original[len(original) - end :]


def original_offset(crlf_places: list[int], offset: int) -> int:
    """Return where `offset` of the LF form lies in the original; `crlf_places` are LF offsets of its CRLFs."""
    return offset + bisect_left(crlf_places, offset)


def crlf_offsets(text: str) -> list[int]:
    """Return the offsets that the CRLFs of `text` have once each of them is one LF."""
    return [found.start() - index for index, found in enumerate(re.finditer("\r\n", text))]


def newline_near(text: str, start: int, end: int, default: str) -> str:
    """Return the line end in, before or after a span, whichever is first found; `default` for a text of one line."""
    found = _LINE_END.search(text, start, end)
    if found is not None:
        return found[0]
    before = text.rfind("\n", 0, start)
    if before >= 0:
        return "\r\n" if before and text[before - 1] == "\r" else "\n"
    after = _LINE_END.search(text, end)
    return after[0] if after is not None else default
