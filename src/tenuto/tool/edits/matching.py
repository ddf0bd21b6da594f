"""Finding quoted text in a file: exactly, or where what differs does not matter. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

import msgspec

_TYPOGRAPHY = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "),
}
_PLAIN = str.maketrans(_TYPOGRAPHY)
_TAB_WIDTHS = (4, 2, 8, 3)
_NUMBERED = re.compile(r"\s*\d+\t")
_NEAR_LINES = 3
_NEAR_RATIO = 0.6
_MAX_COMPARED = 20_000


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A place: offsets in the LF text, the quoted and the new text fitted to it, and how it was found.

    `old` has as many lines as the place has. `reindent` is applied to changed lines. `tolerance` is empty for exact.
    """

    start: int
    end: int
    old: str
    new: str
    tolerance: str = ""
    reindent: Callable[[str], str] = str


def find_exact(text: str, old: str, new: str) -> list[Match]:
    """Return every place, left to right, without overlaps."""
    return [
        Match(start=place, end=place + len(old), old=old, new=new)
        for place in (found.start() for found in re.finditer(re.escape(old), text))
    ]


def find_tolerant(text: str, old: str, new: str) -> list[Match]:
    """Return the places of the first tolerance that finds any."""
    if not old.strip():
        return []
    for search in (_find_typographic, _find_trailing, _find_within, _find_indented):
        matches = search(text, old, new)
        if matches:
            return matches
    return []


def _find_typographic(text: str, old: str, new: str) -> list[Match]:
    """Quotes, dashes and spaces of any kind are the same. One character stands for one, so offsets hold."""
    return [
        msgspec.structs.replace(match, old=old, tolerance="quotes, dashes or spaces differed")
        for match in find_exact(text.translate(_PLAIN), old.translate(_PLAIN), new)
    ]


def _find_trailing(text: str, old: str, new: str) -> list[Match]:
    """White space at line ends does not count."""
    return _find_lines(text, old, new, plain_line, "white space at line ends differed")


def _find_within(text: str, old: str, new: str) -> list[Match]:
    """The same where the quoted text begins within a line, as an exact one may: what is before it stays.

    Without it such a text would pass for one that is indented otherwise, and new lines be indented twice.
    """
    lines = r"[ \t]*\n".join(re.escape(plain_line(line)) for line in old.split("\n"))
    end = "" if old.endswith("\n") else r"(?=[ \t]*(?:\n|\Z))"
    return [
        Match(start=found.start(), end=found.end(), old=old, new=new, tolerance="white space at line ends differed")
        for found in re.finditer(lines + end, text.translate(_PLAIN))
    ]


def _find_indented(text: str, old: str, new: str) -> list[Match]:
    """All lines are indented differently in the same way; the new lines are indented as the file is."""
    found: list[Match] = []
    for match in _find_lines(text, old, new, lambda line: plain_line(line).strip(), "indentation differed"):
        there = text[match.start : match.end].split("\n")
        reindent = reindentation(there, match.old.split("\n"))
        if reindent is not None:
            found.append(msgspec.structs.replace(match, reindent=reindent))
    return found


def plain_line(line: str) -> str:
    """Return a line as it is compared: look-alikes and white space at its end do not count."""
    return line.translate(_PLAIN).rstrip()


def _find_lines(text: str, old: str, new: str, normal: Callable[[str], str], tolerance: str) -> list[Match]:
    """Compare whole lines in their normal form."""
    ends_line = old.endswith("\n")
    wanted = [normal(line) for line in old.removesuffix("\n").split("\n")]
    lines = text.split("\n")
    there = [normal(line) for line in lines]
    offset = 0
    found: list[Match] = []
    for index, line in enumerate(lines):
        if there[index] == wanted[0] and there[index : index + len(wanted)] == wanted:
            end = offset + sum(map(len, lines[index : index + len(wanted)])) + len(wanted) - 1
            if ends_line and end < len(text):
                found.append(Match(start=offset, end=end + 1, old=old, new=new, tolerance=tolerance))
            elif ends_line:  # the file ends without a line end, and goes on doing so
                fitted = new.removesuffix("\n")
                found.append(Match(start=offset, end=end, old=old[:-1], new=fitted, tolerance=tolerance))
            else:
                found.append(Match(start=offset, end=end, old=old, new=new, tolerance=tolerance))
        offset += len(line) + 1
    return [match for match in found if match.end > match.start]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def reindentation(there: list[str], quoted: list[str]) -> Callable[[str], str] | None:
    """Return what turns the quoted indentation into the file's, if one rule does so for every line."""
    pairs = [(_indent(a), _indent(b)) for a, b in zip(there, quoted, strict=True) if a.strip()]
    if not pairs:
        return None
    rules: list[Callable[[str], str]] = []
    first_there, first_quoted = pairs[0]
    if first_there.endswith(first_quoted):
        prefix = first_there[: len(first_there) - len(first_quoted)]
        rules.append(lambda indent: prefix + indent)
    if first_quoted.endswith(first_there):
        surplus = first_quoted[: len(first_quoted) - len(first_there)]
        rules.append(lambda indent: indent.removeprefix(surplus))
    for width in _TAB_WIDTHS:
        rules.append(lambda indent, width=width: _with_tabs(indent, width))
        rules.append(lambda indent, width=width: indent.replace("\t", " " * width))
    for rule in rules:
        if all(rule(quoted_indent) == its_indent for its_indent, quoted_indent in pairs):
            return lambda line: rule(_indent(line)) + line.lstrip(" \t") if line.strip() else line
    return None


def _with_tabs(indent: str, width: int) -> str:
    columns = len(indent.expandtabs(width))
    return "\t" * (columns // width) + " " * (columns % width)


def line_of(text: str, offset: int) -> int:
    """Return the number of the line, from 1, that an offset lies in."""
    return text.count("\n", 0, offset) + 1


def looks_numbered(old: str) -> bool:
    """Whether every line begins with a line number, as `read` prints it."""
    return all(_NUMBERED.match(line) for line in old.split("\n") if line)


def nearest_lines(text: str, old: str) -> str:
    """Return the lines of the file that look most like the quoted text, numbered; empty when none does."""
    wanted = max((line.strip() for line in old.split("\n")), key=len, default="")
    if not wanted:
        return ""
    lines = text.split("\n")
    matcher = difflib.SequenceMatcher(None, "", wanted, autojunk=False)
    best, best_ratio = -1, _NEAR_RATIO
    for index, line in enumerate(lines[:_MAX_COMPARED]):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() <= best_ratio or matcher.quick_ratio() <= best_ratio:
            continue
        ratio = matcher.ratio()
        if ratio > best_ratio:
            best, best_ratio = index, ratio
    if best < 0:
        return ""
    start, stop = max(best - _NEAR_LINES, 0), min(best + _NEAR_LINES + 1, len(lines))
    return "\n".join(f"{number + 1}\t{lines[number][:300]}" for number in range(start, stop))
