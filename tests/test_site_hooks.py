"""What the site's hook makes of a page: short code in one piece, tables with a column of texts as blocks on a phone."""

from __future__ import annotations

import pytest

pytest.importorskip("mkdocs")

from scripts.site_hooks import on_page_content

LONG = "a text that is much too long for the last column of a table on a phone"


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
