"""What earlier notes have and new ones leave out: asked about, and kept unless it no longer holds. Pure.

Notes that a model rewrites again and again lose a part of what they had each time, and nobody notices. So the lines of
the earlier notes that the new ones do not speak of go back to the model with a number each. It names those that are
over, and writes what else is missing; all others stay word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tenuto.compaction.data.calls import FAILED
from tenuto.compaction.data.told import Told, latest_on, replaces, said_by
from tenuto.compaction.data.wording import topic_of
from tenuto.compaction.summary.digest import GO_ON, LAST_ANSWER, list_items, sections_in, sections_of, subsections_of
from tenuto.compaction.summary.prompts import OVER
from tenuto.compaction.summary.summary import NAMES_LABEL, add_item
from tenuto.protocol.message import AssistantMessage
from tenuto.text.estimate import estimate_text

DECISIONS, NEXT, CONTEXT = "Key Decisions", "Next Steps", "Critical Context"
KEPT_SECTIONS = (DECISIONS, NEXT, CONTEXT)
"""The sections whose lines may not vanish unnoticed, and those that lines come back to. What is done may, and the
program itself keeps the user's rules, errors of calls, file lists and todo list."""
BLOCKED = "Blocked"
_SECTION_OF = {**{name: name for name in KEPT_SECTIONS}, BLOCKED: BLOCKED, "Context Needed to Continue": CONTEXT}
_PASSING = (NEXT, BLOCKED)
"""What is over sooner or later."""
MAX_LINES = 40
"""Lines that a model is asked about, the newest."""
MAX_LATER = 3
"""Later sentences behind one line, the newest."""
_LATER = " (later, #"
_MARK = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s*)?")
_NUMBERS = re.compile(
    r"^[\s*+#(\[-]*(?:lines?[ \t]+)?(\d+(?:(?:[ \t]*(?:[,;&+–-]|and|und|et|y|e|和|と)[ \t]*|[ \t]+)#?\d+)*)",
    re.MULTILINE | re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")


class Line(msgspec.Struct, frozen=True):
    """An item of earlier notes, with the mark of a list, and its section."""

    section: str
    text: str


def vanished(previous: str, summary: str) -> list[Line]:
    """Return the items of the previous notes that the new ones say nothing of, in order; the newest if too many.

    What blocked the work is no reason to ask by itself: it vanishes when it is mended.
    """
    notes = [*_items(summary), *summary.splitlines()]
    lines = [
        Line(_SECTION_OF[heading], item)
        for heading, items in _sections(previous)
        if heading in _SECTION_OF
        for item in items
        if _says_something(item) and _is_own(item)
    ]
    lines = [line for line in lines if line.text not in summary and not any(replaces(one, line.text) for one in notes)]
    return lines[-MAX_LINES:] if any(line.section != BLOCKED for line in lines) else []


def _sections(notes: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading of the second level with its items, and before it those of the third under it."""
    for heading, text in sections_in(notes):
        yield from ((name, list_items(lines)) for name, lines in subsections_of(text).items())
        yield heading, _items(text.partition("### ")[0])


def _items(text: str) -> list[str]:
    return list_items([line for line in text.splitlines() if line.strip()])


def _says_something(item: str) -> bool:
    """Say whether an item names something or has more than a word: "none" has not."""
    topic = topic_of(item)
    return bool(topic.names) or len(topic.words) > 1


def _is_own(item: str) -> bool:
    """Say whether a model is to carry an item: names and errors are carried by the program.

    What a digest says of its own end holds for that one alone.
    """
    of_program = (NAMES_LABEL, f"- {LAST_ANSWER}: ", f"1. {GO_ON}")
    return not item.startswith(of_program) and FAILED not in item


def question(instructions: str, lines: Sequence[Line]) -> str:
    """Return the message that asks about the lines: the instructions, then each line behind its number."""
    listed = (f"{number}. {_MARK.sub('', line.text)}" for number, line in enumerate(lines, 1))
    return "\n".join((instructions, "", *listed))


class Check(msgspec.Struct, frozen=True):
    """What a model answered: the lines that stay, and what it added."""

    kept: tuple[Line, ...]
    added: tuple[Line, ...] = ()


def without_answer(lines: Sequence[Line]) -> Check:
    """Return what holds where nobody could be asked: all but next steps and what blocks them."""
    return Check(tuple(line for line in lines if line.section not in _PASSING))


def read_answer(answer: str, lines: Sequence[Line]) -> Check | None:
    """Return what an answer says of the lines, `None` if it does not name those that are over."""
    sections = sections_of(answer)
    over = sections.get(OVER)
    if over is None:
        return None
    numbers = _numbers_in(over, len(lines))
    kept = tuple(line for number, line in enumerate(lines, 1) if number not in numbers)
    added = (
        Line(section, item)
        for section in KEPT_SECTIONS
        for item in _items(sections.get(section, ""))
        if _says_something(item) and _MARK.match(item)
    )
    return Check(kept, tuple(added))


def _numbers_in(text: str, most: int) -> set[int]:
    """Return the numbers that lines of a text begin with, ranges too; the words behind them may have others."""
    found: set[int] = set()
    for first, last in _RANGE.findall(" , ".join(_NUMBERS.findall(text))):
        found.update(range(int(first[:9]), min(int((last or first)[:9]), most) + 1))
    return found


def length_for_lines(summary: str, limit: int) -> int:
    """Return how many estimated tokens may be added to notes of at most `limit`; it may be less than none.

    A fifth stays free for what the program adds: errors and exact names.
    """
    return limit * 4 // 5 - estimate_text(summary)


def complete(summary: str, check: Check, answers: Iterable[AssistantMessage], room: int) -> str:
    """Return the notes with the lines that stay and what was added, in `room` estimated tokens.

    What was added comes first in half of the room, then the lines, the newest first. A line of which one of the
    `answers` speaks has behind it what was said last: what was taken back must not stand there alone.
    """
    bare = {line.text: line.text.split(_LATER)[0] for line in check.kept}
    latest = latest_on(bare.values(), [one for answer in answers for one in said_by(answer)])
    kept = [Line(line.section, _with_latest(line.text, latest.get(bare[line.text]), summary)) for line in check.kept]
    added = [line for line in check.added if line.text not in summary]
    first, left = _that_fit(added, room // 2)
    rest, _ = _that_fit((*reversed(kept), *added), room - room // 2 + left, taken=first)
    for line in dict.fromkeys((*kept, *added)):
        if line in first or line in rest:
            summary = add_item(summary, f"## {CONTEXT if line.section == BLOCKED else line.section}", line.text)
    return summary


def _that_fit(lines: Iterable[Line], room: int, *, taken: Sequence[Line] = ()) -> tuple[list[Line], int]:
    """Return the lines, of those not yet taken, that fit one after the other, and the room that is left."""
    fit: list[Line] = []
    for line in lines:
        price = estimate_text(line.text) + 2
        if price <= room and line not in taken and line not in fit:
            room -= price
            fit.append(line)
    return fit, room


def _with_latest(item: str, latest: Told | None, summary: str) -> str:
    """Return an item with the last sentence on the same thing, if there is one that the notes do not have."""
    if latest is None or latest.text in summary or latest.text in item:
        return item
    bare, *before = item.split(_LATER)
    return _LATER.join((bare, *before[1 - MAX_LATER :], f"{latest.seq}: {latest.text})"))
