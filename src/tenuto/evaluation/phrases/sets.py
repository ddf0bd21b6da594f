"""The table of the sets of phrases, by the name that `tenuto eval compaction --phrases` takes."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from tenuto.evaluation.phrases import known
from tenuto.evaluation.phrases.held_out import chinese, english, french, german, japanese, printed, spanish
from tenuto.evaluation.phrases.shape import Language, Phrases, Printed

SetName = Literal["known", "held-out"]
SET_NAMES: tuple[SetName, ...] = get_args(SetName)


class PhraseSet(msgspec.Struct, frozen=True):
    """All sentences of generated sessions. The sessions of seeds 1, 2, … take its languages in turn."""

    languages: dict[Language, Phrases]
    printed: Printed

    def language_of(self, seed: int) -> Language:
        """Return the language of the session of a seed."""
        names = tuple(self.languages)
        return names[(seed - 1) % len(names)]


SETS: dict[SetName, PhraseSet] = {
    "known": PhraseSet(known.LANGUAGES, known.PRINTED),
    "held-out": PhraseSet(
        {
            "en": english.PHRASES,
            "de": german.PHRASES,
            "ja": japanese.PHRASES,
            "fr": french.PHRASES,
            "es": spanish.PHRASES,
            "zh": chinese.PHRASES,
        },
        printed.PRINTED,
    ),
}
