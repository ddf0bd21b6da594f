"""What a set of phrases consists of. Pure data.

In a sentence `{a}` is a name that occurs once in a session, `{n}` and `{m}` are numbers, `{d}` a day, `{p}` a user,
`{o}` what an earlier sentence named, and `{x}` an identifier.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Language = Literal["en", "de", "ja", "fr", "es", "zh"]


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """The sentences of one language. Those of a kind are taken in turn; `stop` ends one that another follows."""

    days: tuple[str, ...]
    stop: str = "."
    rules: tuple[str, ...]
    """Of the user, with `{a}`; so are the kinds up to `keys`."""
    numbers: tuple[str, ...]
    """With `{a}` and `{n}`."""
    dates: tuple[str, ...]
    """With `{a}` and `{d}`."""
    names: tuple[str, ...]
    """With `{a}` and `{p}`."""
    first: str
    """The first prompt of a session, a claim: with `{a}` and `{n}`."""
    claims: tuple[str, ...]
    """What is corrected later: with `{a}` and `{n}`."""
    corrections: tuple[str, ...]
    """With `{o}` and `{n}`."""
    keys: tuple[str, ...]
    """In long texts that the user pastes: with `{a}`, and `{n}` or `{d}` or neither."""
    prose: tuple[str, ...]
    """What stands between the keys, and need not be kept."""
    decisions: tuple[str, ...]
    """Of the model, with `{a}`; so are the promises."""
    reversals: tuple[str, ...]
    """Of the model, with `{o}` and `{a}`."""
    promises: tuple[str, ...]
    talk: tuple[str, ...]
    """What else the model says."""
    work: tuple[str, ...]
    """What the user asks for: with `{a}`."""
    paste: str
    """The line above a long text."""
    go_on: str
    """The prompt after a compaction."""
    todos: tuple[str, ...]
    """With `{a}`."""


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """What commands print, whatever the language: log lines with `{x}`, errors with `{a}`, `{n}`, maybe `{m}`."""

    log_lines: tuple[str, ...]
    errors: tuple[str, ...]


def rows(*lines: str) -> tuple[str, ...]:
    """Return the words of lines, which commas part."""
    return tuple(word for line in lines for word in line.split(", "))


ADJECTIVES = rows(
    "amber, brisk, calm, dusky, eager, faint, gentle, hollow, iron, jolly, keen, lunar, mellow, noble",
    "olive, plain, quiet, rapid, silver, tidy, upper, vivid, warm, young, zesty, bold, coarse, dense",
    "early, frosty",
)
NOUNS = rows(
    "anchor, basket, canal, depot, engine, ferry, garden, harbor, island, jacket, kettle, ladder, market",
    "needle, orchard, parcel, quarry, ribbon, saddle, tunnel, umbrella, valley, wagon, yard, zipper",
    "beacon, cellar, drawer, elbow, fender",
)
PEOPLE = rows(
    "Amina Adeyemi, Ruben Castellano, Mei Tanaka, Oskar Lindqvist, Priya Raghavan, Jonas Weidner",
    "Leila Haddad, Tomasz Wrona, Ingrid Solberg, Mateus Figueira, Yuki Hasegawa, Clara Obermeier",
    "Dmitri Volkonsky, Nadia Benali, Piet van Houten",
)
