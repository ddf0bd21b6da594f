"""Stands over one command: started as a file of its own, with nothing of Tenuto's imported.

It is the parent that every orphan of the command comes to (a subreaper), so what called `setsid` or forked twice is
still its child's child. It says how the shell ended, stays for as long as anything else runs, and ends all of it when
the pipe that Tenuto holds is closed: that is what happens at `kill -9`. With a confinement it has the command held by
Landlock and a filter of system calls before it begins.

    python -I -S -E launcher.py LIFE STATUS CONFINEMENT PROCESSES [NAMESPACE …] -- COMMAND …

LIFE, STATUS, CONFINEMENT are descriptors (-1: none); PROCESSES is the most processes of the user's, 0 for no limit.
The command enters each NAMESPACE, which are descriptors too: those of the session's network.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # `signal` takes 3 ms to import

SET_SUBREAPER, NO_NEW_RIGHTS, DROP_BOUND, SET_FILTER = 36, 38, 24, 22
HIGHEST_CAPABILITY = 63
ADD_RULE, RESTRICT_SELF = 445, 446
CREATE_RULESET = 444
KILLED_TIMES = 200
SETTLING_LOOKS, SETTLING_SECONDS = 4, 0.01
GIVEN_UP = 126
IGNORED = (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT)


def main(words: list[str]) -> int:
    """Run the command; returns its exit code, which goes through the status pipe as well."""
    life, status, confinement, processes, *namespaces = (int(word) for word in words[: words.index("--")])
    command = words[words.index("--") + 1 :]
    libc = _libc()
    if libc is not None:
        libc.prctl(SET_SUBREAPER, 1, 0, 0, 0)
    text = _read_all(confinement)
    ours, wakes = os.pipe()
    os.set_blocking(wakes, False)
    _signal.set_wakeup_fd(wakes)
    _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
    shell = os.fork()
    if shell == 0:
        for descriptor in (life, status):
            os.close(descriptor)
        _become(libc, text, processes, command, namespaces)
    for descriptor in namespaces:
        os.close(descriptor)
    for number in IGNORED:
        _signal.signal(number, _signal.SIG_IGN)
    _let_go_of_output()
    return _stand_by(shell, life, status, ours)


def _stand_by(shell: int, life: int, status: int, ours: int) -> int:
    code: int | None = None
    alone = False
    while not alone:
        ready = select.select([life, ours], [], [])[0]
        if life in ready and not os.read(life, 1):
            _end_everything()
            os._exit(137)
        if ours in ready:
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


def _let_go_of_output() -> None:
    """Nobody waits for the end of an output because this process holds it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


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


def _become(libc: Any, text: bytes, most: int, command: list[str], namespaces: list[int]) -> None:
    """Turn this child into the command, confined."""
    try:
        _signal.set_wakeup_fd(-1)
        for number in (_signal.SIGCHLD, _signal.SIGPIPE):
            _signal.signal(number, _signal.SIG_DFL)
        if hasattr(_signal, "SIGXFSZ"):
            _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
        if most:
            _limit_processes(most)
        for descriptor in namespaces:
            _enter(libc, descriptor)
        if text:
            _confine(libc, text)
        os.execvp(command[0], command)
    except BaseException as error:  # noqa: BLE001 - a copy of this process must not go on as it
        os.write(2, f"{command[0]}: {error}\n".encode())
    os._exit(GIVEN_UP)


def _enter(libc: Any, descriptor: int) -> None:
    """Go into a namespace. What rights that gives in it end with the next program. Raises `OSError`."""
    import ctypes

    if libc.setns(descriptor, 0) < 0:
        raise OSError(ctypes.get_errno(), "the session's network: " + os.strerror(ctypes.get_errno()))
    os.close(descriptor)


def _limit_processes(most: int) -> None:
    """Allow so many more than the user has now: the limit is the user's, and root has none."""
    import resource

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


def _confine(libc: Any, text: bytes) -> None:
    """Hold this process, and what it starts, by what the text says. Raises `OSError` where the kernel refuses."""
    import ctypes
    import struct

    def checked(result: int, what: str) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), what + ": " + os.strerror(ctypes.get_errno()))
        return result

    lines = text.decode("utf-8", "surrogateescape").split("\0")
    handled, scoped, program, kept = int(lines[0]), int(lines[1]), bytes.fromhex(lines[2]), lines[3].split()
    rules = lines[4:]
    head = struct.pack("=QQQ", handled, 0, scoped) if scoped else struct.pack("=Q", handled)
    ruleset = checked(libc.syscall(CREATE_RULESET, head, ctypes.c_size_t(len(head)), 0), "landlock")
    for rights, place in zip(rules[0::2], rules[1::2], strict=False):
        try:
            held = os.open(place, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it is gone, and so needs no right
        libc.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", int(rights), held), 0)
        os.close(held)
    if kept:
        _drop_capabilities(libc, {int(word) for word in kept})
    checked(libc.prctl(NO_NEW_RIGHTS, 1, 0, 0, 0), "no new rights")
    checked(libc.syscall(RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)
    code = ctypes.create_string_buffer(program, len(program))
    frame = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    checked(libc.prctl(SET_FILTER, 2, ctypes.c_char_p(frame), 0, 0), "seccomp")


def _drop_capabilities(libc: Any, kept: set[int]) -> None:
    import struct

    for number in range(HIGHEST_CAPABILITY):
        if number not in kept:
            libc.prctl(DROP_BOUND, number, 0, 0, 0)
    bits = sum(1 << number for number in kept)
    libc.capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", bits, bits, 0, 0, 0, 0))


def _libc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _read_all(descriptor: int) -> bytes:
    if descriptor < 0:
        return b""
    chunks: list[bytes] = []
    os.lseek(descriptor, 0, 0)
    while chunk := os.read(descriptor, 1 << 20):
        chunks.append(chunk)
    os.close(descriptor)
    return b"".join(chunks)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
