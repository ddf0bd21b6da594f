"""Where a long answer is parted: into pieces that are items of their own, so that only those that show are drawn. Pure.

A piece ends between two blocks of Markdown, where nothing before has a say in what comes. That is looked for by lines,
without parsing, and only where it is certain: behind an empty line, before one that begins with a letter or `#`,
outside code. The cuts depend on the text before them alone, so a text that streams is cut as it is when it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.text.late import late

PIECE_CHARACTERS = 12_000
"""A piece has so many, and goes on to the end of its last block."""
_MARKER = late(r"(?:[-+*]|\d{1,9}[.)])(?: {1,4}(?=\S)| |$)")
"""What begins an item of a list; what is in it stands as far in as this is long."""
_RULE = late(r"(?:[-*_][ \t]*){3,}$")
_FENCE = late(r"(`{3,}(?=[^`]*$)|~{3,})")
DEFINITION = "]:"
"""Is in every line that defines what a link means."""
MOST_INDENT = 3
"""Spaces before a fence; with more it is part of something else."""


class Cutter(Struct):
    """Looks once at each line of a text that grows.

    `defines` says that a line may define what a link means in the whole text, `lost` that a fence has begun of which it
    is not sure what it stands in: then no more cuts are certain. `fence` are the marks of the one that is open at the
    top level; `inside` is how far in the open list item has its text, 0 without one; `unsure` says that there may be
    another one, or none.
    """

    defines: bool = False
    _lost: bool = False
    _place: int = 0
    _blank: bool = False
    _fence: str = ""
    _inside: int = 0
    _unsure: bool = False

    def cut(self, text: str, begin: int = 0) -> int:
        """Return where the piece ends that begins at `begin`, 0 where it goes on.

        To be called again with more of the text, and behind a cut for the next piece.
        """
        place = begin + self._place
        while not (self.defines or self._lost):
            is_long = place - begin >= PIECE_CHARACTERS
            if is_long and self._blank and not self._fence and _begins(text[place : place + 1]):
                self._place, self._blank, self._inside, self._unsure = 0, False, 0, False
                return place
            end = text.find("\n", place)
            if end < 0:
                break
            self._take(sanitize_for_terminal(text[place:end]))
            place = end + 1
        self._place = place - begin
        return 0

    def _take(self, line: str) -> None:
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if not body.strip("\t "):
            self._blank = True
            return
        was_blank, self._blank = self._blank, False
        if self._fence:
            if indent <= MOST_INDENT and _closes(body, self._fence):
                self._fence = ""
            return
        self.defines = DEFINITION in line
        is_inside = 0 < self._inside <= indent
        fence = _FENCE.match(body) if indent <= MOST_INDENT else None
        if fence is not None:
            self._lost = self._unsure and indent > 0
            if not is_inside:
                self._fence, self._inside, self._unsure = fence[0], 0, False
        elif not indent:
            self._note_beginning(body, was_blank)
        elif indent <= MOST_INDENT and not is_inside:
            self._unsure = True

    def _note_beginning(self, body: str, was_blank: bool) -> None:
        """A line begins at the edge: with a list item, or what ends one, or goes on with its text."""
        marker = _MARKER.match(body)
        if marker is not None:
            is_item = was_blank or self._inside > 0 or body.startswith(("1.", "1)", "-", "+", "*"))
            is_item = is_item and bool(body[len(marker[0]) :].strip("\t "))  # an empty one may end soon, or be none
            self._unsure = not is_item or _RULE.match(body) is not None
            self._inside = len(marker[0].rstrip(" ")) + max(1, len(marker[0]) - len(marker[0].rstrip(" ")))
        elif was_blank:
            self._inside, self._unsure = 0, False
        elif self._inside:
            self._unsure = True


def _begins(character: str) -> bool:
    return character.isalpha() or character == "#"


def _closes(body: str, fence: str) -> bool:
    marks = len(body) - len(body.lstrip(fence[0]))
    return marks >= len(fence) and not body[marks:].strip(" \t")


def pieces_of(text: str, known: Sequence[str] = ()) -> list[str]:
    """Return a whole answer in pieces: one where it is short, or where a piece may need to know another.

    Those that are among the first of the `known` ones are the same strings: each letter of a text with one emoji takes
    four bytes, and nobody needs two of them.
    """
    if len(text) <= PIECE_CHARACTERS:
        return [text]
    pieces: list[str] = []
    cutter = Cutter()
    begin = 0
    while end := cutter.cut(text, begin):
        same = known[len(pieces)] if len(pieces) < len(known) else ""
        is_known = len(same) == end - begin and text.startswith(same, begin)
        pieces.append(same if is_known else text[begin:end])
        begin = end
    may_define = cutter.defines or DEFINITION in text[max(begin, text.rfind("\n") + 1) :]
    return [text] if may_define or not pieces else [*pieces, text[begin:]]
