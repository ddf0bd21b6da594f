"""What things look like, at three widths, with their styles (`golden.py`)."""

import pytest
from msgspec.structs import replace

from tenuto.tui.render.items import gap_before, render_item
from tenuto.tui.render.line import EMPTY, Line
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.theme import find_theme
from tenuto.tui.state.item import ContextItem
from tests.tui.render import golden, samples

WIDTHS = [40, 80, 120]
SHOWN_THEMES = ("dark", "light")


def _items(items: list, width: int, options: RenderOptions) -> list[Line]:
    lines: list[Line] = []
    previous = None
    for item in items:
        # As the machine has them: with everything unfolded, no item is folded.
        item = replace(item, folded=options.detail == "folded")
        lines += [EMPTY] * gap_before(previous, item)
        lines += render_item(item, width, options)
        previous = item
    return lines


@pytest.mark.parametrize("width", WIDTHS)
def test_markdown(width):
    golden.check(f"markdown-{width}", golden.drawn(render_markdown(samples.MARKDOWN, width), width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_tools(width, detail):
    options = RenderOptions(detail=detail, now=100.0)
    golden.check(f"tools-{detail}-{width}", golden.drawn(_items(samples.tool_items(), width, options), width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_items(width, detail):
    options = RenderOptions(detail=detail, now=100.0)
    golden.check(f"items-{detail}-{width}", golden.drawn(_items(samples.other_items(), width, options), width))


@pytest.mark.parametrize("width", WIDTHS)
def test_context(width):
    lines = render_item(ContextItem(report=samples.context_report(), final=True), width)
    golden.check(f"context-{width}", golden.drawn(lines, width))


@pytest.mark.parametrize("width", [*WIDTHS, 160])
def test_diffs(width):
    """What edits look like, among them what is special about files and lines."""
    options = RenderOptions(now=100.0)
    golden.check(f"diffs-{width}", golden.drawn(_items(samples.diff_items(), width, options), width))


def test_what_a_style_name_looks_like():
    """Another colour is seen here, in one line a style; every theme of ours knows every name (`test_theme.py`)."""
    themes = [find_theme(name) for name in SHOWN_THEMES]
    names = sorted({name for theme in themes for name in theme.styles})
    rows = [
        f"{name:<22} {' | '.join(f'{golden.describe(theme.resolve(name)):<36}' for theme in themes)}" for name in names
    ]
    head = [f"{theme.name}: {theme.foreground} on {theme.background}" for theme in themes]
    golden.check("styles", "\n".join([*head, "", *(row.rstrip(" |") for row in rows), ""]))


def test_ascii_glyphs_are_seven_bit():
    options = RenderOptions(detail="expanded", now=100.0, ascii=True)
    items = [*samples.tool_items(), *samples.other_items(), *samples.diff_items()]
    text = "".join(line.text for line in _items(items, 80, options))
    assert text.replace(" · ", " - ").isascii()
