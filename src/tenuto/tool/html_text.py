"""From HTML to text that reads well in a prompt: headings, lists, links, code; no scripts, styles or navigation.

lxml reads the page, however broken or large it is; what is written of it is decided here.
"""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import urljoin

_HIDDEN = ("head", "script", "style", "noscript", "template", "svg", "iframe", "canvas", "object", "select")
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "ul", "ol", "dl", "form"}
    | {"blockquote", "figure", "figcaption", "details", "summary", "address", "hr", "fieldset", "tbody", "thead"}
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_INDENTED = 10
"""Lists; deeper ones would be made of spaces."""
_RESOURCE_LIMIT = 114
"""What libxml2 calls a page that is too deep; lxml 6.0 knows the number alone."""
TOO_DEEP = "(The page is nested too deeply: the rest could not be read. Fetch it with raw.)"


def html_to_text(html: str, base: str = "") -> str:
    """Return the readable text of a page, its title first; links become absolute against `base`.

    Where there is one `main`, that is taken. Navigation is left out where it is not all that there is.
    """
    import lxml.etree

    etree = cast("Any", lxml.etree)  # it has no types
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    page = etree.fromstring(html.encode("utf-8", "replace"), parser)
    if page is None:
        return ""
    title = _SPACE.sub(" ", page.findtext("head/title") or "").strip()
    etree.strip_elements(page, *_HIDDEN, with_tail=False)
    mains = page.findall(".//main")
    top = mains[0] if len(mains) == 1 else page
    text = _write(etree, top, base, skipped="nav") or _write(etree, top, base)
    too_deep = any(error.type == _RESOURCE_LIMIT for error in parser.error_log)
    return "\n\n".join(part for part in (title, text, TOO_DEEP if too_deep else "") if part)


def _write(etree: Any, top: Any, base: str, skipped: str = "") -> str:
    writer = _Writer(base)
    walker = etree.iterwalk(top, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            writer.close(element.tag)
            writer.take(element.tail if element is not top else None)
        elif element.tag == skipped:
            walker.skip_subtree()
        else:
            writer.open(element.tag, element.attrib)
            writer.take(element.text)
    return writer.text()


class _Writer:
    """Collects the text of a page."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._out: list[str] = []
        self._preformatted: list[int] = []
        """Where each open `pre` begins."""
        self._lists: list[int] = []
        """The number of the last item in each open list, -1 where they have none."""
        self._link: tuple[str, int] | None = None

    def text(self) -> str:
        """Return what was collected."""
        lines = "\n".join(line.rstrip(" \t\r") for line in "".join(self._out).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", lines).strip()

    def take(self, text: str | None) -> None:
        """Take text."""
        if text and not self._preformatted:
            text = _SPACE.sub(" ", text)
            if self._is_at_line_start() or self._out[-1].endswith(" "):
                text = text.lstrip(" ")
        if text:
            self._out.append(text)

    def open(self, tag: str, attributes: Any) -> None:
        """Begin an element."""
        if tag == "pre":
            self._break(2)
            self._preformatted.append(len(self._out))
        elif self._preformatted:
            self._out.append("\n" if tag == "br" else "")
        elif tag in _HEADINGS:
            self._break(2)
            self._out.append(_HEADINGS[tag])
        elif tag == "li":
            self._open_item()
        elif tag in {"tr", "dt", "dd"}:
            self._break(1)
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"}:
                self._lists.append(0 if tag == "ol" else -1)
            self._break(1 if len(self._lists) > 1 else 2)
        elif tag == "br":
            self._out.append("\n")
        elif tag in {"td", "th"} and not self._is_at_line_start():
            self._out.append(" | ")
        elif tag == "code":
            self._out.append("`")
        elif tag == "a" and attributes.get("href"):
            self._link = (attributes["href"], len(self._out))
        elif tag == "img" and attributes.get("alt", "").strip():
            self._out.append(f"[image: {_SPACE.sub(' ', attributes['alt']).strip()}]")

    def _open_item(self) -> None:
        self._break(1)
        indent = "  " * min(max(len(self._lists) - 1, 0), _MOST_INDENTED)
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            self._out.append(f"{indent}{self._lists[-1]}. ")
        else:
            self._out.append(f"{indent}- ")

    def close(self, tag: str) -> None:
        """End an element."""
        if tag == "pre":
            self._close_preformatted()
        elif self._preformatted:
            return
        elif tag == "code":
            self._out.append("`")
        elif tag == "a":
            self._close_link()
        elif tag in _HEADINGS:
            self._break(2)
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"}:
                self._lists.pop()
            self._break(1 if self._lists else 2)

    def _close_preformatted(self) -> None:
        start = self._preformatted.pop()
        if not self._preformatted:
            code = "".join(self._out[start:]).strip("\n")
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
            self._out[start:] = [f"{fence}\n{code}\n{fence}\n\n"] if code.strip() else []

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

    def _is_at_line_start(self) -> bool:
        return not self._out or self._out[-1].endswith("\n")

    def _break(self, lines: int) -> None:
        """End the line; two lines make a paragraph. More are taken out at the end."""
        if self._out:
            last = self._out[-1]
            missing = lines - (len(last) - len(last.rstrip("\n")))
            if missing > 0:
                self._out.append("\n" * missing)
