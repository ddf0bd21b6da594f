"""A shell command in a session of its own: started, read, watched, and ended with everything that it started.

The command has no controlling terminal and an empty stdin (R-079). Its output comes through a pipe that is read for
as long as anything holds it, so a server that was left in the background never writes into a closed pipe, and the
tool does not wait for it either (R-077). Ending goes by the session id, which the kernel keeps for the descendants
when the shell itself is long gone (R-078). What runs on after its call is a `Job`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import errno
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tenuto.guard.secrets import KNOWN, Secrets, hide_memory
from tenuto.guard.terminal import sanitize_output
from tenuto.last_acts import add_last_act
from tenuto.text.bounding import Bounded, bound_middle, take_head, take_tail
from tenuto.tool.output import format_size, notice_text
from tenuto.tool.process.left_running import VARIABLE, RunningRecord, tree_members

if TYPE_CHECKING:
    from tenuto.guard.sandbox.launching.starting import Launcher
    from tenuto.guard.sandbox.sandbox import Confined

_END_BYTES = 256_000
"""Bytes kept in memory of either end; longer outputs go to a file from there on."""
SPOOL_LIMIT = 256_000_000
"""Bytes of one output that are written to disk at most; a command that prints for ever must not fill it."""


class CollectedText:
    """What became of an output: the text for the model and where the whole is."""

    __slots__ = ("output_path", "output_size", "text", "truncated")

    def __init__(self, text: str, output_size: int, output_path: str = "", *, truncated: bool = False) -> None:
        self.text = text
        self.output_size = output_size
        self.output_path = output_path
        self.truncated = truncated


class Collector:
    """Collects the bytes of one command. `make_path` is asked for a file only when one is needed; `None`: never.

    `secrets` are masked in what it collects.
    """

    def __init__(
        self, make_path: Callable[[], Path] | None, *, spool_limit: int = SPOOL_LIMIT, secrets: Secrets = KNOWN
    ) -> None:
        self._make_path = make_path
        self._spool_limit = spool_limit
        self._secrets = secrets
        self._head = bytearray()
        self._tail = bytearray()
        self._descriptor: int | None = None
        self._held = b""
        self._stored = 0
        self.fault = ""
        self.path: Path | None = None
        self.size = 0
        self.lines = 0

    def add(self, chunk: bytes) -> bytes:
        """Take the next bytes; return what is ready to be shown.

        Secrets are masked. What may be the beginning of one waits for the next bytes, or for the end.
        """
        data = self._secrets.mask_bytes(self._held + chunk)
        ready = len(data) - self._secrets.held_back(data)
        self._held = data[ready:]
        self._take(data[:ready])
        return data[:ready]

    def release(self) -> None:
        """Take what waits: nothing comes behind it."""
        held, self._held = self._held, b""
        self._take(held)

    def _take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.lines += chunk.count(b"\n")
        if self._descriptor is not None:
            self._write(chunk)
        room = _END_BYTES - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk
            if len(self._tail) > 2 * _END_BYTES:
                self.spool()
                del self._tail[:-_END_BYTES]

    def spool(self) -> Path | None:
        """Write to a file from now on, what came before included; returns its path, `None` when that cannot be."""
        if self.path is None and not self.fault and self._make_path is not None:
            try:
                path = self._make_path()
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                self.fault = error.strerror or str(error)
                return None
            self.path = path
            self._write(bytes(self._head) + bytes(self._tail))
        return self.path

    @property
    def line_count(self) -> int:
        """Lines so far, one that has no end yet included."""
        end = self._tail or self._head
        return self.lines + bool(end and not end.endswith(b"\n"))

    @property
    def kept(self) -> bytes:
        """What is in memory: all of it, or both ends of a longer output."""
        return bytes(self._head + self._tail)

    def close(self) -> None:
        """Close the file, if there is one."""
        self.release()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: bytes) -> None:
        """Append to the file; a disk that takes no more ends the spooling, not the command."""
        if self._stored >= self._spool_limit:
            return
        view = memoryview(data)[: self._spool_limit - self._stored]
        try:
            while view and self._descriptor is not None:
                written = os.write(self._descriptor, view)
                self._stored += written
                view = view[written:]
        except OSError as error:
            self.fault = error.strerror or str(error)
            self.close()

    def text_from(self, start: int, max_chars: int, max_lines: int) -> str:
        """Return what came behind the first `start` bytes, within the limits and safe for every terminal."""
        data = self._bytes_from(max(start, self.size - 2 * _END_BYTES))
        text = sanitize_output(data.decode("utf-8", "replace"))
        bounded = bound_middle(text, max_chars, max_lines)
        path = "" if self.path is None else str(self.path)
        return text if bounded is None else bounded.joined(notice_text(bounded, len(data), path))

    def _bytes_from(self, start: int) -> bytes:
        kept = len(self._head) + len(self._tail)
        if self.size <= kept or self.path is None:
            return bytes(self._head + self._tail)[max(0, start - (self.size - kept)) :]
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read()
        except OSError:
            return bytes(self._tail)

    def text(self, max_chars: int, max_lines: int) -> CollectedText:
        """Return the text within the limits, safe for every terminal; stores the whole where something is cut."""
        self.release()
        if self.size <= len(self._head) + len(self._tail):
            text = sanitize_output(bytes(self._head + self._tail).decode("utf-8", "replace"))
            bounded = bound_middle(text, max_chars, max_lines)
            if bounded is None:
                return CollectedText(text, self.size)
            self.spool()
            return self._cut(bounded)
        head = take_head(_clean(bytes(self._head)), max_chars // 2, max_lines // 2)
        tail = take_tail(_clean(bytes(self._tail)), max_chars - max_chars // 2, max_lines - max_lines // 2)
        return self._cut(
            Bounded(
                head=head,
                tail=tail,
                omitted_chars=max(self.size - len(head.encode()) - len(tail.encode()), 0),
                omitted_lines=max(self.lines - head.count("\n") - tail.count("\n"), 0),
            )
        )

    def _cut(self, bounded: Bounded) -> CollectedText:
        path = "" if self.path is None else str(self.path)
        notice = notice_text(bounded, self.size, path)
        if self.fault or self._stored < self.size:
            why = f": {self.fault}" if self.fault else ""
            notice = f"{notice[:-1]} Only its first {format_size(self._stored)} were stored{why}.]"
        return CollectedText(bounded.joined(notice), self.size, path, truncated=True)


def _clean(data: bytes) -> str:
    """Decode a piece of a longer output: characters that the cut broke are left out at both ends."""
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    return sanitize_output(codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:]))


_CHUNK = 65_536
DRAIN_SECONDS = 0.1
"""How long output is still waited for after the shell has ended and something else holds the pipe."""
TERM_SECONDS = 1.0
"""How long a command has to end by itself after SIGTERM."""
GONE_SECONDS = 1.5
"""How long the kernel has to remove what was killed."""
_POLL_SECONDS = 0.03
_KILLED = 137
"""The exit code where the launcher said nothing before it was gone."""
_REMOVED = ("SSH_ASKPASS", "SUDO_ASKPASS", "SYSTEMD_EDITOR")
"""What prompts, and is off only where it is not set at all."""
_SET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
}


def shell_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: nothing in it opens a pager, an editor or a prompt (R-079).

    Everything else is as the user has set it: BASH_ENV may choose the Python of a container, CI changes what test
    runners print.
    """
    return {name: value for name, value in environ.items() if name not in _REMOVED} | _SET


def find_shell() -> str:
    """Return the shell that commands are given to: bash, or sh where there is none."""
    import shutil

    return shutil.which("bash") or "/bin/sh"


class Command:
    """A running command. Everything happens on the loop that it was started on."""

    def __init__(
        self, launcher: Launcher, ends: _Ends, collector: Collector, record: RunningRecord, status: int
    ) -> None:
        self._launcher = launcher
        self._is_reaped = False
        self._typing = ends.typing
        self._record = record
        self._pipe = pipe = ends.reading
        self._status = status
        self._is_alone = False
        """Whether nothing of the command is left when its shell has ended; the launcher says so."""
        self._loop = asyncio.get_running_loop()
        self.collector = collector
        self.on_output: Callable[[bytes], None] | None = None
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.drained = asyncio.Event()
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)
        self._loop.add_reader(status, self._status_came)

    @property
    def pid(self) -> int:
        """The process id of what stands over the shell, which is also the id of its group and session."""
        return self._launcher.pid

    def leaves_something(self) -> bool:
        """Whether the shell has ended and something that it started still runs or holds its output."""
        if not self.exited.done() or self._is_alone:
            return False  # told without a look at every process
        return any(pid != self.pid for pid in self.members())

    def members(self) -> list[int]:
        """Return the live processes of the command's session, and what went from it to another one."""
        members = tree_members(self.pid)
        # The id of a session that has died out can be given to a stranger: its leader would be alive again.
        return [] if self._is_reaped and self.pid in members else members

    async def end(self, patience: float = TERM_SECONDS) -> None:
        """End the whole session: ask first, kill after so many seconds. When cancelled meanwhile, kill at once."""
        try:
            self._signal(signal.SIGTERM, signal.SIGCONT)
            await self._wait_gone(patience)
        finally:
            self._signal(signal.SIGKILL)
        if not await self._wait_gone(GONE_SECONDS):
            self._signal(signal.SIGKILL)
        await asyncio.wait({self.exited}, timeout=DRAIN_SECONDS)

    def type(self, text: str) -> None:
        """Write to its stdin; an empty text ends it. Raises `OSError`, `BlockingIOError` where nothing reads."""
        if self._typing < 0:
            raise OSError(errno.EBADF, "it has no stdin")
        if text:
            data = text.encode("utf-8", "replace")
            if os.write(self._typing, data) < len(data):
                raise BlockingIOError
        elif self._typing == self._pipe:
            os.write(self._typing, b"\x04")  # a terminal stays open: this is how its user ends the input
        else:
            os.close(self._typing)
            self._typing = -1

    async def settle(self) -> None:
        """Wait a moment for the rest of the output, where the shell has ended."""
        if self.exited.done():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.drained.wait(), DRAIN_SECONDS)
            self.read_rest()

    def kill_now(self) -> None:
        """Kill the whole session without waiting."""
        self._signal(signal.SIGKILL)

    def read_rest(self) -> None:
        """Take what stands in the pipe now; not what something that goes on writing puts there meanwhile."""
        for _ in range(2):  # a pipe holds one chunk
            if self._pipe >= 0:
                self._read()

    def close(self) -> None:
        """Stop reading and let go of the pipe and the file."""
        if self._typing not in {-1, self._pipe}:
            os.close(self._typing)
        self._typing = -1
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
        self.collector.close()
        self.drained.set()
        self._forget()

    async def _wait_gone(self, seconds: float) -> bool:
        deadline = self._loop.time() + seconds
        while self.members():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    def _signal(self, *signals: signal.Signals) -> None:
        for _ in range(3):  # a process that forks meanwhile is seen by the next look
            members = self.members()
            for pid in members:
                if pid == self.pid and signal.SIGKILL not in signals:
                    continue  # what stands over the command ends with it
                for number in signals:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            if not members or signal.SIGKILL not in signals:
                return

    def _read(self) -> None:
        try:
            chunk = os.read(self._pipe, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        ready = self.collector.add(chunk)
        if self.on_output is not None and ready:
            self.on_output(ready)

    def _status_came(self) -> None:
        """The launcher says how the shell ended, and later, by ending itself, that nothing of it is left."""
        word = os.read(self._status, 64)
        if word:
            self._is_alone = word.endswith(b".\n")
            self._note_exit(int(word[:-2]))
            return
        self._loop.remove_reader(self._status)
        os.close(self._status)
        self._is_alone = True
        self._is_reaped = True
        self._launcher.reap()
        self._note_exit(_KILLED)
        self._forget()

    def _note_exit(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)
            self._forget()

    def _forget(self) -> None:
        """Take away the record once nothing of the command runs or holds its output."""
        if self.drained.is_set() and self.exited.done() and not self.leaves_something():
            self._record.remove()


Stdin = Literal["none", "pipe", "tty"]
"""What a command reads from: nothing, a pipe, or a terminal of its own, which takes its output as well."""


class CommandLimits(Struct, frozen=True):
    """The most processes of commands, and kilobytes of memory of each process; 0 for no limit."""

    processes: int = 512
    memory: int = 0


def start_command(
    text: str,
    cwd: Path,
    environ: Mapping[str, str],
    collector: Collector,
    records: Path,
    *,
    stdin: Stdin = "none",
    confined: Confined | None = None,
    limits: CommandLimits = CommandLimits(),  # noqa: B008
    reads: int | None = None,
    errors: int | None = None,
) -> Command:
    """Start `text` in a shell of its own, written down in `records` for as long as anything of it runs.

    `confined` is how it is held by the sandbox; it is closed here. With `stdin` "none" it reads from the descriptor
    `reads`, if there is one, and `errors` takes its standard error, if that is to be apart; both stay the caller's.

    Must be called on a running loop. Raises `OSError` (no such directory).
    """
    hide_memory()
    from tenuto.guard.sandbox.launching.starting import Order, launch
    from tenuto.guard.sandbox.limits import command_group, limiting_words

    counts_inside = confined is not None and confined.kind == "bubblewrap"
    inner = limiting_words(limits.processes if counts_inside else 0, limits.memory)
    record = RunningRecord(records, text)
    ends = _open_ends(stdin)
    status, theirs = os.pipe()
    try:
        launcher = launch(
            Order(
                words=(*(confined.words if confined else ()), *inner, find_shell(), "-c", text),
                environ={**shell_environment(confined.environ if confined else environ), VARIABLE: record.word},
                cwd=os.fspath(cwd),
                status=theirs,
                stdin=reads if stdin == "none" else ends.stdin,
                output=ends.output,
                errors=ends.output if errors is None else errors,
                has_terminal=stdin == "tty",
                processes=0 if counts_inside or os.geteuid() == 0 else limits.processes,
                namespaces=confined.namespaces if confined else (),
                passed=confined.descriptors if confined else (),
                confinement=confined.confinement if confined else b"",
            ),
            command_group(limits.processes),
        )
        record.started(launcher.pid)
    except BaseException:
        record.remove()
        for descriptor in {ends.reading, ends.typing, status} - {-1}:
            os.close(descriptor)
        raise
    finally:
        for descriptor in {ends.stdin, ends.output, theirs}:
            if descriptor is not None:
                os.close(descriptor)
        if confined is not None:
            confined.close()
    command = Command(launcher, ends, collector, record, status)
    _started[:] = [one for one in _started if not one.exited.done() or one.leaves_something()]
    _started.append(command)
    return command


class _Ends(Struct, frozen=True):
    """Descriptors: what the command gets, and what stays here to read its output and to type (-1: nothing)."""

    stdin: int | None
    output: int
    reading: int
    typing: int = -1


_ROWS, _COLUMNS = 40, 120


def _open_ends(stdin: Stdin) -> _Ends:
    if stdin == "tty":
        mine, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        return _Ends(theirs, theirs, mine, mine)
    reading, writing = os.pipe()
    if stdin == "none":
        return _Ends(None, writing, reading)
    theirs, mine = os.pipe()
    os.set_blocking(mine, False)
    return _Ends(theirs, writing, reading, mine)


_started: list[Command] = []
"""What may still run of what this process has started."""


def _kill_all() -> None:
    for command in tuple(_started):
        command.kill_now()


add_last_act(_kill_all)
