"""What answers told that is worth keeping: decisions, promises, and what they said of things that they named. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tenuto.compaction.data.wording import (
    MAX_SENTENCE,
    Sentence,
    Topic,
    is_announcement,
    is_content,
    is_correction,
    is_decision,
    is_promise,
    is_same_topic,
    sentences,
    topic_of,
)
from tenuto.protocol.message import AssistantMessage, HistoryEvent
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.bounding import shorten

MAX_TOLD = 40
"""Sentences of answers of one kind: decisions, promises, others."""
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(
    r"(?<![A-Za-z0-9-])(?![A-Za-z]+(?:-[A-Za-z]+)+(?![\w./:-]*[\w/]))[A-Za-z0-9]{2,}(?:[_./:-]\w{2,})+|`[^`\n]+`|\d{2,}",
    re.ASCII,
)
"""What makes a sentence worth keeping whatever its words are, in any language: it names something exactly.

Words with nothing but hyphens between them are plain words.
"""
_EMPHASIS = re.compile(r"(?<![*`])\*\*(\S(?:[^*\n]*\S)?)\*\*(?!\*)")
_NO_SENTENCE = re.compile(r"^[ \t]*(?:#{1,6} .*|\|.*|[-*+ \t]*(?:\*\*[^*\n]+\*\*|__[^_\n]+__):?)$", re.MULTILINE)
"""Headings, labels and rows of tables."""
_QUESTION = ("?", "？", "؟")
_INTRODUCTION = (":", "：")
_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[^\W\d_]")


def told(entries: Sequence[HistoryEvent], is_meant: Callable[[str], bool], *, announced: bool = False) -> list[str]:
    """Return the sentences of answers that are meant, oldest first, at most four times as many as are kept.

    None that only announces the calls of its own answer; with `announced` one that names something stays all the same.
    """
    found = [
        said
        for entry in entries
        if isinstance(entry, AssistantMessage)
        for sentence, said in _sentences_of(entry)
        if is_meant(sentence) and not _announces(said, entry.tool_calls, announced=announced)
    ]
    return found[-4 * MAX_TOLD :]


def _sentences_of(answer: AssistantMessage) -> Iterator[tuple[str, str]]:
    """Yield what an answer says, without code: each sentence, and the same with the one behind it if that goes with it.

    In the same line, what names nothing itself does (a reason, mostly), what follows on something taken back, and two
    sentences of which neither is known for a decision or a promise: one thought is often told in two.
    """
    text, spans = _statements(answer)
    calls = answer.tool_calls
    taken = 0
    for span, following in zip_longest(spans, spans[1:]):
        if span.start < taken:
            continue
        sentence = said = _plain(text[span.start : span.end])
        if following is not None and not (calls and is_announcement(sentence)):
            whole = text[span.start : following.end]
            behind = text[following.start : following.end]
            goes_with = is_correction(sentence) or not _has_sense(behind) or (is_noted(sentence) and is_noted(behind))
            if goes_with and "\n" not in whole and len(whole) <= MAX_SENTENCE:
                said, taken = _plain(whole), following.end
        yield sentence, said


def _statements(answer: AssistantMessage) -> tuple[str, list[Sentence]]:
    """Return what an answer says, without code and headings, and where the sentences in it are that state something."""
    text = _EMPHASIS.sub(r"\1", _NO_SENTENCE.sub("", _FENCED.sub("\n", text_of(answer.parts))))
    return text, [span for span in sentences(text) if _is_statement(text[span.start : span.end], answer.tool_calls)]


def _is_statement(text: str, calls: Sequence[ToolCallPart]) -> bool:
    """Say whether a sentence states something: a question does not, nor does a mark by itself.

    Nor does what introduces the lines or the `calls` below it, unless it says what was decided of a named thing.
    """
    bare = text.rstrip(" *_")
    if bare.endswith(_INTRODUCTION):
        return not calls and is_decision(bare) and _NAMED.search(bare) is not None
    return _LETTER.search(text) is not None and not bare.endswith(_QUESTION)


def _plain(text: str) -> str:
    return shorten(text.lstrip("-*#> "), MAX_SENTENCE)


def _has_sense(sentence: str) -> bool:
    """Say whether a sentence can be kept by itself."""
    return is_decided(sentence) or is_promise(sentence) or _NAMED.search(sentence) is not None


class Told(NamedTuple):
    """A sentence of an answer, and the answer's entry."""

    seq: int
    text: str


def said_by(answer: AssistantMessage) -> Iterator[Told]:
    """Yield the sentences of an answer, without code, headings and questions, in order."""
    text, spans = _statements(answer)
    for span in spans:
        yield Told(answer.seq, _plain(text[span.start : span.end]))


def latest_on(items: Iterable[str], told: Sequence[Told]) -> dict[str, Told]:
    """Return the last of the sentences, which are in time order, that speaks of the same thing as each item."""
    open_items = {item: _about(item) for item in items}
    latest: dict[str, Told] = {}
    for one in reversed(told):
        if not open_items:
            break
        about = _about(one.text)
        for item in [item for item, other in open_items.items() if _is_about_the_same(about, other)]:
            latest[item] = one
            del open_items[item]
    return latest


class _About(NamedTuple):
    things: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    topic: Topic


def _about(sentence: str) -> _About:
    return _About(_things(sentence), _pairs(sentence), topic_of(sentence))


def _is_about_the_same(one: _About, other: _About) -> bool:
    if not (one.things.isdisjoint(other.things) and one.pairs.isdisjoint(other.pairs)):
        return True
    return is_same_topic(one.topic, other.topic)


def _pairs(sentence: str) -> frozenset[tuple[str, str]]:
    """Return the words that stand next to each other, two by two: a thing is often named in two plain words."""
    words = _PLAIN_WORD.findall(sentence.lower())
    return frozenset((one, other) for one, other in pairwise(words) if is_content(one) and is_content(other))


def is_decided(sentence: str) -> bool:
    """Say whether a sentence tells what was decided or taken back."""
    return is_decision(sentence) or is_correction(sentence)


def _announces(sentence: str, calls: Sequence[ToolCallPart], *, announced: bool) -> bool:
    """Say whether a sentence only tells of the calls that go with it, if there are any.

    It begins as such a sentence, or all that it names stands in them. With `announced` only where it names nothing.
    """
    names = _NAMED.findall(sentence)
    if not calls or (announced and names):
        return False
    if announced or is_announcement(sentence):
        return is_announcement(sentence)
    arguments = "\n".join(call.arguments for call in calls)
    return all(name.strip("`") in arguments for name in names)


def is_noted(sentence: str) -> bool:
    """Say whether a sentence names something, and tells neither a decision nor a promise."""
    return not is_decided(sentence) and not is_promise(sentence) and _NAMED.search(sentence) is not None


def newest_by_topic(earlier: Iterable[str], later: Iterable[str]) -> list[str]:
    """Return items in their order, one a topic, the later one winning; of too many the newest."""
    kept: list[str] = []
    for item in (*earlier, *later):
        kept = [known for known in kept if not replaces(item, known)]
        kept.append(item)
    return kept[-MAX_TOLD:]


def replaces(later: str, earlier: str) -> bool:
    """Say whether a sentence takes the place of an earlier one.

    Two that name different things never do; one that takes something back does, of all that it names.
    """
    if later == earlier:
        return True
    mine, theirs = _things(later), _things(earlier)
    if mine and theirs:
        if not mine & theirs:
            return False
        if is_correction(later):
            return True
    return is_same_topic(topic_of(later), topic_of(earlier))


@lru_cache(maxsize=4_096)
def _things(sentence: str) -> frozenset[str]:
    """Return what a sentence names exactly and not by a number alone."""
    return frozenset(name.strip("`") for name in _NAMED.findall(sentence) if _LETTER.search(name))
