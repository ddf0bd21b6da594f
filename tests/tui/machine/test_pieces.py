"""A long answer is several items; together they look, and say, what the whole does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.command.outcome import Copy
from tenuto.protocol.part import TextPart
from tenuto.tui.chrome import parting_lines
from tenuto.tui.render.items import render_item
from tenuto.tui.render.line import EMPTY
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state import pieces
from tenuto.tui.state.intents import ActOnBlock, MoveBlock
from tenuto.tui.state.item import AssistantItem, whole_item
from tenuto.tui.state.pieces import Cutter, pieces_of
from tests.server.scripts import markdown
from tests.tui.machine.driving import Driver
from tests.tui.machine.test_turn import answer, finished, started, text_delta
from tests.tui.render.documents import documents


@contextmanager
def short_pieces(characters: int) -> Iterator[None]:
    with patch.object(pieces, "PIECE_CHARACTERS", characters):
        yield


def drawn(parts: list[str], width: int) -> list[object]:
    """The rows of the parts, as items are drawn: an empty row between two that are to be seen."""
    rows: list[object] = []
    for part in parts:
        more = render_markdown(part, width)
        rows += [EMPTY, *more] if rows and more else more
    return rows


@given(documents(40), st.integers(1, 60), st.sampled_from([30, 80]))
@example("- a\nlazy\n  ```\nH\n\nword\n```\n\nend\n", 1, 80)
@example("2. a\n   ```\nH\n\nword\n   ```\n\nend\n", 1, 80)
@example("text\n2. a\n   ```\nH\n\nword\n   ```\n\nend\n", 1, 80)
@example("- - -\n  ```\nH\n\nword\n  ```\n\nend\n", 1, 80)
@example("text\n\n[a] b\n\nmore\n\n[a]: /u", 1, 80)
@example("1.\n\n   ```\nword\n\nword\n\n", 1, 80)
@example("1.\n  ```\nH\n\nword\n  ```\n\nend\n", 1, 80)
def test_pieces_are_drawn_as_the_whole_is(text: str, characters: int, width: int) -> None:
    with short_pieces(characters):
        parts = pieces_of(text)
    assert "".join(parts) == text
    assert drawn(parts, width) == render_markdown(text, width)


@given(documents(40), st.integers(1, 60), st.data())
def test_a_text_that_grows_is_cut_where_the_whole_is(text: str, characters: int, data: st.DataObject) -> None:
    with short_pieces(characters):
        cutter, begin, cut = Cutter(), 0, list[str]()
        for place in range(len(text) + 1):
            if data.draw(st.integers(0, 9)) == 0 or place == len(text):
                while end := cutter.cut(text[:place], begin):
                    cut.append(text[begin:end])
                    begin = end
        whole = pieces_of(text, cut)
    assert whole in ([*cut, text[begin:]], [text])
    assert len(whole) == 1 or all(piece is same for piece, same in zip(whole, cut, strict=False))


def test_ordinary_answers_have_pieces() -> None:
    text = markdown(100)
    parts = pieces_of(text)
    assert "".join(parts) == text
    assert max(map(len, parts)) < pieces.PIECE_CHARACTERS + 2_000


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "value = call[1]\n\nmore = 2\n" * 800 + "```\n",
        "".join(f"- item {number}\n\n  and its text\n\n" for number in range(800)),
        "".join(f"| a {number} | b |\n" for number in range(2_000)),
    ],
)
def test_one_long_block_is_one_piece(text: str) -> None:
    assert pieces_of(text) == [text]


def test_code_in_a_list_does_not_keep_the_rest_together() -> None:
    step = "1. Do this:\n\n   ```sh\n   make it\n   ```\n\n2. And that:\n   ```\n   so\n   ```\n\nThen look at it.\n\n"
    assert len(pieces_of(step * 300)) > 2


LONG = markdown(40)


def streamed(text: str) -> Driver:
    driver = Driver()
    driver.feed(started(), *[text_delta(text[begin : begin + 900]) for begin in range(0, len(text), 900)])
    return driver


def seen(driver: Driver) -> list[tuple[str, int, bool, bool, int]]:
    items = [item for item in driver.items if isinstance(item, AssistantItem)]
    return [(item.text, item.seq, item.final, item.interrupted, item.piece) for item in items]


@pytest.mark.parametrize("reason", ["stop", "interrupted"])
def test_a_long_answer_is_the_same_items_live_and_after_a_resume(reason: Any) -> None:
    live, resumed = streamed(LONG), Driver()
    versions = [item.version for item in live.items]
    message = answer(TextPart(text=LONG), seq=7, stop_reason=reason)
    live.feed(message)
    resumed.feed(message)
    assert seen(live) == seen(resumed)
    assert [item[3] for item in seen(live)] == [False] * (len(versions) - 1) + [reason == "interrupted"]
    assert [item.version for item in live.items][:-1] == versions[:-1], "whole pieces are not drawn again"


def test_of_a_stream_that_ends_only_the_last_piece_is_interrupted() -> None:
    driver = streamed(LONG)
    driver.feed(finished(outcome="failed", error="gone"))
    marked = [item[3] for item in seen(driver)]
    assert len(marked) > 2
    assert marked == [False] * (len(marked) - 1) + [True]


def test_an_answer_that_defines_its_links_at_its_end_is_whole_then() -> None:
    text = f"See [this].\n\n{LONG}\n[this]: https://example.org\n"
    driver = streamed(text)
    assert len(driver.items) > 1
    driver.feed(answer(TextPart(text=text), seq=7))
    assert [item[0] for item in seen(driver)] == [text]


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_piece_is_copied_opened_and_left_behind_with_the_whole_answer(place: int) -> None:
    driver = streamed(LONG)
    driver.feed(answer(TextPart(text=LONG), seq=7), text_delta("Another one."))
    pieces_of_it = driver.items[:-1]
    effects = driver.feed(MoveBlock(-1, at=pieces_of_it[place].id), ActOnBlock("copy"))
    assert Copy(LONG.strip("\n")) in effects
    whole = whole_item(driver.items, pieces_of_it[place])
    assert isinstance(whole, AssistantItem)
    assert whole.text == LONG
    assert whole_item(driver.items, driver.items[-1]) is driver.items[-1]
    lines = parting_lines(pieces_of_it, "answer", 80, 24, lambda item, width: render_item(item, width, RenderOptions()))
    assert list(lines) == render_markdown(LONG, 80)
