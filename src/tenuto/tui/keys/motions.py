"""Where vi's motions lead, and what its text objects cover. Pure: a text, an offset in characters, a count."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tenuto.tui.keys.line_editor import stop_after, stop_before

Kind = Literal["exclusive", "inclusive", "lines"]
"""What of a motion's end an operator takes: not the last character, that one too, or whole lines."""
Span = tuple[int, int]
"""Where something begins and ends, as offsets; the end is not part of it."""
BLANK, WORD, SIGN = 0, 1, 2
PAIRS = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "B": "{}", "<": "<>", ">": "<>"}
QUOTES = "\"'`"
WORDS = "wW"
OBJECTS = WORDS + QUOTES + "".join(PAIRS)


class Motion(Struct, frozen=True):
    """Where a motion leads. Going down and up keeps the column of `goal`."""

    target: int
    kind: Kind = "exclusive"
    goal: int | None = None


def line_start(text: str, at: int) -> int:
    """Return where the line begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return where the line ends, before its line feed."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def last_place(text: str, at: int) -> int:
    """Return the last place of the line that the cursor can be on: its last character, or the empty line."""
    start, end = line_start(text, at), line_end(text, at)
    return start if start == end else max(start, stop_before(text, end))


def resting(text: str, at: int) -> int:
    """Return the place for a cursor that stands on characters and not between them."""
    at = max(0, min(at, len(text)))
    return min(at, last_place(text, at))


def first_word(text: str, at: int) -> int:
    """Return the first character of the line that is no blank, its last place where there is none."""
    start, end = line_start(text, at), line_end(text, at)
    while start < end and text[start] in " \t":
        start += 1
    return start if start < end else last_place(text, start)


def _class(text: str, at: int, *, big: bool) -> int:
    character = text[at]
    if character.isspace():
        return BLANK
    return WORD if big or character.isalnum() or character == "_" else SIGN


def _is_empty_line(text: str, at: int) -> bool:
    return text[at : at + 1] == "\n" and (at == 0 or text[at - 1] == "\n")


def word_forward(text: str, at: int, *, big: bool = False, stays: bool = False) -> int:
    """Return where the next word begins; an empty line is one. Behind the last it is the end of the text.

    What `stays` goes to the end of the line where the word is the last in it.
    """
    if at >= len(text):
        return len(text)
    kind = _class(text, at, big=big)
    place = at
    if kind != BLANK:
        while place < len(text) and _class(text, place, big=big) == kind:
            place += 1
        if stays and text[place : place + 1] == "\n":
            return place
    elif _is_empty_line(text, at):
        place += 1
        if stays:
            return place
    elif stays and text[at + 1 : at + 2] == "\n":
        return at + 1
    while place < len(text) and text[place].isspace() and not _is_empty_line(text, place):
        place += 1
    return place


def word_back(text: str, at: int, *, big: bool = False) -> int:
    """Return where the word before begins."""
    place = at - 1
    while place > 0 and text[place].isspace() and not _is_empty_line(text, place):
        place -= 1
    if place <= 0 or _is_empty_line(text, place):
        return max(0, place)
    kind = _class(text, place, big=big)
    while place > 0 and _class(text, place - 1, big=big) == kind:
        place -= 1
    return place


def word_last(text: str, at: int, *, big: bool = False) -> int:
    """Return the last character of the word, of the next one where the cursor is on the last."""
    place = at + 1
    while place < len(text) and text[place].isspace():
        place += 1
    if place >= len(text):
        return max(at, len(text) if text.endswith("\n") else len(text) - 1)
    kind = _class(text, place, big=big)
    while place + 1 < len(text) and _class(text, place + 1, big=big) == kind:
        place += 1
    return place


def find_in_line(text: str, at: int, command: str, character: str, count: int, *, again: bool = False) -> int | None:
    """Return where `f`, `F`, `t` or `T` leads, `None` where there are not so many. `again`: `t` and `T` do not stay."""
    forward, short = command in "ft", command in "tT"
    place = at + (1 if forward else -1) if again and short else at
    for _ in range(count):
        if forward:
            place = text.find(character, place + 1, line_end(text, at))
        else:
            place = text.rfind(character, line_start(text, at), max(place, 0))
        if place < 0:
            return None
    return place + (0 if not short else -1 if forward else 1)


def move_lines(text: str, at: int, step: int, goal: int | None) -> Motion | None:
    """Return where so many lines down, or up, are, in the same column as far as there is one; `None`: nowhere."""
    start = line_start(text, at)
    column = at - start if goal is None else goal
    first = start
    for _ in range(abs(step)):
        if step > 0:
            end = line_end(text, start)
            start = end + 1 if end < len(text) else start
        elif start:
            start = line_start(text, start - 1)
    if step and start == first:
        return None
    return Motion(min(start + column, last_place(text, start)), "lines", column)


def line_number(text: str, number: int) -> int:
    """Return the first word of the line of that number, counted from 1; of the last one where there are fewer."""
    start = 0
    for _ in range(number - 1):
        end = line_end(text, start)
        if end == len(text):
            break
        start = end + 1
    return first_word(text, start)


def _repeated(step: Callable[[str, int], int], text: str, at: int, count: int) -> int:
    for _ in range(count):
        at = step(text, at)
    return at


def _right(text: str, at: int, count: int) -> int:
    end = line_end(text, at)
    return min(end, _repeated(stop_after, text, at, min(count, end - at)))


def _line_last(text: str, at: int, count: int) -> Motion | None:
    below = move_lines(text, at, count - 1, 0)
    return None if below is None else Motion(last_place(text, below.target), "inclusive", len(text))


def _words_back(text: str, at: int, count: int, *, big: bool, stays: bool) -> Motion | None:
    before = _repeated(lambda text, at: word_back(text, at, big=big), text, at, count - 1)
    if at == 0 or (stays and before == 0 and count > 1 and text[0] == "\n"):
        return None
    return Motion(word_back(text, before, big=big))


def _left(text: str, at: int, count: int) -> int:
    start = line_start(text, at)
    return max(start, _repeated(stop_before, text, at, min(count, at - start)))


def move(
    name: str, text: str, at: int, count: int | None, goal: int | None = None, *, stays: bool = False
) -> Motion | None:
    """Return where a motion leads, `None` where it cannot be made. Finds are `find_in_line`'s.

    An operator's motion by words `stays` in the line of the last one.
    """
    times = min(count or 1, len(text) + 1)
    big = name.isupper()
    match name:
        case "h":
            return Motion(_left(text, at, times))
        case "l":
            return Motion(_right(text, at, times))
        case "w" | "W":
            before = _repeated(lambda text, at: word_forward(text, at, big=big), text, at, times - 1)
            return Motion(word_forward(text, before, big=big, stays=stays))
        case "b" | "B":
            return _words_back(text, at, times, big=big, stays=stays)
        case "e" | "E":
            return Motion(_repeated(lambda text, at: word_last(text, at, big=big), text, at, times), "inclusive")
        case "0":
            return Motion(line_start(text, at))
        case "^":
            return Motion(first_word(text, at))
        case "$":
            return _line_last(text, at, times)
        case "j" | "k":
            return move_lines(text, at, times if name == "j" else -times, goal)
        case "gg":
            return Motion(line_number(text, count or 1), "lines")
        case "G":
            return Motion(line_number(text, count or text.count("\n") + 1), "lines")
        case _:
            return None


# --- text objects ---


def find_object(name: str, text: str, at: int, count: int) -> Span | None:
    """Return what a text object covers, as `iw` or `a(`; `None` where there is none."""
    around, what = name[0] == "a", name[1]
    if what in WORDS:
        return _word_object(text, at, count, around=around, big=what == "W")
    if what in QUOTES:
        return _quoted(text, at, what, around=around)
    return _bracketed(text, at, PAIRS[what], count, around=around)


def _run(text: str, at: int, end: int, *, big: bool) -> int:
    """Return where the characters of one class end."""
    kind, place = _class(text, at, big=big), at
    while place < end and _class(text, place, big=big) == kind:
        place += 1
    return place


def _word_object(text: str, at: int, count: int, *, around: bool, big: bool) -> Span | None:
    start, end = line_start(text, at), line_end(text, at)
    if start == end:
        return None if around else (start, start)
    at = min(at, end - 1)
    kind = _class(text, at, big=big)
    begin = at
    while begin > start and _class(text, begin - 1, big=big) == kind:
        begin -= 1
    place = begin
    for _ in range(count):
        if place >= end:
            return None
        is_word = not text[place].isspace()
        place = _run(text, place, end, big=big)
        if around and place < end and (not is_word or text[place].isspace()):
            place = _run(text, place, end, big=big)
    if around and kind != BLANK and not text[place - 1].isspace():
        blanks = begin
        while blanks > start and text[blanks - 1].isspace():
            blanks -= 1
        begin = blanks if blanks > start else begin  # never the indentation
    return begin, place


def _quoted(text: str, at: int, quote: str, *, around: bool) -> Span | None:
    start, end = line_start(text, at), line_end(text, at)
    places: list[int] = []
    place = start
    while place < end:
        if text[place] == "\\":
            place += 1
        elif text[place] == quote:
            places.append(place)
        place += 1
    # On a quote pairs are counted from the line's beginning; else the one before opens, or the next one.
    pairs = zip(places[::2], places[1::2], strict=False) if at in places else itertools.pairwise(places)
    found = next(((first, last) for first, last in pairs if at <= last), None)
    if found is None:
        return None
    first, last = found
    if not around:
        return first + 1, last
    after = last + 1
    while after < end and text[after] in " \t":
        after += 1
    if after == last + 1:
        while first > start and text[first - 1] in " \t":
            first -= 1
    return first, after


def _bracketed(text: str, at: int, pair: str, count: int, *, around: bool) -> Span | None:
    opening, closing = pair
    first = at if text[at : at + 1] == opening else _enclosing(text, at, pair)
    if first < 0:
        first = text.find(opening, at)
    for _ in range(count - 1):
        first = _enclosing(text, first, pair) if first >= 0 else -1
    if first < 0:
        return None
    depth = 0
    for last in range(first, len(text)):
        depth += (text[last] == opening) - (text[last] == closing)
        if depth == 0:
            return (first, last + 1) if around else (first + 1, last)
    return None


def _enclosing(text: str, at: int, pair: str) -> int:
    """Return where the bracket opens that `at` is inside of, -1 where there is none."""
    opening, closing = pair
    depth = 0
    for place in range(min(at, len(text)) - 1, -1, -1):
        if text[place] == closing:
            depth += 1
        elif text[place] == opening:
            if depth == 0:
                return place
            depth -= 1
    return -1
