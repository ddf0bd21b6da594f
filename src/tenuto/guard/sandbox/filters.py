"""A filter of system calls (seccomp) as the bytes that the kernel takes: what no command of the sandbox may call.

No user namespaces and mounts, which would give rights back; no keyring, no kernel modules, no typing into the
terminal (TIOCSTI), no kinds of sockets that namespaces do not hold, no io_uring, which goes round such a filter.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

_LOAD, EQUAL, _BITS, _OVER, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NEW_USER = 0x10000000
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX: they type for the user."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

_X86: dict[str, int] = {
    "ioctl": 16, "socket": 41, "clone": 56, "ptrace": 101, "syslog": 103, "pivot_root": 155, "adjtimex": 159,
    "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
    "delete_module": 176, "quotactl": 179, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_ARM: dict[str, int] = {
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
    "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
    "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
    "perf_event_open": 241, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
_SHARED: dict[str, int] = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "mount_setattr": 442,
}  # fmt: skip
"""The same on every machine."""
_MACHINES = {"x86_64": (0xC000003E, _X86), "amd64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM)}
_UNKNOWN_CALLS = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
"""Answered as by a kernel that does not have them: programs then do without."""
_JUDGED = ("ioctl", "socket", "clone", "unshare", "ptrace", "process_vm_readv", "process_vm_writev")
"""Not refused by their names alone. Tracing is held by the process namespace, or by Landlock."""
_WORD = 0x100000000


def is_known_machine() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine().lower() in _MACHINES


def make_filter(families: Sequence[int], more: Sequence[bytes] = ()) -> bytes:
    """Return the filter for this machine; `families` are the kinds of sockets that may be made. Empty: not known.

    `more` are steps of a kind of sandbox, which find the call's number loaded and leave it so.
    """
    machine = _MACHINES.get(platform.machine().lower())
    if machine is None:
        return b""
    word, numbers = machine[0], {**machine[1], **_SHARED}
    program = [step(_LOAD, 4), step(EQUAL, word, 1, 0), step(RETURN, _KILL), step(_LOAD, 0)]
    if numbers["socket"] == _X86["socket"]:
        program += [step(_OVER, 0x40000000, 0, 1), refuse(errno.ENOSYS)]  # the calls of x32
    for name, number in numbers.items():
        if name not in _JUDGED:
            fault = errno.ENOSYS if name in _UNKNOWN_CALLS else errno.EPERM
            program += [step(EQUAL, number, 0, 1), refuse(fault)]
    for name in ("clone", "unshare"):
        program += where(numbers[name], 0, [step(_BITS, _NEW_USER, 0, 1), refuse(errno.EPERM)])
    program += where(
        numbers["ioctl"],
        1,
        [one for request in _TERMINAL_REQUESTS for one in (step(EQUAL, request, 0, 1), refuse(errno.EPERM))],
    )
    program += more
    kinds = [one for family in families for one in (step(EQUAL, family, 0, 1), step(RETURN, ALLOW))]
    program += where(numbers["socket"], 0, [*kinds, refuse(errno.EPERM)])
    return b"".join((*program, step(RETURN, ALLOW)))


def where(number: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Return what takes steps with the low half of an argument of one call, and loads its number again behind them."""
    inner = [step(_LOAD, 16 + 8 * argument), *steps, step(_LOAD, 0)]
    return [step(EQUAL, number, 0, len(inner)), *inner]


def refuse(fault: int) -> bytes:
    """Return the step that ends a call with a fault."""
    return step(RETURN, _ERROR | fault)


def step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Return one step; a comparison leaves out so many of those behind it."""
    return struct.pack("=HBBI", code, if_so, if_not, value % _WORD)
