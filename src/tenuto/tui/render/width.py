"""How many terminal cells a text takes (R-100). Every width in the front-ends is asked here.

The tables are rich's, because Textual measures its strips with them: two opinions would tear the screen. Where nearly
all terminals are of another one, rich is told so.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

Grapheme = tuple[int, int, int]
"""(start, end, cells) of one user-perceived character; start and end are indices into the text."""

ELLIPSIS = "…"
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")
"""Two of them are a flag."""
_SPACED = re.compile("[\u0900-\u1cff\ua800-\uabff\U00011000-\U00011fff]")
"""The scripts that have vowel signs with a cell of their own (general category Mc), from Devanagari to Khmer."""


@lru_cache(maxsize=1)
def _measure() -> Callable[[str], int]:
    from rich.cells import cell_len

    return cell_len


@lru_cache(maxsize=1)
def _space_vowel_signs() -> None:
    """Tell rich that spacing vowel signs take a cell: it has them as marks without one, and so has kitty alone.

    A line of Hindi was half as long again in the terminal as it was thought to be.
    """
    if "kitty" in os.environ.get("TERM", ""):
        return
    from rich import cells

    load = cells.load_cell_table  # pyright: ignore[reportPrivateImportUsage]

    @lru_cache
    def load_ours(version: str = "auto") -> cells.CellTable:
        table = load(version)
        return table._replace(widths=[part for entry in table.widths for part in _without_spacing(*entry)])

    cells.load_cell_table = load_ours  # pyright: ignore[reportPrivateImportUsage]
    cells.get_character_cell_size.cache_clear()
    cells.cached_cell_len.cache_clear()


def _without_spacing(start: int, end: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Return the parts of an entry of the table that have no width indeed; what is in no entry has one cell."""
    if width or not (_SPACED.match(chr(start)) or _SPACED.match(chr(end))):
        yield start, end, width
        return
    for code in range(start, end + 1):
        if not _is_spacing(chr(code)):
            yield code, code, 0


def _is_spacing(character: str) -> bool:
    return unicodedata.category(character) == "Mc" and _SPACED.match(character) is not None


def cell_width(text: str) -> int:
    """Return the number of cells of `text`. Control characters count as nothing: clean the text before."""
    if text.isascii():
        return len(text)
    if _SPACED.search(text):
        _space_vowel_signs()
    return _measure()(text)


def split_graphemes(text: str) -> list[Grapheme]:
    """Return the user-perceived characters of `text`; marks, joiners and selectors stay with what they change."""
    if text.isascii():
        return [(index, index + 1, 1) for index in range(len(text))]
    from rich.cells import split_graphemes as split

    spaced = _SPACED.search(text)
    if spaced:
        _space_vowel_signs()
    found = split(text)[0]
    return _join(text, found) if spaced or _REGIONAL.search(text) else found


def _join(text: str, graphemes: Sequence[Grapheme]) -> list[Grapheme]:
    """Return the graphemes with the halves of each flag as one, and vowel signs with what they belong to."""
    joined: list[Grapheme] = []
    half = False
    for start, end, cells in graphemes:
        regional = _REGIONAL.match(text, start) is not None
        if joined and ((half and regional) or _is_spacing(text[start])):
            begun = joined[-1]
            joined[-1] = (begun[0], end, begun[2] + cells)
        else:
            joined.append((start, end, cells))
        half = regional and not half
    return joined


def take_cells(text: str, cells: int) -> int:
    """Return the index up to which `text` fits into `cells` cells; never inside a grapheme."""
    if text.isascii():
        return min(len(text), max(cells, 0))
    used = 0
    for start, _end, width in split_graphemes(text):
        used += width
        if used > cells:
            return start
    return len(text)


def truncate(text: str, cells: int, ellipsis: str = ELLIPSIS) -> str:
    """Return `text` cut to at most `cells` cells, the cut marked by an ellipsis."""
    if cells <= 0:
        return ""
    if len(text) <= cells and text.isascii():
        return text
    if len(text) <= 4 * cells + 64 and cell_width(text) <= cells:
        return text
    # A far too long text is cut first, so that what a row costs does not depend on it.
    head = text[: 4 * cells + 64]
    return head[: take_cells(head, cells - len(ellipsis))] + ellipsis[:cells]


def truncate_middle(text: str, cells: int) -> str:
    """Return `text` cut to at most `cells` cells in its middle: a path keeps its beginning and its name."""
    if cell_width(text) <= cells:
        return text
    if cells <= 4:
        return truncate(text, cells)
    tail_cells = (cells - 1) * 2 // 3
    head = text[: take_cells(text, cells - 1 - tail_cells)]
    graphemes = split_graphemes(text)
    used, begin = 0, len(text)
    for start, _end, width in reversed(graphemes):
        if used + width > tail_cells:
            break
        used += width
        begin = start
    return head + ELLIPSIS + text[begin:]


def pad(text: str, cells: int) -> str:
    """Return `text` followed by as many spaces as it lacks to `cells` cells."""
    return text + " " * max(0, cells - cell_width(text))
