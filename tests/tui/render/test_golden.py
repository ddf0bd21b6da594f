"""What things look like, at three widths, as plain text."""

import pytest

from tenuto.tui.render.items import gap_before, render_item
from tenuto.tui.render.line import Line
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tests.tui.render import golden, samples

WIDTHS = [40, 80, 120]


def _text(lines: list[Line], width: int) -> str:
    assert max(line.width for line in lines) <= width
    return "".join(f"{line.text}{'⏎' if line.soft else ''}\n" for line in lines)


def _items(items: list, width: int, options: RenderOptions) -> str:
    pieces = []
    previous = None
    for item in items:
        pieces.append("\n" * gap_before(previous, item) + _text(render_item(item, width, options), width))
        previous = item
    return "".join(pieces)


@pytest.mark.parametrize("width", WIDTHS)
def test_markdown(width):
    golden.check(f"markdown-{width}", _text(render_markdown(samples.MARKDOWN, width), width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_tools(width, detail):
    options = RenderOptions(detail=detail, now=100.0)
    golden.check(f"tools-{detail}-{width}", _items(samples.tool_items(), width, options))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_items(width, detail):
    options = RenderOptions(detail=detail, now=100.0)
    golden.check(f"items-{detail}-{width}", _items(samples.other_items(), width, options))


def test_tools_side_by_side():
    options = RenderOptions(now=100.0)
    golden.check("tools-160", _items(samples.tool_items()[1:2], 160, options))


def test_ascii_glyphs_are_seven_bit():
    options = RenderOptions(detail="expanded", now=100.0, ascii=True)
    text = _items([*samples.tool_items(), *samples.other_items()], 80, options)
    assert text.replace("⏎", "").replace(" · ", " - ").isascii()
