"""The difference between two texts as a unified diff for the screen."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from tenuto.protocol.message import DiffView
from tenuto.text.bounding import cut_head
from tenuto.tool.edits.encoding import to_lf

_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 2_000
_MAX_ROW_CHARS = 1_000
"""A diff goes into the log and onto the screen: it must not be as large as the file."""
_MAX_PRECISE_LINES = 4_000
"""So many differing lines are compared exactly: the matcher is quadratic. With more of them between the first and the
last change, lines that both texts have once are found first, and what has no room between those is shown as a block."""


def diff_view(path: str, before: str, after: str, *, created: bool = False) -> DiffView:
    """Return the change from `before` to `after`; line ends do not count, except a missing last one.

    The counts are exact; of a very large diff only the first part is kept, and its last line says so.
    """
    old, new = _lines(to_lf(before)), _lines(to_lf(after))
    codes = compare_lines(old, new)
    rows = _rows(codes, old, new)
    shown = [_short(row) for row in islice(rows, _MAX_DIFF_LINES)]
    more = sum(1 for _ in rows)
    if more:
        shown.append(f"@@ {more:,} more lines of this diff are not shown @@")
    return DiffView(
        path=path,
        diff="\n".join(shown),
        added=sum(code[4] - code[3] for code in codes if code[0] != "equal"),
        removed=sum(code[2] - code[1] for code in codes if code[0] != "equal"),
        created=created,
    )


def _rows(codes: list[Opcode], old: list[str], new: list[str]) -> Iterator[str]:
    for group in _split(codes):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (" " + line for line in old[old_start:old_end])
            else:
                yield from ("-" + line for line in old[old_start:old_end])
                yield from ("+" + line for line in new[new_start:new_end])


def _short(row: str) -> str:
    return row if len(row) <= _MAX_ROW_CHARS else f"{cut_head(row, _MAX_ROW_CHARS)}…"


Opcode = tuple[str, int, int, int, int]


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many items, lines or characters, two texts share at the beginning, and behind that at the end."""
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def compare_lines(old: list[str], new: list[str]) -> list[Opcode]:
    """Return difflib's opcodes; only what lies between the common beginning and end is compared."""
    start, end = common_ends(old, new)
    codes: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
    middle = _middle(old[start : len(old) - end], new[start : len(new) - end])
    codes += [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in middle]
    if end:
        codes.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return codes


def _middle(old: list[str], new: list[str]) -> list[Opcode]:
    if len(old) + len(new) <= _MAX_PRECISE_LINES:
        return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    codes: list[Opcode] = []
    a = c = 0
    room = _MAX_PRECISE_LINES
    for b, d in [*_anchors(old, new), (len(old), len(new))]:
        start, end = common_ends(old[a:b], new[c:d])
        size = b - a + d - c - 2 * (start + end)
        precise = size <= room
        room -= size if precise else 0
        gap = compare_lines(old[a:b], new[c:d]) if precise else [("replace", 0, b - a, 0, d - c)]
        codes += [(tag, i + a, j + a, k + c, n + c) for tag, i, j, k, n in gap]
        if b < len(old):
            codes.append(("equal", b, b + 1, d, d + 1))
        a, c = b + 1, d + 1
    return _joined(codes)


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return the places of lines that both texts have exactly once: the longest run of them in the order of both."""
    counts, new_counts = Counter(old), Counter(new)
    place = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(index, place[line]) for index, line in enumerate(old) if counts[line] == 1 and line in place]
    ends: list[int] = []
    # The lowest place in `new` that a run of each length can end with, its pair, and for each pair the one before it.
    last: list[int] = []
    before: list[int] = []
    for number, (_, there) in enumerate(pairs):
        length = bisect_left(ends, there)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [there]
        last[length : length + 1] = [number]
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _joined(codes: list[Opcode]) -> list[Opcode]:
    """Return the same with one opcode for neighbours that are equal."""
    joined: list[Opcode] = []
    for tag, start, stop, new_start, new_stop in codes:
        if joined and tag == joined[-1][0] == "equal":
            _, first, _, new_first, _ = joined.pop()
            joined.append((tag, first, stop, new_first, new_stop))
        else:
            joined.append((tag, start, stop, new_start, new_stop))
    return joined


def _split(codes: list[Opcode]) -> list[list[Opcode]]:
    """Cut long equal stretches down to their context and start a new hunk there."""
    if all(code[0] == "equal" for code in codes):
        return []
    groups: list[list[Opcode]] = []
    group: list[Opcode] = []
    for index, (tag, a, b, c, d) in enumerate(codes):
        if tag == "equal" and index == 0:
            keep = min(b - a, _CONTEXT_LINES)
            group.append((tag, b - keep, b, d - keep, d))
        elif tag == "equal" and (index == len(codes) - 1 or b - a > 2 * _CONTEXT_LINES):
            keep = min(b - a, _CONTEXT_LINES)
            group.append((tag, a, a + keep, c, c + keep))
            groups.append(group)
            group = [] if index == len(codes) - 1 else [(tag, b - keep, b, d - keep, d)]
        else:
            group.append((tag, a, b, c, d))
    if group:
        groups.append(group)
    return groups


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


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
