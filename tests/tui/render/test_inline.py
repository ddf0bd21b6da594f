"""Inline Markdown of very long lines: read in pieces, the same as in one, and again only where it grew."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tenuto.tui.render import markdown
from tenuto.tui.render.line import Span
from tenuto.tui.render.markdown import CACHED_CHARACTERS, inline_spans

WORDS = (
    "word", "and", "*more*", "**much", "more**", "`code with", "a space`", "`x`", "[a", "link](https://e.org/a)", "[1]",
    "[b](c)", "~~gone~~", "<https://auto.example>", "https://plain.example/x", "\\*", "&amp;", "a*b*c", "snake_case",
    "2 * 3", "***three***", "_under_", "漢字", "🎵", "<b>", "line\nbreak", "two  \nbreaks", "![i](j)", "“quoted”",
    "*", "`",
)  # fmt: skip


def drawn(spans: Sequence[Span]) -> list[tuple[str, str]]:
    """Every character with its style."""
    return [(character, style) for text, style in spans for character in text]


def in_one(content: str) -> Sequence[Span]:
    return markdown._Inline("text").render(markdown._tokens(content, {}))


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(40, 150))])
def test_pieces_give_what_the_whole_gives(seed: int):
    ways = random.Random(seed)
    choice = ways.sample(WORDS, ways.randrange(3, len(WORDS)))
    common = ("word", "and", "*more*", "`x`")
    words = [ways.choice(common if ways.random() < ways.choice((0.5, 0.99)) else choice) for _ in range(1_800)]
    content = " ".join(words).strip()
    assert len(content) > CACHED_CHARACTERS
    assert drawn(inline_spans(content, "text", {})) == drawn(in_one(content))


def test_a_line_that_grows_is_read_again_at_its_end(monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []
    tokens = markdown._tokens
    monkeypatch.setattr(markdown, "_tokens", lambda content, env: read.append(len(content)) or tokens(content, env))
    content = "".join(f"word{number} and *more* " for number in range(3_000))
    for end in range(10_000, len(content), 1_000):
        inline_spans(content[:end], "text", {})
    looks = len(range(10_000, len(content), 1_000))
    assert sum(read) < len(content) + looks * (CACHED_CHARACTERS + 1_000)


def test_a_line_without_an_end_to_its_emphasis_is_still_drawn():
    content = "**" + "word " * 3_000
    assert "".join(text for text, _ in inline_spans(content, "text", {})) == content.rstrip() + " "
