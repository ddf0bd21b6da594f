"""What a project brings that can run something: that waits for the user's trust.

A skill with a script or any executable file in its folder, and a command file with a shell command in it. Whatever is
text alone counts like the project's `AGENTS.md`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tenuto.config.consent import Consent, Kind, Project, TrustItem, digest_of, project_of, shown_path
from tenuto.config.places import Where
from tenuto.config.project import RefusedFileError, read_regular
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.text.writable import clean_text

MAX_FILES, MAX_BYTES = 500, 5_000_000
"""Files and bytes of one thing whose content can be told."""
SHOWN_CHARS = 20_000
SHORT_CHARS = 80
SCRIPTS = frozenset(
    {
        *(".bash", ".bat", ".cjs", ".cmd", ".com", ".dll", ".exe", ".fish", ".go", ".jar", ".js", ".lua", ".mjs"),
        *(".php", ".pl", ".ps1", ".py", ".pyc", ".pyw", ".pyz", ".rb", ".sh", ".so", ".ts", ".zsh"),
    }
)
"""Endings of files that something runs, whatever their mode."""
Stamp = tuple[int, int, int, int, int]


class ProjectTrust:
    """What the user decided about such things of one project; asked and read only where there is one."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._read: tuple[Project, Consent] | None = None

    def waits(self, kind: Kind, name: str, file: Path, commands: Sequence[str] = ()) -> bool:
        """Say whether a skill (`file`: its `SKILL.md`) or command file runs something that the user does not trust."""
        if kind == "command" and not commands:
            return False
        if self._read is None:
            self._read = project_of(self._where.cwd, self._where.home), Consent(self._where.home)
        project, consent = self._read
        item = skill_item(project, name, file) if kind == "skill" else command_item(project, name, file, commands)
        return item is not None and consent.verdict(project, item) != "trusted"


def skill_item(project: Project, name: str, file: Path) -> TrustItem | None:
    """Return what the user is asked of the skill with this `SKILL.md`; `None` where nothing in its folder runs."""
    files = tuple(sorted(files_below(file.parent), key=str))
    stamps = tuple(stamp_of(one) for one in files)
    if not any(is_program(one, file.parent, stamp) for one, stamp in zip(files, stamps, strict=True)):
        return None
    return _skill_item(project, name, file, files, stamps)


@lru_cache(maxsize=256)
def _skill_item(
    project: Project, name: str, file: Path, files: tuple[Path, ...], stamps: tuple[Stamp, ...]
) -> TrustItem:
    """`stamps` are others when a file has changed."""
    programs = sum(is_program(one, file.parent, stamp) for one, stamp in zip(files, stamps, strict=True))
    digest, content, problem = read_bundle("skill", project, file.parent, files)
    does = f"has {plural(programs, 'file')} that can be run, as the skill tells the model"
    return TrustItem(
        kind="skill",
        name=clean_text(name),
        does=problem or does,
        file=shown_path(project, file),
        digest=digest,
        content=content,
    )


def command_item(project: Project, name: str, file: Path, commands: Sequence[str]) -> TrustItem:
    """Return what the user is asked of a command file that runs these shell commands."""
    digest, content, problem = _read_command(project, file, stamp_of(file))
    named = shorten("; ".join(commands), SHORT_CHARS)
    return TrustItem(
        kind="command",
        name=clean_text(name),
        does=problem or f"runs {named} before /{clean_text(name)} is sent",
        file=shown_path(project, file),
        digest=digest,
        content=content,
    )


@lru_cache(maxsize=256)
def _read_command(project: Project, file: Path, stamp: Stamp) -> tuple[str, str, str]:
    del stamp
    return read_bundle("command", project, file.parent, (file,))


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder, hidden ones too, and links to folders; a few more than count at most."""
    found: list[Path] = []
    for place, inner, names in os.walk(folder):
        found += (Path(place, name) for name in names)
        found += (Path(place, name) for name in inner if Path(place, name).is_symlink())  # refused: no file
        if len(found) > MAX_FILES:
            break
    return found


def read_bundle(kind: Kind, project: Project, folder: Path, files: Sequence[Path]) -> tuple[str, str, str]:
    """Return the digest of files, what is shown of them, and why they cannot be trusted, empty where they can."""
    if len(files) > MAX_FILES:
        return "", "", f"has more than {MAX_FILES} files, so it cannot be trusted here"
    parts: list[str | bytes] = [kind]
    shown: list[str] = []
    room = MAX_BYTES
    for file in files:
        name = clean_text(os.path.relpath(file, folder))
        try:
            data = read_regular(file, (project.root,), limit=max(1, room))
        except (FileNotFoundError, RefusedFileError) as error:
            return "", "", f"cannot be trusted here: {name}: {error}"
        room -= len(data)
        parts += [name, data]
        if file.suffix != ".pyc" and sum(map(len, shown)) < SHOWN_CHARS:
            shown.append(f"# {name}\n{data.decode('utf-8', 'replace')[:SHOWN_CHARS]}")
    return digest_of(*parts), "\n".join(shown), ""


def is_program(file: Path, folder: Path, stamp: Stamp) -> bool:
    """Say whether a file in a folder can be run: by its mode, its ending, its first line, or where it lies."""
    mode = stamp[0]
    if not stat.S_ISREG(mode) or mode & 0o111 or file.suffix.lower() in SCRIPTS:
        return True
    if "scripts" in _lowered(file.relative_to(folder).parts[:-1]):
        return True
    return _begins_as_script(file, stamp)


def _lowered(parts: Iterable[str]) -> list[str]:
    return [part.lower() for part in parts]


@lru_cache(maxsize=4_096)
def _begins_as_script(file: Path, stamp: Stamp) -> bool:
    del stamp
    try:
        with file.open("rb") as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return True


def stamp_of(file: Path) -> Stamp:
    """Return mode, times, size and identity of what a path leads to: others when it has changed; 0 where it is lost."""
    try:
        facts = file.stat()
    except (OSError, ValueError):
        return (0, 0, 0, 0, 0)
    return (facts.st_mode, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino)
