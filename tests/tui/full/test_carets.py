"""There is one caret, and the prompt says nothing that does not hold: on both screens, at every width."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from tenuto.tui.chrome import KEYS_HINT, PLACEHOLDER
from tenuto.tui.first_paint.paint import fit_placeholder
from tenuto.tui.full.composer import keep_whole
from tenuto.tui.keys.bindings import fit_phrases
from tenuto.tui.render.width import split_graphemes
from tests.tui.full.support import Screen, running_app
from tests.tui.pictures import scenes


def prompt_row(screen: Screen) -> str:
    (row,) = (row for row in screen.rows() if row.startswith("❯"))
    return row


def carets(screen: Screen) -> int:
    """Cells drawn in reverse."""
    strips = screen.app.screen._compositor.render_strips()
    return sum(bool(segment.style and segment.style.reverse) for strip in strips for segment in strip)


@pytest.mark.parametrize("keys", [["?"], ["ctrl+f"], ["?", "x"]])
async def test_what_takes_the_keys_has_the_only_caret(keys: list[str]) -> None:
    async with running_app(scenes.OPENED, size=(80, 24)) as screen:
        await screen.burst(["escape"])
        assert carets(screen) == 1
        assert prompt_row(screen).endswith(KEYS_HINT)
        await screen.burst(keys)
        assert carets(screen) == 1
        assert prompt_row(screen).strip() == "❯"
        await screen.burst(["escape"] * len(keys))
        assert carets(screen) == 1
        assert prompt_row(screen).endswith(KEYS_HINT)


@pytest.mark.parametrize("size", [(40, 15), (50, 12), (30, 8), (20, 5), (16, 3)])
async def test_the_prompt_is_on_every_screen_whatever_is_open(size: tuple[int, int]) -> None:
    async with running_app(*scenes.working_through_a_list(), size=size) as screen:
        assert prompt_row(screen)
        for key in ("?", "escape", "ctrl+f", "escape", "/"):
            await screen.burst([key])
            assert prompt_row(screen), key


async def test_keys_after_looking_away_stay_in_order() -> None:
    async with running_app(scenes.OPENED, size=(80, 24)) as screen:
        for word in ("Which", " one"):
            screen.app.post_message(events.AppBlur())
            for character in word:
                screen.app.post_message(events.Key(character if character != " " else "space", character))
            await screen.settle()
        assert screen.app.composer.text == "Which one"
        assert carets(screen) == 1


@given(st.integers(1, 100))
def test_the_first_light_says_as_much_as_the_screen_after_it(width: int) -> None:
    assert fit_placeholder(width) == fit_phrases(PLACEHOLDER, KEYS_HINT, width)[:width]
    assert width < len(KEYS_HINT) or fit_placeholder(width).endswith(KEYS_HINT), "a phrase is there whole, or not"


@pytest.mark.parametrize("theme", ["light", "dark", "ansi"])
async def test_the_words_of_an_empty_prompt_have_the_colour_of_hints(theme: str) -> None:
    """Dim alone was black on xterm's white: an empty prompt looked like a written one."""
    async with running_app(scenes.OPENED, size=(80, 24), theme=theme) as screen:
        wanted = screen.app.palette.style("placeholder")
        caret, *words = [style for text, style, _ in prompt_segments(screen) if text.strip()]
        assert caret and caret.reverse and not caret.dim and words
        assert all(style and (style.color, style.dim) == (wanted.color, wanted.dim) for style in words)
        await screen.burst("hello")
        assert not any(style and style.dim for _, style, _ in prompt_segments(screen))


def prompt_segments(screen: Screen) -> list[Segment]:
    (strip,) = screen.app.composer.render_lines(Region(0, 0, 60, 1))
    return list(strip)


CHARACTERS = [
    *"a1 é",
    "e\u0301",
    "\u0301",
    "👍",
    "\U0001f3fd",
    "\u200d",
    "👩",
    "🇩",
    "🇪",
    "한",
    "\u1161",
    "क",
    "ि",
    "्",
    "\ufe0f",
    "日",
]


@given(st.lists(st.lists(st.sampled_from(CHARACTERS), max_size=3).map("".join), min_size=1, max_size=5))
def test_a_character_is_drawn_in_one_style_wherever_the_caret_cuts_it(pieces: list[str]) -> None:
    styles = [Style(reverse=True), Style(bold=True)]
    strip = Strip([Segment(f"row {pieces[0]}"), *(Segment(text, styles[n % 2]) for n, text in enumerate(pieces[1:]))])
    whole = keep_whole(strip)
    assume(whole.text.startswith(strip.text))  # else what is one character is wider than its parts
    drawn = [style for text, style, _ in whole for _ in text]
    for start, end, _cells in split_graphemes(strip.text):
        assert len({id(style) for style in drawn[start:end]}) <= 1
