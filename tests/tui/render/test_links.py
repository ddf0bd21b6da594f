"""Addresses and files become links; what is copied, and where rows break, stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.render.line import Line, address_spans, copy_text, file_in_code, link_addresses, wrap
from tenuto.tui.render.markdown import render_markdown


def targets(lines: list[Line]) -> list[tuple[str, str]]:
    """The text and the target of each linked span."""
    return [(text, style.rpartition("@")[2]) for line in lines for text, style in line.spans if "@" in style]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://e.org/a?b=1#c.", ["https://e.org/a?b=1#c"]),
        ("(https://e.org/wiki/Foo_(bar))", ["https://e.org/wiki/Foo_(bar)"]),
        ("<https://e.org>, http://f.org!", ["https://e.org", "http://f.org"]),
        ("http:// and ftp://e.org", []),
    ],
)
def test_addresses_end_where_the_sentence_goes_on(text: str, found: list[str]) -> None:
    assert [text[begin:end] for begin, end in address_spans(text)] == found


@pytest.mark.parametrize(
    ("code", "link"),
    [
        ("src/app.py", "@path:src/app.py"),
        ("app.py:12", "@path:app.py#12"),
        ("./a/b.test.ts:3:7", "@path:./a/b.test.ts#3"),
        ("~/x.md", "@path:~/x.md"),
        ("asyncio.run", ""),
        ("and/or", ""),
        ("app.py", ""),
        ("1.5/2.5", ""),
        ("a b/c.py", ""),
    ],
)
def test_code_that_names_a_file(code: str, link: str) -> None:
    assert file_in_code(code) == link


def test_markdown_links_bare_addresses_and_files_in_code() -> None:
    lines = render_markdown("Look at `src/app.py:3` and https://e.org/x, or [here](https://f.org).", 100)
    assert targets(lines)[:3] == [
        ("src/app.py:3", "path:src/app.py#3"),
        ("https://e.org/x", "https://e.org/x"),
        ("here", "https://f.org"),
    ]


def test_an_address_over_two_rows_is_one_link() -> None:
    address = "https://example.org/" + "path/" * 8 + "end"
    lines = link_addresses(wrap([(f"see {address} there", "output")], 24))
    assert len(lines) > 2
    assert {target for _text, target in targets(lines)} == {address}
    assert "".join(text for text, _target in targets(lines)) == address


@given(
    st.lists(st.sampled_from(["https://e.org/x", "word", "(", ")", "字", ". ", " ", "-", "http://f.org,"])),
    st.integers(4, 40),
)
def test_linking_changes_no_text_and_no_copy(parts: list[str], width: int) -> None:
    lines = wrap([("".join(parts), "text")], width)
    linked = link_addresses(lines)
    assert [line.text for line in linked] == [line.text for line in lines]
    assert copy_text(linked) == copy_text(lines)
    assert "\x1b" not in copy_text(linked)
