"""What the user said before the kept tail, in the user's words: the ledger of a compaction (DESIGN section 5). Pure.

What must stay comes first: rules and corrections, the head of every long text before the end of any, short texts, key
sentences of long ones. Then long ones whole. What is newer comes before what is older, so a correction never leaves
before what it corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tenuto.compaction.data.said import Said
from tenuto.compaction.data.wording import WEAK, Sentence, Topic, is_correction, sentences, topic_of, weigh_rule
from tenuto.text.estimate import estimate_text

SHORT_TOKENS = 60
"""A text of up to so many tokens is kept whole or not at all."""
EDGE_TOKENS, MAX_EDGE_TOKENS = 40, 80
"""What head and end of a long text have at first, each, and what two sentences there may have where there is room."""
MAX_EDGE_SENTENCES = 12
LEDGER_TOKENS = 100
"""What the ledger costs beside its texts, in a view."""
LINE_TOKENS, FRAME_TOKENS = 3, 11
"""What the number before a text of one line costs, and what the tags around one of several do."""
MARK_TOKENS = 7
"""What it costs to say by what a text was corrected."""
GAP = " […] "
GAP_TOKENS = 4
SHORTEST = 8
"""Tokens below which nothing more is worth looking for."""
MAX_KEY_SENTENCES = 2_000


class Excerpt(msgspec.Struct, frozen=True):
    """What of a text is in the ledger. `corrected_by` is the entry of the text that takes it back, 0 for none."""

    seq: int
    text: str
    corrected_by: int = 0


def keep_ledger(said: Sequence[Said], budget: int, most: int | None = None) -> list[Excerpt]:
    """Return what stands of the user's texts, which are in time order, within `budget` estimated tokens.

    What must stay may take `most` of them, if that is more, and what else may be a key sentence half of the difference.
    """
    most = max(budget, most or 0)
    ledger = _Ledger(said)
    ledger.take_what_must_stay(most)
    ledger.take_keys((budget + most) // 2)
    ledger.take_the_rest(budget)
    return ledger.excerpts()


def ledger_floor(said: Sequence[Said], most: int) -> int:
    """Return how many estimated tokens a ledger takes with what must stay of the user's texts, at most `most`."""
    ledger = _Ledger(said)
    ledger.take_what_must_stay(most - LEDGER_TOKENS)
    return ledger.spent + LEDGER_TOKENS if ledger.spent else 0


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
    """Takes spans of texts until a budget is used."""

    def __init__(self, said: Sequence[Said]) -> None:
        self.spent = 0
        self._budget = 0
        self._texts = _without_repeats(said)
        self._corrections = find_corrections(self._texts)
        self._spans: dict[int, list[Sentence]] = {}
        newest_first = self._texts[::-1]
        self._short = [one for one in newest_first if estimate_text(one.text) <= SHORT_TOKENS]
        short = {one.seq for one in self._short}
        self._long = [one for one in newest_first if one.seq not in short]
        self._keys = _by_weight(self._long)

    def take_what_must_stay(self, budget: int) -> None:
        """Take rules and corrections, heads, ends, short texts and key sentences, in this order."""
        self._budget = budget
        if not self._take_all(self._rules()):
            return
        # A head says that there is more to recall: in a small window every text's comes before the end of any.
        edges = [(one, found) for one in self._long if (found := tuple(_edges(one.text, EDGE_TOKENS)))]
        self._take_each((one, found[0]) for one, found in edges)
        self._take_each((one, found[-1]) for one, found in edges)
        with_number = [one for one in self._short if _has_number(one.text)]
        if not self._take_all(map(_whole, with_number)):
            return
        self._take_each((one, span) for weight, one, span in self._keys if weight >= STRONG)
        said = [one for one in self._short if not one.text.endswith(("?", "？"))]
        if self._take_all(map(_whole, said)):  # a question is answered
            self._take_all(map(_whole, self._short))

    def take_keys(self, budget: int) -> None:
        """Take a second sentence of heads and ends, and what else may be a key sentence."""
        self._budget = budget
        self._take_each((one, edge) for one in self._long for edge in _edges(one.text, MAX_EDGE_TOKENS))
        self._take_each((one, span) for weight, one, span in self._keys if weight < STRONG)

    def take_the_rest(self, budget: int) -> None:
        """Take long texts whole, the last one as far as there is room for it."""
        self._budget = budget
        for one in self._long:
            if not self._take(*_whole(one)):
                self._widen(one)
                return

    def excerpts(self) -> list[Excerpt]:
        """Return what is kept, in time order."""
        return [
            Excerpt(one.seq, kept, self._corrections.get(one.seq, 0))
            for one in self._texts
            if (kept := self._excerpt(one)) is not None
        ]

    def _excerpt(self, one: Said) -> str | None:
        spans = self._spans.get(one.seq)
        if spans is None:
            return None
        pieces = GAP.join(one.text[span.start : span.end] for span in spans)
        return (
            f"{GAP.lstrip() if spans[0].start else ''}{pieces}{GAP.rstrip() if spans[-1].end < len(one.text) else ''}"
        )

    def _rules(self) -> list[_Unit]:
        """Return the short texts that set a rule, and what takes one back or speaks of the same thing later."""
        named: set[str] = set()
        units: list[_Unit] = []
        for one in reversed(self._short):
            names = {name for name in topic_of(one.text).names if not name.isdecimal()}
            if weigh_rule(one.text) > WEAK:
                named |= names
            elif named.isdisjoint(names):
                continue
            units.append(_whole(one))
        units += [
            (one, span)
            for one in self._long
            for span in sentences(one.text)
            if is_correction(said := one.text[span.start : span.end]) and weigh_rule(said) > MIN_CORRECTION
        ]
        return sorted(units, key=lambda unit: -unit[0].seq)

    def _take_all(self, units: Iterable[_Unit]) -> bool:
        """Take units up to the first that does not fit; `False` when there is one."""
        return all(self._take(one, span) for one, span in units)

    def _take_each(self, units: Iterable[_Unit]) -> None:
        """Take every unit that fits."""
        for one, span in units:
            if self.spent + SHORTEST > self._budget:
                return
            self._take(one, span)

    def _take(self, one: Said, span: Sentence) -> bool:
        """Keep a span of a text if there is room for it."""
        spans = self._spans.get(one.seq, [])
        touched = [other for other in spans if other.start <= span.end + 1 and span.start <= other.end + 1]
        parts = (span, *touched)
        whole = Sentence(min(part.start for part in parts), max(part.end for part in parts))
        price = _cost(one.text, whole) - sum(_cost(one.text, other) for other in touched)
        price += 0 if spans else self._frame(one)
        if self.spent + price > self._budget:
            return False
        self.spent += price
        self._spans[one.seq] = sorted([whole, *(other for other in spans if other not in touched)])
        return True

    def _frame(self, one: Said) -> int:
        mark = MARK_TOKENS if one.seq in self._corrections else 0
        return mark + (FRAME_TOKENS if "\n" in one.text else LINE_TOKENS)

    def _widen(self, one: Said) -> None:
        """Give the rest of the room to one text: two thirds to its head, one to its end."""
        tokens = estimate_text(one.text)
        room = self._budget - self.spent
        while room > EDGE_TOKENS:
            length = len(one.text) * room // tokens
            head = Sentence(0, length * 2 // 3)
            if self._take(one, head) and self._take(one, Sentence(len(one.text) - length // 3, len(one.text))):
                return
            room = room * 4 // 5


STRONG = 3
"""A sentence of that weight has a word of a rule or of a correction."""
MIN_CORRECTION = 8
"""A sentence of a long text that weighs no more than its one word of correction ("actually") is not taken first."""


_Unit = tuple[Said, Sentence]


def _whole(one: Said) -> _Unit:
    return one, Sentence(0, len(one.text))


def _has_number(text: str) -> bool:
    return any(character.isdecimal() for character in text)


def _cost(text: str, span: Sentence) -> int:
    is_whole = span.end - span.start >= len(text)
    return estimate_text(text[span.start : span.end]) + (0 if is_whole else GAP_TOKENS)


def _edges(text: str, most: int) -> Iterator[Sentence]:
    """Yield head and end of a long text: sentences up to `EDGE_TOKENS`, or the first two, or a part of the first.

    Two sentences, or the part of one, have `most` tokens.
    """
    found = list(sentences(text))
    if not found:
        return
    first, last = found[0], found[-1]
    head = first.start + _fitting(text[first.start : first.end], most)
    for number, one in enumerate(found[1:MAX_EDGE_SENTENCES]):
        if estimate_text(text[first.start : one.end]) > (EDGE_TOKENS if number else most):
            break
        head = one.end
    yield Sentence(first.start, head)
    end = last.end - _fitting(text[last.start : last.end][::-1], most)
    for number, one in enumerate(found[-2:-MAX_EDGE_SENTENCES:-1]):
        if estimate_text(text[one.start : last.end]) > (EDGE_TOKENS if number else most):
            break
        end = one.start
    yield Sentence(end, last.end)


def _fitting(text: str, tokens: int) -> int:
    """Return how many characters of `text` are at most `tokens`, roughly."""
    whole = estimate_text(text)
    return len(text) if whole <= tokens else len(text) * tokens // whole


def _by_weight(texts: Sequence[Said]) -> list[tuple[int, Said, Sentence]]:
    """Return the sentences that sound like rules, the weightiest first, of equal ones the newest."""
    rated = [
        (weight, one, span)
        for one in texts
        for span in sentences(one.text)
        if (weight := weigh_rule(one.text[span.start : span.end]))
    ]
    rated.sort(key=lambda row: (-row[0], -row[1].seq))
    return rated[:MAX_KEY_SENTENCES]
