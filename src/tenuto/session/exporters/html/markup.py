"""Markup that can only be made safely: text is cleaned and escaped, and everything else is built from elements.

`Markup` is a type of its own, so that the type checker finds every place where plain text would get into the page.
"""

from __future__ import annotations

import re
from html import escape as _escape
from typing import NewType

from tenuto.guard.sanitize import sanitize_for_terminal, sanitize_line

Markup = NewType("Markup", str)
EMPTY = Markup("")
_NON_CHARACTERS = re.compile(
    "[\ufdd0-\ufdef" + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF)) + "]"
)


def text(content: str) -> Markup:
    """Return a text as it can stand in an element or an attribute: no control characters, nothing that is markup."""
    unix = content.replace("\r\n", "\n").replace("\r", "\n") if "\r" in content else content
    return Markup(_escape(_drop_non_characters(sanitize_for_terminal(unix)), quote=True))


def line(content: str) -> Markup:
    """Return a text on one line, for labels and attributes."""
    return Markup(_escape(_drop_non_characters(sanitize_line(content)), quote=True))


def _drop_non_characters(content: str) -> str:
    return _NON_CHARACTERS.sub("\ufffd", content)


def join(*parts: Markup) -> Markup:
    """Return markup put together."""
    return Markup("".join(parts))


def element(name: str, /, *children: Markup, **attributes: str | int | float | None) -> Markup:
    """Return an element. Attribute names lose a `_` at their end, other ones become `-`; `None` leaves one out.

    Names are ours, values may be anybody's.
    """
    return Markup(f"{opening(name, **attributes)}{''.join(children)}</{name}>")


def opening(name: str, /, **attributes: str | int | float | None) -> Markup:
    """Return the opening tag alone; also for elements that have no end."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{line(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>")


def closing(name: str) -> Markup:
    """Return a closing tag."""
    return Markup(f"</{name}>")


def preformatted(content: str, class_: str | None = None) -> Markup:
    """Return a text with its own lines and spaces."""
    # The parser drops one newline after the tag.
    return element("pre", Markup("\n"), text(content), class_=class_, dir="auto")


def fold(summary: Markup, *body: Markup, class_: str, id_: str | None = None, is_open: bool = False) -> Markup:
    """Return a part that opens at a click, without a script."""
    opened = "open" if is_open else None
    return element("details", element("summary", summary), *body, class_=class_, id=id_, open=opened)
