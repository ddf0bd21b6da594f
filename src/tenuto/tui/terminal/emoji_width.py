"""Characters whose width terminals do not agree on, written so that what follows stands in its cell in all of them.

An emoji of several characters takes from one cell to eight: most terminals add up its parts, few join them, and half of
them let a warning sign (U+26A0 U+FE0F) take one cell (the table is in `docs/terminal.md`). Here it has as many as
`render/width.py` says: they are blanked, it is written over them, and the cursor is put behind them, wherever that
terminal has left it. What a terminal shows beyond them is written over by what comes next. A question about mode 2027
would be answered by few, and its answer would come after the first frame.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache

from tenuto.tui.render.width import cell_width
from tenuto.tui.terminal.emulator import recognise

_FLAG = "\U0001f1e6-\U0001f1ff"
_TONE = "\U0001f3fb-\U0001f3ff"
_EMOJI = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2630-\u2637\u2648-\u2653\u267f\u268a-\u268f\u2693"
    "\u26a1\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728"
    "\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\u4dc0-\u4dff"
    "\U00016fe0-\U00018dff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001fbff"
)
"""What is wide by itself, for some; narrow ones among them do no harm."""
_MARK = f"\ufe0e\ufe0f\u20e3{_TONE}\U000e0020-\U000e007f\u0300-\u036f"
_CHANGED = rf"[#*0-9\xa9-\u200b\u2010-\ud7ff\uf900-\ufaff](?=[\ufe0e\ufe0f\u20e3{_TONE}])"
"""Followed by a selector, a keycap or a tone, anything may be an emoji; but not the end of a control sequence."""
_INDIC = "\u0900-\u0d7f"
_VIRAMA = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d"
_SIGNS = "".join(chr(code) for code in range(0x900, 0xD80) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_CONJUNCT = rf"[{_INDIC}](?:[{_VIRAMA}]\u200d?[{_INDIC}])+[{_SIGNS}]+"
"""Letters joined by a virama, with a vowel: one character of two cells in some terminals."""
_CLUSTER = re.compile(
    rf"{_CONJUNCT}|(?:[{_FLAG}]{{1,2}}|[{_EMOJI}]|{_CHANGED})[{_MARK}]*(?:\u200d[{_EMOJI}\xa9-\u200b\u2010-\u2bff][{_MARK}]*)*"
)
_SIGN = re.compile(f"[{_VIRAMA}{_FLAG}{_EMOJI}{_TONE}\ufe0e\ufe0f\u20e3]")
"""One of these characters is in every cluster: looking for one first costs a tenth, and most frames have none."""
_FLAGS = re.compile(f"[{_FLAG}]")
_TONES = re.compile(f"[{_TONE}]")
WRAP, NO_WRAP = "\x1b[?7h", "\x1b[?7l"


def pin(text: str) -> str:
    """Return `text`, which may have control sequences, with each such character held to its cells.

    The terminal must not wrap (`NO_WRAP`), and has room for all cells that are asked for; its saved cursor is used.
    """
    return _CLUSTER.sub(_pinned, text) if is_unsure(text) else text


def pin_row(row: str) -> str:
    """Return a whole row as `pin` does, for a terminal that wraps: what it has too many cells for is not wrapped."""
    return f"{NO_WRAP}{pin(row)}{WRAP}" if is_unsure(row) else row


def is_unsure(text: str) -> bool:
    """Say whether something in `text` has a width of its own in some terminal."""
    return not text.isascii() and _SIGN.search(text) is not None


def is_unsure_alone(character: str) -> bool:
    """Say so of one character as people see it, for whoever moves from cell to cell: vowel signs count there, too.

    Between their letters in a row they are let be: words would have gaps where a terminal gives them no cell.
    """
    if character.isascii():
        return False
    return is_unsure(character) or (len(character) > 1 and any(unicodedata.category(one) == "Mc" for one in character))


def pin_alone(character: str) -> str:
    """Return one such character held to its cells."""
    return _held(character)


@cache
def _paints_over() -> bool:
    """Say whether the terminal paints a joined emoji over as many cells as its parts take, whatever is in them.

    foot does (`grapheme-width-method=wcswidth`, the default); the first part alone is shown there.
    """
    return recognise(os.environ) == "foot"


def _pinned(found: re.Match[str]) -> str:
    return _held(found[0])


def _held(cluster: str) -> str:
    cells = cell_width(cluster)
    if not cells:
        return ""
    if _paints_over():
        # And a flag beside a flag would be joined to it.
        cluster = f"{cluster}\ufe0f" if _FLAGS.match(cluster) else cluster.partition("\u200d")[0]
    if cells == 1 or _paints_over():
        # A terminal that makes it wide by its tone would lose it to what is written into its second cell.
        cluster = _TONES.sub("", cluster)
    return f"\x1b7{' ' * cells}\x1b8\x1b7{cluster}\x1b8\x1b[{cells}C"
