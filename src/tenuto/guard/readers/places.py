"""Where a line would run, and where its words lead: real paths, patterns of files, programs. Looks at the disk."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tenuto.guard.protected import below, secret_names
from tenuto.guard.subject import has_name_outside, is_inside

MAX_MATCHES = 2_000
"""Directory entries that a pattern may look at; with more of them a user decides."""
_MOST_STEPS = 400
_HARMLESS_DEVICES = frozenset({"/dev/null"})
_RUNS_BEFORE = ("BASH_ENV", "ENV")


class Asks(Exception):  # noqa: N818 - it is no error: the command is simply not one that runs unasked
    """Why a command is not known to only read, in words that fit behind "it"."""


class Place(msgspec.Struct, frozen=True):
    """Where a line would run. `root` is the workspace, `cwd` a directory, `added` more of the workspace: real paths.

    `is_bash` says that the shell which gets the line is bash.
    """

    root: str
    cwd: str
    environ: Mapping[str, str]
    is_bash: bool = True
    added: tuple[str, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        """All directories that count as workspace."""
        return (self.root, *self.added)

    def root_of(self, path: str) -> str:
        """Return the directory of the workspace that a real path lies in, empty for one outside."""
        return next((root for root in self.roots if is_inside(path, root)), "")


def check_shell(place: Place) -> None:
    """Raises `Asks` where the shell would run a file of the workspace before the line."""
    for name in _RUNS_BEFORE:
        file = place.environ.get(name, "")
        if file and (not os.path.isabs(file) or place.root_of(os.path.realpath(file))):  # noqa: PTH117
            raise Asks(f"would be run after {file}, which {name} names")


def check_path(text: str, cwd: str, place: Place) -> str:
    """Return the real path of what a program opens under this name. Raises `Asks` where it may not be read unasked."""
    named = os.path.join(cwd, text)  # noqa: PTH118 - as the program will join them
    if named in _HARMLESS_DEVICES:
        return named
    path = os.path.realpath(named)
    if path != os.path.normpath(named):
        _check_links(named)
    root = place.root_of(path)
    if not root:
        raise Asks(f"reads outside the workspace: {path}")
    if secret_names(below(path, root)):
        raise Asks(f"reads {path}, which holds keys")
    try:
        facts = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return path
    except OSError as error:
        raise Asks(f"reads {text}, which cannot be looked at ({error.strerror})") from None
    check_kind(path, facts, place)
    return path


def _check_links(named: str) -> None:
    """Raises `Asks` where a name leads through what is another file for each process (`/dev/stdin`, `/proc/self`)."""
    pending, place = [part for part in reversed(named.split("/")) if part not in ("", ".")], "/"
    for _ in range(_MOST_STEPS):
        if not pending:
            return
        part = pending.pop()
        place = os.path.dirname(place) if part == ".." else os.path.join(place, part)  # noqa: PTH118, PTH120
        if is_inside(place, "/proc") or is_inside(place, "/dev"):
            raise Asks(f"reads {named}, which is not the same file for every program")
        if os.path.islink(place):  # noqa: PTH114
            target = os.readlink(place)  # noqa: PTH115
            pending += [part for part in reversed(target.split("/")) if part not in ("", ".")]
            place = "/" if target.startswith("/") else os.path.dirname(place)  # noqa: PTH120
    raise Asks(f"reads {named}, which leads through very many links")


def check_kind(path: str, facts: os.stat_result, place: Place) -> None:
    """Raises `Asks` for what is neither a directory nor a file, and for files that have other names elsewhere."""
    if stat.S_ISDIR(facts.st_mode):
        return
    if not stat.S_ISREG(facts.st_mode):
        raise Asks(f"reads {path}, which is no file")
    if facts.st_nlink > 1 and has_name_outside(Path(path), Path(place.root_of(path) or place.root)):
        raise Asks(f"reads {path}, which has another name outside the workspace")


def check_directory(path: str, place: Place, *, deep: bool) -> None:
    """Raises `Asks` where something that a comparing program opens in this directory may not be read unasked."""
    pending, seen = [path], 0
    while pending:
        directory = pending.pop()
        for entry in _entries(directory):
            seen += 1
            if seen > MAX_MATCHES:
                raise Asks("reads a directory with very many files")
            if entry.is_symlink():
                check_path(entry.path, directory, place)
                if deep and entry.is_dir():
                    raise Asks(f"follows a link to a directory: {entry.path}")
            elif entry.is_dir(follow_symlinks=False):
                pending += [entry.path] if deep else []
            else:
                check_kind(entry.path, entry.stat(follow_symlinks=False), place)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def enter_directory(text: str, cwd: str, place: Place) -> str:
    """Return where `cd` leads, as a real path. Raises `Asks`."""
    if place.environ.get("CDPATH"):
        raise Asks("changes to a directory that CDPATH may name")
    path = os.path.realpath(os.path.normpath(os.path.join(cwd, text)))  # noqa: PTH118 - `cd` takes `..` by the name
    if not place.root_of(path):
        raise Asks(f"works outside the workspace: {path}")
    # Behind a link `..` has two readings: the shell's and the system's
    if os.path.normpath(os.path.join(cwd, text)) != path or os.path.realpath(os.path.join(cwd, text)) != path:  # noqa: PTH118
        raise Asks("changes to a directory through a link")
    if not os.path.isdir(path) or not os.access(path, os.X_OK):  # noqa: PTH112
        raise Asks(f"changes to a directory that is not there: {path}")
    return path


def find_program(name: str, place: Place) -> None:
    """Raises `Asks` where a program of this name would come from the workspace, or from wherever the shell is."""
    for folder in place.environ.get("PATH", os.defpath).split(os.pathsep):
        if not folder.startswith("/"):
            raise Asks(f"would look for {name} in a relative entry of PATH")
        file = f"{folder}/{name}"
        if os.access(file, os.X_OK) and not os.path.isdir(file):  # noqa: PTH112
            if place.root_of(os.path.realpath(file)) or place.root_of(os.path.realpath(folder)):
                raise Asks(f"would run {file}, a program of the workspace")
            return


GlobPart = tuple[str, bool]
"""Characters of a pattern, and whether they are for the shell to interpret."""


def matches(parts: Sequence[GlobPart], cwd: str) -> list[str]:
    """Return the words that a pattern of files can become, the pattern itself among them.

    More rather than fewer: brackets stand for any character and hidden names count, whatever the shell's settings.
    Raises `Asks`.
    """
    literal = "".join(text for text, _ in parts)
    segments: list[str] = [""]
    magic: list[bool] = [False]
    for text, is_live in parts:
        for char in text:
            if char == "/":
                segments.append("")
                magic.append(False)
            else:
                segments[-1] += char if is_live else re.sub(r"([*?\[\\])", r"\\\1", char)
                magic[-1] |= is_live and char in "*?["
    found = [""]
    budget = _Budget()
    for index, (segment, is_magic) in enumerate(zip(segments, magic, strict=True)):
        found = list(_descend(found, segment, cwd, budget, is_first=index == 0, is_magic=is_magic))
    words = [*dict.fromkeys([*(word for word in found if os.path.lexists(os.path.join(cwd, word))), literal])]  # noqa: PTH118
    if any(word.startswith("-") for word in words) and not literal.startswith("-"):
        raise Asks("has a pattern that finds a file whose name begins with “-”")
    return words


class _Budget:
    left = MAX_MATCHES

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Asks("has a pattern that looks at very many files")


def _descend(
    found: list[str], segment: str, cwd: str, budget: _Budget, *, is_first: bool, is_magic: bool
) -> Iterator[str]:
    for word in found:
        start = word if is_first else f"{word}/"
        if not is_magic:
            yield start + re.sub(r"\\(.)", r"\1", segment)
            continue
        names = [entry.name for entry in _entries(os.path.join(cwd, start) if start else cwd)]  # noqa: PTH118
        budget.spend(len(names) + 1)
        pattern = _pattern(segment)
        yield from (start + name for name in [*names, *_dots(segment)] if pattern.fullmatch(name))


def _dots(segment: str) -> tuple[str, ...]:
    return (".", "..") if segment.startswith(".") else ()


def _pattern(segment: str) -> re.Pattern[str]:
    """Return an expression for at least the names that a part of a pattern finds."""
    if "[" in re.sub(r"\\.", "", segment):
        return re.compile(".*", re.DOTALL)
    found: list[str] = re.findall(r"\\.|.", segment, re.DOTALL)
    pieces = ({"*": ".*", "?": "."}.get(piece, re.escape(piece[-1])) for piece in found)
    return re.compile("".join(pieces), re.DOTALL)
