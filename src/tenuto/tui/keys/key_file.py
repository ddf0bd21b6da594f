"""The user's own keys: `$TENUTO_HOME/keys.toml`, one binding a line, laid over the table of `tui/keys/keys.py`.

Whatever is wrong with a line costs that line alone, and is said in one line that names file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from tenuto.text.matching import did_you_mean
from tenuto.tui.keys.bindings import (
    Bindings,
    ContextName,
    Key,
    KeyNameError,
    key_label,
    normal_key,
    parse_keys,
    types_text,
)
from tenuto.tui.keys.keys import CONTEXT_TITLES, default_bindings, key_list
from tenuto.tui.state.intents import Intent, KeysLoaded

FILE_NAME = "keys.toml"
MAX_BYTES = 1_000_000
UNBOUND = frozenset({"", "none", "off", "unbound"})
SHARED = frozenset({"prompt", "transcript", "global", "edit"})
"""Contexts that share the keyboard while a prompt is written."""
READ_ONLY = frozenset({"approval", "queue", "found", "block", "child"})
"""Contexts in which nothing is typed, so that a letter can be a key."""
FIRST_CHARACTERS = frozenset("/@!")
"""What an empty prompt needs for commands, files and the shell."""
REQUIRED = {
    "escape": "close or interrupt anything",
    "cancel": "leave",
    "send": "send a prompt",
    "approval.confirm": "answer an approval",
    "feedback.confirm": "answer an approval",
    "picker.pick": "take a row of a list",
    "row.answer": "answer what is asked about a row",
}
"""What must have a key, and what nobody could do without. No other binding can take a key of these."""


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
    table = _Table(defaults)
    for line, id, value in _entries(text, table.problems):
        table.read(line, id, value)
    table.settle()
    rows = [replace(row, keys=tuple(table.keys[row.id])) for row in defaults]
    changed = {row.id for row in defaults if table.keys[row.id] != table.usual[row.id]}
    problems = [f"{line}: {problem}" for line, problem in sorted(table.problems)]
    return KeyFile(Bindings(rows, defaults, changed), problems)


def _entries(text: str, problems: list[tuple[int, str]]) -> Iterator[tuple[int, str, object]]:
    """Yield (line, id, value) of each line that says something."""
    import tomllib

    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        try:
            value: object = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            value = None
        names: list[str] = []
        while isinstance(value, dict) and value:  # mode.cycle without quotes is a table in a table
            name, value = next(iter(cast("dict[str, object]", value).items()))
            names.append(name)
        if names and not line.lstrip().startswith("["):
            yield number, ".".join(names), value
        elif value is None or names:
            problems.append((number, 'not understood; a line is like  "mode.cycle" = "shift+tab"'))


class _Table:
    """The table while the file is read: the keys of each id, and the line in which the user bound it."""

    def __init__(self, defaults: Sequence[Key]) -> None:
        self.usual = {row.id: [normal_key(key) for key in row.keys] for row in defaults}
        self.keys = dict(self.usual)
        self.problems: list[tuple[int, str]] = []
        self._contexts = {row.id: row.context for row in defaults}
        self._wanted: dict[str, list[str]] = {}
        self._lines: dict[str, int] = {}

    def read(self, line: int, id: str, value: object) -> None:
        """Note what a line wants, or what is wrong with it."""
        if id not in self.usual:
            hint = did_you_mean(id, self.usual, "“{}”")
            self.problems.append((line, f"there is no “{id}” to bind{hint}; /keys lists them"))
            return
        if id in self._lines:
            self.problems.append((self._lines[id], f"“{id}” is bound again in line {line}; that counts"))
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        keys: list[str] = []
        faults: list[str] = []
        for one in listed:
            try:
                keys += self._read_key(id, one)
            except KeyNameError as error:
                faults.append(str(error))
        self.problems += [(line, fault) for fault in faults]
        if keys or not faults:
            self._wanted[id], self._lines[id] = list(dict.fromkeys(keys)), line

    def _read_key(self, id: str, value: object) -> list[str]:
        """Return the key, or none for a word that unbinds. Raises `KeyNameError`."""
        if value is False or (isinstance(value, str) and value.strip().lower() in UNBOUND and value != " "):
            return []
        if not isinstance(value, str):
            raise KeyNameError(f"“{id}” takes a key as text, or a list of them")
        key, context = parse_keys(value), self._contexts[id]
        first = key.split()[0]
        is_typed = first in FIRST_CHARACTERS if context == "empty" else context not in READ_ONLY
        if types_text(first) and is_typed:
            raise KeyNameError(f"“{value}” is typed as text there, so it cannot be the key of “{id}”")
        return [key]

    def settle(self) -> None:
        """Give every binding its keys: first what nobody can do without, then the others, of which the later wins."""
        required = [id for id in self._wanted if id in REQUIRED]
        for id in required:
            keys = [key for key in self._wanted[id] if not self._is_refused(id, key)]
            self.keys[id] = keys or self.keys[id]
            if not self._wanted[id]:
                self._say(id, f"“{id}” keeps {key_label(self.keys[id][0])}: without it nobody could {REQUIRED[id]}")
        others = sorted(self._wanted.keys() - required, key=self._lines.__getitem__)
        self.keys |= {id: [] for id in others}
        for id in [*required, *others]:
            if id not in REQUIRED:
                self.keys[id] = [key for key in self._wanted[id] if not self._is_refused(id, key)]
            for key in self.keys[id]:
                self._take(id, key)

    def _is_refused(self, id: str, key: str) -> bool:
        """Say whether a key belongs to what nobody can do without; if so, that is a problem."""
        owner = next((other for other in self._rivals(id, key) if other in REQUIRED), "")
        if owner:
            self._say(id, f"{key_label(key)} stays “{owner}”: without it nobody could {REQUIRED[owner]}")
        return bool(owner)

    def _take(self, id: str, key: str) -> None:
        """Take a key from every other binding that has it, and say so."""
        for other in self._rivals(id, key):
            lost = next(one for one in self.keys[other] if _collide(key, one))
            self.keys[other] = [one for one in self.keys[other] if not _collide(key, one)]
            line = f" (line {self._lines[other]})" if other in self._lines else ""
            left = ", ".join(map(key_label, self.keys[other])) or "no key"
            loses = "" if lost == key else f"loses {key_label(lost)} and "
            self._say(id, f"{key_label(key)} is “{id}” now; “{other}”{line} {loses}has {left}")

    def _rivals(self, id: str, key: str) -> list[str]:
        """Return the ids that have this key, or a chord with it, in a context that is active together with this one."""
        context = self._contexts[id]
        return [
            other
            for other, keys in self.keys.items()
            if other != id
            and not (key in self.usual[id] and key in self.usual[other])  # these share it as they come
            and (
                self._contexts[other] == context
                or (self._contexts[other] in SHARED and context in SHARED)
                or (self._contexts[other] == "global" and other in REQUIRED)
                or (context == "global" and id in REQUIRED and other in REQUIRED)
            )
            and any(_collide(key, one) for one in keys)
        ]

    def _say(self, id: str, problem: str) -> None:
        self.problems.append((self._lines[id], problem))


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


class OwnKeys:
    """`home` is Tenuto's own directory."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME

    def read(self, handle: Callable[[Intent], None]) -> tuple[str, ...]:
        """Have the keys of the file used from now on; return a line for everything that is wrong with it."""
        found = read_key_file(self.path)
        handle(KeysLoaded(found.bindings))
        return tuple(found.problems)

    def prepare(self) -> None:
        """Make a file that explains itself, if there is none. Raises `OSError`."""
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = key_file_text(default_bindings().rows, CONTEXT_TITLES)
            self.path.write_text(text, encoding="utf-8")
            self.path.chmod(0o600)

    def describe(self, bindings: Bindings) -> str:
        """Return the list of `/keys`."""
        return key_list(bindings, str(self.path))
