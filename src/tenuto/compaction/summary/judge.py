"""Whether a text is the notes that were asked for, by its shape and not by its words: pure (DESIGN section 5).

A small model, or one that would rather go on working, returns text that is complete and short and still no summary. It
is judged by the headings that its own instructions name, by how little it says for what it replaces, and by whether it
repeats itself. Notes in another language are judged by the number of their sections.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tenuto.text.estimate import estimate_text

ESSENTIAL = ("Goal", "Next Steps", "Progress So Far")
"""Of the headings that instructions name, those without which notes are of no use."""
COVERED_PER_TOKEN = 1_000
"""A summary has at least one token of content for so many of what it replaces …"""
MAX_FLOOR = 60
"""… but never has to have more than this for that reason,"""
FREE_FLOOR = 10
"""nor more than this where the instructions name no headings: they may ask for one sentence."""
PREVIOUS_SHARE = 10
"""Notes that bring earlier ones up to date have at least this part of their length."""
LENGTH_SHARE = 4
"""Of the length that is wished for, the floor is at most this part."""
MIN_UNIT = 12
"""Characters from which on a sentence or line that stands there again counts as repeated."""
MIN_REPEATED = 3
MAX_REPEATED_SHARE = 0.3
MIN_WORDS = 60
MIN_DISTINCT_SHARE = 0.25
"""Of all runs of three words, in texts of at least `MIN_WORDS` words."""
ONCE = "say each thing once"
"""The advice against a loop."""
_MAX_LABEL_WORDS = 8
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+(?P<mark>.*\S)|(?:\d+[.)]\s+)?(?P<bold>\*\*[^*]+\*\*|__[^_]+__)\s*:?)\s*$")
_LABEL = re.compile(r"^[\s#>*_+\d.)-]*(?P<label>[^:：*_]{2,60})")
_NAMED = re.compile(r"^##\s+(.*\S)", re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])|\n")
_MARKER = re.compile(r"^[\s>*+-]*(?:\d+[.)]\s*)?(?:\[[ xX]\]\s*)?")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a summary has to look like: the headings that were asked for, and the least tokens of content.

    `template` is the lines of the instructions: notes do not consist of them.
    """

    headings: tuple[str, ...] = ()
    floor: int = 0
    template: frozenset[str] = frozenset[str]()


class Fault(msgspec.Struct, frozen=True):
    """Why a text cannot be used as a summary, each a clause without a full stop.

    `what` is for everybody: what is wrong with it. `advice` is for the model that wrote it: what to do instead.
    """

    what: str
    advice: str = ""

    def tell_model(self) -> str:
        """Return the sentence that the model's second attempt is asked for with."""
        return f"{self.what}; {self.advice}." if self.advice else f"{self.what}."


def expect(instructions: str, *, covered: int, length: int, previous: str = "") -> Expected:
    """Return what instructions ask for, of a summary of `covered` tokens that may have `length` (both estimates).

    `previous` are the notes that it brings up to date.
    """
    headings = tuple(_NAMED.findall(instructions))
    floor = min(covered // COVERED_PER_TOKEN, MAX_FLOOR if headings else FREE_FLOOR)
    floor = min(max(floor, estimate_text(previous) // PREVIOUS_SHARE), length // LENGTH_SHARE)
    template = frozenset(bare for line in instructions.splitlines() if (bare := _bare(line)))
    return Expected(headings=headings, floor=floor, template=template)


def find_weakness(summary: str, expected: Expected) -> Fault | None:
    """Return why a text is not the notes that were asked for; `None` if it is."""
    return (
        _find_loop(summary) or _find_missing_headings(summary, expected.headings) or _find_emptiness(summary, expected)
    )


def _find_missing_headings(summary: str, wanted: Sequence[str]) -> Fault | None:
    if not wanted:
        return None
    lines = list(_lines_outside_code(summary))
    labels = [label for line in lines if (label := _label_of(line))]
    found = [heading for heading in wanted if any(_is_named(heading, label) for label in labels)]
    headings = [place for place, line in enumerate(lines) if _HEADING.match(line)]
    if found and 2 * len(found) >= len(headings):
        needed = [heading for heading in ESSENTIAL if heading in wanted]
        missing = [heading for heading in needed if heading not in found]
        if needed and not missing:
            return None
        if not needed and 2 * len(found) >= len(wanted):
            return None
        lacking = missing or [heading for heading in wanted if heading not in found]
        return Fault(f"it lacks the heading {_listed(lacking)}")
    sections = _filled_sections(lines, headings)
    if sections < max(2, (len(wanted) + 1) // 2):
        return Fault(
            f"it does not have the headings that were asked for ({_listed(wanted)})",
            "write notes under these headings, and do not go on with the work",
        )
    before = sum(len(line) for line in lines[: headings[0]])
    if 2 * before > sum(map(len, lines)):
        return Fault(
            "most of it stands before the first heading",
            f"begin with {_listed(wanted[:1])} and write nothing before it",
        )
    return None


def _filled_sections(lines: Sequence[str], headings: Sequence[int]) -> int:
    """Return how many headings have something below them."""
    ends = [*headings[1:], len(lines)]
    return sum(any(map(_bare, lines[start + 1 : end])) for start, end in zip(headings, ends, strict=False))


def _find_emptiness(summary: str, expected: Expected) -> Fault | None:
    content = [bare for line in summary.splitlines() if not _HEADING.match(line) and (bare := _bare(line))]
    if 2 * sum(line in expected.template for line in content) > len(content):
        return Fault("it repeats what the headings are for instead of saying what happened", "fill each of them in")
    tokens = estimate_text("\n".join(content))
    if tokens < max(1, expected.floor):
        return Fault(
            f"it says next to nothing ({tokens} tokens below its headings)", "say what was done, decided and comes next"
        )
    return None


def _find_loop(text: str) -> Fault | None:
    """Return that a text repeats itself: the same sentences again and again, or hardly any new run of words."""
    units = [unit for part in _SENTENCE.split(text) if len(unit := _bare(part)) >= MIN_UNIT]
    counted = Counter(units)
    again = sum((count - 1) * len(unit) for unit, count in counted.items() if count >= MIN_REPEATED)
    if again > MAX_REPEATED_SHARE * sum(map(len, units)):
        unit, count = counted.most_common(1)[0]
        return Fault(f"it repeats itself ({count} times “{unit[:60]}”)", ONCE)
    words = [word.casefold() for word in _WORD.findall(text)]
    if len(words) >= MIN_WORDS:
        runs = set(zip(words, words[1:], words[2:], strict=False))
        if len(runs) < MIN_DISTINCT_SHARE * (len(words) - 2):
            return Fault(f"it repeats itself (“{' '.join(words[-6:])[:60]}” again and again)", ONCE)
    return None


def _lines_outside_code(text: str) -> Iterator[str]:
    """Yield the lines of a text that do not stand in a fenced block."""
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line


def _label_of(line: str) -> str:
    """Return what a line begins with, if that is short enough to be a heading, in whatever form it is written."""
    found = _LABEL.match(line)
    label = found["label"].strip() if found else ""
    return label if 0 < len(label.split()) <= _MAX_LABEL_WORDS else ""


def _is_named(heading: str, label: str) -> bool:
    """Say whether a label has all words of a heading, in any number and case."""
    words = _stems(label)
    return all(any(word.startswith(stem) for word in words) for stem in _stems(heading))


def _stems(text: str) -> list[str]:
    plain = "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
    return [word.rstrip("s") or word for word in re.findall(r"\w+", plain)]


def _bare(line: str) -> str:
    """Return a line without list marks, folded, so that it can be compared; empty for one of marks alone."""
    folded = " ".join(_MARKER.sub("", line).casefold().split())
    return folded if re.search(r"\w", folded) else ""


def _listed(headings: Sequence[str]) -> str:
    return ", ".join(f"## {heading}" for heading in headings)
