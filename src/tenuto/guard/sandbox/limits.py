"""How many processes commands may have: by a control group for root, else by the limit of the user."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

_GROUPS = "/sys/fs/cgroup"
_LIMIT = 'ulimit -u "$1" 2>/dev/null || ulimit -p "$1"; [ "$2" = 0 ] || ulimit -v "$2"; shift 2; exec "$@"'


def command_group(processes: int) -> str:
    """Return the control group in which all commands of root together have so many processes at most.

    Empty for others, and where control groups cannot be written: then nothing limits root.
    """
    return _make_group(processes) if processes and os.geteuid() == 0 else ""


def limiting_words(processes: int, memory: int) -> list[str]:
    """Return what stands right before the shell: its processes, and kilobytes of memory for each (0: no limit).

    In a user namespace of its own only what runs there counts as a process.
    """
    most = processes if processes and os.geteuid() != 0 else "unlimited"
    return ["/bin/sh", "-c", _LIMIT, "sh", str(most), str(memory)] if memory or most != "unlimited" else []


@functools.cache
def _make_group(processes: int) -> str:
    """Make a control group for this process's commands; empty where that cannot be."""
    for place in _places():
        group = place / f"tenuto-{os.getpid()}"
        try:
            _remove_left(place)
            group.mkdir(exist_ok=True)
            (group / "pids.max").write_text(str(processes))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        return str(group)
    return ""


def _places() -> list[Path]:
    """Return where this process's control group for processes is, in either version."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
            _, names, path = line.split(":", 2)
            if "pids" in names.split(","):
                found.insert(0, Path(f"{_GROUPS}/pids{path}"))
            elif not names:
                found.append(Path(_GROUPS + path))
    return found


def _remove_left(place: Path) -> None:
    """Remove the groups of runs that are gone; one that has processes stays by itself."""
    for group in place.glob("tenuto-*"):
        if not Path("/proc", group.name.rpartition("-")[2]).exists():
            with contextlib.suppress(OSError):
                group.rmdir()
