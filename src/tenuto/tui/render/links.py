"""Where a text is a link: addresses, and files with the line that is meant. Pure; nothing is looked up on the disk.

In a style name a link is the word `@` and its target: an address, or `path:` and a file's path as it was written, with
`#` and a line. `tui/terminal/emulator.py` makes of it what is sent to the terminal, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import quote

from tenuto.tui.render.line import Line, Span, logical_lines, text_start

PATH = "path:"
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\x00-\x1f|│\\^{}]+")
_FILE = re.compile(
    r"(?P<path>(?:~/|/|\.{1,2}/)?(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,9})(?::(?P<line>\d+)(?:[:-]\d+)?)?\Z"
)
_TRAILING = ".,;:!?*_…"
_CLOSING = {")": "(", "]": "["}
LONGEST_PATH = 200
"""Characters; what is longer in code is no name of a file."""


def address_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the web addresses in a text begin and end, without the punctuation of the sentence."""
    if "://" not in text:
        return
    for found in _ADDRESS.finditer(text):
        end = found.end()
        while end > found.start():
            last = text[end - 1]
            within = text[found.start() : end]
            unopened = last in _CLOSING and within.count(last) > within.count(_CLOSING[last])
            if last not in _TRAILING and not unopened:
                break
            end -= 1
        if end > found.start() + len("https://"):
            yield found.start(), end


def file_link(path: str, line: int = 0) -> str:
    """Return the style word that links to a file."""
    return f"@{PATH}{quote(path)}{f'#{line}' if line else ''}"


def file_in_code(text: str) -> str:
    """Return the style word for code that names a file (`src/app.py`, `app.py:12`), empty for other code."""
    found = _FILE.match(text) if len(text) <= LONGEST_PATH and "." in text else None
    if found is None or not ("/" in found["path"] or found["line"]):
        return ""
    return file_link(found["path"], int(found["line"] or 0))


def linked_spans(text: str, style: str) -> list[Span]:
    """Return a text of one style as spans, the addresses in it as links."""
    spans: list[Span] = []
    done = 0
    for begin, end in address_spans(text):
        spans += [(text[done:begin], style)] if begin > done else []
        spans.append((text[begin:end], f"{style} link @{text[begin:end]}"))
        done = end
    return [*spans, (text[done:], style)] if done < len(text) or not spans else spans


def link_addresses(lines: Sequence[Line]) -> list[Line]:
    """Return an item's rows with the addresses in them as links, whole where they are wrapped over several rows."""
    linked: list[Line] = []
    for first, last in logical_lines(lines):
        rows = lines[first : last + 1]
        linked += _link_rows(rows) if any(":/" in row.text or row.soft for row in rows) else rows
    return linked


def _link_rows(rows: Sequence[Line]) -> Sequence[Line]:
    starts = [text_start(row) for row in rows]
    texts = [row.text[start:] for row, start in zip(rows, starts, strict=True)]
    joined = "".join([text + row.join * row.soft for row, text in zip(rows, texts, strict=True)])
    found = [(begin, end, joined[begin:end]) for begin, end in address_spans(joined)]
    if not found:
        return rows
    changed: list[Line] = []
    offset = 0
    for row, start, text in zip(rows, starts, texts, strict=True):
        here = [(begin - offset + start, end - offset + start, target) for begin, end, target in found]
        spans = _with_links(row.spans, here, start)
        changed.append(Line(tuple(spans), row.soft, row.gutter, row.join, row.source, row.fill))
        offset += len(text) + (len(row.join) if row.soft else 0)
    return changed


def _with_links(spans: Sequence[Span], found: Sequence[tuple[int, int, str]], start: int) -> list[Span]:
    """Return a row's spans, those parts that lie in one of the links (indices into the row) with its target."""
    made: list[Span] = []
    at = 0
    for text, style in spans:
        end = at + len(text)
        cuts = sorted({at, end, *(cut for link in found for cut in link[:2] if at < cut < end)})
        for begin, stop in pairwise(cuts):
            target = next((link[2] for link in found if link[0] <= begin and stop <= link[1] and begin >= start), "")
            piece = text[begin - at : stop - at]
            made.append((piece, f"{style} @{target}" if target and "@" not in style else style))
        at = end
    return made
