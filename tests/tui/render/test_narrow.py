"""A terminal may have any size, for a moment or for good: what is drawn for it comes to an end (R-100)."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from types import FrameType

import pytest

from tenuto.protocol.event import AnyEvent
from tenuto.tui.render.items import render_item
from tenuto.tui.render.line import break_code, break_text
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.intents import Intent
from tenuto.tui.state.item import ContextItem
from tests.tui.render import golden, samples
from tests.tui.render.test_golden_panels import SCENES, drawn

WIDTHS = range(1, 14)
PATIENCE = 30


@pytest.fixture(autouse=True)
def hang_guard() -> Iterator[None]:
    """Fail where it would go on for ever, and take all the memory there is."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it does not come to an end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("text", ["two words", "日本 words", "a" * 9, " ", ""])
@pytest.mark.parametrize("width", [-3, 0, 1])
def test_r100_text_is_wrapped_where_margins_leave_no_cell(text: str, width: int) -> None:
    for rows in (break_text(text, width), break_code(text, width)):
        kept = "".join(text[start:end] for start, end in rows)
        assert kept.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("inputs", SCENES.values(), ids=SCENES)
def test_r100_panels_are_drawn_at_every_width(inputs: Sequence[AnyEvent | Intent]) -> None:
    for width in WIDTHS:
        sheet = golden.Sheet(width)
        drawn(sheet, inputs)
        assert sheet.text()


@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_r100_items_are_drawn_at_every_width(detail: str) -> None:
    options = RenderOptions(detail=detail, now=100.0)  # type: ignore[arg-type]
    items = [*samples.tool_items(), *samples.other_items(), *samples.diff_items()]
    items.append(ContextItem(report=samples.context_report(), final=True))
    for width in WIDTHS:
        assert any(render_item(item, width, options) for item in items)
        assert render_markdown(samples.MARKDOWN, width)
