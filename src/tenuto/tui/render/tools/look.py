"""What a tool's renderer is: a title, the words for its subject, facts beside it, and a body below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from tenuto.protocol.part import text_of
from tenuto.text.writable import to_json
from tenuto.tui.machine.item import ToolItem
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.frame import Frame, rows_of
from tenuto.tui.render.line import Line, Span

Arguments = dict[str, Any]
FOLDED_LINES = 4
FAILURE_ROWS = 3
"""Rows of what went wrong, wrapped."""


@lru_cache(maxsize=256)
def read_arguments(text: str) -> Arguments:
    """Return a call's arguments; nothing while they are incomplete or when they are no object."""
    try:
        value: object = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}


def argument(arguments: Arguments, *names: str) -> str:
    """Return the first of the named arguments that is there, as text."""
    for name in names:
        value = arguments.get(name)
        if value is not None and value != "":
            return value if isinstance(value, str) else to_json(value).decode()
    return ""


def result_text(item: ToolItem) -> str:
    """Return what the model got as text; empty while there is no result."""
    return text_of(item.result.parts) if item.result is not None else ""


def is_cut(item: ToolItem) -> bool:
    """Say whether the result has a notice in the place of what was left out."""
    return item.result is not None and item.result.truncated


def count_lines(text: str) -> int:
    """Return how many lines a text has, a last empty one not counted."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def first_lines(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the first lines of the result, all of them when unfolded."""
    return rows_of(ansi_lines(result_text(item)), frame, FOLDED_LINES, 0, is_cut=is_cut(item))


def only_unfolded(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the result when unfolded, nothing otherwise."""
    return first_lines(item, frame) if frame.unfolded else []


def no_subject(_arguments: Arguments) -> str:
    """Return nothing: the title says it all."""
    return ""


def no_facts(_item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return nothing: there is nothing to count."""
    return ()


class Look(Struct, frozen=True):
    """How calls of one tool are shown. `subject` is used where the call brings no summary of its own."""

    title: str
    subject: Callable[[Arguments], str] = no_subject
    facts: Callable[[ToolItem, Frame], Sequence[Span]] = no_facts
    body: Callable[[ToolItem, Frame], list[Line]] = first_lines
    live: Callable[[ToolItem, Frame], list[Line]] = lambda _item, _frame: []
    quiet: bool = False
    """Whether a folded call that went well is its head alone."""
