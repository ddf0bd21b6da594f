"""A Python that has imported what Tenuto imports, and forks programs as if each were a new Python.

`tests.warm` starts it as `python forker.py SOCKET`, and its environment is little more than a locale; each message on
the socket is a program that is wanted. Whoever asks is the parent of what is forked (`CLONE_PARENT`), as if it had
started it itself: it waits for it, and has its exit code or its signal from the system.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import random  # noqa: F401 - a fork seeds it anew
import re
import runpy
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from io import TextIOWrapper
from types import ModuleType
from typing import Any

FIRST = ("tenuto.cli.main", "tenuto.cli.start", "tenuto.frontend.acp")
"""What leaves parts of libraries out does it where it is the first to import them."""
LEFT_OUT = re.compile(
    r"tenuto\.(__main__|tui\.(full|inline)|engine|evaluation|guard\.sandbox\.launching\.starter)(\.|$)"
)
"""Screens are started by terminals, what takes optional libraries by few tests, and the last by itself."""
CLONE_PARENT = 0x8000
CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the system call `clone`, by machine."""
HEAD = struct.Struct("=i")
MOST_DESCRIPTORS = 64
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def serve(line: socket.socket) -> dict[str, Any]:
    """Fork what is asked for until nobody asks any more; returns in what was forked, with what it is to be."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(line, HEAD.size, MOST_DESCRIPTORS)
        if not head:
            os._exit(0)
        wanted = marshal.loads(_read(line, HEAD.unpack(head)[0]))
        pid = _fork()
        if pid == 0:
            line.detach()
            _become(wanted, descriptors)
            return wanted
        for descriptor in descriptors:
            os.close(descriptor)
        line.sendall(HEAD.pack(pid))


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def _fork() -> int:
    """Like `os.fork`, but what is made is a child of our parent."""
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would lack the other threads"
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid = ctypes.PyDLL(None).syscall(CLONE[os.uname().machine], CLONE_PARENT | signal.SIGCHLD, None, None, None, None)
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return 0
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("no fork")
    return pid


def _become(wanted: dict[str, Any], descriptors: list[int]) -> None:
    """Be as a new Python in which nothing has run yet.

    `descriptors`: of the pipe that tells `subprocess` of a failure, or by its end that there was none; of standard
    input, output and error; and of what is handed down as `wanted["numbers"]`.
    """
    failures = _place(descriptors, (0, 1, 2, *wanted["numbers"]))
    try:
        os.chdir(wanted["cwd"])
    except OSError as error:
        os.write(failures, b"OSError:%x:noexec" % (error.errno or 0))
        os._exit(255)
    os.umask(wanted["umask"])
    if wanted["session"]:
        os.setsid()
    if wanted["group"] >= 0:
        os.setpgid(0, wanted["group"])
    _replace_environment(wanted["environ"])
    _reset_signals(set(wanted["ignored"]), set(wanted["blocked"]))
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream = _open_stream(number, mode, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if "PYTHONPATH" in os.environ:
        sys.path[:] = dict.fromkeys([os.environ["PYTHONPATH"], *sys.path])
    sys.orig_argv = wanted["words"]
    gc.enable()
    os.close(failures)


def _place(descriptors: list[int], numbers: tuple[int, ...]) -> int:
    """Have the descriptors but the first under these numbers, and no others; returns the first's new number."""
    first, *others = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, max(numbers) + 1) for each in descriptors]
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (first, *others):
            with suppress(OSError):  # the one of this listing is closed already
                os.close(int(name))
    for descriptor, number in zip(others, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return first


def _replace_environment(lines: list[bytes]) -> None:
    coerced = os.environb.get(b"LC_CTYPE")  # by Python itself, where there was no locale
    os.environb.clear()
    for each in lines:
        name, _, value = each.partition(b"=")
        os.environb[name] = value
    if coerced is not None:
        os.environb[b"LC_CTYPE"] = coerced
    time.tzset()


def _reset_signals(ignored: set[int], blocked: set[int]) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        is_ignored = number in ignored or number in IGNORED_BY_PYTHON
        signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    if signal.SIGINT not in ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _open_stream(number: int, mode: str, old: TextIOWrapper) -> TextIOWrapper:
    """Open a standard stream as Python does when it begins; `old`: the one it has opened, in the same locale."""
    is_direct = old.write_through and mode == "w"  # `python -u`
    binary: Any = open(number, mode + "b", 0 if is_direct else -1, closefd=False)  # noqa: SIM115 - for ever
    (binary if is_direct else binary.raw).name = old.name
    is_by_lines = not old.write_through and (number == 2 or binary.isatty())
    stream = TextIOWrapper(binary, old.encoding, old.errors, "\n", is_by_lines, old.write_through)
    stream.mode = mode
    return stream


def import_all() -> None:
    """Import what programs without a screen import."""
    for name in FIRST:
        importlib.import_module(name)
    _import_below(importlib.import_module("tenuto"))


def _import_below(package: ModuleType) -> None:
    for _, name, is_package in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not LEFT_OUT.search(name):
            with suppress(ImportError):  # of an optional library
                module = importlib.import_module(name)
                if is_package:
                    _import_below(module)


def run(words: list[str]) -> None:
    """Run `python -m MODULE ...` or `python -c CODE ...`."""
    _, way, what, *others = words
    sys.argv = [way, *others]
    if way == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, "")
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl+C is for the tests, whose end is ours
    del sys.path[0]  # where this file is
    gc.disable()
    import_all()
    gc.freeze()
    run(serve(socket.socket(fileno=int(sys.argv[1])))["words"])
