"""A text rendered while it streams ends up as if it had been rendered whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.render import live as stream_module
from tenuto.tui.render.items import render_item
from tenuto.tui.render.live import ItemRenderer, StreamRenderer
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.item import AssistantItem
from tests.tui.render.documents import documents


def cut(text, data):
    start = 0
    while start < len(text):
        size = data.draw(st.integers(1, data.draw(st.sampled_from([2, 20, 200]))))
        yield text[start : start + size]
        start += size


@given(documents(), st.sampled_from([20, 40, 80, 120]), st.data())
def test_the_end_equals_rendering_the_whole(text, width, data):
    stream = StreamRenderer(width)
    for piece in cut(text, data):
        stream.feed(piece)
        if data.draw(st.booleans()):
            stream.lines()
    assert stream.finish() == render_markdown(text, width)


@given(documents(), st.data())
def test_settled_rows_keep_their_text(text, data):
    stream = StreamRenderer(60)
    settled = []
    for piece in cut(text, data):
        stream.feed(piece)
        rows = [line.text for line in stream.lines()]
        assert rows[: len(settled)] == settled
        settled = rows[: stream.settled]
        if data.draw(st.booleans()):
            assert rows == [line.text for line in stream.lines()]


def _parsed(monkeypatch, text, step):
    """Return how many characters were parsed to stream a text in steps."""
    parsed = 0
    parse = stream_module.parse

    def counting(source, references):
        nonlocal parsed
        parsed += len(source)
        return parse(source, references)

    monkeypatch.setattr(stream_module, "parse", counting)
    stream = StreamRenderer(80)
    for start in range(0, len(text), step):
        stream.feed(text[start : start + step])
        stream.lines()
    stream.finish()
    return parsed


def test_a_long_fence_is_parsed_in_pieces(monkeypatch):
    text = "```python\n" + "value = call(1, 'two')\n" * 2_000 + "```\n"
    assert _parsed(monkeypatch, text, 500) < 4 * len(text)


def test_a_long_list_is_parsed_in_items(monkeypatch):
    text = "".join(f"{number}. an item with some text\n" for number in range(1, 1_500))
    assert _parsed(monkeypatch, text, 500) < 4 * len(text)


def test_many_blocks_are_parsed_once(monkeypatch):
    text = "## Heading\n\nA paragraph.\n\n- a\n- b\n\n> quote\n\n" * 800
    assert _parsed(monkeypatch, text, 500) < 4 * len(text)


def test_a_definition_at_the_end_reaches_back():
    stream = StreamRenderer(60)
    for piece in ("See [the page].\n\nMore.\n\nAnd more.\n\n", "[the page]: https://x.org\n"):
        stream.feed(piece)
        stream.lines()
    assert "See the page (https://x.org)." in stream.finish()[0].text


def test_a_fence_read_in_pieces_gets_its_colours_at_the_end():
    text = "```python\n'''\n" + "text in a string\n" * 60 + "'''\n```\n\nafter\n"
    stream = StreamRenderer(60)
    for start in range(0, len(text), 40):
        stream.feed(text[start : start + 40])
        stream.lines()
    styles = {style for line in stream.finish() for part, style in line.spans if "in a string" in part}
    assert styles == {"code.string"}


def test_the_item_renderer_follows_a_growing_answer():
    renderer = ItemRenderer(RenderOptions)
    item = AssistantItem(id=7)
    text = "# Title\n\n- one\n- two\n\n```py\nx = 1\n```\n\nThe end.\n"
    for end in range(0, len(text), 5):
        item.text = text[:end]
        assert renderer(item, 50) == render_item(item, 50)
    item.text, item.final, item.interrupted = text, True, True
    assert renderer(item, 50) == render_item(item, 50)
    item.text = "Something else altogether."
    assert renderer(item, 30) == render_item(item, 30)


def test_the_item_renderer_starts_anew_for_another_width_or_text():
    renderer = ItemRenderer(RenderOptions)
    item = AssistantItem(id=7, text="a long line of words " * 10)
    renderer(item, 80)
    assert renderer(item, 40) == render_item(item, 40)
    final = AssistantItem(id=7, text="b" + item.text[1:] + "more", final=True)
    assert renderer(final, 40) == render_item(final, 40)


@pytest.mark.parametrize(
    "piece", ["some words that go on and on, ", "| a cell | another cell |\n"], ids=["paragraph", "table"]
)
def test_a_long_block_that_cannot_be_settled_is_drawn_less_often_the_longer_it_is(piece):
    stream = StreamRenderer(80)
    text = "| a | b |\n|---|---|\n" if piece.startswith("|") else ""
    text += piece * (30_000 // len(piece))
    stream.feed(text)
    drawn = 0
    before: list[int] = []
    while len(text) < 36_000:
        text += piece
        stream.feed(piece)
        now = [id(line) for line in stream.lines()]
        drawn += now != before
        before = now
    assert 5 < drawn < 6_000 / len(piece) / 4
    assert stream.finish() == render_markdown(text, 80)
    short = StreamRenderer(80)
    short.feed("one line, ")
    short.lines()
    short.feed("and more")
    assert "and more" in short.lines()[0].text


def test_of_an_answer_that_pauses_all_is_drawn():
    renderer = ItemRenderer(RenderOptions)
    item = AssistantItem(id=7, text="some words that go on and on, " * 1_000)
    renderer(item, 80)
    item.text += "and the last one"
    assert "the last one" not in renderer(item, 80)[-1].text
    item.pausing = True
    assert renderer(item, 80)[-1].text.endswith("the last one")
    assert renderer(item, 80) == render_item(item, 80)
