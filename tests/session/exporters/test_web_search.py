"""Web searches in exports: what was looked for, what was found, what the answer cites (B15)."""

from __future__ import annotations

import re

import msgspec
import pytest

from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import OpaquePart, TextPart, WebSearch, WebSource
from tenuto.session.exporters.html import write_page
from tenuto.session.exporters.markdown import write_markdown
from tests.session.exporters.samples import number, source_of

PAGES = (
    WebSource("https://docs.example.org/a?b=1&c", "A [page] *of* <b>"),
    WebSource("javascript:alert(1)", "Evil"),
    WebSource("https://x.example/](javascript:alert(2))", "Sly"),
)
SEARCH = WebSearch(id="s1", query="what is `so`", sources=PAGES, done=True)
ANSWER = AssistantMessage(
    parts=(
        OpaquePart(provider="p", block=msgspec.Raw(b'{"secret":1}'), search=WebSearch(id="s1", query="what is `so`")),
        OpaquePart(provider="p", block=msgspec.Raw(b'{"secret":2}'), search=SEARCH),
        TextPart(text="It is so.", sources=PAGES),
    )
)


@pytest.mark.parametrize("write", [write_page, write_markdown])
def test_b15_an_export_has_the_search_once_and_the_sources_under_the_answer(write):
    content = "".join(write(source_of(number([ANSWER]))))
    assert content.count("Searched the web") == 1
    assert "3 results" in content
    assert content.index("It is so.") < content.index("Sources") < content.rindex("docs.example.org")
    assert "secret" not in content


def test_b15_only_addresses_of_the_web_are_links():
    content = "".join(write_page(source_of(number([ANSWER]))))
    assert set(re.findall(r'<li><a href="(\w+):', content)) == {"https"}
    assert "javascript:alert(1)" in content


def test_b15_a_page_of_markdown_links_what_is_safe_and_names_the_rest():
    from markdown_it import MarkdownIt

    content = "".join(write_markdown(source_of(number([ANSWER]))))
    html = MarkdownIt("commonmark", {"html": False}).render(content)
    assert set(re.findall(r'href="([^"]*)"', html)) == {"https://docs.example.org/a?b=1&amp;c"}
    assert "Evil · javascript:alert(1)" in html
