"""Which word of a draft asks for completion, `/command` at the start or `@path` anywhere, and completion of commands.

Those come from the same table that `/help` shows. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nsmallest
from itertools import compress
from typing import Literal

from msgspec import Struct

from tenuto.command.outcome import Choice
from tenuto.command.registry import COMMANDS, Command, find_command
from tenuto.text.bounding import shorten
from tenuto.text.mention import write_mention
from tenuto.tui.state.intents import CompletionItem

WORD_LIMIT = 1_000
"""Characters before the cursor that are looked at."""


_ARGUMENT = re.compile(r"/([A-Za-z?][\w-]*)[ \t]+(.*)\Z")


class Target(Struct, frozen=True):
    """The characters `start` to `end` of a draft, and what to look for there (without `/`, `@` or quotes).

    An "argument" stands behind the `command` of that name.
    """

    kind: Literal["command", "argument", "path"]
    query: str
    start: int
    end: int
    command: str = ""


def find_target(text: str, cursor: int, own: Sequence[Command] = ()) -> Target | None:
    """Return what the word at the cursor asks for, `None` when it asks for nothing. `own` are brought commands."""
    before = text[:cursor]
    if before.startswith("/") and not any(character.isspace() for character in before[:WORD_LIMIT]):
        if len(before) > WORD_LIMIT or "/" in before[1:]:
            return None
        return Target("command", before[1:], 0, _word_end(text, cursor))
    argument = _ARGUMENT.match(before)
    if argument is not None and argument[2] and len(before) <= WORD_LIMIT:
        command = find_command(argument[1]) or next((one for one in own if one.name == argument[1]), None)
        if command is not None and command.completes:
            end = text.find("\n", cursor)
            return Target("argument", argument[2], argument.start(2), len(text) if end < 0 else end, command.name)
    at = before.rfind("@", max(0, cursor - WORD_LIMIT))
    if at < 0 or (at > 0 and not before[at - 1].isspace() and before[at - 1] not in "([{\"'"):
        return None
    query = before[at + 1 :]
    if query.startswith('"'):
        if '"' in query[1:] or "\n" in query:
            return None
        end = cursor + 1 if text[cursor : cursor + 1] == '"' else cursor
        return Target("path", query[1:], at, end)
    if any(character.isspace() for character in query):
        return None
    return Target("path", query, at, _word_end(text, cursor))


def _word_end(text: str, cursor: int) -> int:
    end = cursor
    while end < len(text) and not text[end].isspace():
        end += 1
    return end


# --- commands ---


SCORED = 1_000
"""How many of the strings that pass the filter are scored at most."""


def matching(query: str, texts: Sequence[str], enough: int) -> list[int]:
    """Return the places of the texts that have the characters of `query` in order, at most `SCORED`.

    Texts that have the whole query rank before all others, so with `enough` of them nobody looks further. Of too many
    the shortest are taken. Query and texts are compared as given.
    """
    places = [place for place, text in enumerate(texts) if query in text]
    if len(places) < enough and len(query) > 1:
        whole = set(places)
        fits = subsequence_pattern(query).match
        others = [place for place in compress(range(len(texts)), map(fits, texts)) if place not in whole]
        places += shortest(others, texts, SCORED - len(places))
    return shortest(places, texts, SCORED)


def shortest(places: list[int], texts: Sequence[str], count: int) -> list[int]:
    """Return the places of the `count` shortest texts; all of them, as they are, when there are no more."""
    if len(places) <= count:
        return places
    lengths = [len(texts[place]) for place in places]
    return [places[at] for at in sorted(range(len(places)), key=lengths.__getitem__)[:count]]


def subsequence_pattern(query: str) -> re.Pattern[str]:
    """Return what matches the texts that have the characters of `query` in order; it never goes back."""
    return re.compile("".join(f"[^{re.escape(character)}]*+{re.escape(character)}" for character in query), re.DOTALL)


def is_subsequence(query: str, text: str) -> bool:
    """Say whether the characters of `query` appear in `text` in that order."""
    place = 0
    for character in query:
        place = text.find(character, place) + 1
        if not place:
            return False
    return True


def penalty(query: str, text: str) -> tuple[int, int, int, int]:
    """Return how badly `text` fits; smaller is better. A hit in the last path segment beats all others."""
    name_start = text.rfind("/", 0, len(text) - 1) + 1
    name = text[name_start:]
    if name.startswith(query):
        tier = 0 if len(name.rstrip("/")) == len(query) else 1
    elif (place := name.find(query)) > 0:
        tier = 2 if not name[place - 1].isalnum() else 3
    elif query in text:
        tier = 4
    elif is_subsequence(query, name):
        tier = 5
    else:
        tier = 6
    return tier, spread(query, text if tier in {4, 6} else name), text.count("/"), len(text)


def spread(query: str, text: str) -> int:
    """Return over how many characters the hits are spread, looked for from the end."""
    last = end = len(text)
    for character in reversed(query):
        place = text.rfind(character, 0, last)
        if place < 0:
            break
        end = place + 1 if last == len(text) else end
        last = place
    return end - last


def rank(query: str, texts: Sequence[str], limit: int) -> list[int]:
    """Return the places of the best `limit` matches, best first; upper and lower case are the same."""
    wanted = "".join(query.lower().split())
    folded = [text.lower() for text in texts]
    return rank_folded(wanted, folded, limit)


def rank_folded(wanted: str, folded: Sequence[str], limit: int) -> list[int]:
    """Like `rank`, for a query and texts that are in lower case already."""
    if not wanted:
        return list(range(min(limit, len(folded))))
    return nsmallest(
        limit, matching(wanted, folded, min(limit, SCORED)), key=lambda place: (penalty(wanted, folded[place]), place)
    )


def complete_command(query: str, own: Sequence[Command] = ()) -> tuple[CompletionItem, ...]:
    """Return the commands that fit what stands after the slash, best first; all of them for nothing.

    `own` are those that users and projects bring.
    """
    known = (*COMMANDS, *own)
    entries = [(name, command) for command in known for name in (command.name, *command.aliases)]
    if not query:
        return tuple(_item(command.name, command) for command in known)
    prefixed = [entry for entry in entries if entry[0].startswith(query.lower())]
    # What is typed out is what is meant: `/mode` is not the beginning of `/model`.
    prefixed.sort(key=lambda entry: entry[0] != query.lower())
    others = [entry for entry in entries if entry not in prefixed]
    ranked = prefixed + [others[place] for place in rank(query, [name for name, _ in others], limit=len(others))]
    best: dict[str, CompletionItem] = {}
    for name, command in ranked:
        best.setdefault(command.name, _item(name, command))
    return tuple(best.values())


def ghost_hint(text: str, cursor: int, own: Sequence[Command] = ()) -> str:
    """Return what a command that has been typed out may be followed by; empty for anything else."""
    if not text.startswith("/") or not text.endswith(" ") or cursor != len(text):
        return ""
    name = text[1:].rstrip(" ")
    command = find_command(name) or next((entry for entry in own if entry.name == name), None)
    return command.argument_hint if command is not None else ""


DESCRIPTION_CHARS = 160


def _item(name: str, command: Command) -> CompletionItem:
    hint = command.argument_hint
    runs = not hint or hint.startswith("[")
    description = shorten(command.description, DESCRIPTION_CHARS)
    detail = f"{description} · {hint}" if hint else description
    return CompletionItem(insert=f"/{name} ", label=f"/{name}", detail=detail, runs=runs)


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
    return tuple(map(_arguments_item, fitting[:MAX_ROWS]))


def _arguments_item(choice: Choice) -> CompletionItem:
    is_folder = choice.value.endswith("/")
    return CompletionItem(insert=choice.value, label=choice.label, detail=choice.detail, runs=not is_folder)


# --- resources of MCP servers ---


def complete_resource(choices: Sequence[Choice], query: str) -> tuple[CompletionItem, ...]:
    """Return the resources of MCP servers that fit what stands after the `@`; before anything is typed, all."""
    found = rank(query, [f"{choice.value} {choice.detail}" for choice in choices], limit=MAX_ROWS)
    return tuple(
        CompletionItem(f"{write_mention(choice.value)} ", choice.label, choice.detail)
        for choice in (choices[place] for place in found)
    )
