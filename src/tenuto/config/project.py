"""What a project brings and Tenuto reads by itself: its root, its files, its branch.

A repository can hold links, pipes and devices under any name, so `read_regular` is the one way to such a file: it
never waits, never leaves the project, and never takes more than `MAX_BYTES`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tenuto.text.late import late

MADE_BY_RUNNING = frozenset({"__pycache__", "node_modules", ".venv"})
"""Folders that running programs makes beside them; what is in them is not compared."""
EXTENSIONS = Path(".tenuto") / "extensions"
"""Where a project's extensions lie."""
TRUST_FILE = "trust.toml"
"""The user's decisions, in Tenuto's home."""
MAX_BYTES = 1_000_000
"""Bytes of a file that is read unasked."""
_CHUNK = 1_048_576
_SYSTEM = ("/proc", "/sys", "/dev")
"""Files there are regular by name only: they hold other programs' memory, or never end."""
_BRANCH = late(r"ref: refs/heads/([^\x00-\x1f\x7f]{1,255})")
_HEAD = late(r"(?:ref: refs/([^\x00-\x1f\x7f]{1,255})|([0-9a-f]{40,64}))")


HOOKS_FILE = "hooks.json"
_SHARED_FILES = (".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml")
"""Where other agents have hooks, in the user's home and in a project."""


class HookFile(Struct, frozen=True):
    """A file with hooks. `root` is the project that it came with, `None` for one of the user's own.

    `is_shared`: it is another agent's, and may have none. `plugin` is the folder of the plugin that it came with.
    """

    path: Path
    root: Path | None = None
    is_shared: bool = False
    plugin: Path | None = None


def find_hook_files(home: Path, cwd: Path, environ: Mapping[str, str], *, shared: bool = True) -> list[HookFile]:
    """Return the hook files that there are, the user's before the project's. Looks at each place once, reads nothing.

    `shared` says whether those of other agents count.
    """
    user = environ.get("HOME", "")
    root = project_root(cwd)
    places = [HookFile(home / HOOKS_FILE)]
    if user and shared:
        places += [HookFile(Path(user, name), None, True) for name in _SHARED_FILES if "local" not in name]
    for place in dict.fromkeys((root, cwd)):
        places.append(HookFile(place / ".tenuto" / HOOKS_FILE, root))
        places += [HookFile(place / name, root, True) for name in _SHARED_FILES if shared]
    found: dict[tuple[int, int], HookFile] = {}
    for file in places:
        try:
            facts = file.path.stat()
        except OSError:
            continue
        found.setdefault((facts.st_dev, facts.st_ino), file)  # in the user's home a project's file may be their own
    return list(found.values())


class RefusedFileError(Exception):
    """A file that is there and is not read; the message says why, behind its path."""


def project_root(cwd: Path) -> Path:
    """Return the nearest directory upwards that has a `.git`, else `cwd` itself."""
    return next((place for place in (cwd, *cwd.parents) if (place / ".git").exists()), cwd)


def find_upwards(cwd: Path, home: Path, name: Path) -> Path | None:
    """Return the nearest file or folder of that name from `cwd` up to its root; never one of Tenuto's own `home`."""
    root = project_root(cwd)
    for place in (cwd, *cwd.parents):
        found = place / name
        if os.path.lexists(found) and found.parent.resolve() != home.resolve():
            return found
        if place == root:
            break
    return None


def read_regular(path: Path, inside: Sequence[Path] = (), apart: Sequence[Path] = (), limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file. Raises `FileNotFoundError`, and `RefusedFileError` for everything else.

    With `inside`, the file really lies in one of these directories; a link does not lead into one of `apart`.
    """
    try:
        real = os.path.realpath(path)
        if real.startswith(tuple(f"{place}/" for place in _SYSTEM)):
            raise RefusedFileError("it leads to a file of the system")
        if inside and not is_below(real, inside):
            raise RefusedFileError(f"it leads out of {' and '.join(map(str, inside))}")
        if is_below(real, apart) and real != os.path.join(os.path.realpath(path.parent), path.name):  # noqa: PTH118
            raise RefusedFileError("it leads to a file that is not the project's")
        return _read(real, limit)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(str(error)) from None
    except (OSError, ValueError) as error:
        raise RefusedFileError(getattr(error, "strerror", None) or str(error)) from None


def read_text(path: Path, inside: Sequence[Path] = (), apart: Sequence[Path] = (), limit: int = MAX_BYTES) -> str:
    """Return the text of a file that is UTF-8. Raises as `read_regular` does."""
    try:
        return read_regular(path, inside, apart, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedFileError("it is not UTF-8 text") from None


def read_branch(cwd: Path, digits: int) -> str:
    """Return the branch that is checked out, so many digits of the commit without one, empty outside a repository.

    Reads `.git/HEAD`; git is not run (R-086).
    """
    for place in (cwd, *cwd.parents):
        if not os.path.lexists(place / ".git"):  # this is asked before each request, and reading would look at more
            continue
        head = _line(_git_directory(place / ".git") / "HEAD")
        if branch := _BRANCH.fullmatch(head):
            return branch[1]
        if other := _HEAD.fullmatch(head):
            return other[1] or other[2][:digits]
    return ""


def _git_directory(place: Path) -> Path:
    """Return the directory that `.git` is, or that it names (in a worktree or a submodule it is a file)."""
    line = "" if place.is_dir() else _line(place)
    return place.parent / line.removeprefix("gitdir: ") if line.startswith("gitdir: ") else place


def _line(path: Path) -> str:
    try:
        text = read_regular(path).decode("utf-8", errors="replace")
    except (OSError, RefusedFileError):
        return ""
    return text.partition("\n")[0].strip()


def is_below(real: str, places: Sequence[Path]) -> bool:
    """Return whether a resolved path lies in one of these directories, wherever their own links lead."""
    return any(real.startswith(os.path.realpath(place).rstrip("/") + "/") for place in places)


def _read(real: str, limit: int) -> bytes:
    """Raises `OSError` and `RefusedFileError`. A device is not even opened: that alone can do something."""
    seen = os.lstat(real)
    if not stat.S_ISREG(seen.st_mode):
        kind = "a directory" if stat.S_ISDIR(seen.st_mode) else "a pipe, a socket or a device"
        raise RefusedFileError(f"it is {kind} and not a regular file")
    if seen.st_size > limit:
        raise RefusedFileError(f"it has {seen.st_size:,} bytes; at most {limit:,} are read")
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(real, flags | getattr(os, "O_NOCTTY", 0))
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or (facts.st_dev, facts.st_ino) != (seen.st_dev, seen.st_ino):
            raise RefusedFileError("it was exchanged while it was read")
        data = bytearray()
        while len(data) <= limit and (chunk := os.read(descriptor, min(_CHUNK, limit + 1 - len(data)))):
            data += chunk
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise RefusedFileError(f"it has more than {limit:,} bytes")
    return bytes(data)
