"""Where users and projects put what they bring, skills and command files: Tenuto's own places and those of its peers.

A project's come before the user's, and of a project those of the nearest folder: from the working directory up to the
project's root, then the folders further down in which something was touched. Plugins come last, under names of their
own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from tenuto.config.imports import Scope
from tenuto.config.instructions import nested_folders
from tenuto.config.plugins.installed import usable_plugins
from tenuto.config.plugins.manifest import Plugin
from tenuto.config.project import is_below, project_root

MAX_LISTED = 2_000
"""Files and folders of one place that are looked at."""
Origin = Literal["project", "user", "plugin"]


class Where(msgspec.Struct, frozen=True):
    """Where something is looked for: Tenuto's home, the working directory, the user's home (`None`: not known).

    `touched` are real paths of files; what their folders bring counts, too.
    """

    home: Path
    cwd: Path
    user: Path | None = None
    touched: frozenset[str] = frozenset()


class Place(msgspec.Struct, frozen=True):
    """One folder of such files, or one file, and where they may really lie. `plugin` is the one that it belongs to."""

    folder: Path
    origin: Origin
    scope: Scope
    plugin: Plugin | None = None

    def named(self, name: str) -> str:
        """Return the name of what lies here, with its plugin's before it."""
        return self.plugin.named(name) if self.plugin is not None else name

    def expand(self, text: str) -> str:
        """Return the text of a file that lies here, with the places of its plugin put in."""
        return self.plugin.expand(text) if self.plugin is not None else text


class Layout(msgspec.Struct, frozen=True):
    """The folders of one kind of thing: in a project, in Tenuto's home, in the user's home."""

    project: tuple[str, ...]
    own: str
    user: tuple[str, ...]


def user_home(environ: Mapping[str, str]) -> Path | None:
    """Return the user's home as the environment names it."""
    home = environ.get("HOME", "")
    return Path(home) if home.startswith("/") else None


def find_places(where: Where, layout: Layout) -> list[Place]:
    """Return the folders that are there, the ones that count first."""
    root = project_root(where.cwd)
    homes = (where.home, *([where.user] if where.user is not None else []))
    own = [where.home / layout.own, *(where.user / name for name in layout.user if where.user is not None)]
    users = [Place(folder, "user", Scope(homes)) for folder in own]
    taken = {os.path.realpath(place.folder) for place in users}
    above = [where.cwd, *where.cwd.parents]
    touched = {os.path.dirname(path) for path in where.touched}  # noqa: PTH120 - there are many
    folders = [*above[: above.index(root) + 1], *nested_folders(touched, root, where.cwd)]
    project = [
        Place(folder / name, "project", Scope((root,), (root / ".git", where.home)))
        for folder in folders
        for name in layout.project
    ]
    places = [place for place in project if os.path.realpath(place.folder) not in taken] + users
    there = [place for place in places if os.path.isdir(place.folder)]  # noqa: PTH112 - pathlib raises where it may not look
    return [*there, *_of_plugins(where.home, layout)]


def _of_plugins(home: Path, layout: Layout) -> Iterator[Place]:
    for plugin in usable_plugins(home):
        for path in plugin.skills if layout.own == "skills" else plugin.commands:
            yield Place(path, "plugin", Scope((plugin.root.parent,)), plugin)


def walk(place: Place, problems: list[str], depth: int, stop: str = "") -> Iterator[Path]:
    """Yield the files of a place in the order of their names, so many folders deep; what is left out is named.

    A folder with a file of the name `stop` has only that one. Links to folders are followed where they stay in scope.
    """
    if place.plugin is not None and place.folder.is_file():
        yield place.folder
        return
    listed = 0
    pending: list[tuple[Path, int]] = [(place.folder, 0)]
    while pending:
        folder, level = pending.pop(0)
        if not is_below(os.path.realpath(folder), place.scope.inside):
            problems.append(f"{folder} is not read: it leads out of {' and '.join(map(str, place.scope.inside))}")
            continue
        try:
            with os.scandir(folder) as scan:
                entries = sorted(islice(scan, MAX_LISTED - listed), key=lambda entry: entry.name)
        except OSError as error:
            problems.append(f"{folder} cannot be read: {error.strerror}")
            continue
        listed += len(entries)
        if listed >= MAX_LISTED:
            problems.append(f"{place.folder} has more than {MAX_LISTED:,} files; some are not read")
            return
        if stop and any(entry.name == stop for entry in entries):
            yield folder / stop
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                pending += [(Path(entry.path), level + 1)] if level < depth else []
            else:
                yield Path(entry.path)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which files count: at most `most` of all places, called `kind`; `depth` folders down, `stop` as `walk` has it."""

    kind: str
    most: int
    counts: Callable[[Path], bool]
    depth: Callable[[Place], int]
    stop: str = ""


def find_files(where: Where, layout: Layout, wanted: Wanted, problems: list[str]) -> Iterator[tuple[Path, Place]]:
    """Yield each file once, whatever leads to it, with its place, the nearest first; what is left out is named."""
    seen: set[str] = set()
    for place in find_places(where, layout):
        for path in walk(place, problems, wanted.depth(place), wanted.stop):
            real = os.path.realpath(path)
            if not wanted.counts(path) or real in seen:
                continue
            if len(seen) == wanted.most:
                problems.append(
                    f"there are more than {wanted.most} {wanted.kind}; {place.folder} is not read to its end"
                )
                return
            seen.add(real)
            yield path, place


class Named(Protocol):
    """Something that is called by its name."""

    @property
    def name(self) -> str:
        """The name, with that of its plugin before it."""
        ...


Thing = TypeVar("Thing", bound=Named)


def find_named(things: Sequence[Thing], name: str) -> Thing | None:
    """Return what has this name, else the one thing of a plugin that has it behind its plugin's name."""
    exact = next((thing for thing in things if thing.name == name), None)
    if exact is not None or not name or ":" in name:
        return exact
    behind = [thing for thing in things if thing.name.partition(":")[2] == name]
    return behind[0] if len(behind) == 1 else None


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file does."""
    try:
        facts = path.stat()
    except OSError:
        return (0, 0, 0)
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)
