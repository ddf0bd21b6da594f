"""What a screen reader reads aloud: words and numbers, no rules, no columns, no pictures."""

from __future__ import annotations

import re

from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.item import AssistantItem, ContextItem
from tests.tui.render import samples

SPOKEN = RenderOptions(ascii=True, spoken=True)
DRAWN = re.compile(r"[-=#.:+_]{4,}|\|")
"""What is drawn with signs."""


def spoken(item: AssistantItem | ContextItem) -> str:
    return "\n".join(line.text.rstrip() for line in render_item(item, 80, SPOKEN))


def test_the_window_is_told_in_numbers():
    report = samples.context_report()
    text = spoken(ContextItem(report=report, final=True))
    assert text.isascii() and not DRAWN.search(text), text
    for part in report.parts:
        assert f" {part.tokens:,} " in text
    assert f"compacts over {report.trigger:,}" in text
    assert f"{max(point.tokens for point in report.history):,} tokens" in text


def test_a_table_is_read_cell_by_cell_with_its_heads():
    table = "| name | value |\n|---|---|\n| a | 1 |\n| b | 22 |\n\n---\n"
    text = spoken(AssistantItem(text=table, final=True))
    assert not DRAWN.search(text), text
    assert [" ".join(line.split()) for line in text.split("\n") if line.strip()] == [
        "name: a",
        "value: 1",
        "name: b",
        "value: 22",
    ]
