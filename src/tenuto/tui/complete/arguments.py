"""Completion of what stands behind a command: `/model op` to a model, `/mode p` to a mode. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.command.outcome import Choice
from tenuto.tui.complete.fuzzy import rank
from tenuto.tui.machine.state import CompletionItem

MAX_ROWS = 50
FUZZY_FROM = 3
"""Characters from which on a value need not begin with what is typed: a word may be meant as it is."""


def complete_argument(choices: Sequence[Choice], query: str) -> tuple[CompletionItem, ...]:
    """Return the values that fit what is typed: those that begin so, then, from `FUZZY_FROM` characters on, others.

    A value that is typed out already needs no list.
    """
    if any(choice.value == query for choice in choices):
        return ()
    fitting = [choice for choice in choices if choice.value.lower().startswith(query.lower())]
    if len(query) >= FUZZY_FROM:
        others = [choice for choice in choices if choice not in fitting]
        texts = [f"{choice.value} {choice.label}" for choice in others]
        fitting += [others[place] for place in rank(query, texts, limit=MAX_ROWS)]
    return tuple(map(_item, fitting[:MAX_ROWS]))


def _item(choice: Choice) -> CompletionItem:
    is_folder = choice.value.endswith("/")
    return CompletionItem(insert=choice.value, label=choice.label, detail=choice.detail, runs=not is_folder)
