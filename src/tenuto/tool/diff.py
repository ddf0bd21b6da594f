"""The difference between two texts as a unified diff for the screen."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice

from tenuto.protocol.message import DiffView
from tenuto.text.bounding import cut_head
from tenuto.tool.encoding import to_lf

_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 2_000
_MAX_ROW_CHARS = 1_000
"""A diff goes into the log and onto the screen: it must not be as large as the file."""
_MAX_PRECISE_LINES = 4_000
"""Above this many differing lines the middle is shown as one block: the exact matcher is quadratic."""


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
    if len(old) + len(new) > _MAX_PRECISE_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


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
