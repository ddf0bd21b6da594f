"""Front matter: the few lines between `---` at the head of a Markdown file that say what the file is. Pure.

Read is what such files have: texts, lists, and texts over several lines. Everything else of YAML stays a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_CHARS = 16_000
"""Characters of front matter that are read."""
_FENCED = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$")
_BLOCK = re.compile(r"[|>][+-]?$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at the head of a file, and the text behind it."""

    body: str
    values: dict[str, str | tuple[str, ...]] = {}

    def text(self, key: str) -> str:
        """Return a value on one line; a list with commas."""
        value = self.values.get(key, "")
        return " ".join((value if isinstance(value, str) else ", ".join(value)).split())

    def words(self, key: str) -> tuple[str, ...]:
        """Return a value that is a list, or a text with commas between its words; brackets hold together."""
        value = self.values.get(key, ())
        return tuple(_split(value)) if isinstance(value, str) else value


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter and the text behind it. Whatever stands there, this raises nothing."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _FENCED.match(text)
    if found is None or len(found[1]) > MAX_CHARS:
        return FrontMatter(body=text)
    return FrontMatter(body=text[found.end() :], values=dict(_fields(found[1].split("\n"))))


def _fields(lines: list[str]) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    at = 0
    while at < len(lines):
        field = _FIELD.match(lines[at])
        at += 1
        if field is None:
            continue
        below: list[str] = []
        while at < len(lines) and (not lines[at].strip() or lines[at][:1] in {" ", "\t", "-"}):
            below.append(lines[at])
            at += 1
        yield field[1], _value((field[2] or "").strip(), below)


def _value(first: str, below: list[str]) -> str | tuple[str, ...]:
    if _BLOCK.match(first):
        return _block([line.strip() for line in below], keeps_lines=first.startswith("|"))
    lines = [line.strip() for line in below if line.strip() and not line.lstrip().startswith("#")]
    if not first and lines and all(line.startswith("- ") for line in lines):
        return tuple(_plain(line[2:]) for line in lines)
    whole = " ".join([first, *lines]).strip()
    if whole.startswith("[") and whole.endswith("]"):
        return tuple(_plain(part) for part in _split(whole[1:-1]))
    return _plain(whole)


def _block(lines: list[str], *, keeps_lines: bool) -> str:
    if keeps_lines:
        return "\n".join(lines).strip("\n")
    paragraphs = "\n".join(lines).strip("\n").split("\n\n")
    return "\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _plain(text: str) -> str:
    """Return a value without its quotes, or without the comment behind it."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()


def _split(text: str) -> Iterator[str]:
    depth, word = 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            yield word.strip()
            word = ""
        else:
            word += letter
    if word.strip():
        yield word.strip()
