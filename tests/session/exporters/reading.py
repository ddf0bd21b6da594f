"""A page as a strict reader sees it: its elements, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img"})
_ELEMENTS = """
html head meta title style script body nav main section header footer article details summary
div span p a b i mark code pre time ol ul li h1 h2 h3 h4 h5 h6 em strong s blockquote table thead tbody
tr th td br hr img
"""
_ATTRIBUTES = """
lang charset http-equiv content name class id href title rel dir open datetime start alt src
"""
ELEMENTS = frozenset(_ELEMENTS.split())
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
LIVE = re.compile(r"#[eb]\d+\Z|https?://|mailto:")
Attributes = dict[str, str]


@dataclass
class Element:
    tag: str
    attributes: Attributes
    path: tuple[str, ...]
    words: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return "".join(self.words)


class Page(HTMLParser):
    """All elements in order; each knows the words in it. Raises on what is not well-formed."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.declarations: list[str] = []
        self._open: list[Element] = []
        self.feed(content)
        self.close()
        assert not self._open, f"never closed: {[element.tag for element in self._open]}"

    def handle_starttag(self, tag: str, attrs) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute twice: {attrs}"
        path = tuple(element.tag for element in self._open)
        made = Element(tag, {name: value or "" for name, value in attrs}, path)
        self.elements.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attrs) -> None:
        raise AssertionError(f"<{tag}/> is no HTML")

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1].tag == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.words.append(data)

    def handle_decl(self, decl: str) -> None:
        self.declarations.append(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")

    def all(self, tag: str = "", class_: str = "") -> list[Element]:
        return [one for one in self.elements if (not tag or one.tag == tag) and (not class_ or class_ in one.classes)]

    def by_id(self, name: str) -> Element:
        (found,) = [element for element in self.elements if element.attributes.get("id") == name]
        return found


def check_page(content: str) -> Page:
    """Read a page and hold it to everything that must be true of any."""
    content.encode("utf-8")
    page = Page(content)
    assert page.declarations == ["DOCTYPE html"]
    for element in page.elements:
        assert element.tag in ELEMENTS, element.tag
        assert set(element.attributes) <= ATTRIBUTES, element
        address = element.attributes.get("href")
        assert address is None or LIVE.match(address), address
        source = element.attributes.get("src")
        assert source is None or source.startswith("data:image/"), source
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    targets = [
        element.attributes["href"] for element in page.all("a") if element.attributes.get("href", "").startswith("#")
    ]
    assert {target[1:] for target in targets} <= set(ids)
    assert len(page.all("style")) == len(page.all("script")) == 1
    return page
