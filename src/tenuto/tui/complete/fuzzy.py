"""Fuzzy matching in pure Python that stays fast on 100 000 strings: a cheap filter first, a score for what is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nsmallest
from itertools import compress

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
