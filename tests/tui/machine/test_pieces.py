"""A long answer is several items; together they look, and say, what the whole does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.tui.render.line import EMPTY
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.state import pieces
from tenuto.tui.state.pieces import Cutter, pieces_of
from tests.server.scripts import markdown
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
