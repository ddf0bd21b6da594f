"""Standing answers: the user's permanent rules for one directory. Their own file, in Tenuto's home.

No project writes it, and an answer holds in the directory that it was given in and nowhere else, so that it can never
allow more than the same answer for one session. What a pattern covers is the guard's to say. The file is read again
when it has changed; comments that the user puts into it stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tenuto.private_files import doubt_file, locked, replace_file
from tenuto.protocol.entry import ApprovalEntry

FILE = "approvals.toml"
_HEAD = "# What you allowed permanently, by directory. /approvals lists and revokes these.\n"
_NOWHERE = (0, 0, 0)


class SavedApprovalsError(Exception):
    """The file cannot be read or written; the message says why."""


Effect = Literal["allow", "ask", "deny"]
EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")


class SavedApproval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule for calls of `tool` that match `pattern`. It holds in `directory` (a real path) and nowhere else.

    `device` and `inode` say which directory that was: another one that comes to stand there has no rules yet. Both are
    0 in what the user wrote by hand. `form` is as in the log. The effect is the name of the array that it stands in.
    """

    tool: str
    pattern: str
    form: Literal["exact", "rule"] = "exact"
    directory: str
    device: int = 0
    inode: int = 0
    effect: Effect = "allow"

    @property
    def entry(self) -> ApprovalEntry:
        """The same as the guard reads it."""
        return ApprovalEntry(tool=self.tool, pattern=self.pattern, form=self.form, effect=self.effect, scope="project")

    @property
    def holds(self) -> bool:
        """Whether the directory that it was given in still stands there."""
        if not self.inode:
            return True
        try:
            facts = Path(self.directory).stat()
        except OSError:
            return False
        return (facts.st_dev, facts.st_ino) == (self.device, self.inode)


def saved_in(directory: Path, entry: ApprovalEntry) -> SavedApproval:
    """Return what an answer is in the file. Raises `SavedApprovalsError` where the directory is gone."""
    try:
        facts = directory.stat()
    except OSError as error:
        raise SavedApprovalsError(f"{directory} cannot be looked at: {error.strerror or error}") from error
    return SavedApproval(
        tool=entry.tool,
        pattern=entry.pattern,
        form=entry.form,
        effect=entry.effect,
        directory=str(directory),
        device=facts.st_dev,
        inode=facts.st_ino,
    )


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
        return tuple(answer.entry for answer in self.all() if answer.directory == place and answer.holds)

    def add(self, answer: SavedApproval) -> None:
        """Write an answer; one that is there already stays alone. Raises `SavedApprovalsError`."""
        with self._changing():
            if answer not in self.all():
                replace_file(self._file, self._append(answer).encode())

    def remove(self, answer: SavedApproval) -> bool:
        """Take an answer back; `False` when it is not there (any more). Raises `SavedApprovalsError`."""
        with self._changing():
            alike = [each for each in self.all() if each.effect == answer.effect]
            if answer not in alike:
                return False
            document = self._document()
            if alike == [answer]:  # an empty array would stand in the way of the next answer
                del document[answer.effect]
            else:
                del document[answer.effect][alike.index(answer)]
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
            if doubt := doubt_file(self._file):
                self.problem = f"{self._file} {doubt}, so nothing in it is allowed"
                return
            values = tomllib.loads(self._file.read_text(encoding="utf-8"))
            self._answers = tuple(
                msgspec.structs.replace(each, effect=effect)
                for effect in EFFECTS
                for each in msgspec.convert(values.get(effect, []), tuple[SavedApproval, ...])
            )
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
        for name, value in msgspec.to_builtins(answer).items():
            if name != "effect":
                table[name] = value
        document = cast("Any", tomlkit.document())
        document[answer.effect] = tomlkit.aot()
        document[answer.effect].append(table)
        try:
            before = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            before = _HEAD
        gap = "" if before.endswith("\n") else "\n"
        return f"{before}{gap}\n{document.as_string()}"
