"""Protected names that a command made or changed are put back after it, and named.

Bubblewrap cannot keep a name from being made that is not there without leaving an empty file in its place, and
Landlock cannot take a right away inside a folder. So what stood there is remembered before a command, and restored
after it; what was made is moved into the session's folder, where the user finds it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from tenuto.guard.protected import GIT_PROTECTED, protected_entries

_MOST_FILES = 500
_MOST_BYTES = 1_000_000


class Remembered(Struct, frozen=True):
    """One file: its bytes and mode, or the target of a link; `None` and `None` for one that is too large to keep."""

    mode: int
    data: bytes | None = None
    link: str | None = None
    stamp: tuple[int, int] = (0, 0)


Snapshot = dict[str, Remembered]
"""Files by path."""


def remember(folders: Iterable[str], git: Iterable[str] = ()) -> Snapshot:
    """Return what is protected in these folders, and in these git directories, as it is now."""
    found: Snapshot = {}
    for top in _tops(folders, git):
        _add(top, found)
    return found


def put_back(before: Snapshot, folders: Iterable[str], git: Iterable[str], aside: Path, *, changed: bool) -> list[str]:
    """Move what was made since to `aside`, and with `changed` restore what was changed; return a line on each."""
    after = remember(folders, git)
    if after == before:
        return []
    said: list[str] = []
    for path in sorted(after.keys() - before.keys()):
        if _is_of_a_new_repository(path, before):
            continue
        with contextlib.suppress(OSError):
            said.append(f"{path} was made and is protected: it was moved to {_move(path, aside)}")
    for path, one in before.items() if changed else ():
        if after.get(path) == one or (one.data is None and one.link is None) or _has_lost_its_git(path):
            continue
        with contextlib.suppress(OSError):
            if os.path.lexists(path):
                _move(path, aside)
            _restore(path, one)
            said.append(f"{path} was changed and is protected: it was put back")
    return said


def name_changes(before: Snapshot, folders: Iterable[str], git: Iterable[str]) -> list[str]:
    """Return a line on each protected file that is not as it was; nothing is undone."""
    after = remember(folders, git)
    paths = (path for path in sorted(after.keys() | before.keys()) if after.get(path) != before.get(path))
    return [f"{path} is protected and changed meanwhile" for path in paths if not _is_of_a_new_repository(path, before)]


def _tops(folders: Iterable[str], git: Iterable[str]) -> list[str]:
    tops: list[str] = []
    directories = list(git)
    for folder in folders:
        for path in protected_entries(folder):
            is_git = os.path.basename(path).casefold() == ".git" and os.path.isdir(path) and not os.path.islink(path)
            (directories if is_git else tops).append(path)
    return tops + [f"{directory}/{name}" for directory in directories for name in GIT_PROTECTED]


def _has_lost_its_git(path: str) -> bool:
    """Whether the git directory that a file stood in is gone as a whole: half a one would help nobody."""
    place, found, _ = path.rpartition("/.git/")
    return bool(found) and not os.path.isdir(f"{place}/.git")


def _is_of_a_new_repository(path: str, before: Snapshot) -> bool:
    """Whether a file stands in a git directory that was not there: `git init`, whose files name no program.

    Its samples of hooks are not run; a configuration is left when it sets nothing that git would run.
    """
    place, found, rest = path.rpartition("/.git/")
    if not found or any(one.startswith(f"{place}/.git/") for one in before):
        return False
    if rest.startswith("hooks/"):
        return rest.endswith(".sample")
    if rest.startswith("config"):
        return _is_plain_configuration(path)
    return False


def _is_plain_configuration(path: str) -> bool:
    from tenuto.guard.git import is_harmless

    section = ""
    for line in Path(path).read_text("utf-8", "replace").splitlines():
        words = line.strip()
        if words.startswith("["):
            name, _, inner = words.strip("[]").partition(" ")
            section = f"{name.lower()}.{inner.strip(chr(34))}." if inner else f"{name.lower()}."
            if "]" in words[:-1]:
                return False
        elif words and words[0] not in "#;" and not is_harmless(section + words.partition("=")[0].strip().lower()):
            return False
    return True


def _add(path: str, found: Snapshot) -> None:
    try:
        facts = os.lstat(path)
    except OSError:
        return
    if len(found) >= _MOST_FILES:
        return
    mode, stamp = stat.S_IMODE(facts.st_mode), (facts.st_size, facts.st_mtime_ns)
    try:
        if stat.S_ISLNK(facts.st_mode):
            found[path] = Remembered(mode, link=os.readlink(path))
        elif stat.S_ISDIR(facts.st_mode):
            for name in sorted(os.listdir(path)):
                _add(f"{path}/{name}", found)
        elif stat.S_ISREG(facts.st_mode) and facts.st_size <= _MOST_BYTES:
            found[path] = Remembered(mode, data=Path(path).read_bytes())
        else:
            found[path] = Remembered(mode, stamp=stamp)
    except OSError:
        found[path] = Remembered(mode, stamp=stamp)


def _move(path: str, aside: Path) -> Path:
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = 1
    while os.path.lexists(target := aside / f"{number}-{os.path.basename(path)}"):
        number += 1
    shutil.move(path, target)
    parent = Path(path).parent
    with contextlib.suppress(OSError):  # a folder that has something else stays
        if parent.name.casefold() not in {".git", "info", "hooks"}:
            parent.rmdir()
    return target


def _restore(path: str, one: Remembered) -> None:
    target = Path(path)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    with contextlib.suppress(FileNotFoundError):
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if one.link is not None:
        target.symlink_to(one.link)
        return
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, one.mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(one.data or b"")
        os.fchmod(descriptor, one.mode)
