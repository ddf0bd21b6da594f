"""Of the filter of system calls what only Landlock needs: calls that change files and processes outside.

Landlock has no right for modes, owners, times and attributes, nor for requests to file systems (`ioctl`) and for how
other processes of the user are run. A filter sees the words of a call and not what they point to: so it has a
supervisor asked, or refuses, whatever the call is about.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Iterable

from tenuto.guard.sandbox.filters import ALLOW, EQUAL, RETURN, refuse, step, where

_NOTIFY, _MASK = 0x7FC00000, 0x54
_X86_FILES: dict[str, int] = {
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "setxattr": 188,
    "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "utimes": 235,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280,
}  # fmt: skip
_ARM_FILES: dict[str, int] = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88,
}  # fmt: skip
_SHARED_FILES = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466}
_X86_PROCESSES: dict[str, int] = {
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
    "ioprio_set": 251, "prlimit64": 302, "sched_setattr": 314,
}  # fmt: skip
_ARM_PROCESSES: dict[str, int] = {
    "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "prlimit64": 261, "sched_setattr": 274,
}  # fmt: skip
_OF_ONE_PROCESS = {"setpriority": 0, "ioprio_set": 1}
"""Of calls whose first word says what the second one numbers: a process. Else it is a group, or a user."""
_X86_SIGNALS = {"kill": 62, "rt_sigqueueinfo": 129, "tkill": 200, "tgkill": 234, "rt_tgsigqueueinfo": 297}
_ARM_SIGNALS = {"kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240}
_X86_REFUSED: dict[str, int] = {
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69,
    "msgrcv": 70, "msgctl": 71, "semtimedop": 220, "mq_open": 240, "mq_unlink": 241,
}  # fmt: skip
_ARM_REFUSED: dict[str, int] = {
    "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190,
    "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196,
}  # fmt: skip
"""Mostly what the user's other programs share by a number, or by a name that is no file's."""
_SHARED_REFUSED = {"quotactl_fd": 443, "file_setattr": 469}
_PIDFD_SEND_SIGNAL = 424
_X86_FCNTL, _ARM_FCNTL = 72, 25
_OWNER_COMMANDS, _OWNER_REQUESTS = (8, 15), (0x8901, 0x8902)
"""F_SETOWN, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP: who is signalled when a descriptor is ready, by any signal."""
_SECCOMP = {"x86_64": 317, "amd64": 317, "aarch64": 277}
_X86_IOCTL, _ARM_IOCTL = 16, 29
_OTHER_SIDE = 0x5441
"""TIOCGPTPEER: the other side of a pseudo terminal that the caller has, whatever may be done with paths."""
_OF_FILE_SYSTEMS = (0x58, 0x66, 0x6E, 0x6F, 0x72, 0x76, 0x83, 0x93, 0x94, 0x97, 0xBC, 0xCF, 0xF5)
"""Kinds of requests (`ioctl`): flags of files, snapshots, encryption. Some change what is only open for reading."""
_HARMLESS_REQUESTS = (
    *(0x80086601, 0x80046601, 0x80087601, 0x801C581F, 0xC020660B, 0x81009431),
    *(0x40049409, 0x4020940D, 0xC0189436),
)
"""Of these what reads flags, versions, extents and labels, and what clones into a file that is open for writing."""


def asked_calls(*, signals: bool) -> dict[str, int]:
    """Return the numbers of the calls that a supervisor is asked about, and of `seccomp`, which sets the filter.

    With `signals` those too that send one: until version 6 Landlock does not judge them.
    """
    name = platform.machine().lower()
    if name == "aarch64":
        own = {**_ARM_FILES, **_ARM_PROCESSES, **(_ARM_SIGNALS if signals else {}), "ioctl": _ARM_IOCTL}
    else:
        own = {**_X86_FILES, **_X86_PROCESSES, **(_X86_SIGNALS if signals else {}), "ioctl": _X86_IOCTL}
    return {**own, **_SHARED_FILES, "seccomp": _SECCOMP.get(name, -1)}


def outward_steps(*, asks: bool, signals: bool = False) -> list[bytes]:
    """Return the steps of the filter. Without `asks` there is no supervisor, and its calls are refused."""
    is_arm = platform.machine().lower() == "aarch64"
    answer = step(RETURN, _NOTIFY) if asks else refuse(errno.EPERM)
    steps: list[bytes] = []
    steps += _refusals({**(_ARM_REFUSED if is_arm else _X86_REFUSED), **_SHARED_REFUSED}.values())
    if signals:
        steps += [step(EQUAL, _PIDFD_SEND_SIGNAL, 0, 1), refuse(errno.ENOSYS)]  # programs then send them by number
        steps += where(_ARM_FCNTL if is_arm else _X86_FCNTL, 1, _refusals(_OWNER_COMMANDS))
        steps += where(_ARM_IOCTL if is_arm else _X86_IOCTL, 1, _refusals(_OWNER_REQUESTS))
    for name, number in asked_calls(signals=asks and signals).items():
        match name:
            case "seccomp":
                pass
            case "ioctl":
                steps += where(number, 1, _steps_of_requests(answer))
            case "setpriority" | "ioprio_set":
                steps += where(number, 0, [step(EQUAL, _OF_ONE_PROCESS[name], 1, 0), refuse(errno.EPERM)])
                steps += where(number, 1, [step(EQUAL, 0, 1, 0), answer])
            case "sched_setparam" | "sched_setscheduler" | "sched_setaffinity" | "sched_setattr" | "prlimit64":
                steps += where(number, 0, [step(EQUAL, 0, 1, 0), answer])
            case _:
                steps += [step(EQUAL, number, 0, 1), answer]
    return steps


def _steps_of_requests(answer: bytes) -> list[bytes]:
    harmless = [one for request in _HARMLESS_REQUESTS for one in (step(EQUAL, request, 0, 1), step(RETURN, ALLOW))]
    kinds = _refusals(kind << 8 for kind in _OF_FILE_SYSTEMS)
    return [step(EQUAL, _OTHER_SIDE, 0, 1), answer, *harmless, step(_MASK, 0xFF00), *kinds]


def _refusals(values: Iterable[int]) -> list[bytes]:
    return [one for value in values for one in (step(EQUAL, value, 0, 1), refuse(errno.EPERM))]
