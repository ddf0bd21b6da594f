"""The prompts that were sent before: JSON lines under `$TENUTO_HOME/history`, per project and over all projects.

Files are 0600 and bounded; a lock keeps two processes from losing each other's lines. A line that cannot be read is
left out; a disk that cannot be written loses the history of this run and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Mapping
from pathlib import Path

import msgspec

from tenuto.private_files import replace_file
from tenuto.protocol.part import ImagePart
from tenuto.text.writable import to_json
from tenuto.tui.complete.paste import Fold

MAX_PROMPTS = 1_000
"""Prompts that are offered, and that a file keeps when it is cut."""
MAX_BYTES = 2_000_000
"""A longer file is cut to its newest half."""
MAX_CHARACTERS = 100_000
"""A longer prompt is not remembered."""
GLOBAL_NAME = "all.jsonl"


class Extras(msgspec.Struct, frozen=True, omit_defaults=True):
    """What belongs to a prompt beside its text: its images, and where in the text long pastes stand."""

    images: tuple[ImagePart, ...] = ()
    folds: tuple[Fold, ...] = ()


NO_EXTRAS = Extras()


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: the text, when it was sent in seconds since the epoch, and what else belongs to it."""

    text: str
    at: float = 0.0
    extras: Extras = NO_EXTRAS


class PastPrompts(msgspec.Struct, frozen=True):
    """Prompts, oldest first, each once: those of other projects before those of this one, which are `own`."""

    texts: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    extras: Mapping[str, Extras] = {}


class PromptHistory:
    """The history that Up and Ctrl+R go through: all projects' prompts first, this project's nearest."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self._directory = home / "history"
        self._project = self._directory / project_file_name(cwd)
        self._global = self._directory / GLOBAL_NAME

    def load(self) -> PastPrompts:
        """Return what there is."""
        own, everywhere = read_prompts(self._project), read_prompts(self._global)
        newest_first: dict[str, Extras] = {}
        for prompt in (*reversed(own), *reversed(everywhere)):
            newest_first.setdefault(prompt.text, prompt.extras)
        kept = list(newest_first)[:MAX_PROMPTS]
        return PastPrompts(
            texts=tuple(reversed(kept)),
            own=frozenset(prompt.text for prompt in own),
            extras={text: newest_first[text] for text in kept if newest_first[text] != NO_EXTRAS},
        )

    def append(self, text: str, at: float, extras: Extras = NO_EXTRAS) -> None:
        """Remember a prompt. Raises `OSError` when the disk refuses."""
        if not text.strip() or len(text) > MAX_CHARACTERS:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = to_json(Prompt(text.encode("utf-8", "replace").decode(), at, extras)) + b"\n"
        with locked(self._directory):
            for path in (self._project, self._global):
                append_line(path, line)


@contextlib.contextmanager
def locked(directory: Path) -> Generator[None]:
    """Let nobody else write there meanwhile, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def project_file_name(cwd: Path) -> str:
    """Return the name of a project's file: readable, and told apart by the real path."""
    import hashlib

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
