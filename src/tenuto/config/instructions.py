"""Instruction files: which ones hold where, and how they are read.

In one folder: `AGENTS.md`, `CLAUDE.md`, the names that the user has added, the rules of `.claude/rules`,
`CLAUDE.local.md`. Those of Tenuto's home come first, then those of each folder from the project's root to the working
directory. Folders below are read when a file in them is touched.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from tenuto.config.imports import MAX_CHARS, Importer, Scope, clean_instructions
from tenuto.config.project import RefusedFileError, is_below, project_root, read_text
from tenuto.text.late import late

NAMES = ("AGENTS.md", "CLAUDE.md")
LOCAL = "CLAUDE.local.md"
"""What one user adds to a project; it comes last in its folder."""
MAX_RULES = 100
"""Files of one folder of rules."""
_MAX_LISTED = 1_000
_FRONT_CHARS = 4_000
_OF_OTHERS = frozenset({".git", "node_modules", "bower_components", "site-packages"})
"""What lies below folders of these names is not the project's own."""
_FRONT_MATTER = late(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PATTERNS = late(r"^(?:paths|globs)[ \t]*:[ \t]*(.*)\n?((?:[ \t]*-[ \t]+.*\n?)*)", re.MULTILINE)
_COMMA = late(r",(?![^{]*\})")


class InstructionFile(msgspec.Struct, frozen=True):
    """One file as it is given to the model, and the folder that it holds below.

    With `patterns` it holds for files of that folder that match one of them.
    """

    path: str
    text: str
    truncated: bool = False
    folder: str = ""
    patterns: tuple[str, ...] = ()


class Instructions(msgspec.Struct, frozen=True):
    """The files that hold, the most general first, and a line for each that is there and is not read.

    `on_touch` are rules for some files only.
    """

    files: tuple[InstructionFile, ...] = ()
    problems: tuple[str, ...] = ()
    on_touch: tuple[InstructionFile, ...] = ()


def read_instructions(home: Path, cwd: Path, also: Sequence[str] = ()) -> Instructions:
    """Return the instruction files that hold in `cwd`, no text twice; `also` are more names of such files.

    A file that cannot be read is left out and named: instructions never stop the agent from starting. What a project
    brings has to lie in the project: a link to a key would send that key to the provider.
    """
    reader = _Reader(home, project_root(cwd), also)
    files: dict[str, InstructionFile] = {}
    rules: list[InstructionFile] = []
    for place in _places(home, cwd):
        for file in reader.read(place):
            if file.patterns:
                rules.append(file)
            else:
                files.setdefault(file.text, file)
    return Instructions(tuple(files.values()), tuple(reader.problems), tuple(rules))


def read_touched(
    home: Path, cwd: Path, also: Sequence[str], touched: Collection[str], given: Collection[str]
) -> Instructions:
    """Return what holds in the real folders `touched` beside what `read_instructions` gave: files of nested folders.

    `on_touch` are all rules for some files, of these folders and of those above. What `given` names as real paths is
    not imported once more. What is returned for a folder does not depend on the others.
    """
    root = project_root(cwd)
    files: list[InstructionFile] = []
    rules: list[InstructionFile] = []
    problems: list[str] = []
    for place in _places(home, cwd):
        reader = _Reader(home, root, also, given)
        rules += [file for file in reader.rules(place) if file.patterns]
        problems += reader.problems
    for folder in nested_folders(touched, root, cwd):
        reader = _Reader(home, root, also, given)
        texts: dict[str, InstructionFile] = {}
        for file in reader.read(folder):
            if file.patterns:
                rules.append(file)
            else:
                texts.setdefault(file.text, file)
        files += texts.values()
        problems += reader.problems
    return Instructions(tuple(files), tuple(problems), tuple(rules))


def add_line(path: Path, text: str) -> None:
    """Put a line as a point of a list at the end of an instruction file, which may not be there yet. Raises `OSError`.

    A link that leads out of the file's folder is not followed: nobody would read it there.
    """
    real = Path(os.path.realpath(path))
    if os.path.lexists(path) and not is_below(str(real), [path.parent]):
        raise PermissionError(errno.EPERM, f"{path} leads out of its folder, to {real}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        feed = b"" if file.read(1) in (b"", b"\n") else b"\n"
        file.write(feed + f"- {text}\n".encode())


def _places(home: Path, cwd: Path) -> Iterator[Path]:
    """Yield Tenuto's home and the folders from the project's root to `cwd`."""
    below = [cwd, *cwd.parents]
    yield home
    yield from reversed(below[: below.index(project_root(cwd)) + 1])


def nested_folders(touched: Iterable[str], root: Path, cwd: Path) -> list[Path]:
    """Return the folders from the project's root down to the real folders `touched` that `cwd` does not lie in.

    A repository inside of the project and installed packages are other people's: what they say is data.
    """
    top, here = Path(os.path.realpath(root)), Path(os.path.realpath(cwd))
    above = {here, *here.parents}
    start = f"{top}/".replace("//", "/")
    found: set[Path] = set()
    for place in (folder for folder in touched if folder.startswith(start)):
        folder = top
        for part in place[len(start) :].split("/"):
            folder /= part
            if folder in above:
                continue
            if part in _OF_OTHERS or os.path.isdir(folder / ".git"):  # noqa: PTH112 - pathlib raises where it may not look
                break
            found.add(folder)
    return sorted(found)


class _Reader:
    """Reads the instruction files of folders that are told together."""

    def __init__(self, home: Path, root: Path, also: Sequence[str], given: Collection[str] = ()) -> None:
        self._home, self._root = home, root
        self._names = [name for name in dict.fromkeys((*NAMES, *also)) if name != LOCAL]
        self._project = Scope((root,), (root / ".git", home))
        self._own = Scope((home, Path(os.path.expanduser("~"))))  # noqa: PTH111 - pathlib raises where there is no home
        self._given = given
        self._importer = Importer(self._project, given)
        self.problems = self._importer.problems

    def read(self, place: Path) -> Iterator[InstructionFile]:
        """Yield what one folder has."""
        scope = self._scope(place)
        for name in self._names:
            yield from self._take(place / name, place, scope)
        yield from self.rules(place)
        yield from self._take(place / LOCAL, place, scope)

    def rules(self, place: Path) -> Iterator[InstructionFile]:
        """Yield the rules of one folder; those that always hold have together no more room than one file."""
        is_home = place == self._home
        rules, holds = (place / "rules", self._root) if is_home else (place / ".claude" / "rules", place)
        scope = self._scope(place)
        room = MAX_CHARS
        for path in self._rule_paths(rules, scope):
            for file in self._take(path, holds, scope, is_rule=True):
                room -= 0 if file.patterns else len(file.text)
                if room < 0:
                    self.problems.append(f"{path} is not read: the rules there have over {MAX_CHARS:,} characters")
                    return
                yield file

    def _scope(self, place: Path) -> Scope:
        return self._own if place == self._home else self._project

    def _rule_paths(self, folder: Path, scope: Scope) -> list[Path]:
        """Return the rules below a folder in the order of their names. Links to folders are not followed."""
        if not os.path.isdir(folder):  # noqa: PTH112 - as above
            return []
        if not is_below(os.path.realpath(folder), scope.inside):
            self.problems.append(f"{folder} is not read: it leads out of {' and '.join(map(str, scope.inside))}")
            return []
        found: list[Path] = []
        pending, listed = [folder], 0
        while pending and listed < _MAX_LISTED:
            try:
                with os.scandir(pending.pop()) as scan:
                    entries = list(islice(scan, _MAX_LISTED - listed))
            except OSError:
                continue
            listed += len(entries)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif entry.name.endswith(".md"):
                    found.append(Path(entry.path))
        if len(found) > MAX_RULES or listed == _MAX_LISTED:
            self.problems.append(f"{folder} has more than {MAX_RULES} rules, or much else; some are not read")
        return sorted(found)[:MAX_RULES]

    def _take(self, path: Path, folder: Path, scope: Scope, *, is_rule: bool = False) -> Iterator[InstructionFile]:
        """Yield the file at `path` that holds below `folder`, if it is there and says anything new."""
        if not os.path.lexists(path):
            return
        try:
            text = clean_instructions(read_text(path, scope.inside, scope.apart)).strip()
        except FileNotFoundError:
            return
        except RefusedFileError as refused:
            self.problems.append(f"{path} is not read as instructions: {refused}")
            return
        patterns: tuple[str, ...] = ()
        if is_rule:
            patterns, text = split_front_matter(text)
        # A rule for some files is told by itself: what it imports is not given to the others by that.
        importer = Importer(self._project, self._given) if patterns else self._importer
        if not text or not importer.take(path):
            return
        truncated = len(text) > MAX_CHARS
        if truncated:
            text = f"{text[:MAX_CHARS]}\n[... cut: {path} has {len(text)} characters]"
        else:
            text = importer.expand(path, text, scope).strip()
        if importer is not self._importer:
            self.problems += importer.problems
        if text:
            yield InstructionFile(str(path), text, truncated, str(folder), patterns)


def split_front_matter(text: str) -> tuple[tuple[str, ...], str]:
    """Return the patterns that `paths:` or `globs:` of a rule name, and the text without its front matter.

    A list on one line, with commas or in brackets, and one with a line for each are taken.
    """
    head = _FRONT_MATTER.match(text[:_FRONT_CHARS])
    if head is None:
        return (), text
    found = _PATTERNS.search(head[1])
    rest = text[head.end() :].strip()
    if found is None:
        return (), rest
    line = found[1].strip()
    if line.startswith("[") and line.endswith("]"):
        line = line[1:-1]
    words = [*_COMMA.split(line), *(row.strip()[1:] for row in found[2].splitlines())]
    return tuple(word for raw in words if (word := raw.partition(" #")[0].strip().strip("\"'").strip())), rest
