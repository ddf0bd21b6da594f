"""What the system knows of processes: by `/proc` where there is one, else by `ps`."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import time
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PATIENCE = 5
_SESSION, _TICKS = 3, 19
"""Places in `/proc/PID/stat`, counted from the state behind the name."""


@functools.cache
def boot_id() -> str:
    """Return what changes with every start of the machine, empty where that is not known."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _facts(pid: int | str) -> list[bytes]:
    """Return the facts of a live process behind its name, which may hold anything; none of a dead one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            line = file.read()
    except OSError:
        return []
    facts = line[line.rfind(b")") + 2 :].split()
    return facts if len(facts) > _TICKS and facts[0] not in b"ZX" else []


def is_listed(pid: int) -> bool:
    """Say whether a process is alive, and no zombie."""
    return bool(_facts(pid))


def start_ticks(pid: int) -> int:
    """Return when a live process started, in the kernel's ticks since the machine did; 0 where that is not known."""
    facts = _facts(pid)
    return int(facts[_TICKS]) if facts else 0


def started_at(pid: int) -> float | None:
    """Return the second since the epoch in which a live process started, as `ps` says; `None` if there is none."""
    listing = _ask_ps("-o", "lstart=", "-p", str(pid))
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(" ".join(listing.split()), "%a %b %d %H:%M:%S %Y"))
    return None


def session_of(pid: int) -> int:
    """Return the session of a process, 0 when it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def session_members(session: int) -> list[int]:
    """Return the live processes of a session, whoever their parent is now."""
    if _HAS_PROC:
        wanted = str(session).encode()
        names = (name for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names are all that is needed
        return [int(name) for name in names if (facts := _facts(name)) and facts[_SESSION] == wanted]
    return [int(word) for word in _ask_ps("-axo", "pid=").split() if session_of(int(word)) == session]


def _ask_ps(*words: str) -> str:
    try:
        listing = subprocess.run(
            ["ps", *words],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return listing.stdout
