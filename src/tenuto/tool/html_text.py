"""From HTML to text that reads well in a prompt: headings, lists, links, code; no scripts, no styles."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "canvas", "object", "select"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "ul", "ol", "dl", "form"}
    | {"blockquote", "figure", "figcaption", "details", "summary", "address", "hr", "fieldset", "tbody", "thead"}
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MANY_LINES = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"[ \t]+\n")


class _TextMaker(HTMLParser):
    """Collects the text of a page. Never nests deeper than the page's own lists, so no page can exhaust it."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._out: list[str] = []
        self._skipped = ""
        self._skip_depth = 0
        self._preformatted = 0
        self._lists: list[int] = []
        self._link: tuple[str, int] | None = None
        self._in_title = False
        self.title = ""

    def text(self) -> str:
        """Return what was collected."""
        joined = _TRAILING.sub("\n", "".join(self._out))
        return _MANY_LINES.sub("\n\n", joined).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if tag == "title" and not self.title:
            self._in_title = True
        if self._skipped:
            self._skip_depth += tag == self._skipped
            return
        if tag in _SKIPPED:
            self._skipped, self._skip_depth = tag, 1
            return
        self._open(tag, {name: value or "" for name, value in attrs})

    def _open(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _HEADINGS:
            self._break(2)
            self._out.append(_HEADINGS[tag])
        elif tag == "li":
            self._open_item()
        elif tag in {"tr", "dt", "dd"}:
            self._break(1)
        elif tag == "pre":
            self._break(2)
            self._out.append("```\n")
            self._preformatted += 1
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"}:
                self._lists.append(0 if tag == "ol" else -1)
            self._break(1 if len(self._lists) > 1 else 2)
        else:
            self._open_inline(tag, attributes)

    def _open_inline(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "br":
            self._out.append("\n")
        elif tag in {"td", "th"} and not self._at_line_start():
            self._out.append(" | ")
        elif tag == "code" and not self._preformatted:
            self._out.append("`")
        elif tag == "a" and attributes.get("href"):
            self._link = (attributes["href"], len(self._out))
        elif tag == "img" and attributes.get("alt", "").strip():
            self._out.append(f"[image: {_SPACE.sub(' ', attributes['alt']).strip()}]")

    def _open_item(self) -> None:
        self._break(1)
        indent = "  " * max(len(self._lists) - 1, 0)
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            self._out.append(f"{indent}{self._lists[-1]}. ")
        else:
            self._out.append(f"{indent}- ")

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if tag == "title":
            self._in_title = False
        if self._skipped:
            self._skip_depth -= tag == self._skipped
            if self._skip_depth <= 0 or tag == "html":
                self._skipped = ""
            return
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1
            self._break(1)
            self._out.append("```\n\n")
        elif tag == "code" and not self._preformatted:
            self._out.append("`")
        elif tag == "a":
            self._close_link()
        elif tag in _HEADINGS:
            self._break(2)
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"} and self._lists:
                self._lists.pop()
            self._break(1 if self._lists else 2)

    def _close_link(self) -> None:
        if self._link is None:
            return
        target, start = self._link
        self._link = None
        label = "".join(self._out[start:]).strip()
        if not label or target.startswith(("#", "javascript:", "data:")):
            return
        try:
            address = urljoin(self._base, target)
        except ValueError:
            return
        if label != address:
            self._out.append(f" ({address})")

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._in_title:
            self.title = _SPACE.sub(" ", self.title + data).strip()
        if self._skipped:
            return
        if self._preformatted:
            self._out.append(data)
            return
        text = _SPACE.sub(" ", data)
        if self._at_line_start() or (self._out and self._out[-1].endswith(" ")):
            text = text.lstrip(" ")
        if text:
            self._out.append(text)

    def _at_line_start(self) -> bool:
        return not self._out or self._out[-1].endswith("\n")

    def _break(self, lines: int) -> None:
        """End the line; two lines make a paragraph. More are taken out at the end."""
        if self._out:
            last = self._out[-1]
            missing = lines - (len(last) - len(last.rstrip("\n")))
            if missing > 0:
                self._out.append("\n" * missing)


def html_to_text(html: str, base: str = "") -> str:
    """Return the readable text of a page, its title first; links become absolute against `base`."""
    maker = _TextMaker(base)
    maker.feed(html)
    maker.close()
    text = maker.text()
    return f"{maker.title}\n\n{text}".strip() if maker.title else text
