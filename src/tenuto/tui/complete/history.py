"""The prompts that were sent before: JSON lines under `$TENUTO_HOME/history`, per project and over all projects.

Files are 0600 and bounded. A line that cannot be read is left out; a disk that cannot be written loses the history of
this run and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import msgspec

MAX_PROMPTS = 1_000
"""Prompts that are offered, and that a file keeps when it is cut."""
MAX_BYTES = 2_000_000
"""A longer file is cut to its newest half."""
MAX_CHARACTERS = 100_000
"""A longer prompt is not remembered."""
GLOBAL_NAME = "all.jsonl"


class Prompt(msgspec.Struct, frozen=True):
    """One line: the text, and when it was sent in seconds since the epoch."""

    text: str
    at: float = 0.0


class PromptHistory:
    """The history that Up and Ctrl+R go through: all projects' prompts first, this project's nearest."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self._directory = home / "history"
        self._project = self._directory / project_file_name(cwd)
        self._global = self._directory / GLOBAL_NAME

    def load(self) -> tuple[str, ...]:
        """Return the prompts, oldest first, each once: those of other projects before those of this one."""
        own = [prompt.text for prompt in read_prompts(self._project)]
        everywhere = [prompt.text for prompt in read_prompts(self._global)]
        newest_first = dict.fromkeys([*reversed(own), *reversed(everywhere)])
        return tuple(reversed(list(newest_first)[:MAX_PROMPTS]))

    def append(self, text: str, at: float) -> None:
        """Remember a prompt. Raises `OSError` when the disk refuses."""
        if not text.strip() or len(text) > MAX_CHARACTERS:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = msgspec.json.encode(Prompt(text.encode("utf-8", "replace").decode(), at)) + b"\n"
        for path in (self._project, self._global):
            append_line(path, line)


def project_file_name(cwd: Path) -> str:
    """Return the name of a project's file: readable, and told apart by the real path."""
    real = str(cwd.resolve())
    slug = re.sub(r"[^A-Za-z0-9]+", "-", cwd.name).strip("-")[:40] or "root"
    return f"{slug}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}.jsonl"


def read_prompts(path: Path) -> list[Prompt]:
    """Return what a file has, oldest first."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    decoder = msgspec.json.Decoder(Prompt)
    prompts: list[Prompt] = []
    for line in data.split(b"\n"):
        if line:
            try:
                prompts.append(decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
    return prompts


def append_line(path: Path, line: bytes) -> None:
    """Append with one write, whatever the umask readable by its owner only; cut the file when it is too long."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" + line if torn else line)
    finally:
        os.close(descriptor)
    if size > MAX_BYTES:
        cut_file(path)


def cut_file(path: Path) -> None:
    """Keep the newest lines: at most `MAX_PROMPTS`, and half of `MAX_BYTES`."""
    kept: list[bytes] = []
    room = MAX_BYTES // 2
    for line in reversed(path.read_bytes().splitlines(keepends=True)[-MAX_PROMPTS:]):
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    replace_file(path, b"".join(reversed(kept)))


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in the place of the file in one go."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
