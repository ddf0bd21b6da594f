"""Standing answers: what the user has allowed permanently in one directory. Their own file, in Tenuto's home.

No project writes it, and an answer holds in the directory that it was given in and nowhere else, so that it can never
allow more than the same answer for one session. What a pattern covers is the guard's to say. The file is read again
when it has changed; comments that the user puts into it stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.private_files import locked, replace_file
from tenuto.protocol.entry import ApprovalEntry

FILE = "approvals.toml"
_HEAD = "# What you allowed permanently, by directory. /approvals lists and revokes these.\n"
_NOWHERE = (0, 0, 0)


class SavedApprovalsError(Exception):
    """The file cannot be read or written; the message says why."""


class SavedApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of `tool` that match `pattern` are allowed in `directory` (a real path) and below nothing else."""

    tool: str
    pattern: str
    directory: str


class SavedApprovals:
    """The answers in one file. `problem` says why none of them counts, empty when they do."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp = _NOWHERE
        self._answers: tuple[SavedApproval, ...] = ()
        self.problem = ""

    def all(self) -> tuple[SavedApproval, ...]:
        """Return all answers, in the order in which they were given."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._read()
        return self._answers

    def of(self, directory: Path) -> tuple[ApprovalEntry, ...]:
        """Return the answers that hold in a directory, as the guard reads them."""
        place = str(directory)
        found = (answer for answer in self.all() if answer.directory == place)
        return tuple(ApprovalEntry(tool=answer.tool, pattern=answer.pattern, scope="project") for answer in found)

    def add(self, answer: SavedApproval) -> None:
        """Write an answer; one that is there already stays alone. Raises `SavedApprovalsError`."""
        with self._changing():
            if answer not in self.all():
                replace_file(self._file, self._append(answer).encode())

    def remove(self, answer: SavedApproval) -> bool:
        """Take an answer back; `False` when it is not there (any more). Raises `SavedApprovalsError`."""
        with self._changing():
            place = next((place for place, each in enumerate(self.all()) if each == answer), None)
            if place is None:
                return False
            document = self._document()
            del document["allow"][place]
            replace_file(self._file, document.as_string().encode())
            return True

    # --- the file ---

    def _look(self) -> tuple[int, int, int]:
        try:
            facts = self._file.stat()
        except OSError:
            return _NOWHERE
        return facts.st_mtime_ns, facts.st_size, facts.st_ino

    def _read(self) -> None:
        self.problem, self._answers = "", ()
        import tomllib  # 3 ms; most people have no such file

        try:
            values = tomllib.loads(self._file.read_text(encoding="utf-8"))
            self._answers = msgspec.convert(values.get("allow", []), tuple[SavedApproval, ...])
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
            self.problem = f"{self._file} cannot be read, so nothing in it is allowed: {error}"

    @contextlib.contextmanager
    def _changing(self) -> Generator[None]:
        """Keep other processes from changing the file. Raises `SavedApprovalsError`, also for a broken file."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._file.parent):
                self.all()
                if self.problem:
                    raise SavedApprovalsError(self.problem)
                yield
                self.all()
        except OSError as error:
            raise SavedApprovalsError(f"{self._file} cannot be written: {error}") from error

    def _document(self) -> Any:
        import tomlkit

        return cast("Any", tomlkit.parse(self._file.read_text(encoding="utf-8")))

    def _append(self, answer: SavedApproval) -> str:
        """Return the file's text with one answer more."""
        import tomlkit

        table = cast("Any", tomlkit.table())
        for name, value in msgspec.structs.asdict(answer).items():
            table[name] = value
        document = cast("Any", tomlkit.document())
        document["allow"] = tomlkit.aot()
        document["allow"].append(table)
        try:
            before = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            before = _HEAD
        gap = "" if before.endswith("\n") else "\n"
        return f"{before}{gap}\n{document.as_string()}"
