"""Answers the system calls that Landlock has no right for: modes, owners, times, attributes, other processes.

The launcher imports it, next to which it lies, and nothing of Tenuto's with it. The kernel stops a call and asks here
(seccomp_unotify). What the call names is opened here, once; where that really lies is compared with the places that
may be changed; and the call is done here, on what was opened. So it does not matter what another thread of the
command writes into the path, or puts in its place, meanwhile. A call goes on in the command itself only where nothing
that is judged lies in its memory: its words are numbers of processes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Act = Callable[[Any, bytes], None]
    """Does a call, by the C library, on a path."""
    Reader = Callable[["Memory", Sequence[int], int, int], Act | None]
    """Reads a call; `None` where there is nothing to do."""

RECEIVE, SEND, IS_VALID, ADD_DESCRIPTOR, SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103, 0x40082104
"""What a listener is asked (`ioctl`)."""
STAYS_HERE = 1
"""Of a listener: who waits is woken on the processor of who answers."""
GOES_ON, WITH_ANSWER = 1, 2
OPEN_AT, OPEN_PROCESS, TAKE_DESCRIPTOR, SEND_SIGNAL = 437, 434, 438, 424
NO_MAGIC_LINKS = 2
O_PATH: int = getattr(os, "O_PATH", 0)
HERE, NO_FOLLOW, EMPTY_PATH = -100, 0x100, 0x1000
OTHER_SIDE = 0x5441
"""TIOCGPTPEER: open the other side of a pseudo terminal."""
MULTIPLEXER = os.makedev(5, 2) if hasattr(os, "makedev") else 0
LONGEST_PATH, LONGEST_NAME, LONGEST_VALUE = 4096, 255, 65536
REPORTING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
ADDRESS_BITS = (1 << 56) - 1
"""Programs may keep marks in the highest byte of an address."""
AS_IT_IS, LEFT_OUT = 0xFFFFFFFF, 0x3FFFFFFE
"""No owner, no time (UTIME_OMIT)."""
MOST_ABOVE, MOST_REPORTED = 1000, 8
PRIVILEGED_ATTRIBUTES = (b"security.", b"trusted.")
"""Attributes that take rights of root which the command does not have, and this process may have."""


class Supervisor:
    """Answers one listener. `calls` has the names of system calls by number; `places` as `Confinement` has them.

    What files it did not change it writes to `report`, a file, a name a line: not every program says so.
    """

    def __init__(self, libc: Any, listener: int, calls: Mapping[int, str], places: Sequence[str], report: str) -> None:
        """Take over the listener."""
        self._libc = libc
        self.listener = listener
        self._calls = calls
        self._places = _deepest_first(places)
        self._own = os.getpid()
        self._received = bytearray(80)
        try:  # noqa: SIM105 - contextlib takes milliseconds to import
            _request(listener, SET_FLAGS, STAYS_HERE)
        except OSError:
            pass  # before Linux 6.6
        self._report = report
        self._reported: set[bytes] = set()

    def answer(self) -> None:
        """Answer the call that waits longest; what has ended meanwhile needs none."""
        self._received[:] = bytes(80)
        try:
            fcntl.ioctl(self.listener, RECEIVE, self._received, True)
        except OSError:
            return
        identity, task, _, number, _, _, *words = struct.unpack("=QIIiIQ6Q", self._received)
        name = self._calls.get(number, "")
        flags = fault = 0
        try:
            flags = self._judge(identity, task, name, words)
        except OSError as error:
            fault = error.errno or errno.EPERM
        except Exception:  # noqa: BLE001 - a call that nobody answers would wait for ever
            fault = errno.EPERM
        if flags != WITH_ANSWER:
            try:  # noqa: SIM105
                fcntl.ioctl(self.listener, SEND, struct.pack("=QqiI", identity, 0, -fault, flags))
            except OSError:
                pass  # it has ended

    def _judge(self, identity: int, task: int, name: str, words: Sequence[int]) -> int:
        """Do a call, or refuse it by an `OSError`; returns `GOES_ON` for one that the kernel shall do itself."""
        if name in OF_FILES:
            self._change(identity, task, name, words)
            return 0
        if name == "ioctl":
            self._open_other_side(identity, task, words)
            return WITH_ANSWER
        if name == "kill" and _signed(words[0]) <= 0:
            self._signal_group(task, _signed(words[0]), words[1])
            return 0
        if self._is_ours(_signed(words[OF_PROCESSES[name]])):
            return GOES_ON
        raise OSError(errno.EPERM, name)

    def _change(self, identity: int, task: int, name: str, words: Sequence[int]) -> None:
        base, path, flags, reader, first, factor = OF_FILES[name]
        memory = Memory(task)
        try:
            act = reader(memory, words, first, factor)
            if act is None:
                return
            folder = _signed(words[base]) if base >= 0 else HERE
            place = words[path] if path >= 0 else 0
            if place == 0 and base >= 0 and folder != HERE:
                held = _of_task(task, folder)
            else:
                held = self._open(task, folder, memory.text(place, LONGEST_PATH), _flags(words, flags))
            try:
                _request(self.listener, IS_VALID, identity)  # all that was opened belongs to who asks
                real = os.readlink(b"/proc/self/fd/%d" % held)
                if not self._may_change(real):
                    self._tell(real)
                    raise OSError(errno.EACCES, name)
                act(self._libc, b"/proc/self/fd/%d" % held)
            finally:
                os.close(held)
        finally:
            memory.close()

    def _open(self, task: int, folder: int, name: bytes, flags: int) -> int:
        """Return a descriptor of what a path leads a thread to, with no right to it but to know it."""
        if not name:
            if not flags & EMPTY_PATH:
                raise OSError(errno.ENOENT, "no path")
            return _of_task(task, folder)
        follows = not flags & NO_FOLLOW
        number = _own_descriptor(name, task) if follows else -1
        if number >= 0:
            return _of_task(task, number)
        start = -1 if name.startswith(b"/") else _of_task(task, folder)
        try:
            return self._open_at(start, name, 0 if follows else os.O_NOFOLLOW, NO_MAGIC_LINKS)
        except OSError as error:
            if error.errno == errno.ELOOP and self._leads_through_magic(start, name):
                self._tell(name)
                raise OSError(errno.EACCES, "a link of /proc") from None
            raise
        finally:
            if start >= 0:
                os.close(start)

    def _open_at(self, start: int, name: bytes, flags: int, resolving: int) -> int:
        how = struct.pack("=QQQ", O_PATH | os.O_CLOEXEC | flags, 0, resolving)
        return _checked(self._libc.syscall(OPEN_AT, start, name, how, len(how)))

    def _leads_through_magic(self, start: int, name: bytes) -> bool:
        """Whether no loop of links, but a link to what a process has is on the way: from here it may lead elsewhere."""
        try:
            os.close(self._open_at(start, name, 0, 0))
        except OSError as error:
            return error.errno != errno.ELOOP
        return True

    def _may_change(self, real: bytes) -> bool:
        for place, may in self._places:
            if real.startswith(place) and real[len(place) : len(place) + 1] in (b"", b"/"):
                return may
        return False

    def _tell(self, place: bytes) -> None:
        if place in self._reported or len(self._reported) >= MOST_REPORTED or not self._report:
            return
        self._reported.add(place)
        file = os.open(self._report, REPORTING | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, place.replace(b"\n", b"?") + b"\n")
        finally:
            os.close(file)

    def _open_other_side(self, identity: int, task: int, words: Sequence[int]) -> None:
        """Give the command the other side of a pseudo terminal that it has opened itself, and no other terminal."""
        process = _checked(self._libc.syscall(OPEN_PROCESS, _process_of(task), 0))
        try:
            ours = _checked(self._libc.syscall(TAKE_DESCRIPTOR, process, _signed(words[0]), 0))
        finally:
            os.close(process)
        try:
            _request(self.listener, IS_VALID, identity)
            if os.fstat(ours).st_rdev != MULTIPLEXER:
                raise OSError(errno.ENOTTY, "ioctl")
            flags = words[2] & (os.O_ACCMODE | os.O_NONBLOCK) | os.O_NOCTTY | os.O_CLOEXEC
            other = fcntl.ioctl(ours, OTHER_SIDE, flags)
        finally:
            os.close(ours)
        try:
            kept = words[2] & os.O_CLOEXEC
            fcntl.ioctl(self.listener, ADD_DESCRIPTOR, struct.pack("=QIIII", identity, WITH_ANSWER, other, 0, kept))
        finally:
            os.close(other)

    def _is_ours(self, process: int) -> bool:
        """Whether a process, or thread, comes from this one: it is the parent that every orphan comes to."""
        for _ in range(MOST_ABOVE):
            process = _parent_and_group(process)[0]
            if process == self._own:
                return True
            if process <= 1:
                return False
        return False

    def _signal_group(self, task: int, wanted: int, number: int) -> None:
        """Signal a group of processes of the command's: those of the caller's for 0, all for -1; the caller last."""
        caller = _process_of(task)
        group = _parent_and_group(caller)[1] if wanted == 0 else -wanted
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        members = [one for one in processes if self._is_member(one, 0 if wanted == -1 else group)]
        if not members:
            raise OSError(errno.ESRCH, "kill")
        for member in sorted(members, key=lambda one: one == caller):
            if wanted != -1 or member != caller:
                self._signal(member, number)

    def _is_member(self, process: int, group: int) -> bool:
        try:
            return group in (0, _parent_and_group(process)[1]) and self._is_ours(process)
        except OSError:
            return False  # it has ended meanwhile

    def _signal(self, process: int, number: int) -> None:
        held = _checked(self._libc.syscall(OPEN_PROCESS, process, 0))
        try:
            if self._is_ours(process):  # still: its number is not given to another one
                _checked(self._libc.syscall(SEND_SIGNAL, held, number, None, 0))
        finally:
            os.close(held)


class Memory:
    """What a stopped thread has in its memory. Raises `OSError` for what cannot be read."""

    def __init__(self, task: int) -> None:
        """Open it."""
        self._held = os.open(b"/proc/%d/mem" % task, os.O_RDONLY | os.O_CLOEXEC)

    def bytes(self, address: int, size: int) -> bytes:
        """Return so many bytes."""
        data = self._read(address, size)
        if len(data) < size:
            raise OSError(errno.EFAULT, "memory")
        return data

    def text(self, address: int, most: int) -> bytes:
        """Return the bytes before the first zero, of which there are fewer than `most`."""
        data = self._read(address, most)
        end = data.find(0)
        if end < 0:
            raise OSError(errno.ENAMETOOLONG if len(data) == most else errno.EFAULT, "memory")
        return data[:end]

    def _read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._held, size, address & ADDRESS_BITS)
        except OSError:
            raise OSError(errno.EFAULT, "memory") from None

    def close(self) -> None:
        """Let go of it."""
        os.close(self._held)


def _mode(_memory: Memory, words: Sequence[int], first: int, _factor: int) -> Act:
    mode = words[first] & 0o7777
    return lambda _libc, path: os.chmod(path, mode)


def _owner(_memory: Memory, words: Sequence[int], first: int, _factor: int) -> Act:
    user, group = (-1 if word & AS_IT_IS == AS_IT_IS else word & AS_IT_IS for word in words[first : first + 2])
    return lambda _libc, path: os.chown(path, user, group)


def _times(memory: Memory, words: Sequence[int], first: int, factor: int) -> Act | None:
    """Read two times as one of the calls has them: in whole seconds (0), with millionths (1000) or billionths (1)."""
    address = words[first]
    if address == 0:
        data = None  # now
    elif factor == 0:
        read, written = struct.unpack("=qq", memory.bytes(address, 16))
        data = struct.pack("=qqqq", read, 0, written, 0)
    else:
        read, part, written, other = struct.unpack("=qqqq", memory.bytes(address, 32))
        if factor > 1 and not (0 <= part < 1_000_000 and 0 <= other < 1_000_000):
            raise OSError(errno.EINVAL, "times")
        if factor == 1 and part == other == LEFT_OUT:
            return None  # whatever the path leads to
        data = struct.pack("=qqqq", read, part * factor, written, other * factor)

    def act(libc: Any, path: bytes) -> None:
        _checked(libc.utimensat(HERE, path, data, 0))

    return act


def _attribute(memory: Memory, words: Sequence[int], first: int, _factor: int) -> Act:
    name = _attribute_name(memory, words[first])
    size = words[first + 2]
    if size > LONGEST_VALUE:
        raise OSError(errno.E2BIG, "attribute")
    value = memory.bytes(words[first + 1], size) if size else b""
    flags = _signed(words[first + 3])
    return lambda _libc, path: os.setxattr(path, name, value, flags)


def _attribute_at(memory: Memory, words: Sequence[int], first: int, _factor: int) -> Act:
    """Read an attribute whose value, size and flags stand together in memory."""
    value, size, flags = struct.unpack("=QII", memory.bytes(words[first + 1], 16))
    return _attribute(memory, (words[first], value, size, flags), 0, 0)


def _no_attribute(memory: Memory, words: Sequence[int], first: int, _factor: int) -> Act:
    name = _attribute_name(memory, words[first])
    return lambda _libc, path: os.removexattr(path, name)


def _attribute_name(memory: Memory, address: int) -> bytes:
    name = memory.text(address, LONGEST_NAME + 1)
    if not name:
        raise OSError(errno.ERANGE, "attribute")
    if os.geteuid() == 0 and name.startswith(PRIVILEGED_ATTRIBUTES):
        raise OSError(errno.EPERM, "attribute")
    return name


OF_FILES: dict[str, tuple[int, int, int, Reader, int, int]] = {
    "chmod": (-1, 0, 0, _mode, 1, 0),
    "fchmod": (0, -1, 0, _mode, 1, 0),
    "fchmodat": (0, 1, 0, _mode, 2, 0),
    "fchmodat2": (0, 1, 3, _mode, 2, 0),
    "chown": (-1, 0, 0, _owner, 1, 0),
    "lchown": (-1, 0, -NO_FOLLOW, _owner, 1, 0),
    "fchown": (0, -1, 0, _owner, 1, 0),
    "fchownat": (0, 1, 4, _owner, 2, 0),
    "utime": (-1, 0, 0, _times, 1, 0),
    "utimes": (-1, 0, 0, _times, 1, 1000),
    "futimesat": (0, 1, 0, _times, 2, 1000),
    "utimensat": (0, 1, 3, _times, 2, 1),
    "setxattr": (-1, 0, 0, _attribute, 1, 0),
    "lsetxattr": (-1, 0, -NO_FOLLOW, _attribute, 1, 0),
    "fsetxattr": (0, -1, 0, _attribute, 1, 0),
    "setxattrat": (0, 1, 2, _attribute_at, 3, 0),
    "removexattr": (-1, 0, 0, _no_attribute, 1, 0),
    "lremovexattr": (-1, 0, -NO_FOLLOW, _no_attribute, 1, 0),
    "fremovexattr": (0, -1, 0, _no_attribute, 1, 0),
    "removexattrat": (0, 1, 2, _no_attribute, 3, 0),
}
"""Which word of a call is a descriptor to start from (-1: none), which a path (-1: none), which flags (0: none, below
0: these flags); what reads the rest of the call, from which word on, and for times in which parts of a second."""
OF_PROCESSES = {
    **dict.fromkeys(("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "prlimit64"), 0),
    **dict.fromkeys(("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"), 0),
    **dict.fromkeys(("setpriority", "ioprio_set"), 1),
}
"""Which word of a call is a process."""


def _deepest_first(places: Sequence[str]) -> list[tuple[bytes, bool]]:
    found = [(os.fsencode(one[1:]).rstrip(b"/"), one[0] == "+") for one in places]
    return sorted(found, key=lambda one: (-len(one[0]), one[1]))


def _flags(words: Sequence[int], place: int) -> int:
    flags = -place if place < 0 else words[place] & 0xFFFFFFFF if place else 0
    if flags & ~(NO_FOLLOW | EMPTY_PATH):
        raise OSError(errno.EINVAL, "flags")
    return flags


def _signed(word: int) -> int:
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


def _of_task(task: int, number: int) -> int:
    """Return a descriptor of what a thread has under a number, or of its folder."""
    if number == HERE:
        return os.open(b"/proc/%d/cwd" % task, O_PATH | os.O_CLOEXEC)
    try:
        return os.open(b"/proc/%d/fd/%d" % (task, number), O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        raise OSError(errno.EBADF, "descriptor") from None


def _own_descriptor(name: bytes, task: int) -> int:
    """Return the number where a path is that of an own descriptor, else -1: here `/proc/self` is another one."""
    words = name.split(b"/")
    by_process = len(words) == 5 and words[1] == b"proc" and words[3] == b"fd"
    if by_process and words[2] in (b"self", b"thread-self", b"%d" % task) and words[4].isdigit():
        return int(words[4])
    return int(words[3]) if len(words) == 4 and words[1:3] == [b"dev", b"fd"] and words[3].isdigit() else -1


def _process_of(task: int) -> int:
    with open(b"/proc/%d/status" % task, "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line[5:])
    raise OSError(errno.ESRCH, "process")


def _parent_and_group(process: int) -> tuple[int, int]:
    """Return the parent of a process, or thread, and its group. Raises `OSError`."""
    try:
        with open(b"/proc/%d/stat" % process, "rb") as file:
            line = file.read()
    except OSError:
        raise OSError(errno.ESRCH, "process") from None
    words = line[line.rfind(b")") + 2 :].split()
    return int(words[1]), int(words[2])


def _request(listener: int, what: int, number: int) -> None:
    fcntl.ioctl(listener, what, struct.pack("=Q", number) if what == IS_VALID else number)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result
