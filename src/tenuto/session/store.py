"""What lies beside the log: outputs by name, images and former files by hash, and commands whose outcome is not known.

A running command has a small file, so that `kill -9` loses nothing. Its output goes to `outputs/` as it comes. Whoever
opens the session next finds both (`Session.open`), and writes the entry that is missing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import msgspec

from tenuto.guard.secrets import KNOWN
from tenuto.guard.terminal import sanitize_output
from tenuto.private_files import make_directory, replace_file, write_new
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.message import HistoryEvent, ShellView, ToolResultMessage
from tenuto.protocol.part import ImagePart, TextPart, ToolCallPart
from tenuto.session.log.log import LOG_NAME
from tenuto.session.view.pairing import interrupted_result, interruption
from tenuto.text.bounding import bound_middle
from tenuto.text.writable import to_json

_SUFFIX = ".json"
_FOUND_CHARS, _FOUND_LINES = 8_000, 200
"""Of a found output so much goes into the log; the file has the rest."""
_END_BYTES = 32_000
"""Bytes that are read of either end of a found output."""


class RunningCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that was started and has no entry yet.

    `output` names a file in `outputs/`, empty while there is none. A call of the model has its `call_id` and
    `command`; a command of the user its `shell`, as it would be stored if nothing more were known, and `since`, the
    highest `seq` when it was noted. A call that runs a sub-agent has the `session` of that, and the agent's name as its
    `command`; `since` is then the entry that counts what it used, 0 while there is none.
    """

    output: str = ""
    call_id: str = ""
    command: str = ""
    shell: ShellEntry | None = None
    since: int = 0
    session: str = ""


class RunningCommands:
    """The files of one session. A disk that fails keeps no command from running."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note(self, name: str, command: RunningCommand) -> None:
        """Write down a command, or what is known of it now."""
        with contextlib.suppress(OSError):
            make_directory(self._directory)
            replace_file(self._directory / f"{name}{_SUFFIX}", KNOWN.mask_bytes(to_json(command)))

    def forget(self, name: str) -> None:
        """Remove what was written down: the log has it."""
        with contextlib.suppress(OSError):
            (self._directory / f"{name}{_SUFFIX}").unlink(missing_ok=True)

    def left(self) -> Iterator[tuple[str, RunningCommand]]:
        """Yield what an earlier process left, by name, oldest first. What cannot be read stays where it is."""
        with contextlib.suppress(OSError):
            paths = sorted(self._directory.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
            for path in paths:
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    yield path.stem, msgspec.json.decode(path.read_bytes(), type=RunningCommand)


def found_result(call: ToolCallPart, command: RunningCommand | None, outputs: Path) -> ToolResultMessage:
    """Return the result of a call that was interrupted with the process, with the output that its command left."""
    found = _read_output(command, outputs)
    if command is None or found is None:
        return interrupted_result(call)
    return msgspec.structs.replace(
        interrupted_result(call),
        parts=(TextPart(text=interruption(found.text, found.lines, found.path)),),
        ui=(ShellView(command=command.command),),
        truncated=found.is_cut,
        output_path=found.path,
        output_size=found.size,
    )


def missing_shells(
    commands: Sequence[RunningCommand], history: Sequence[HistoryEvent], outputs: Path
) -> list[ShellEntry]:
    """Return the entries of commands of the user that are not in the log; one that still ran with what it wrote.

    A process that died right after it had stored an entry could not remove the file: each stored one answers for one.
    """
    first = min((command.since for command in commands), default=0)
    newer = takewhile(lambda entry: entry.seq > first, reversed(history)) if commands else ()
    stored = [entry for entry in newer if isinstance(entry, ShellEntry)]
    missing: list[ShellEntry] = []
    for command in commands:
        shell = command.shell
        if shell is None:
            continue
        same = next((entry for entry in stored if entry.seq > command.since and entry.command == shell.command), None)
        if same is not None:
            stored.remove(same)
            continue
        found = _read_output(command, outputs) if shell.interrupted else None
        if found is not None:
            path = found.path if found.is_cut else ""
            shell = msgspec.structs.replace(shell, output=found.text, truncated=found.is_cut, output_path=path)
        missing.append(shell)
    return missing


class _Found(msgspec.Struct, frozen=True):
    text: str
    lines: int
    size: int
    path: str
    is_cut: bool


def _read_output(command: RunningCommand | None, outputs: Path) -> _Found | None:
    """Return what stands in a command's file; `None` where there is none or nothing in it."""
    name = command.output if command is not None else ""
    if not name or os.sep in name:
        return None
    path = outputs / name
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_END_BYTES)
            lines = head.count(b"\n")
            while chunk := file.read(1 << 20):
                lines += chunk.count(b"\n")
            tail = b""
            if size > _END_BYTES:
                file.seek(max(size - _END_BYTES, _END_BYTES))
                tail = file.read()
    except OSError:
        return None
    if not head:
        return None
    lines += not (tail or head).endswith(b"\n")
    text = sanitize_output((head + tail).decode("utf-8", "replace"))
    bounded = bound_middle(text, _FOUND_CHARS, _FOUND_LINES)
    is_cut = bounded is not None or size > len(head) + len(tail)
    if bounded is not None:
        text = bounded.joined("[… the middle is left out here …]")
    return _Found(text, lines, size, str(path), is_cut)


OUTPUTS = "outputs"
BLOBS = "blobs"
RUNNING = "running"
"""Calls and commands of the user that have no entry yet."""
PROCESSES = "processes"
SERVERS = "servers"
"""The folder of what MCP servers write to their stderr."""
"""What runs on the machine for this session."""
AGENTS = "agents"
"""The sessions of sub-agents, a folder each."""
_NAME_LENGTH = 80
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_HEX = frozenset("0123456789abcdef")


class Store:
    """Files of one session. Nothing is created before something is stored."""

    def __init__(self, directory: Path) -> None:
        self.outputs = directory / OUTPUTS
        self.blobs = directory / BLOBS
        self.running = RunningCommands(directory / RUNNING)
        self.processes = directory / PROCESSES

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The real paths of the folders whose files the model may read unasked; they are the session's own."""
        return tuple(os.path.realpath(place) for place in (self.outputs, self.blobs))

    @property
    def has_files(self) -> bool:
        """Whether anything is stored. A folder that cannot be read counts as full."""
        try:
            return any(path.is_dir() and next(path.iterdir(), None) is not None for path in (self.outputs, self.blobs))
        except OSError:
            return True

    def save_output(self, name: str, data: bytes | str) -> Path:
        """Write a tool's full output under a name that is made safe and unique; return its path. Raises `OSError`."""
        data = KNOWN.mask_bytes(data.encode("utf-8", "replace") if isinstance(data, str) else data)
        make_directory(self.outputs)
        base = Path(_safe_name(name))
        for number in range(1, 1_000_000):
            path = self.outputs / (base if number == 1 else f"{base.stem}-{number}{base.suffix}")
            try:
                write_new(path, data)
            except FileExistsError:
                continue
            return path
        raise FileExistsError(name)

    def save_image(self, data: bytes, media_type: str, *, name: str = "", width: int = 0, height: int = 0) -> ImagePart:
        """Write an image under its hash, once, and return the part that stands for it. Raises `OSError`."""
        digest = self.save_bytes(data)
        return ImagePart(sha256=digest, media_type=media_type, size=len(data), name=name, width=width, height=height)

    def save_bytes(self, data: bytes) -> str:
        """Write bytes under their hash, once, and return it. Raises `OSError`."""
        import hashlib

        digest = hashlib.sha256(data).hexdigest()
        path = self.blobs / digest
        if not (path.is_file() and path.stat().st_size == len(data)):
            make_directory(self.blobs)
            path.unlink(missing_ok=True)
            write_new(path, data)
        return digest

    def load_bytes(self, sha256: str) -> bytes:
        """Return the bytes behind a hash. Raises `FileNotFoundError` when they are not here (or the hash is none)."""
        if not sha256 or not set(sha256) <= _HEX:
            raise FileNotFoundError(sha256)
        return (self.blobs / sha256).read_bytes()

    def copy_blobs(self, other: Store) -> tuple[str, ...]:
        """Give another session the same images, as second names of the same files where possible; return their names.

        Raises `OSError`.
        """
        if not self.blobs.is_dir():
            return ()
        make_directory(other.blobs)
        names: list[str] = []
        for source in self.blobs.iterdir():
            names.append(source.name)
            try:
                (other.blobs / source.name).hardlink_to(source)
            except OSError:
                write_new(other.blobs / source.name, source.read_bytes())
        return tuple(names)


def agent_directories(directory: Path) -> Iterator[Path]:
    """Yield the folders of a session's sub-agents and of theirs, the newest first, each before its own."""
    try:
        folders = [path for path in (directory / AGENTS).iterdir() if (path / LOG_NAME).is_file()]
    except OSError:
        return
    for folder in sorted(folders, key=_begun, reverse=True):
        yield folder
        yield from agent_directories(folder)


def _begun(folder: Path) -> str:
    """Return what sorts ids by time: the date behind the random digits."""
    return folder.name.partition("-")[2]


def find_agent(directory: Path, name: str) -> Path | None:
    """Return the folder of the one sub-agent whose id begins with `name`; `None` for none, and for several."""
    found = [folder for folder in agent_directories(directory) if name and folder.name.startswith(name)]
    return found[0] if len(found) == 1 else None


def _safe_name(name: str) -> str:
    safe = "".join(character if character in _SAFE else "-" for character in name).strip(".-")
    return safe[-_NAME_LENGTH:].lstrip(".-") or "output"
