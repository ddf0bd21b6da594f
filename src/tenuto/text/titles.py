"""A title from how a conversation began: its first sentence, without code, marks and paths. Pure."""

from __future__ import annotations

import re

from tenuto.text.late import late

ROOM = 60
"""Characters of a title at most, the sign for what was cut not counted."""
_FENCED = late(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGS = late(r"</?[a-zA-Z][\w-]*(?: [^<>\n]*)?>")
_LEAD = late(r"^(?:[#>*+-]+|\d{1,3}[.)])\s+")
"""What Markdown puts before a heading, a quotation, a point of a list."""
_MENTION = late(r"(?<!\S)@(?:[^\s/]*/)*([^\s/]+)/?")
_PASTE = late(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")
_SENTENCE = late(r"(?<=[^\s.])[.!?。！？](?=\s|$)|[。！？]")
_CODE = late(r"[{};]\s*$|^\s*(?:\$|>>>|@@|diff --git|Traceback \(|File \"|at .*:\d+)|^\S*[\\/=<>|]\S*$")
_LETTERS = 0.6
"""Share of letters and spaces from which a line is words."""


def title_of(text: str, room: int = ROOM) -> str:
    """Return the title of a conversation that began so, on one line; empty where there is nothing to see.

    It is the first sentence of the first paragraph that is words; where all is code, the first line of that.
    """
    prose = _TAGS.sub(" ", _PASTE.sub(" ", _FENCED.sub("\n\n", text)))
    lines = _first_paragraph(prose) or [line for line in text.splitlines() if _clean(line)][:1]
    line = _clean(" ".join(_LEAD.sub("", line.strip()) for line in lines))
    return _cut(_MENTION.sub(r"\1", line), room)


def _first_paragraph(text: str) -> list[str]:
    """Return the first lines that are words, up to an empty one, to code or to another point of a list."""
    found: list[str] = []
    for line in text.splitlines():
        is_words = bool(_clean(line)) and _is_words(line)
        if found and (not is_words or _LEAD.match(line.strip())):
            break
        if is_words:
            found.append(line)
            if line.lstrip().startswith("#"):
                break
    return found


def _is_words(line: str) -> bool:
    bare = line.strip()
    words = sum(one.isalnum() or one.isspace() for one in bare)
    return not _CODE.search(line) and words >= _LETTERS * len(bare)


def _clean(text: str) -> str:
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _cut(line: str, room: int) -> str:
    """Return the first sentence, or as many whole words of it as there is room for."""
    end = _SENTENCE.search(line)
    if end is not None and end.start() <= room:
        sign = end.group()
        return line[: end.start()] + (sign if sign in "?？" and end.end() <= room else "")
    if len(line) <= room:
        return line
    return f"{line[:room].rpartition(' ')[0] or line[:room]}…"
