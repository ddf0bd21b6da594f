"""Stands over one command: a fork of `starter`, with nothing of Tenuto's imported.

It is the parent that every orphan of the command comes to (a subreaper), so what called `setsid` or forked twice is
still its child's child. It says how the shell ended, stays for as long as anything else runs, and ends all of it when
the pipe that Tenuto holds is closed: that is what happens at `kill -9`. With a confinement it has the command held by
Landlock and a filter of system calls before it begins, and answers the calls that the filter asks about (`supervisor`).
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import select
import struct
import sys
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    import socket as _socket
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from tenuto.guard.sandbox.launching.supervisor import Supervisor
else:
    import _signal  # `signal` takes 3 ms to import, `socket` 5 ms
    import _socket

    Supervisor = __import__("supervisor").Supervisor  # the file beside this one

SET_SUBREAPER, NO_NEW_RIGHTS, DROP_BOUND, SET_FILTER, SET_DUMPABLE = 36, 38, 24, 22, 4
BY_FILTER, ASKS_HERE, WAITS_FOR_ANSWER = 1, 1 << 3, 1 << 5
HIGHEST_CAPABILITY = 63
ADD_RULE, RESTRICT_SELF = 445, 446
CREATE_RULESET = 444
STREAMS = 3
FIRST_PASSED, HIGHER = STREAMS, 64
"""The first number of what is passed on, and one above all that are taken before."""
KILLED_TIMES = 200
SETTLING_LOOKS, SETTLING_SECONDS = 4, 0.01
GIVEN_UP = 126
LIBC: Any = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
PLAIN_LIBC: Any = ctypes.PyDLL(None) if LIBC is not None else None
"""Half as dear a call, whose fault nobody asks for."""
NOT_IGNORED = [getattr(_signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(_signal, name)]
"""What an interpreter ignores."""
IGNORED = (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT)


class Order:
    """A command as `starting` sends it: its words and environment, what it gets, by what it is held."""

    def __init__(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Read it."""
        self.words, self.environ, self.processes, given, self.has_terminal, confinement = marshal.loads(data)
        self.folder, self.status, *others = descriptors
        inputs, namespaces = given
        self.streams = others[:inputs]
        """Its standard input, output and error; without the first it has an empty one."""
        self.namespaces = others[inputs : inputs + namespaces]
        self.passed = others[inputs + namespaces :]
        self.held = _Held(confinement) if confinement else None


def stand_over(order: Order, life: int, begins: int) -> NoReturn:
    """Run the command in a session of its own; its exit code goes through the status pipe. Does not return.

    `begins` is closed when the session is there.
    """
    try:
        os.setsid()
        os.close(begins)
        os._exit(_run(order, life))
    except BaseException:  # noqa: BLE001 - a fork must not go on as what it was forked from
        _tell(order.status, b"%d+\n" % GIVEN_UP)
        os._exit(GIVEN_UP)


def _run(order: Order, life: int) -> int:
    if order.has_terminal:
        fcntl.ioctl(order.streams[0], termios.TIOCSCTTY, 0)
    if LIBC is not None:
        LIBC.prctl(SET_SUBREAPER, 1, 0, 0, 0)
    if len(order.streams) < STREAMS:
        order.streams.insert(0, os.open(os.devnull, os.O_RDWR))
    held = order.held
    asked = held.make_pair() if held is not None and held.calls else None
    ours, wakes = os.pipe()
    os.set_blocking(wakes, False)
    _signal.set_wakeup_fd(wakes)
    _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
    shell = _spawn(order) if held is None else _fork(order, held)
    for descriptor in (order.folder, *order.streams, *order.namespaces, *order.passed):
        os.close(descriptor)  # nobody waits for the end of an output because this process holds it
    supervisor = _supervise(asked, held) if held is not None and asked is not None else None
    for number in IGNORED:
        _signal.signal(number, _signal.SIG_IGN)
    return _stand_by(shell, life, order.status, ours, supervisor)


class _Held:
    """What the command is held by, as `encode_confinement` writes it down."""

    def __init__(self, data: bytes) -> None:
        words = data.decode("utf-8", "surrogateescape").split("\0")
        self.asks: Any = None
        """The end of a pair of sockets through which the command hands over the listener of its filter."""
        self.handled, self.scoped = int(words[0]), int(words[1])
        self.program = bytes.fromhex(words[2])
        self.kept = {int(word) for word in words[3].split()}
        self.calls = dict(word.split("=") for word in words[4].split())
        self.report = words[5]
        places = 7 + int(words[6])
        self.places, self.rules = words[7:places], words[places:]

    def make_pair(self) -> Any:
        """Make the pair; return the end at which the listener comes."""
        asked, self.asks = _socket.socketpair()
        return asked


def _supervise(asked: Any, held: _Held) -> Supervisor | None:
    """Return who answers the calls that the filter asks about; `None` where the command could not be held at all."""
    held.asks.close()
    _, sent, _, _ = asked.recvmsg(1, 64)
    asked.close()
    if not sent:
        return None
    return Supervisor(
        LIBC,
        int.from_bytes(sent[0][2][:4], sys.byteorder),
        {int(number): name for name, number in held.calls.items()},
        held.places,
        held.report,
    )


def _stand_by(shell: int, life: int, status: int, ours: int, supervisor: Supervisor | None) -> int:
    code: int | None = None
    alone = False
    watched = select.poll()
    watched.register(life, 0)  # what is told here is that Tenuto is gone, or that nobody asks for this command
    watched.register(status, 0)
    watched.register(ours, select.POLLIN)
    if supervisor is not None:
        watched.register(supervisor.listener, select.POLLIN)
    while not alone:
        for descriptor, events in watched.poll():
            if descriptor in (life, status):
                _end_everything()
                os._exit(137)
            elif descriptor != ours:
                if not events & select.POLLIN:
                    watched.unregister(descriptor)  # nobody is left who could ask
                elif supervisor is not None:
                    supervisor.answer()
            else:
                os.read(ours, 4096)
                before = code
                code, alone = _reap(shell, code)
                if code is not None and before is None:
                    alone = alone or _soon_alone(ours, shell, code)
                    _tell(status, b"%d%s\n" % (code, b"." if alone else b"+"))
    return code or 0


def _soon_alone(ours: int, shell: int, code: int) -> bool:
    """Wait a moment for what ends with the shell, as the first process of bubblewrap's namespace does."""
    for _ in range(SETTLING_LOOKS):
        if select.select([ours], [], [], SETTLING_SECONDS)[0]:
            os.read(ours, 4096)
        if _reap(shell, code)[1]:
            return True
    return False


def _tell(status: int, word: bytes) -> None:
    try:  # noqa: SIM105 - contextlib takes milliseconds to import
        os.write(status, word)
    except OSError:
        pass  # nobody listens any more; the end of the other pipe says so too


def _reap(shell: int, code: int | None) -> tuple[int | None, bool]:
    """Take the ended children; return the shell's exit code, once known, and whether nothing is left."""
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code, True
        if pid == 0:
            return code, False
        if pid == shell:
            code = os.waitstatus_to_exitcode(how)
            code = code if code >= 0 else 128 - code


def _end_everything() -> None:
    """Kill all descendants, until there are none: each look finds what was forked since the last."""
    for _ in range(KILLED_TIMES):
        for pid in _descendants():
            try:  # noqa: SIM105 - contextlib takes milliseconds to import
                os.kill(pid, _signal.SIGKILL)
            except OSError:
                pass
        if _reap(0, None)[1]:
            return
        select.select([], [], [], 0.01)


def _descendants() -> list[int]:
    """Return every process below this one, or of its session where the system has no /proc."""
    parents: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    for name in names:
        try:
            with open("/proc/" + name + "/stat", "rb") as file:
                line = file.read()
        except OSError:
            continue
        parents.setdefault(int(line[line.rfind(b")") + 2 :].split()[1]), []).append(int(name))
    if not names:
        _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
        os.killpg(0, _signal.SIGTERM)
        return []
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        children = parents.get(pending.pop(), [])
        found += children
        pending += children
    return found


def _spawn(order: Order) -> int:
    """Start the command as it is, which costs less than a fork. Its limits and namespaces are those of this process."""
    try:
        _prepare(order)
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in _numbered(order)]
        return os.posix_spawn(order.words[0], order.words, order.environ, file_actions=actions, setsigdef=NOT_IGNORED)
    except BaseException as error:
        _complain(order, error)
        raise


def _fork(order: Order, held: _Held) -> int:
    """Start the command in a copy of this process, which is held before it becomes the command."""
    shell = os.fork()
    if shell:
        return shell
    try:
        _signal.set_wakeup_fd(-1)
        for number in (_signal.SIGCHLD, *NOT_IGNORED):
            _signal.signal(number, _signal.SIG_DFL)
        pairs = _numbered(order)
        _prepare(order)
        _confine(held)
        for number, descriptor in pairs:
            os.dup2(descriptor, number)
        os.execve(order.words[0], order.words, order.environ)
    except BaseException as error:  # noqa: BLE001 - a copy of this process must not go on as it
        _complain(order, error)
    os._exit(GIVEN_UP)


def _numbered(order: Order) -> list[tuple[int, int]]:
    """Return what the command gets under which number; what is passed on lies above all numbers first."""
    moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, HIGHER) for one in order.passed]
    return [*enumerate(order.streams), *enumerate(moved, FIRST_PASSED)]


def _prepare(order: Order) -> None:
    if order.processes:
        _limit_processes(order.processes)
    for descriptor in order.namespaces:
        _enter(descriptor)


def _complain(order: Order, error: BaseException) -> None:
    os.write(order.streams[-1], order.words[0] + f": {error}\n".encode("utf-8", "replace"))


def _enter(descriptor: int) -> None:
    """Go into a namespace. What rights that gives in it end with the next program. Raises `OSError`."""
    if LIBC.setns(descriptor, 0) < 0:
        raise OSError(ctypes.get_errno(), "the session's network: " + os.strerror(ctypes.get_errno()))


def _limit_processes(most: int) -> None:
    """Allow so many more than the user has now: the limit is the user's, and root has none."""
    most += _processes_of_user()
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _processes_of_user() -> int:
    """Return how many threads the user's processes have."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat("/proc/" + name).st_uid == os.getuid():
                    with open("/proc/" + name + "/stat", "rb") as file:
                        line = file.read()
                    count += int(line[line.rfind(b")") + 2 :].split()[17])
            except (OSError, IndexError):
                continue
    return count


def _confine(held: _Held) -> None:
    """Hold this process, and what it starts. Raises `OSError` where the kernel refuses.

    The listener of the filter, where there is one, goes to the process that answers.
    """

    def checked(result: int, what: str) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), what + ": " + os.strerror(ctypes.get_errno()))
        return result

    head = struct.pack("=QQQ", held.handled, 0, held.scoped) if held.scoped else struct.pack("=Q", held.handled)
    ruleset = checked(LIBC.syscall(CREATE_RULESET, head, ctypes.c_size_t(len(head)), 0), "landlock")
    for rights, place in zip(held.rules[0::2], held.rules[1::2], strict=False):
        try:
            opened = os.open(place, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it is gone, and so needs no right
        PLAIN_LIBC.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", int(rights), opened), 0)
        os.close(opened)
    if held.kept:
        _drop_capabilities(held.kept)
    checked(LIBC.prctl(NO_NEW_RIGHTS, 1, 0, 0, 0), "no new rights")
    checked(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)
    code = ctypes.create_string_buffer(held.program, len(held.program))
    frame = struct.pack("@HP", len(held.program) // 8, ctypes.addressof(code))
    if held.asks is None:
        checked(LIBC.prctl(SET_FILTER, 2, ctypes.c_char_p(frame), 0, 0), "seccomp")
        return
    number, flags = int(held.calls["seccomp"]), ASKS_HERE | WAITS_FOR_ANSWER
    listener = checked(LIBC.syscall(number, BY_FILTER, flags, ctypes.c_char_p(frame)), "seccomp")
    held.asks.sendmsg([b"."], [(1, 1, struct.pack("=i", listener))])
    os.close(listener)


def _drop_capabilities(kept: set[int]) -> None:
    for number in range(HIGHEST_CAPABILITY):
        if number not in kept:
            LIBC.prctl(DROP_BOUND, number, 0, 0, 0)
    bits = sum(1 << number for number in kept)
    LIBC.capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", bits, bits, 0, 0, 0, 0))


def hide_memory() -> None:
    """Let no other process of the user read the memory of this one, where the system can do that."""
    if LIBC is not None:
        LIBC.prctl(SET_DUMPABLE, 0, 0, 0, 0)
