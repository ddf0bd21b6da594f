"""Front matter: the YAML at the head of a Markdown file, as texts, each key with its line.

The files come from anywhere, so nothing is made of them but texts, lists and tables of texts: no tags, no aliases, no
deep nesting. Where the YAML is broken, as in many published files (`description: Use it: always`), the lines are taken
as they stand, and the fault is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tenuto.text.late import late

if TYPE_CHECKING:
    from yaml.events import Event

MAX_CHARS = 16_000
"""Characters of a front matter."""
MAX_DEPTH = 6
MAX_KEYS = 100
MAX_BRACKETS = 200
"""Brackets and braces that are looked at: a reader of YAML takes half a second for many thousands."""
Value = str | tuple["Value", ...] | dict[str, "Value"]
_FENCE = late(r"---[ \t]*\n")
_COVERED = late(r"\s*<!--.*?-->\s*^---[ \t]*\n", re.DOTALL | re.MULTILINE)
_END = late(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LINE = late(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?")


class Fault(msgspec.Struct, frozen=True):
    """What is wrong in a line of a file, counted from 1. With `fatal` the file cannot be used."""

    line: int
    text: str
    fatal: bool = False


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at the head of a file, and the text behind it. `is_there`: there is a front matter at all.

    `raw` has the values as they are written, `lines` where each key stands.
    """

    body: str
    is_there: bool = False
    values: dict[str, Value] = {}
    raw: dict[str, str] = {}
    lines: dict[str, int] = {}
    faults: tuple[Fault, ...] = ()

    def text(self, key: str) -> str:
        """Return a value on one line; a list in brackets as it is written: `argument-hint: [a] [b]` means a text."""
        value = self.values.get(key, "")
        return " ".join((value if isinstance(value, str) else self.raw.get(key, "")).split())

    def words(self, key: str) -> tuple[str, ...]:
        """Return a value that is a list, or a text with commas or spaces between its words; brackets hold together."""
        value = self.values.get(key, "")
        if isinstance(value, str):
            return tuple(word for word in re.findall(r"(?:[^\s,(]|\([^)]*\))+", value))
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, tuple) else ()

    def is_set(self, key: str) -> bool:
        """Say whether a switch is on."""
        return self.text(key).lower() in ("true", "yes", "on")

    def line(self, key: str) -> int:
        """Return the line of a key, the first one where it is missing."""
        return self.lines.get(key, 1)


class _BrokenError(Exception):
    """Not YAML, or more than is taken; with the line in the front matter, counted from 0."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter and the text behind it. Whatever stands there, this raises nothing."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    begin = _FENCE.match(text)
    if begin is None:
        faults = (Fault(1, "a comment stands before the front matter, so it is text; take the comment out"),)
        return FrontMatter(body=text, faults=faults if _COVERED.match(text) else ())
    end = _END.search(text, begin.end())
    if end is None or end.start() > MAX_CHARS:
        why = "has no line --- at its end" if end is None else f"has more than {MAX_CHARS:,} characters"
        return FrontMatter(body=text, is_there=True, faults=(Fault(1, f"the front matter {why}", fatal=True),))
    head, body = text[begin.end() : end.start()], text[end.end() :]
    try:
        values, raw, lines = _read(head)
        faults: tuple[Fault, ...] = ()
    except _BrokenError as broken:
        values, lines = _read_loosely(head)
        raw = {key: value for key, value in values.items() if isinstance(value, str)}
        faults = (Fault(broken.line + 2, f"this is not YAML ({broken}); its lines are taken as they stand"),)
    lines = {key: line + 2 for key, line in lines.items()}
    return FrontMatter(body=body, is_there=True, values=values, raw=raw, lines=lines, faults=faults)


def _read(head: str) -> tuple[dict[str, Value], dict[str, str], dict[str, int]]:
    """Return the values, each as it is written, and the line of each key. Raises `_BrokenError`."""
    import yaml  # 16 ms; most people have no such file

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built
    begins = yaml.StreamStartEvent | yaml.DocumentStartEvent
    values: dict[str, Value] = {}
    raw: dict[str, str] = {}
    lines: dict[str, int] = {}
    rows = head.split("\n")
    if head.count("[") + head.count("{") > MAX_BRACKETS:
        raise _BrokenError("there are too many brackets", 0)
    try:
        events = cast("Iterator[Event]", cast("Any", yaml).parse(head, Loader=loader))
        started = next(event for event in events if not isinstance(event, begins))
        if isinstance(started, yaml.StreamEndEvent):
            return values, raw, lines
        if not isinstance(started, yaml.MappingStartEvent):
            raise _BrokenError("it is no table of keys and values", 0)
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            if not isinstance(key, yaml.ScalarEvent) or key.value in values or len(values) == MAX_KEYS:
                raise _BrokenError("a key is no word, is there twice, or there are too many", _line_of(key))
            first = next(events)
            values[key.value] = _value(first, events, 0)
            lines[key.value] = _line_of(key)
            raw[key.value] = rows[_line_of(first)][first.start_mark.column :].strip()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        text = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        raise _BrokenError(str(text), mark.line if mark is not None else 0) from None
    return values, raw, lines


def _value(event: Event, events: Iterator[Event], depth: int) -> Value:
    """Return what an event begins. Raises `_BrokenError` and `YAMLError`."""
    import yaml

    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if depth == MAX_DEPTH:
        raise _BrokenError("it is nested too deeply", _line_of(event))
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Value] = []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            items.append(_value(item, events, depth + 1))
        return tuple(items)
    if isinstance(event, yaml.MappingStartEvent):
        table: dict[str, Value] = {}
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            name = _value(key, events, depth + 1)
            value = _value(next(events), events, depth + 1)
            if isinstance(name, str):
                table[name] = value
        return table
    raise _BrokenError("an alias is not taken", _line_of(event))


def _line_of(event: Event) -> int:
    return event.start_mark.line


def _read_loosely(head: str) -> tuple[dict[str, Value], dict[str, int]]:
    """Return `key: value` of each line that begins with a key; what is indented goes on with the one above."""
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    present = ""
    for number, line in enumerate(head.split("\n")):
        found = _LINE.fullmatch(line)
        if found is not None and len(values) < MAX_KEYS:
            present = found[1]
            values[present], lines[present] = _unquoted((found[2] or "").strip()), number
        elif present and line[:1] in (" ", "\t"):
            values[present] = f"{values[present].removeprefix('>').removeprefix('|')} {line.strip()}".strip()
    return dict(values), lines


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
