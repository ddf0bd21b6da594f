"""What the site makes of the pages: names of links, pictures in full, short code in one piece, tables on a phone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs")

from scripts.site_hooks import ROOT, on_page_content, on_page_markdown

LONG = "a text that is much too long for the last column of a table on a phone"


def made_of(text: str, name: str = "page.md") -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=name), meta={})
    return on_page_markdown(text, page)  # type: ignore[arg-type]


def test_a_link_that_is_called_by_its_file_has_the_name_of_its_page():
    assert made_of("see [keys.md](keys.md#vis-keys), [trust.md](trust.md)") == (
        "see [Keys](keys.md#vis-keys), [Trust](trust.md)"
    )
    assert made_of("[the keys](keys.md), [hooks.json](trust.md)") == "[the keys](keys.md), [hooks.json](trust.md)"


def test_a_picture_of_the_screen_leads_to_itself():
    assert made_of("a\n\n![It](pictures/light.svg#only-light)\n") == (
        "a\n\n[![It](pictures/light.svg#only-light)](pictures/light.svg)\n"
    )
    assert made_of("![It](house.svg)") == "![It](house.svg)"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_no_page_of_the_site_names_another_one_by_its_file(page: Path):
    made = made_of(page.read_text(encoding="utf-8"), page.name)
    assert [line for line in made.splitlines() if ".md](" in line and "[`" not in line] == []


def table(*rows: list[str]) -> str:
    head, *others = rows
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in others)
    return f"<table>\n<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def test_short_code_in_a_line_stays_whole_and_other_code_is_left_alone():
    assert on_page_content("<p><code>--mode edits</code></p>") == '<p><code class="short">--mode edits</code></p>'
    for left in ("<code>a line of more than twenty characters</code>", "<pre><code>list\n</code></pre>"):
        assert on_page_content(left) == left


def test_each_cell_of_a_table_with_texts_knows_its_column():
    made = on_page_content(table(["key", 'type <code>"x"</code>', "meaning"], ["a", "", LONG], ["b", "text", "short"]))
    heads = [cell.partition('"')[2].partition('">')[0] for cell in made.split("<td ")[1:]]
    assert heads == ["key", "type &quot;x&quot;", "meaning"] * 2


@pytest.mark.parametrize(
    "rows",
    [
        ([["a", "b"], ["1", LONG]]),
        ([["a", "b", "c", "d"], ["1", "2", "3", "4"]]),
        ([["a", "b", "c", "d", "e", "f"], ["1", "2", "3", "4", "5", LONG]]),
    ],
    ids=("two columns", "figures", "too many columns"),
)
def test_other_tables_stay_tables(rows):
    assert on_page_content(table(*rows)) == table(*rows)
