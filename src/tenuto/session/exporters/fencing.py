"""Foreign text inside a Markdown file: it stays what it is and changes nothing around it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tenuto.guard.terminal import sanitize_for_terminal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARACTERS = 200_000
"""A longer text is fenced as it stands: parsing it would take long."""
MAX_BRACKETS = 4_000
"""The parser costs the square of them."""
_BACKTICKS = re.compile(r"`+")
_BLANK = re.compile(r"(\n[ \t]*\n)")
_PREFIX = re.compile(r"^[ \t>*+.)\-\d]*\t", re.MULTILINE)
_MOST_BACKSLASHES = 1_000
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SENTINEL = "tenuto-end-of-text"


def clean(text: str) -> str:
    """Return a text without control characters, its lines ending as Unix has them."""
    return sanitize_for_terminal(text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)


def fence(text: str, language: str = "") -> str:
    """Return a text as a block of code whose fence is longer than any run of its sign in the text."""
    text = clean(text).removesuffix("\n")
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def code(text: str) -> str:
    """Return a short text as inline code, on one line; empty stays empty."""
    words = " ".join(clean(text).split())
    if not words:
        return ""
    longest = max(map(len, _BACKTICKS.findall(words)), default=0)
    marks = "`" * (longest + 1)
    gap = " " if longest else ""
    return f"{marks}{gap}{words}{gap}{marks}"


def plain(text: str) -> str:
    """Return a text on one line in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<|~&])", r"\\\1", " ".join(clean(text).split()))


def quote(text: str) -> str:
    """Return a Markdown text as a quotation: whatever it leaves open ends with it."""
    if "\t" in text and "<" in text:
        # Behind the sign a tab is narrower: what was a block of code would be text, and its tags would be live.
        text = _PREFIX.sub(lambda found: found[0].expandtabs(4), text)
    quoted = _quoted(embed(text))
    return _quoted(fence(text, "markdown")) if "<" in quoted and _has_html(quoted) else quoted


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def embed(text: str) -> str:
    """Return somebody's Markdown such that it can stand between ours: no HTML in it, no fence left open.

    A text that cannot be made so is fenced.
    """
    text = clean(text).strip("\n")
    if len(text) > MAX_CHARACTERS:
        return fence(text, "markdown")
    try:
        made = _without_html(text)
        left_open = _left_open(made)
        if left_open:
            made = f"{made}\n{left_open}"
        # Readers differ on what is a fence and what a table: where one would still see a tag, all of it is code.
        is_open = bool(left_open) and bool(_left_open(made))
        return fence(text, "markdown") if is_open or ("<" in made and _has_html(made)) else made
    except RecursionError:
        return fence(text, "markdown")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(["html_block", "html_inline"])


@lru_cache(maxsize=1)
def _html_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _blocks(text: str) -> list[Token]:
    """Parse the blocks of a text and leave their inline content alone."""
    parser, tokens = _parser(), list["Token"]()
    parser.block.parse(text, parser, {}, tokens)
    return tokens


def _without_html(text: str) -> str:
    """Write what would be a tag as text, outside of code; where code cannot be told for sure, in code spans as well."""
    if "<" not in text:
        return text
    escaped = _outside_blocks(text, _escape_outside_spans)
    return _outside_blocks(text, _escape_tags) if _has_html(escaped) else escaped


def _has_html(text: str) -> bool:
    """Return whether a reader that knows HTML finds any; a text that would take it long counts as one that has."""
    if text.count("[") > MAX_BRACKETS:
        return True
    tokens = _html_parser().parse(text)
    inline = (child for token in tokens for child in token.children or ())
    return any(token.type in ("html_block", "html_inline") for token in (*tokens, *inline))


def _outside_blocks(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of fences and indented code."""
    lines = text.split("\n")
    inside = {
        number
        for token in _blocks(text)
        if token.type in ("fence", "code_block") and token.map
        for number in range(*token.map)
    }
    parts: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and (end in inside) == (start in inside):
            end += 1
        block = "\n".join(lines[start:end])
        parts.append(block if start in inside else change(block))
        start = end
    return "\n".join(parts)


def _escape_tags(block: str) -> str:
    return _TAG.sub("&lt;", block)


def _escape_outside_spans(block: str) -> str:
    parts: list[str] = []
    for paragraph in _BLANK.split(block):
        position = 0
        for start, end in _code_spans(paragraph):
            parts += [_escape_tags(paragraph[position:start]), paragraph[start:end]]
            position = end
        parts.append(_escape_tags(paragraph[position:]))
    return "".join(parts)


def _code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each code span: a run of backticks up to the next run of the same length."""
    runs = [(found.start(), found.end()) for found in _BACKTICKS.finditer(paragraph)]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    index = 0
    while index < len(runs):
        start, end = runs[index]
        if _is_escaped(paragraph, start):
            start += 1
        same = by_length.get(end - start, [])
        following = bisect_right(same, index)
        if start < end and following < len(same):
            index = same[following]
            yield start, runs[index][1]
        index += 1


def _is_escaped(text: str, position: int) -> bool:
    before = text[max(0, position - _MOST_BACKSLASHES) : position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _left_open(text: str) -> str:
    """Return the marks of a fence that would swallow what follows, empty when there is none."""
    tokens = _blocks(f"{text}\n\n{_SENTINEL}")
    last = tokens[-1]
    if last.type == "fence" and last.level == 0 and _SENTINEL in last.content:
        return last.markup
    return ""
