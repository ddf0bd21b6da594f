"""Searching with ripgrep. The user's own configuration does not count: results must not depend on it."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tenuto.tool.run.context import ToolError
from tenuto.tool.search.patterns import path_matcher
from tenuto.tool.search.search import Found, Query, Source, Stop, Walker

_COMMON = ("--no-config", "--no-messages", "--color", "never", "--hidden", "--no-require-git", "--glob", "!.git")
_RECORD = re.compile(rb"(\d+)(?::(\d+):|-)", re.DOTALL)
_PIECE = 65_536
_LONGEST_LINE = 8_000_000
"""Bytes of one line that are held at most; what is longer loses its end."""
_ERROR_CHARS = 600


class Ripgrep:
    """Runs the program and reads what it prints as it comes."""

    def __init__(self, program: str) -> None:
        self._program = program

    def lines(self, query: Query, stop: Stop) -> Iterator[Found | None]:
        """Yield matches with their context, sorted by path."""
        options = ["--line-number", "--column", "--no-heading", "--with-filename", "--null", "--sort", "path"]
        if query.context:
            options += ["--context", str(query.context)]
        wanted = path_matcher(query.glob) if query.glob else None
        for line in self._run([*options, *_search_options(query)], query.base, stop):
            if line == b"--":
                yield None
                continue
            found = _parse(line)
            if found is not None and (wanted is None or wanted(found.path)):
                yield found

    def counts(self, query: Query, stop: Stop) -> Iterator[tuple[str, int]]:
        """Yield each file with its number of matching lines, sorted by path."""
        options = ["--count", "--with-filename", "--null", "--sort", "path", *_search_options(query)]
        wanted = path_matcher(query.glob) if query.glob else None
        for line in self._run(options, query.base, stop):
            path, _, count = line.partition(b"\0")
            name = _name(path)
            if count.isdigit() and (wanted is None or wanted(name)):
                yield name, int(count)

    def files(self, base: Path, stop: Stop) -> Iterator[str]:
        """Yield all files that are not ignored."""
        for path in self._run(["--files", "--null"], base, stop, separator=b"\0"):
            yield _name(path)

    def _run(self, options: list[str], base: Path, stop: Stop, separator: bytes = b"\n") -> Iterator[bytes]:
        """Yield the records that the program prints. Raises `ToolError` when it refuses the pattern."""
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [self._program, *_COMMON, *options],
                cwd=base,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            stop.watch(process)
            some = False
            try:
                for record in _records(process.stdout, separator):
                    some = True
                    yield record
                    if stop.is_due():
                        return
            finally:
                process.kill()
                code = process.wait()
                if process.stdout is not None:
                    process.stdout.close()
            if code == 2 and not some:
                errors.seek(0)
                text = errors.read(4 * _ERROR_CHARS).decode("utf-8", "replace").strip()
                if text:
                    raise ToolError(f"The search could not be done: {text[:_ERROR_CHARS]}")


def choose_source() -> Source:
    """Return ripgrep where there is one, else our own."""
    program = shutil.which("rg")
    return Walker() if program is None else Ripgrep(program)


def _search_options(query: Query) -> list[str]:
    options = ["--fixed-strings"] if query.literal else ["--engine", "auto"]
    if query.ignore_case:
        options.append("--ignore-case")
    # --glob would bring ignored files back; a type does not, but looks at names only
    if query.glob and not {"/", ":"} & set(query.glob.removeprefix("./")):
        options += ["--type-add", f"wanted:{query.glob.removeprefix('./')}", "--type", "wanted"]
    return [*options, "--regexp", query.pattern, "--", query.only or "."]


def _records(stream: IO[bytes] | None, separator: bytes) -> Iterator[bytes]:
    """Split a stream; a record that is too long loses its end, not the memory of this machine."""
    kept = bytearray()
    while chunk := _read_some(stream):
        *whole, rest = chunk.split(separator)
        for piece in whole:
            kept += piece[: max(_LONGEST_LINE - len(kept), 0)]
            yield bytes(kept)
            kept.clear()
        kept += rest[: max(_LONGEST_LINE - len(kept), 0)]
    if kept:
        yield bytes(kept)


def _read_some(stream: IO[bytes] | None) -> bytes:
    """Return what there is, at least one byte unless the stream has ended."""
    return stream.read1(_PIECE) if isinstance(stream, io.BufferedReader) else b""


def _name(path: bytes) -> str:
    return path.decode("utf-8", "replace").removeprefix("./")


def _parse(line: bytes) -> Found | None:
    """Return the line of a match or of its context; `None` for remarks (binary files)."""
    path, zero, rest = line.partition(b"\0")
    head = _RECORD.match(rest)
    if not zero or head is None:
        return None
    raw = rest[head.end() :].rstrip(b"\r")
    column = None if head[2] is None else len(raw[: int(head[2]) - 1].decode("utf-8", "replace"))
    return Found(_name(path), int(head[1]), raw.decode("utf-8", "replace"), column)
