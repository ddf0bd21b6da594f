"""What this machine has of a sandbox, and why not more: found by trying once, with the first command that needs one."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tenuto.guard.sandbox.filters import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, is_known_machine, make_filter
from tenuto.guard.sandbox.launching.starting import try_command
from tenuto.guard.sandbox.policy import Policy, pwd_home

if TYPE_CHECKING:
    from tenuto.guard.sandbox.landlock import Confinement

Kind = Literal["bubblewrap", "landlock", "seatbelt"]
KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock", "seatbelt")
_TRIAL_SECONDS = 10.0
_REASON_CHARS = 200
UNJUDGED = "modes, owners, times and attributes of files cannot be changed, in the workspace either"


class Machine(Struct, frozen=True):
    """`kind` is what holds commands here, empty for nothing; `reasons` says of the others why not, by kind.

    `weakness` is what does not work in it here, and why, in words.
    """

    kind: Kind | Literal[""] = ""
    reasons: tuple[tuple[Kind, str], ...] = ()
    detail: str = ""
    weakness: str = ""

    def __str__(self) -> str:
        """Return it in one line, as a user reads it."""
        why = "; ".join(f"{kind}: {reason}" for kind, reason in self.reasons)
        if not self.kind:
            return f"none ({why})"
        said = "; ".join(one for one in (self.detail, self.weakness) if one)
        return f"{self.kind} ({said})" if said else self.kind


def find_machine(wish: str = "auto") -> Machine:
    """Return what this machine has; `wish` is a kind, or "auto" for the best. Takes some 20 ms the first time."""
    kinds = tuple(kind for kind in KINDS if wish in ("auto", kind))
    return _find(kinds)


@functools.cache
def _find(kinds: tuple[Kind, ...]) -> Machine:
    reasons: list[tuple[Kind, str]] = []
    for kind in kinds:
        reason, detail = _try(kind)
        if not reason:
            return Machine(kind, tuple(reasons), detail, _find_weakness(kind))
        reasons.append((kind, reason))
    return Machine(reasons=tuple(reasons))


def _try(kind: Kind) -> tuple[str, str]:
    """Return why it does not work, empty when it does, and what it is."""
    match kind:
        case "bubblewrap":
            return _try_bubblewrap()
        case "landlock":
            return _try_landlock()
        case "seatbelt":
            return _try_seatbelt()


def _try_bubblewrap() -> tuple[str, str]:
    from tenuto.guard.sandbox.bubblewrap import bubblewrap_words, find_program, prepare_private

    if not sys.platform.startswith("linux"):
        return "only on Linux", ""
    program = find_program()
    if not program:
        return "not installed (apt install bubblewrap, or pip install 'tenuto[sandbox]')", ""
    with tempfile.TemporaryDirectory(prefix="tenuto-") as private:
        prepare_private(private)
        filtered = open_filter()
        policy = Policy(cwd="/", home=pwd_home(), private=os.path.realpath(private))
        try:
            reason = _run([*bubblewrap_words(program, policy, "", filtered), "/bin/sh", "-c", "exit 0"], (filtered,))
        finally:
            _close(filtered)
    return reason, program


def _try_landlock() -> tuple[str, str]:
    from tenuto.guard.sandbox.landlock import LEAST_VERSION, Confinement, landlock_version

    if not sys.platform.startswith("linux"):
        return "only on Linux", ""
    version = landlock_version()
    if version < LEAST_VERSION:
        said = f"has version {version} of it, {LEAST_VERSION} is needed" if version else "does not have it"
        return f"the kernel {said}", ""
    if not is_known_machine():
        return "the system calls of this processor are not known here", ""
    return _try_confined(Confinement(1 << 1, 0, (), make_filter(()).hex()), "exit 0"), f"version {version}"


def _try_confined(trial: Confinement, line: str) -> str:
    """Run a shell line so; return what went wrong, empty for nothing."""
    return try_command(["/bin/sh", "-c", line], _TRIAL_SECONDS, confinement=encode_confinement(trial))


def _find_weakness(kind: Kind) -> str:
    """Return what does not work in a kind here, and why: of Landlock that a supervisor answers calls."""
    if kind != "landlock":
        return ""
    from tenuto.guard.sandbox.landlock import Confinement
    from tenuto.guard.sandbox.outward import asked_calls, outward_steps

    with tempfile.TemporaryDirectory(prefix="tenuto-") as folder:
        place = os.path.realpath(folder)
        trial = Confinement(
            handled=1 << 1,
            scoped=0,
            rules=((1 << 1, place),),
            filter=make_filter((), outward_steps(asks=True)).hex(),
            asked=tuple(asked_calls(signals=False).items()),
            changed=(f"+{place}",),
        )
        reason = _try_confined(trial, f"exec chmod 711 {shlex.quote(place)}")
    why = f" (the kernel does not let it be judged: {reason})"
    return f"{UNJUDGED}{why}" if reason else ""


def _try_seatbelt() -> tuple[str, str]:
    from tenuto.guard.sandbox.seatbelt import PROGRAM

    if sys.platform != "darwin":
        return "only on macOS", ""
    return _run([PROGRAM, "-p", "(version 1)(allow default)", "--", "/bin/sh", "-c", "exit 0"], ()), PROGRAM


def _run(words: Sequence[str], descriptors: tuple[int, ...]) -> str:
    """Run a trial; return what went wrong, empty for nothing."""
    try:
        ran = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
            pass_fds=[one for one in descriptors if one >= 0],
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)[:_REASON_CHARS]
    said = ran.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if ran.returncode == 0 else (said or f"exit code {ran.returncode}")[:_REASON_CHARS]


def encode_confinement(confinement: Confinement) -> bytes:
    """Return a confinement as the launcher reads it."""
    kept = " ".join(map(str, confinement.kept_capabilities))
    asked = " ".join(f"{name}={number}" for name, number in confinement.asked)
    lines = [str(confinement.handled), str(confinement.scoped), confinement.filter, kept, asked, confinement.report]
    lines += [str(len(confinement.changed)), *confinement.changed]
    lines += [word for rights, place in confinement.rules for word in (str(rights), place)]
    return "\0".join(lines).encode("utf-8", "surrogateescape")


def open_filter() -> int:
    """Return a descriptor from which bubblewrap reads its filter of system calls, -1 for an unknown processor."""
    data = _filter()
    if not data:
        return -1
    descriptor = os.memfd_create("tenuto-filter")
    with contextlib.suppress(OSError):
        os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@functools.cache
def _filter() -> bytes:
    return make_filter((AF_UNIX, AF_INET, AF_INET6, AF_NETLINK))


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        with contextlib.suppress(OSError):
            os.close(descriptor)
