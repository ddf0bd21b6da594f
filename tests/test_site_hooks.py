"""What the site makes of the pages: links by the names of pages, and pictures in their full size."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs")

from scripts.site_hooks import ROOT, on_page_markdown


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
