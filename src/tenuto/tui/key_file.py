"""The user's own keys: `$TENUTO_HOME/keys.toml` read line by line, laid over the table of `tui/keys.py`.

Whatever is wrong with a line costs that line alone, and is said in one line that names file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from tenuto.tui.bindings import Bindings, Key, default_bindings
from tenuto.tui.key_names import KeyNameError, key_label, normal_key, parse_keys, types_text
from tenuto.tui.machine.state import ContextName

FILE_NAME = "keys.toml"
MAX_BYTES = 1_000_000
MAX_LINES_OF_ONE = 100
UNBOUND = frozenset({"", "none", "off", "unbound"})
ALWAYS_OPEN = ("prompt", "transcript", "global", "edit")
"""Contexts that share the keyboard while a prompt is written, the one that gets a key first in front."""
REQUIRED = {
    "escape": "close or interrupt anything",
    "cancel": "leave",
    "send": "send a prompt",
    "approval.confirm": "answer an approval",
    "feedback.confirm": "answer an approval",
    "picker.pick": "take a row of a list",
    "row.answer": "answer what is asked about a row",
}
"""What must have a key, and what nobody could do without."""
FIRST_CHARACTERS = frozenset("/@!")
"""What an empty prompt needs for commands, files and the shell."""


class Override(Struct, frozen=True):
    """What the user wrote for one binding; `line` counts from 1."""

    id: str
    keys: tuple[str, ...]
    line: int


class KeyFile(Struct):
    """What was read: the bindings, and a line for everything that was wrong."""

    bindings: Bindings
    problems: list[str] = field(default_factory=list[str])


def read_key_file(path: Path) -> KeyFile:
    """Return the table with what the file changes. A file that is not there changes nothing."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return KeyFile(default_bindings())
    except OSError as error:
        return KeyFile(default_bindings(), [f"{path}: cannot be read ({error.strerror}); the keys are the usual ones"])
    found = apply_text(data.decode("utf-8-sig", "replace"), default_bindings().rows)
    return KeyFile(found.bindings, [f"{path}:{problem}" for problem in found.problems])


def apply_text(text: str, defaults: Sequence[Key]) -> KeyFile:
    """Return the table with what a file's text changes. A problem begins with its line number."""
    problems: list[str] = []
    overrides: list[Override] = []
    for line, id, value in _entries(text, problems):
        override = _read_override(line, id, value, defaults, problems)
        if override is not None:
            overrides.append(override)
    changes = _Changes(defaults, problems)
    changes.apply(overrides)
    return KeyFile(Bindings(changes.rows(), defaults, changes.changed), sorted(problems, key=_line_of))


def _line_of(problem: str) -> int:
    return int(problem.partition(":")[0])


# --- lines to overrides ---


def _entries(text: str, problems: list[str]) -> Iterator[tuple[int, str, object]]:
    """Yield (line, id, value) of each entry; a `[section]` stands before the ids in it."""
    section = ""
    lines = text.replace("\r\n", "\n").split("\n")
    place = 0
    while place < len(lines):
        begin, line = place, lines[place].strip()
        place += 1
        if not line or line.startswith("#"):
            continue
        table, end = _parse_entry(lines, begin)
        if table is None:
            problems.append(f'{begin + 1}: not understood; a line is like  "mode.cycle" = "shift+tab"')
        elif line.startswith("["):
            section = line.partition("]")[0].strip("[ \"'") + "."
            section = "" if section == "keys." else section
        else:
            place = end
            yield from ((begin + 1, section + id, value) for id, value in _flatten(table))


def _parse_entry(lines: list[str], begin: int) -> tuple[dict[str, object] | None, int]:
    """Return what the entry that begins in a line says, `None` for nonsense, and the line after it.

    A list may go on over several lines; it ends at the latest where another entry begins.
    """
    import tomllib

    for end in range(begin + 1, min(begin + MAX_LINES_OF_ONE, len(lines)) + 1):
        try:
            return tomllib.loads("\n".join(lines[begin:end])), end
        except tomllib.TOMLDecodeError:
            is_open = "[" in lines[begin].partition("=")[2]
            if not is_open or end >= len(lines) or "=" in lines[end].partition("#")[0].split('"')[0]:
                break
    return None, begin + 1


def _flatten(table: dict[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(cast(dict[str, object], value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _read_override(line: int, id: str, value: object, defaults: Sequence[Key], problems: list[str]) -> Override | None:
    row = next((row for row in defaults if row.id == id), None)
    if row is None:
        problems.append(f"{line}: there is no “{id}” to bind{_closest(id, defaults)}; /keys lists them")
        return None
    listed = cast(list[object], value) if isinstance(value, list) else [value]
    keys: list[str] = []
    wrong = 0
    for one in listed:
        try:
            keys += _read_key(one, row, defaults)
        except KeyNameError as error:
            problems.append(f"{line}: {error}")
            wrong += 1
    if wrong and not keys:
        return None
    return Override(id, tuple(dict.fromkeys(keys)), line)


def _read_key(value: object, row: Key, defaults: Sequence[Key]) -> list[str]:
    """Return the key, or none for a word that unbinds. Raises `KeyNameError`."""
    if value is False or (isinstance(value, str) and value.strip().lower() in UNBOUND and value != " "):
        return []
    if not isinstance(value, str):
        raise KeyNameError(f"“{row.id}” takes a key as text, or a list of them")
    key = parse_keys(value)
    typing = {one.context for one in defaults} - {
        one.context for one in defaults for key_ in one.keys if types_text(normal_key(key_))
    }
    first = key.split()[0] if key != " " else key
    if types_text(first) and (row.context in typing or (row.context == "empty" and first in FIRST_CHARACTERS)):
        raise KeyNameError(f"“{value}” is typed as text there, so it cannot be the key of “{row.id}”")
    return [key]


def _closest(id: str, defaults: Sequence[Key]) -> str:
    import difflib

    close = difflib.get_close_matches(id, [row.id for row in defaults], n=1)
    return f"; did you mean “{close[0]}”?" if close else ""


# --- overrides to a table ---


class _Changes:
    """The table in the making. `_lines` says where the user bound an id."""

    def __init__(self, defaults: Sequence[Key], problems: list[str]) -> None:
        self._defaults = {row.id: row for row in defaults}
        self._keys = {row.id: [normal_key(key) for key in row.keys] for row in defaults}
        self._lines: dict[str, int] = {}
        self._problems = problems

    @property
    def changed(self) -> frozenset[str]:
        """The ids whose keys are not the usual ones."""
        return frozenset(
            id for id, row in self._defaults.items() if self._keys[id] != [normal_key(key) for key in row.keys]
        )

    def rows(self) -> list[Key]:
        """Return the table as it is now."""
        return [replace(row, keys=tuple(self._keys[id])) for id, row in self._defaults.items()]

    def apply(self, overrides: Sequence[Override]) -> None:
        """Give what the user has bound its keys. What nobody can do without has the first choice."""
        last = {override.id: override for override in overrides}
        for override in overrides:
            if last[override.id] is not override:
                self._say(
                    override.line, f"“{override.id}” is bound again in line {last[override.id].line}; that counts"
                )
            self._keys[override.id] = []
        for override in sorted(last.values(), key=lambda override: override.id not in REQUIRED):
            self._lines[override.id] = override.line
            for key in override.keys:
                self._bind(override, key)
        self._keep_required()

    def _bind(self, override: Override, key: str) -> None:
        """Give a binding a key, unless another keeps it; say so wherever two want the same."""
        for other in self._rivals(override.id, key):
            theirs = next(one for one in self._keys[other] if _collide(key, one))
            wins = self._wins(override.id, other)
            if wins and self._defaults[other].context in (self._defaults[override.id].context, "edit"):
                self._keys[other] = [one for one in self._keys[other] if not _collide(key, one)]
            winner, loser = (override.id, other) if wins else (other, override.id)
            keys = key_label(key) if key == theirs else f"{key_label(key)} and {key_label(theirs)}"
            left = self._keys[loser]
            self._say(
                override.line,
                f"{keys} cannot be “{override.id}” and “{other}” at once; it is “{winner}” that has it"
                + ("" if left else f", and “{loser}” has no key"),
            )
            if not wins:
                return
        self._keys[override.id].append(key)

    def _rivals(self, id: str, key: str) -> list[str]:
        """Return the ids that have this key, or a chord with it, and hear the keyboard at the same time."""
        context = self._defaults[id].context
        return [
            other
            for other, row in self._defaults.items()
            if other != id
            and (
                row.context == context
                or (row.context in ALWAYS_OPEN and context in ALWAYS_OPEN)
                or (row.context == "global" and other in REQUIRED)
            )
            and any(_collide(key, theirs) for theirs in self._keys[other])
        ]

    def _wins(self, id: str, other: str) -> bool:
        """Say whether a binding of the user gets a key that another has."""
        mine, theirs = self._defaults[id].context, self._defaults[other].context
        if other in REQUIRED and len(self._keys[other]) == 1:
            return False
        if mine == theirs:
            return other not in self._lines
        return mine not in ALWAYS_OPEN or ALWAYS_OPEN.index(mine) < ALWAYS_OPEN.index(theirs)

    def _keep_required(self) -> None:
        """Give what must have a key its usual ones back, if the user has left it without any."""
        for id, purpose in REQUIRED.items():
            row = self._defaults.get(id)
            if row is None or self._keys[id]:
                continue
            usual = [normal_key(key) for key in row.keys]
            for other, keys in self._keys.items():
                if self._defaults[other].context == row.context or row.context == "global":
                    self._keys[other] = [key for key in keys if key not in usual]
            self._keys[id] = usual
            self._say(self._lines.get(id, 1), f"“{id}” keeps {key_label(usual[0])}: without it nobody could {purpose}")

    def _say(self, line: int, problem: str) -> None:
        self._problems.append(f"{line}: {problem}")


def _collide(one: str, other: str) -> bool:
    """Say whether two keys or chords are the same, or one is the beginning of the other."""
    return one == other or one.startswith(f"{other} ") or other.startswith(f"{one} ")


# --- a file to begin with ---

HEAD = """\
# Your own keys. A line is  "id" = "key"  or  "id" = ["key", "other key"]  or  "id" = "none".
# Take away the # of a line to change it. /reload reads the file again, /keys shows what holds.
# Keys: ctrl+o, alt+p, shift+tab, f5, pageup, up, enter, esc, space … or a chord of two: "ctrl+x ctrl+e".
# Not every key reaches a program in a terminal: Ctrl+I is Tab, Ctrl+M is Enter, Cmd stays with the terminal.
"""


def key_file_text(rows: Sequence[Key], titles: Mapping[ContextName, str]) -> str:
    """Return a file that says what can be bound and changes nothing."""
    parts = [HEAD]
    for context, title in titles.items():
        lines = [_template_line(row) for row in rows if row.context == context]
        parts.append("\n".join([f"# --- {title} ---", *lines, ""]))
    return "\n".join(parts)


def _template_line(row: Key) -> str:
    keys = [f'"{normal_key(key)}"'.replace('"\\"', '"\\\\"') for key in row.keys]
    value = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
    return f'# "{row.id}" = {value}' + (f"  # {row.help}" if row.help else "")
