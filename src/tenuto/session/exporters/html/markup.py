"""Markup that can only be made safely: text is cleaned and escaped, and everything else is built from elements.

`Markup` is a type of its own, so that the type checker finds every place where plain text would get into the page.
Answers are rendered by markdown-it and code by Pygments, both imported at the first answer.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, NewType, cast

from tenuto.guard.terminal import blank_for_terminal, sanitize_line
from tenuto.session.exporters.fencing import MAX_BRACKETS, MAX_CHARACTERS, clean
from tenuto.text.lexer import highlight

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Markup = NewType("Markup", str)
EMPTY = Markup("")
MAX_CODE, MAX_LINE = 20_000, 2_000
"""Characters of a block of code, and of a line in it, beyond which it stays plain: some lexers cost the square."""
_NON_CHARACTERS = dict.fromkeys(
    [*range(0xFDD0, 0xFDF0), *(p << 16 | c for p in range(17) for c in (0xFFFE, 0xFFFF))], "�"
)
_LIVE_SCHEMES = ("https://", "http://", "mailto:")


def text(content: str) -> Markup:
    """Return a text as it can stand in an element or an attribute: no control characters, nothing that is markup."""
    return Markup(escape(clean(content).translate(_NON_CHARACTERS)))


def line(content: str) -> Markup:
    """Return a text on one line, for labels and attributes."""
    return text(sanitize_line(content))


def element(name: str, /, *children: Markup, **attributes: str | None) -> Markup:
    """Return an element. Attribute names lose a `_` at their end; `None` leaves one out.

    Names are ours, values may be anybody's.
    """
    return Markup(f"{opening(name, **attributes)}{''.join(children)}</{name}>")


def opening(name: str, /, **attributes: str | None) -> Markup:
    """Return the opening tag alone; also for elements that have no end."""
    pairs = [f' {key.rstrip("_")}="{line(value)}"' for key, value in attributes.items() if value is not None]
    return Markup(f"<{name}{''.join(pairs)}>")


def preformatted(content: str, class_: str) -> Markup:
    """Return a text with its own lines and spaces."""
    # A browser drops one newline after the tag.
    return element("pre", Markup("\n"), text(content), class_=class_, dir="auto")


def fold(summary: Markup, *body: Markup, class_: str = "long", id_: str | None = None) -> Markup:
    """Return a part that opens at a click, without a script."""
    return element("details", element("summary", summary), *body, class_=class_, id=id_)


def prose(source: str) -> Markup:
    """Return a Markdown text as markup: raw HTML is text, pictures are named, links go where a user can see.

    A text that is too long or too deep for that stays as it is.
    """
    if len(source) > MAX_CHARACTERS or source.count("[") > MAX_BRACKETS:
        return preformatted(source, "plain")
    parser = _parser()
    try:
        tokens = parser.parse(clean(source).translate(_NON_CHARACTERS))
        for token in tokens:
            _settle(token)
        made = parser.renderer.render(tokens, parser.options, {})
    except RecursionError:
        return preformatted(source, "plain")
    # An entity (`&#x202e;`) becomes a character only now.
    return element("div", Markup(blank_for_terminal(made)), class_="prose", dir="auto")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return the one parser: CommonMark with tables, strikethrough and bare addresses as links, raw HTML as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "linkify": True, "highlight": _highlight})
    links = cast("Any", parser.linkify)  # it comes without types
    links.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False}).add("//", None)
    return parser.enable(["table", "strikethrough", "linkify"]).disable(["html_block", "html_inline"])


def _settle(token: Token) -> None:
    """Take from a token what the page must not have: live links to anywhere else, pictures to load, own styles."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"  # below the headings of the page
    if style := str(token.attrs.pop("style", "")):
        token.attrs["class"] = style.removeprefix("text-align:")
    for child in token.children or ():
        if child.type == "image":
            child.type, child.content = "text", f"[image: {child.content} {str(child.attrs.get('src', ''))[:200]}]"
        elif child.type == "link_open":
            address = str(child.attrs.get("href", ""))
            is_live = address.lower().startswith(_LIVE_SCHEMES)
            target = {"href": address, "rel": "noopener noreferrer nofollow"} if is_live else {"class": "dead"}
            child.attrs = {**target, "title": address}


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Return a block of code as markup, coloured where its language is known and it is short enough."""
    name = language.partition(",")[0].strip("{}.").lower()[:40]
    is_short = len(code) <= MAX_CODE and all(len(row) <= MAX_LINE for row in code.split("\n"))
    rows = ("".join(_coloured(*span) for span in spans) for spans in highlight(code, name if is_short else ""))
    return "<pre><code>" + "\n".join(rows) + "</code></pre>"


def _coloured(words: str, style: str) -> str:
    """Return a piece of code; its class is its style's name (`code-keyword`), plain code has none."""
    made = escape(words)
    return made if style == "code" else f'<span class="{style.replace(".", "-")}">{made}</span>'
