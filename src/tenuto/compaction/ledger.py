"""What the user said before the kept tail, in the user's words: the ledger of a compaction (DESIGN section 5). Pure.

Short texts come first, because rules and corrections are short; then head, end and key sentences of long ones; then
long ones whole. What is newer comes before what is older, so a correction never leaves before what it corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tenuto.compaction.wording import Sentence, Topic, is_correction, sentences, topic_of, weigh_rule
from tenuto.text.estimate import estimate_text

SHORT_TOKENS = 60
"""A text of up to so many tokens is kept whole or not at all."""
EDGE_TOKENS = 40
"""What head and end of a long text have at first, each."""
FRAME_TOKENS = 14
"""What the tags around one text cost."""
GAP = " […] "
GAP_TOKENS = 4
SHORTEST = 8
"""Tokens below which nothing more is worth looking for."""
MAX_KEY_SENTENCES = 2_000
MAX_TEXTS = 5_000
"""So many of the newest texts are looked at; a budget of 20 000 tokens cannot hold more."""


class Said(msgspec.Struct, frozen=True):
    """A text of the user and the entry that has it."""

    seq: int
    text: str


class Excerpt(msgspec.Struct, frozen=True):
    """What of a text is in the ledger. `corrected_by` is the entry of the text that takes it back, 0 for none."""

    seq: int
    text: str
    corrected_by: int = 0


def keep_ledger(said: Sequence[Said], budget: int) -> list[Excerpt]:
    """Return what stands of the user's texts, which are in time order, within `budget` estimated tokens."""
    texts = _without_repeats(said[-MAX_TEXTS:])
    corrections = find_corrections(texts)
    ledger = _Ledger(texts, budget)
    ledger.fill()
    return [
        Excerpt(one.seq, kept, corrections.get(one.seq, 0))
        for one in texts
        if (kept := ledger.excerpt(one)) is not None
    ]


def find_corrections(texts: Sequence[Said]) -> dict[int, int]:
    """Return for each text that a later one takes back the entry of the latest that does."""
    topics = {one.seq: topic_of(one.text) for one in texts if len(one.text) <= MAX_COMPARED}
    found: dict[int, int] = {}
    for place, later in enumerate(texts):
        for sentence in _corrections_in(later.text):
            topic = topic_of(sentence)
            rated = [
                (_overlap(topics[one.seq], topic), one.seq)
                for one in texts[max(0, place - MAX_BACK) : place]
                if one.seq in topics
            ]
            best = max(rated, default=(0, 0))
            if best[0]:
                found[best[1]] = later.seq
    return found


MAX_COMPARED = 4_000
"""Characters of a text that can be taken back as a whole; of a longer one only parts are, and nobody knows which."""
MIN_OVERLAP = 3
MAX_BACK = 200
"""So many texts before a correction are looked at for what it takes back."""


def _overlap(earlier: Topic, correction: Topic) -> int:
    """Return how much a correction speaks of an earlier text; 0 when they share less than a subject."""
    shared = len(earlier.words & correction.words)
    overlap = 2 * len(earlier.names & correction.names) + shared
    is_most = shared >= 2 and 2 * shared >= len(earlier.words)
    return overlap if overlap >= MIN_OVERLAP or is_most else 0


def _corrections_in(text: str) -> Iterator[str]:
    if len(text) > MAX_COMPARED:
        yield from (said for span in sentences(text) if is_correction(said := text[span.start : span.end]))
    elif is_correction(text):
        yield text


def _without_repeats(said: Sequence[Said]) -> list[Said]:
    """Return the texts without those that are said again later ("go on")."""
    seen: set[str] = set()
    kept: list[Said] = []
    for one in reversed(said):
        text = one.text.strip()
        if text and text not in seen:
            seen.add(text)
            kept.append(Said(one.seq, text))
    return kept[::-1]


class _Ledger:
    """Takes spans of texts until the budget is used."""

    def __init__(self, texts: Sequence[Said], budget: int) -> None:
        self._left = budget
        self._spans: dict[int, list[Sentence]] = {}
        newest_first = texts[::-1]
        self._short = [one for one in newest_first if estimate_text(one.text) <= SHORT_TOKENS]
        short = {one.seq for one in self._short}
        self._long = [one for one in newest_first if one.seq not in short]

    def fill(self) -> None:
        """Take what matters most first."""
        if not self._take_rules() or not self._take_all(self._whole(one) for one in self._short):
            return
        for one in self._long:
            for edge in _edges(one.text):
                self._take(one, edge)
        for one, span in _by_weight(self._long):
            if self._left < SHORTEST:
                return
            self._take(one, span)
        for one in self._long:
            if not self._take(one, Sentence(0, len(one.text))):
                self._widen(one)
                return

    def excerpt(self, one: Said) -> str | None:
        """Return what is kept of a text, `None` for nothing."""
        spans = self._spans.get(one.seq)
        if spans is None:
            return None
        pieces = GAP.join(one.text[span.start : span.end] for span in spans)
        return (
            f"{GAP.lstrip() if spans[0].start else ''}{pieces}{GAP.rstrip() if spans[-1].end < len(one.text) else ''}"
        )

    def _take_rules(self) -> bool:
        """Take the short texts that set a rule, and what takes one back; `False` when the room is used."""
        units = [self._whole(one) for one in self._short if weigh_rule(one.text)]
        units += [
            (one, span)
            for one in self._long
            for span in sentences(one.text)
            if is_correction(said := one.text[span.start : span.end]) and weigh_rule(said) > MIN_CORRECTION
        ]
        units.sort(key=lambda unit: -unit[0].seq)
        return self._take_all(units)

    def _take_all(self, units: Iterable[tuple[Said, Sentence]]) -> bool:
        return all(self._take(one, span) for one, span in units)

    def _whole(self, one: Said) -> tuple[Said, Sentence]:
        return one, Sentence(0, len(one.text))

    def _take(self, one: Said, span: Sentence) -> bool:
        """Keep a span of a text if there is room for it."""
        spans = self._spans.get(one.seq, [])
        touched = [other for other in spans if other.start <= span.end + 1 and span.start <= other.end + 1]
        parts = (span, *touched)
        whole = Sentence(min(part.start for part in parts), max(part.end for part in parts))
        price = _cost(one.text, whole) - sum(_cost(one.text, other) for other in touched)
        price += 0 if spans else FRAME_TOKENS
        if price > self._left:
            return False
        self._left -= price
        self._spans[one.seq] = sorted([whole, *(other for other in spans if other not in touched)])
        return True

    def _widen(self, one: Said) -> None:
        """Give the rest of the room to one text: two thirds to its head, one to its end."""
        tokens = estimate_text(one.text)
        room = self._left
        while room > EDGE_TOKENS:
            length = len(one.text) * room // tokens
            head = Sentence(0, length * 2 // 3)
            if self._take(one, head) and self._take(one, Sentence(len(one.text) - length // 3, len(one.text))):
                return
            room = room * 4 // 5


MIN_CORRECTION = 4
"""A sentence of a long text that weighs no more than its one word of correction ("actually") is not taken first."""


def _cost(text: str, span: Sentence) -> int:
    return estimate_text(text[span.start : span.end]) + GAP_TOKENS


def _edges(text: str) -> Iterator[Sentence]:
    """Yield the first and the last sentence of a long text, each bounded."""
    found = list(sentences(text))
    if not found:
        return
    first, last = found[0], found[-1]
    yield Sentence(first.start, first.start + _fitting(text[first.start : first.end], EDGE_TOKENS))
    length = _fitting(text[last.start : last.end][::-1], EDGE_TOKENS)
    yield Sentence(last.end - length, last.end)


def _fitting(text: str, tokens: int) -> int:
    """Return how many characters of `text` are at most `tokens`, roughly."""
    whole = estimate_text(text)
    return len(text) if whole <= tokens else len(text) * tokens // whole


def _by_weight(texts: Sequence[Said]) -> list[tuple[Said, Sentence]]:
    """Return the sentences that sound like rules, the weightiest first, of equal ones the newest."""
    rated = [
        (weight, one, span)
        for one in texts
        for span in sentences(one.text)
        if (weight := weigh_rule(one.text[span.start : span.end]))
    ]
    rated.sort(key=lambda row: (-row[0], -row[1].seq))
    return [(one, span) for _, one, span in rated[:MAX_KEY_SENTENCES]]
