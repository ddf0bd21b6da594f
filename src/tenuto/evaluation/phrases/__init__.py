"""The sentences of generated sessions: three sets, a file for each language, and one for what commands print.

`known`: whoever works on compaction may read them. They were written without a look at any list of words in the
program; the lists were not written without a look at them.

`held_out`: whoever works on compaction does not read them, nor looks for their words in the program. They say what the
known ones say, as people and models say it who never saw those. A figure that is lower here than with the known set is
what the program is worth outside its own measure. What is missed is told by kind; a sentence that is quoted to whoever
improves it is replaced.

`fresh`: decisions, plans that are given up, promises, and reports that are none of these, all built in another way and
written before anything was done for them: most name what they are about in two plain words, reports name things exactly
and have numbers. The rest of their sessions is in held-out words. What is done for answers is tried on the known set
and on recorded sessions, never on these.

In a sentence `{a}` is a name that occurs once in a session, and `{w}` such a name as two plain words, `{n}` and `{m}`
are numbers, `{d}` a day, `{p}` a user, `{o}` what an earlier sentence named, `{v}` the same as plain words, and `{x}`
an identifier.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, get_args

import msgspec

Language = Literal["en", "de", "ja", "fr", "es", "zh"]
SetName = Literal["known", "held-out", "fresh"]
SET_NAMES: tuple[SetName, ...] = get_args(SetName)
_FILES: dict[Language, str] = {
    "en": "english",
    "de": "german",
    "ja": "japanese",
    "fr": "french",
    "es": "spanish",
    "zh": "chinese",
}


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
    """Of the model, with `{a}` or `{w}`; so are the promises."""
    reversals: tuple[str, ...]
    """Of the model, with `{o}` or `{v}`, and `{a}` or `{w}`."""
    promises: tuple[str, ...]
    talk: tuple[str, ...]
    """What else the model says, maybe with `{a}`."""
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


class PhraseSet(msgspec.Struct, frozen=True):
    """All sentences of generated sessions. The sessions of seeds 1, 2, … take its languages in turn."""

    languages: dict[Language, Phrases]
    printed: Printed

    def language_of(self, seed: int) -> Language:
        """Return the language of the session of a seed."""
        names = tuple(self.languages)
        return names[(seed - 1) % len(names)]


_UNDER: dict[SetName, SetName] = {"fresh": "held-out"}
"""The set that has what another one leaves out."""


@cache
def load_phrases(name: SetName) -> PhraseSet:
    """Read a set from its folder, by the name that `tenuto eval compaction --phrases` takes."""
    folder = _folder(name)
    languages: dict[Language, Phrases] = {
        language: msgspec.convert(_read(name, stem), Phrases)
        for language, stem in _FILES.items()
        if (folder / f"{stem}.toml").is_file()
    }
    return PhraseSet(languages, msgspec.convert(_read(name, "printed"), Printed))


def _folder(name: SetName) -> Traversable:
    return files(__name__) / name.replace("-", "_")


def _read(name: SetName, stem: str) -> dict[str, object]:
    """Return the texts of a file, above those of the set under it."""
    path = _folder(name) / f"{stem}.toml"
    texts = msgspec.toml.decode(path.read_bytes(), type=dict[str, object]) if path.is_file() else {}
    under = _UNDER.get(name)
    return texts if under is None else _read(under, stem) | texts


def _rows(*lines: str) -> tuple[str, ...]:
    """Return the words of lines, which commas part."""
    return tuple(word for line in lines for word in line.split(", "))


ADJECTIVES = _rows(
    "amber, brisk, calm, dusky, eager, faint, gentle, hollow, iron, jolly, keen, lunar, mellow, noble",
    "olive, plain, quiet, rapid, silver, tidy, upper, vivid, warm, young, zesty, bold, coarse, dense",
    "early, frosty",
)
NOUNS = _rows(
    "anchor, basket, canal, depot, engine, ferry, garden, harbor, island, jacket, kettle, ladder, market",
    "needle, orchard, parcel, quarry, ribbon, saddle, tunnel, umbrella, valley, wagon, yard, zipper",
    "beacon, cellar, drawer, elbow, fender",
)
PEOPLE = _rows(
    "Amina Adeyemi, Ruben Castellano, Mei Tanaka, Oskar Lindqvist, Priya Raghavan, Jonas Weidner",
    "Leila Haddad, Tomasz Wrona, Ingrid Solberg, Mateus Figueira, Yuki Hasegawa, Clara Obermeier",
    "Dmitri Volkonsky, Nadia Benali, Piet van Houten",
)
