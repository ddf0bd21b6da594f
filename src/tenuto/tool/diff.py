"""The difference between two texts as a unified diff for the screen."""

from __future__ import annotations

import difflib

from tenuto.protocol.message import DiffView
from tenuto.tool.encoding import to_lf

_CONTEXT_LINES = 3
_MAX_PRECISE_LINES = 4_000
"""Above this many differing lines the middle is shown as one block: the exact matcher is quadratic."""


def diff_view(path: str, before: str, after: str, *, created: bool = False) -> DiffView:
    """Return the change from `before` to `after`; line ends do not count, except a missing last one."""
    old, new = _lines(to_lf(before)), _lines(to_lf(after))
    out: list[str] = []
    added = removed = 0
    for group in _split(compare_lines(old, new)):
        first, last = group[0], group[-1]
        out.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                out += [" " + line for line in old[old_start:old_end]]
                continue
            out += ["-" + line for line in old[old_start:old_end]]
            out += ["+" + line for line in new[new_start:new_end]]
            removed += old_end - old_start
            added += new_end - new_start
    return DiffView(path=path, diff="\n".join(out), added=added, removed=removed, created=created)


Opcode = tuple[str, int, int, int, int]


def compare_lines(old: list[str], new: list[str]) -> list[Opcode]:
    """Return difflib's opcodes; only what lies between the common beginning and end is compared."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
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
