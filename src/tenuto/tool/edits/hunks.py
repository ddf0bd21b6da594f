"""Where the hunks of a patch belong in a file, and what the file is with them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from tenuto.text.patch import Hunk
from tenuto.tool.edits.matching import looks_numbered, nearest_lines, plain_line, reindentation
from tenuto.tool.run.context import ToolError

_LISTED_PLACES = 10
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
"""An anchor as other diffs write it: it quotes nothing."""


class PlacedHunk(msgspec.Struct, frozen=True):
    """A hunk and its place: the first line (from 0), the one behind the last, what comes there, and how it was found.

    `tolerance` is empty for an exact find.
    """

    start: int
    end: int
    lines: tuple[str, ...]
    tolerance: str = ""


class _Search(msgspec.Struct, frozen=True):
    """From which line on a hunk is looked for (`fallback` where it is not there), and whether it has to be alone."""

    start: int
    fallback: int
    alone: bool


def place_hunks(lines: Sequence[str], hunks: Sequence[Hunk], *, shown: str, is_known: bool) -> list[PlacedHunk]:
    """Return where each hunk belongs, one behind the other. Raises `ToolError` that names the one that has no place.

    `is_known`: the model has seen the file, so that a place may be found where white space or quotes differ.
    """
    placed: list[PlacedHunk] = []
    for number, hunk in enumerate(hunks, 1):
        name = f"hunk {number} of {len(hunks)} for {shown}" if len(hunks) > 1 else f"the hunk for {shown}"
        done = placed[-1].end if placed else 0
        placed.append(_place(lines, hunk, done, name, is_known=is_known))
    return placed


def with_hunks(lines: Sequence[str], placed: Sequence[PlacedHunk]) -> list[str]:
    """Return the lines with all hunks made."""
    made: list[str] = []
    done = 0
    for hunk in placed:
        made += [*lines[done : hunk.start], *hunk.lines]
        done = hunk.end
    return [*made, *lines[done:]]


def _place(lines: Sequence[str], hunk: Hunk, done: int, name: str, *, is_known: bool) -> PlacedHunk:
    search = _behind_anchors(lines, hunk.anchors, done, name, is_known=is_known)
    if not hunk.old:  # lines that only come: behind the anchor, else at the end
        place = search.start if hunk.anchors and not hunk.at_end else len(lines)
        return PlacedHunk(place, place, tuple(hunk.new))
    for start in dict.fromkeys((search.start, search.fallback)):
        found = _find(lines, hunk, start, is_known=is_known)
        if len(found) == 1 or (found and not search.alone and not found[0].tolerance):
            return found[0]
        if found:
            raise ToolError(_ambiguous(name, found))
    last = hunk.lines[-1]
    if not last.text and last.sign == " " and len(hunk.lines) > 1:  # an empty line between this hunk and what follows
        return _place(lines, msgspec.structs.replace(hunk, lines=hunk.lines[:-1]), done, name, is_known=is_known)
    raise ToolError(_not_found(lines, hunk, search.start, name, is_known=is_known))


def _behind_anchors(lines: Sequence[str], anchors: Sequence[str], done: int, name: str, *, is_known: bool) -> _Search:
    """Return where to look behind the quoted lines; one that is quoted loosely may be there several times."""
    start, fallback, alone = done, done, True
    for anchor in anchors:
        if _NUMBERS.fullmatch(anchor):
            continue
        places, alone = _find_anchor(lines, anchor, start)
        if not places:
            raise ToolError(
                f"{_told(name)}: the line after @@ was not found.{_hint(lines, [anchor], is_known=is_known)}"
            )
        start, fallback = places[0] + 1, places[0]
    return _Search(start, fallback, alone)


def _find_anchor(lines: Sequence[str], anchor: str, start: int) -> tuple[list[int], bool]:
    """Return the places of a quoted line, and whether it is left open which of them is meant."""
    wanted = plain_line(anchor).strip()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda line: line == anchor,
        lambda line: plain_line(line).strip() == wanted,
        lambda line: plain_line(line).strip().startswith(wanted),
    )
    for number, fits in enumerate(tests):
        places = [place for place in range(start, len(lines)) if fits(lines[place])]
        if places:
            return places, bool(number) and len(places) > 1
    return [], False


def _find(lines: Sequence[str], hunk: Hunk, start: int, *, is_known: bool) -> list[PlacedHunk]:
    """Return the places of the first way of comparing that finds any; a guess needs a file that the model has seen."""
    old = hunk.old
    exact = _equal(lines, old, start, hunk)
    if exact or not is_known or not any(line.strip() for line in old):
        return [_made(lines, hunk, place) for place in exact]
    plain, wanted = [plain_line(line) for line in lines], [plain_line(line) for line in old]
    loose = _equal(plain, wanted, start, hunk)
    if loose:
        return [_made(lines, hunk, place, "white space, quotes or dashes differed") for place in loose]
    found: list[PlacedHunk] = []
    for place in _equal([line.strip() for line in plain], [line.strip() for line in wanted], start, hunk):
        reindent = reindentation(list(lines[place : place + len(old)]), old)
        if reindent is not None:
            found.append(_made(lines, hunk, place, "indentation differed", reindent))
    return found


def _equal(lines: Sequence[str], old: Sequence[str], start: int, hunk: Hunk) -> list[int]:
    last = len(lines) - len(old)
    first = max(start, last) if hunk.at_end else start
    return [
        place
        for place in range(first, last + 1)
        if lines[place] == old[0] and list(lines[place : place + len(old)]) == list(old)
    ]


def _made(
    lines: Sequence[str], hunk: Hunk, place: int, tolerance: str = "", reindent: Callable[[str], str] = str
) -> PlacedHunk:
    """Return a hunk at its place; lines around the change stay as the file has them."""
    made: list[str] = []
    at = place
    for line in hunk.lines:
        if line.sign == "+":
            made.append(reindent(line.text))
            continue
        made += [lines[at]] if line.sign == " " else []
        at += 1
    return PlacedHunk(place, at, tuple(made), tolerance)


def _told(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]} has no place"


def _ambiguous(name: str, found: Sequence[PlacedHunk]) -> str:
    places = ", ".join(str(one.start + 1) for one in found[:_LISTED_PLACES])
    more = ", …" if len(found) > _LISTED_PLACES else ""
    way = f" ({found[0].tolerance})" if found[0].tolerance else ""
    return (
        f"{_told(name)} of its own: it matches {len(found)} places{way}: lines {places}{more}. Quote more lines around "
        "the change, or the line that it comes behind after @@."
    )


def _not_found(lines: Sequence[str], hunk: Hunk, done: int, name: str, *, is_known: bool) -> str:
    before = _equal(lines[:done], hunk.old, 0, hunk)
    if before:
        return (
            f"{_told(name)}: its lines stand at line {before[0] + 1}, before what it is to come behind. Hunks go "
            "through a file from its beginning to its end."
        )
    anchored = " behind the line after @@" if hunk.anchors else ""
    ending = " at the end of the file" if hunk.at_end else ""
    what = f"{_told(name)}: its lines were not found{anchored}{ending}."
    return f"{what}{_hint(lines, hunk.old, is_known=is_known)}"


def _hint(lines: Sequence[str], quoted: Sequence[str], *, is_known: bool) -> str:
    if not is_known:
        return " You have not read this file: read it first."
    text = "\n".join(quoted)
    if looks_numbered(text):
        return " Quote the lines without the line numbers that read prints."
    near = nearest_lines("\n".join(lines), text)
    return f" The most similar lines are:\n{near}" if near else " Nothing similar is there; read the file again."
