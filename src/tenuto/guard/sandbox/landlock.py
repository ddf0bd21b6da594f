"""Landlock: a policy as rights on places, for a kernel without bubblewrap. Weaker, and honest about it.

Rights are only ever given, never taken: what is hidden is left out by naming everything beside it, so the folders
above a hidden place cannot be listed, and what is protected inside a writable folder is put back afterwards
(`putting_back`). Sockets are refused by the filter of system calls: Landlock does not judge who connects to a path.
Modes, owners, times and attributes are no rights of it either: a supervisor in the launcher does what may be done.
"""

from __future__ import annotations

import ctypes
import functools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from tenuto.guard.sandbox.filters import AF_INET, AF_INET6, AF_NETLINK, make_filter
from tenuto.guard.sandbox.outward import asked_calls, outward_steps
from tenuto.guard.sandbox.policy import Policy
from tenuto.guard.subject import is_inside

CREATE_RULESET = 444
"""The number of its system call, the same on every machine."""
LEAST_VERSION = 3
"""From here on cutting a file to nothing is a right of its own; before, everybody could."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REMOVE_AND_MAKE = 0x1FF0
_REFER, _TRUNCATE, _DEVICE_REQUESTS = 1 << 13, 1 << 14, 1 << 15
_READ = EXECUTE | READ_FILE | READ_DIR
_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _DEVICE_REQUESTS
_SCOPES = 0b11
"""No abstract sockets and no signals to processes outside."""
_SCOPED_VERSION = 6
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_SHARED = "/dev/shm"
"""Semaphores have no other place. All programs of the user share it."""
_OTHER_DEVICES = "/dev"
"""Hidden but for these: the disk, which root reads without asking a file system, and the user's own terminals."""
KEPT_CAPABILITIES = (0, 1, 3, 4)
"""Of root: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, as with bubblewrap."""
_MOST_RULES = 20_000


class Confinement(Struct, frozen=True):
    """What the launcher is given: what is handled, what is allowed where, which system calls are not."""

    handled: int
    scoped: int
    rules: tuple[tuple[int, str], ...]
    filter: str
    """Hexadecimal."""
    kept_capabilities: tuple[int, ...] = ()
    asked: tuple[tuple[str, int], ...] = ()
    """The system calls that the filter has a supervisor asked about, with their numbers; none: there is none."""
    changed: tuple[str, ...] = ()
    """Where the supervisor changes files: `+` and a place, `-` and one in it where it does not. The deepest wins."""
    report: str = ""
    """The file to which it writes what it did not change; empty: none."""


def landlock_version() -> int:
    """Return the version of Landlock's interface that the kernel has, 0 for none."""
    try:
        version = ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    except (OSError, AttributeError):
        return 0
    return max(0, int(version))


def confine(policy: Policy, version: int, report: str, *, asks: bool) -> Confinement:
    """Return what holds the policy with this version of Landlock; with `asks` there is a supervisor, which reports."""
    handled = _READ | WRITE_FILE | _REMOVE_AND_MAKE | _REFER | _TRUNCATE
    if version >= 5:
        handled |= _DEVICE_REQUESTS
    everything = handled
    rules = [(_READ, place) for place in beside((*policy.hidden, _OTHER_DEVICES), policy.shown)]
    rules += [(_READ, place) for place in policy.shown]
    for root in policy.writable:
        inner = [path for path in policy.hidden if is_inside(path, root)]
        rules += [(everything, place) for place in beside(inner, policy.shown, root)]
        if inner:
            rules.append((READ_DIR, root))
    rules += [(everything, f"{policy.private}/tmp"), (_READ, policy.cwd)]
    rules.append((READ_DIR, _OTHER_DEVICES))
    rules += [(READ_FILE | WRITE_FILE | _DEVICE_REQUESTS, os.path.realpath(place)) for place in _DEVICES]
    rules.append((everything & ~_DEVICE_REQUESTS, _SHARED))
    signals = version < _SCOPED_VERSION
    fitted = ((rights & handled & _fitting(place), place) for rights, place in rules)
    return Confinement(
        handled=handled,
        scoped=0 if signals else _SCOPES,
        rules=tuple(rule for rule in fitted if rule[0])[:_MOST_RULES],
        filter=_filter(network=policy.network, asks=asks, signals=signals),
        kept_capabilities=KEPT_CAPABILITIES if os.geteuid() == 0 else (),
        asked=tuple(asked_calls(signals=signals).items()) if asks else (),
        changed=tuple(_changed_places(policy)),
        report=report,
    )


@functools.cache
def _filter(*, network: bool, asks: bool, signals: bool) -> str:
    families = (AF_INET, AF_INET6, AF_NETLINK) if network else ()
    return make_filter(families, outward_steps(asks=asks, signals=signals)).hex()


def _changed_places(policy: Policy) -> Iterator[str]:
    """Yield where modes, owners, times and attributes may be changed, and where in it they may not."""
    for root in (*policy.writable, f"{policy.private}/tmp"):
        yield f"+{root}"
        yield from (f"-{place}" for place in (*policy.hidden, *policy.protected) if is_inside(place, root))


def beside(hidden: Sequence[str], shown: Iterable[str], place: str = "/") -> Iterator[str]:
    """Yield the places that together are all of `place` but what is hidden, as far up as can be."""
    if place in hidden:
        return
    inner = [path for path in hidden if is_inside(path, place)]
    if not inner:
        yield place
        return
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():
            yield from beside(inner, shown, f"{place.rstrip('/')}/{entry.name}")


def _fitting(place: str) -> int:
    """Return the rights that may be given on a place, none on one that is gone: a file cannot have those on folders."""
    try:
        return -1 if stat.S_ISDIR(os.stat(place).st_mode) else _OF_A_FILE
    except OSError:
        return 0
