"""What `recall` looks for, in the lines of one text after the other: words, or a regular expression."""

from __future__ import annotations

import contextlib
import heapq
import json
import re
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Protocol

import msgspec

from tenuto.session.search.needs import expression_needs, words_needed
from tenuto.tool.run.context import ToolError
from tenuto.tool.search import line_matcher
from tenuto.tool.search.line_matcher import SHOWN
from tenuto.tool.search.search import Stop

_HELD_BLOCKS = 8
"""Blocks of a file that are kept while not all words have been seen in it."""
_WORD = re.compile(r'"([^"]+)"|(\S+)')
REACH = 160
"""Characters within which words of a long line stand together."""
_Line = tuple[int, int, str]
"""Minus the words that a line has, its number from 1, its text."""


class Hit(msgspec.Struct, frozen=True):
    """A line that matches: its number from 1, its text, and where in it the match begins."""

    number: int
    text: str
    column: int


class Scan(msgspec.Struct, frozen=True):
    """What was found in one text: how many lines match, and the first of them."""

    total: int
    hits: tuple[Hit, ...]


class Matcher(Protocol):
    """Something to look for."""

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Look through one text, given as blocks of lines."""
        ...

    def can_match(self, texts: list[str]) -> bool:
        """Say whether any of the texts may match; `False` is certain, and much cheaper than looking at each."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """What every text that matches has, as `session/search` folds texts; nothing where that cannot be said."""
        ...

    @property
    def counted(self) -> tuple[str, ...]:
        """The words of which it is told how often they occur when no entry has them all."""
        ...

    def close(self) -> None:
        """Let go of whatever was needed."""
        ...


class WordMatcher:
    """Texts that have all the words, in any order, whatever their case; `"two words"` in quotes are one."""

    def __init__(self, query: str) -> None:
        self._words = tuple(dict.fromkeys((quoted or bare).casefold() for quoted, bare in _WORD.findall(query)))
        self.seen: Counter[str] = Counter()
        """In how many texts each word was."""

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Return the lines with any of the words, if the text has them all; of many those with most of the words.

        Lines are looked at one by one only when all words are known to be there; until then the last blocks are held.
        """
        missing = set(self._words)
        held: deque[tuple[int, list[str]]] = deque(maxlen=_HELD_BLOCKS)
        best: list[_Line] = []
        total = before = 0
        for lines in blocks:
            folded = "\n".join(lines).casefold()
            if any(word in folded for word in self._words):
                missing.difference_update([word for word in missing if word in folded])
                held.append((before, lines))
            before += len(lines)
            while held and not missing:
                found = list(self._lines_with_any(*held.popleft()))
                total += len(found)
                best = heapq.nsmallest(SHOWN, (*best, *found))
        self.seen.update(word for word in self._words if word not in missing)
        hits = (Hit(number, text, self._densest(text)) for _, number, text in sorted(best, key=itemgetter(1)))
        return Scan(total, tuple(hits))

    def can_match(self, texts: list[str]) -> bool:
        """Each has to be looked at: how often the words occur is told as well."""
        return bool(texts)

    def _lines_with_any(self, before: int, lines: list[str]) -> Iterator[_Line]:
        for number, line in enumerate(lines, before + 1):
            folded = line.casefold()
            found = sum(word in folded for word in self._words)
            if found:
                yield -found, number, line

    def _densest(self, line: str) -> int:
        """Return where in a line the part of `REACH` characters begins that has most of the words."""
        folded = line.casefold()
        places = sorted((found.start(), word) for word in self._words for found in re.finditer(re.escape(word), folded))
        inside: Counter[str] = Counter()
        start, most, best = 0, 0, places[0][0]
        for place, word in places:
            inside[word] += 1
            while place + len(word) - places[start][0] > REACH and places[start][0] < place:
                first = places[start][1]
                inside[first] -= 1
                if not inside[first]:
                    del inside[first]
                start += 1
            if len(inside) > most:
                most, best = len(inside), places[start][0]
        return best

    @property
    def needs(self) -> tuple[str, ...]:
        """All of the words."""
        return words_needed(self._words)

    @property
    def counted(self) -> tuple[str, ...]:
        """Each word, where there are several."""
        return self._words if len(self._words) > 1 else ()

    def close(self) -> None:
        """Nothing to let go of."""


class _Answer(msgspec.Struct, frozen=True):
    """A line of the matching process."""

    error: str = ""
    total: int = 0
    hits: tuple[tuple[int, int], ...] = ()


class ExpressionMatcher:
    """Lines that a regular expression finds, whatever their case; tried in a process that can be killed."""

    def __init__(self, pattern: str, stop: Stop) -> None:
        """Start the process. Raises `ToolError` for an expression that is none."""
        self.needs = expression_needs(pattern)
        program = [sys.executable, "-I", "-S", line_matcher.__file__]
        self._stop = stop
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        stop.watch(self._process)
        answer = self._ask(pattern)
        if answer.error:
            self.close()
            raise ToolError(f"The search could not be done: not a regular expression: {answer.error}")

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Return the lines that match."""
        hits: list[Hit] = []
        total = before = 0
        for lines in blocks:
            answer = self._ask(lines)
            total += answer.total
            hits += (Hit(before + index + 1, lines[index], column) for index, column in answer.hits)
            before += len(lines)
        return Scan(total, tuple(hits[:SHOWN]))

    def can_match(self, texts: list[str]) -> bool:
        """Ask for all lines at once."""
        return bool(texts) and self._ask("\n".join(texts).split("\n")).total > 0

    def _ask(self, question: str | list[str]) -> _Answer:
        """Return what the process says; nothing once the search is stopped. Raises `ToolError` if it ends by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=_Answer)
        if self._stop.is_due():
            return _Answer()
        self.close()
        raise ToolError("The search failed: the program that tries the expression ended. Search for words instead.")

    @property
    def counted(self) -> tuple[str, ...]:
        """There are no words."""
        return ()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
