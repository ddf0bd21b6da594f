"""Who trusts what: what a project brings, item by item, and what the user decided about each (R-085).

A decision holds for one content, in one directory: its real path, its device and its inode. It stands in Tenuto's
home, where no project writes. What has changed, or stands somewhere else now, is asked about again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tenuto.config.project import TRUST_FILE, project_root
from tenuto.private_files import doubt_file, locked, make_directory, replace_file
from tenuto.text.writable import clean_text, path_text

Kind = Literal["setting", "git", "extension", "hook", "mcp", "skill", "command", "agent", "plugin"]
Verdict = Literal["trusted", "refused", "waiting", "changed"]
"""`changed`: something was decided, of another content or in another directory of this path; so it waits again."""
LABELS: dict[Kind, str] = {
    "setting": "setting",
    "git": "git setting",
    "extension": "extension",
    "hook": "hook",
    "mcp": "MCP server",
    "skill": "skill",
    "command": "command",
    "agent": "agent",
    "plugin": "plugin",
}
_HEAD = "# What you decided about what projects bring. /trust and tenuto trust list and change these.\n"
_NOWHERE = (0, 0, 0)


class TrustError(Exception):
    """The file of decisions cannot be read or written; the message says why."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that may bring something: its real path, what tells it from another one there, where we work in it.

    `device` and `inode` are 0 where it cannot be looked at: then nothing holds in it.
    """

    root: Path
    cwd: Path
    home: Path
    device: int = 0
    inode: int = 0
    touched: frozenset[str] = frozenset()
    """Real paths of files that were touched: what their folders bring is looked at, too."""

    @property
    def place(self) -> str:
        """The root as it stands in the file."""
        return path_text(self.root)


class TrustItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a project brings and that counts, or runs, only with the user's consent.

    `does` is what it would do, in one line; `file` where it stands, seen from the project's root; `content` what the
    user is shown of it. `digest` tells its content from every other; empty where that cannot be told: such an item
    cannot be trusted, and `does` says why.
    """

    kind: Kind
    name: str
    does: str
    file: str
    digest: str
    content: str = ""

    @property
    def id(self) -> str:
        """A short name that stays the same when the content changes."""
        return digest_of(self.kind, self.name, self.file)[:8]

    @property
    def label(self) -> str:
        """What it is, in words."""
        return f"{LABELS[self.kind]} {self.name}"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said about one item, as it stands in the file."""

    project: str
    device: int
    inode: int
    kind: Kind
    name: str
    file: str
    digest: str
    trusted: bool

    def is_about(self, project: Project, item: TrustItem) -> bool:
        """Say whether it is about this item, whatever is in it and whichever directory stands there now."""
        return (self.project, self.kind, self.name, self.file) == (
            project.place,
            item.kind,
            clean_text(item.name),
            item.file,
        )

    def holds_in(self, project: Project) -> bool:
        """Say whether the directory that it was made in still stands there."""
        here = (project.place, project.device, project.inode)
        return project.inode != 0 and (self.project, self.device, self.inode) == here


def project_of(cwd: Path, home: Path, touched: frozenset[str] = frozenset()) -> Project:
    """Return the project that a directory lies in."""
    root = Path(os.path.realpath(project_root(cwd)))
    try:
        facts = root.stat()
    except OSError:
        return Project(root=root, cwd=cwd, home=home, touched=touched)
    return Project(root=root, cwd=cwd, home=home, device=facts.st_dev, inode=facts.st_ino, touched=touched)


def digest_of(*parts: str | bytes) -> str:
    """Return what tells these parts, in this order, from all others."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def shown_path(project: Project, file: Path) -> str:
    """Return a file's path seen from the project's root."""
    return path_text(Path(os.path.relpath(Path(os.path.realpath(file.parent), file.name), project.root)))


class Consent:
    """The decisions in one file. `problem` says why none of them counts, empty when they do."""

    def __init__(self, home: Path) -> None:
        self.file = home / TRUST_FILE
        self._stamp = _NOWHERE
        self._decisions: tuple[Decision, ...] = ()
        self.problem = ""

    def all(self) -> tuple[Decision, ...]:
        """Return all decisions, the oldest first. The file is read again when it has changed."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._read()
        return self._decisions

    def of(self, project: Project) -> tuple[Decision, ...]:
        """Return the decisions that hold in a project."""
        return tuple(decision for decision in self.all() if decision.holds_in(project))

    def verdict(self, project: Project, item: TrustItem) -> Verdict:
        """Return what the user decided about an item as it is now."""
        about = [decision for decision in self.all() if decision.is_about(project, item)]
        if not about:
            return "waiting"
        decision = about[-1]
        if not item.digest or decision.digest != item.digest or not decision.holds_in(project):
            return "changed"
        return "trusted" if decision.trusted else "refused"

    def decide(self, project: Project, items: Sequence[TrustItem], *, trusted: bool) -> None:
        """Write a decision about each of these items, in the place of earlier ones. Raises `TrustError`."""
        made = [
            Decision(
                project=project.place,
                device=project.device,
                inode=project.inode,
                kind=item.kind,
                name=clean_text(item.name),
                file=item.file,
                digest=item.digest,
                trusted=trusted,
            )
            for item in items
            if item.digest or not trusted
        ]
        if not project.inode:
            raise TrustError(f"{project.root} cannot be looked at, so nothing in it can be decided")
        with self._changing():
            gone = [any(decision.is_about(project, item) for item in items) for decision in self.all()]
            self._write(gone, made)

    def forget(self, project: Project, ids: Iterable[str] = ()) -> int:
        """Drop the decisions about a project, or those about items with these ids; return how many there were.

        Raises `TrustError`.
        """
        wanted = set(ids)
        with self._changing():
            gone = [
                decision.project == project.place
                and (not wanted or digest_of(decision.kind, decision.name, decision.file)[:8] in wanted)
                for decision in self.all()
            ]
            if any(gone):
                self._write(gone, [])
        return sum(gone)

    # --- the file ---

    def _look(self) -> tuple[int, int, int]:
        try:
            facts = self.file.stat()
        except OSError:
            return _NOWHERE
        return facts.st_mtime_ns, facts.st_size, facts.st_ino

    def _read(self) -> None:
        self.problem, self._decisions = "", ()
        import tomllib  # 3 ms; most people have no such file

        try:
            if doubt := doubt_file(self.file):
                self.problem = f"{self.file} {doubt}, so nothing in it counts"
                return
            values = tomllib.loads(self.file.read_text(encoding="utf-8"))
            self._decisions = msgspec.convert(values.get("decision", []), tuple[Decision, ...])
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
            self.problem = f"{self.file} cannot be read, so nothing in it counts: {error}"

    @contextlib.contextmanager
    def _changing(self) -> Generator[None]:
        """Keep other processes from changing the file. Raises `TrustError`, also for a broken file."""
        try:
            make_directory(self.file.parent)
            with locked(self.file.parent):
                self.all()
                if self.problem:
                    raise TrustError(self.problem)
                yield
                self.all()
        except OSError as error:
            raise TrustError(f"{self.file} cannot be written: {error}") from error

    def _write(self, gone: Sequence[bool], made: Sequence[Decision]) -> None:
        """Write the file without some of its decisions and with new ones at its end; comments stay."""
        import tomlkit

        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = _HEAD
        if any(gone):
            document = cast("Any", tomlkit.parse(text))
            for place in reversed([place for place, is_gone in enumerate(gone) if is_gone]):
                del document["decision"][place]
            if not document["decision"]:
                del document["decision"]
            text = document.as_string()
        for decision in made:
            document = cast("Any", tomlkit.document())
            document["decision"] = tomlkit.aot()
            table = cast("Any", tomlkit.table())
            for name, value in msgspec.structs.asdict(decision).items():
                table[name] = value
            document["decision"].append(table)
            text = f"{text.rstrip()}\n\n{document.as_string()}"
        replace_file(self.file, text.encode())
