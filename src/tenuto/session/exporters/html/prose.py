"""Markdown to markup (markdown-it, imported at the first answer). Raw HTML is text, links go where a user can see.

The tokens are rendered here and not by markdown-it: every element and attribute of the page is made in one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tenuto.session.exporters.html.code import code_block
from tenuto.session.exporters.html.markup import Markup, closing, element, join, opening, preformatted, text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARACTERS = 200_000
"""A longer text is shown as it stands: nobody reads it as prose, and parsing would take long."""
MAX_BRACKETS = 4_000
"""A text with more of them is no prose either, and the parser costs their square."""
LIVE_SCHEMES = ("https://", "http://", "mailto:")
_ADDRESS = re.compile(r"\bhttps?://[^\s<>\"“”`]+[^\s<>\"“”`]")
_PUNCTUATION = ".,;:!?'*_~]}"
_ELEMENTS = frozenset(
    "p em strong s blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split()  # noqa: SIM905
)
_ALIGNED = {"text-align:left": "left", "text-align:right": "right", "text-align:center": "center"}


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the one parser: CommonMark with tables and strikethrough, raw HTML as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])


def prose(source: str) -> Markup:
    """Return a Markdown text as markup. A text that is too long or too deep for that stays as it is."""
    if len(source) > MAX_CHARACTERS or source.count("[") > MAX_BRACKETS:
        return preformatted(source, "plain")
    try:
        tokens = parser().parse(source)
    except RecursionError:
        return preformatted(source, "plain")
    return element("div", _render(tokens), class_="prose", dir="auto")


def _render(tokens: Sequence[Token]) -> Markup:
    parts: list[Markup] = []
    for token in tokens:
        special = _SPECIAL.get(token.type)
        if special is not None:
            parts.append(special(token))
        elif token.hidden:
            continue
        elif token.tag in _ELEMENTS and token.nesting:
            parts.append(_opened(token) if token.nesting > 0 else closing(_tag(token)))
        else:
            parts.append(text(token.content))
    return join(*parts)


def _tag(token: Token) -> str:
    """Return the element's name; headings of an answer stand below those of the page."""
    return f"h{min(int(token.tag[1]) + 2, 6)}" if token.type.startswith("heading_") else token.tag


def _opened(token: Token) -> Markup:
    start = token.attrs.get("start")
    return opening(
        _tag(token),
        start=int(start) if token.tag == "ol" and start is not None else None,
        class_=_ALIGNED.get(str(token.attrs.get("style", ""))),
    )


def _inline(token: Token) -> Markup:
    """Return a line of text with what is in it; an address that stands by itself is a link as well."""
    parts: list[Markup] = []
    in_link = 0
    for child in token.children or ():
        in_link += child.nesting if child.type.startswith("link_") else 0
        is_plain = child.type == "text" and not in_link
        parts.append(_with_links(child.content) if is_plain else _render((child,)))
    return join(*parts)


def _with_links(words: str) -> Markup:
    """Return a text, its bare addresses as links, without a full stop behind one or a bracket around it."""
    parts: list[Markup] = []
    reached = 0
    for found in _ADDRESS.finditer(words):
        address = found[0].rstrip(_PUNCTUATION)
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(_PUNCTUATION)
        parts += [text(words[reached : found.start()]), _live(address), text(address), closing("a")]
        reached = found.start() + len(address)
    return join(*parts, text(words[reached:]))


def _fence(token: Token) -> Markup:
    words = token.info.replace("{", " ").replace(",", " ").split()
    return code_block(token.content, words[0] if words else "")


def _link(token: Token) -> Markup:
    """Return the opening of a link; only addresses that a user expects behind one are live."""
    address = str(token.attrs.get("href", ""))
    if not address.lower().startswith(LIVE_SCHEMES):
        return opening("a", class_="dead", title=address)
    return _live(address)


def _live(address: str) -> Markup:
    return opening("a", href=address, title=address, rel="noopener noreferrer nofollow")


def _image(token: Token) -> Markup:
    """Return a picture's words and address: the page asks for nothing from anywhere."""
    address = str(token.attrs.get("src", ""))
    shown = address if len(address) <= 200 else f"{address[:200]}…"
    return element("span", text(f"[image: {token.content} {shown}]"), class_="named")


_SPECIAL: dict[str, Callable[[Token], Markup]] = {
    "inline": _inline,
    "fence": _fence,
    "code_block": lambda token: code_block(token.content, ""),
    "code_inline": lambda token: element("code", text(token.content)),
    "softbreak": lambda _token: Markup("\n"),
    "hardbreak": lambda _token: Markup("<br>"),
    "hr": lambda _token: Markup("<hr>"),
    "link_open": _link,
    "link_close": lambda _token: closing("a"),
    "image": _image,
}
