"""Protected names that a command made or changed are put back after it, and named.

Bubblewrap cannot keep a name from being made that is not there without leaving an empty file in its place, and
Landlock cannot take a right away inside a folder. So what stood there is remembered before a command, and restored
after it; what was made is moved into the session's folder, where the user finds it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from tenuto.guard.protected import GIT_PROTECTED, protected_entries

_MOST_FILES = 500
_MOST_BYTES = 1_000_000
_OF_GIT = frozenset({".git", "info", "hooks"})
"""Folders that stay when the last protected file in them is moved away."""


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
            said.append(f"{path} was made and is protected: it was moved to {_take_away(path, aside)}")
    for path, one in before.items() if changed else ():
        if after.get(path) == one or (one.data is None and one.link is None) or _has_lost_its_git(path):
            continue
        with contextlib.suppress(OSError):
            if path in after:
                _take_away(path, aside)
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


# Everything from here on goes through descriptors of folders, opened without following links: a command that still
# runs may put a link in the place of any of them.


def _take_away(path: str, aside: Path) -> Path:
    """Move a file or link to `aside`, with the folder above where that is empty then. Raises `OSError`."""
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = os.path.basename(path)
    folder = _open_folder(os.path.dirname(path))
    try:
        target = _copy_aside(folder, name, aside)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)
    above = os.path.dirname(path)
    if os.path.basename(above).casefold() not in _OF_GIT:
        with contextlib.suppress(OSError):  # one that has something else stays
            outer = _open_folder(os.path.dirname(above))
            try:
                os.rmdir(os.path.basename(above), dir_fd=outer)
            finally:
                os.close(outer)
    return target


def _copy_aside(folder: int, name: str, aside: Path) -> Path:
    """Write what is there into a new file; of a link the words that it is one."""
    number = 1
    while os.path.lexists(target := aside / f"{number}-{name}"):
        number += 1
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISREG(facts.st_mode):
        import shutil  # few commands come here

        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(source, "rb") as opened, target.open("xb") as kept:
            shutil.copyfileobj(opened, kept)
    else:
        what = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(facts.st_mode) else "no file"
        target.write_text(f"link to {what}\n")
    return target


def _restore(path: str, one: Remembered) -> None:
    name = os.path.basename(path)
    folder = _open_folder(os.path.dirname(path), make=True)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        if one.link is not None:
            os.symlink(one.link, name, dir_fd=folder)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(name, flags, one.mode, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(one.data or b"")
            os.fchmod(descriptor, one.mode)
    finally:
        os.close(folder)


def _open_folder(path: str, *, make: bool = False) -> int:
    """Return a descriptor of a folder; a link on the way is an error, or with `make` replaced by a folder."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open("/", flags)
    for name in path.strip("/").split("/"):
        try:
            inner = _step_into(held, name, flags, make=make)
        finally:
            os.close(held)
        held = inner
    return held


def _step_into(held: int, name: str, flags: int, *, make: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=held)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if not make:
            raise
        os.unlink(name, dir_fd=held)  # a link, or a file: the command put it there
    os.mkdir(name, 0o755, dir_fd=held)
    return os.open(name, flags, dir_fd=held)
