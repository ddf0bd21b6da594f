"""What a project brings that can run something: that waits for the user's trust.

A skill with a script or any executable file in its folder, and a command file with a shell command in it. One that asks
for approvals, a model or an effort can be used without trust, and gets none of it. Whatever is text alone counts like
the project's `AGENTS.md`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
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
WISHES_CHARS = 300
UNASKED = frozenset(
    {
        *("agent", "askuserquestion", "bashoutput", "compact", "enterplanmode", "exitplanmode", "glob", "grep", "ls"),
        *("notebookread", "read", "recall", "skill", "slashcommand", "task", "todo", "todoread", "todowrite"),
        *("toolsearch", "websearch"),
    }
)
"""Tools of ours and of other agents that need no approval, as `allowed-tools` names them, in small letters."""
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

    def covers_skill(self, name: str, file: Path, wishes: tuple[str, ...]) -> bool:
        """Say whether the skill with this `SKILL.md` needs no trust, or has the user's."""
        return self._covers(lambda project: skill_item(project, name, file, wishes))

    def covers_command(self, name: str, file: Path, commands: Sequence[str], wishes: tuple[str, ...]) -> bool:
        """Say whether a command file needs no trust, or has the user's."""
        if not commands and not wishes:
            return True
        return self._covers(lambda project: command_item(project, name, file, commands, wishes))

    def _covers(self, find: Callable[[Project], TrustItem | None]) -> bool:
        if self._read is None:
            self._read = project_of(self._where.cwd, self._where.home), Consent(self._where.home)
        project, consent = self._read
        item = find(project)
        return item is None or consent.verdict(project, item) == "trusted"


def describe_wishes(allowed_tools: Sequence[str], model: str, effort: str) -> tuple[str, ...]:
    """Return what a file asks for its turn, in words; what needs nobody's approval is nothing that is asked for."""
    words = [word for word in allowed_tools if word.casefold() not in UNASKED]
    wishes = (
        f"lets run unasked: {', '.join(words)}" if words else "",
        f"has the model {model} answer" if model not in {"", "inherit"} else "",
        f"sets the effort {effort}" if effort else "",
    )
    return tuple(wish for wish in wishes if wish)


def runs_something(file: Path) -> bool:
    """Say whether anything in the folder of this `SKILL.md` can be run."""
    return any(is_program(one, file.parent, stamp_of(one)) for one in files_below(file.parent))


def skill_item(project: Project, name: str, file: Path, wishes: tuple[str, ...] = ()) -> TrustItem | None:
    """Return what the user is asked of the skill with this `SKILL.md`; `None` where it runs and asks for nothing."""
    files = tuple(sorted(files_below(file.parent), key=str))
    stamps = tuple(stamp_of(one) for one in files)
    is_text = not any(is_program(one, file.parent, stamp) for one, stamp in zip(files, stamps, strict=True))
    return None if is_text and not wishes else _skill_item(project, name, file, wishes, (files, stamps))


@lru_cache(maxsize=256)
def _skill_item(
    project: Project,
    name: str,
    file: Path,
    wishes: tuple[str, ...],
    folder: tuple[tuple[Path, ...], tuple[Stamp, ...]],
) -> TrustItem:
    """`folder` are its files and a stamp of each, which is another one when the file has changed."""
    files, stamps = folder
    programs = sum(is_program(one, file.parent, stamp) for one, stamp in zip(files, stamps, strict=True))
    digest, content, problem = read_bundle("skill", project, file.parent, files)
    does = f"has {plural(programs, 'file')} that can be run, as the skill tells the model" if programs else ""
    return TrustItem(
        kind="skill",
        name=clean_text(name),
        does=problem or _does(does, wishes),
        file=shown_path(project, file),
        digest=_with_wishes(digest, wishes),
        content=content,
    )


def command_item(
    project: Project, name: str, file: Path, commands: Sequence[str], wishes: tuple[str, ...] = ()
) -> TrustItem:
    """Return what the user is asked of a command file that runs these shell commands and asks for this."""
    digest, content, problem = _read_command(project, file, stamp_of(file))
    named = shorten("; ".join(commands), SHORT_CHARS)
    runs = f"runs {named} before /{clean_text(name)} is sent" if commands else ""
    return TrustItem(
        kind="command",
        name=clean_text(name),
        does=problem or _does(runs, wishes),
        file=shown_path(project, file),
        digest=_with_wishes(digest, wishes),
        content=content,
    )


def _does(runs: str, wishes: tuple[str, ...]) -> str:
    wished = f"for its turn {clean_text('; '.join(wishes))}" if wishes else ""
    return "; ".join(filter(None, (shorten(wished, WISHES_CHARS), runs)))


def _with_wishes(digest: str, wishes: tuple[str, ...]) -> str:
    """Who trusted a file before its wishes counted has not trusted them."""
    return digest_of(digest, *wishes) if digest and wishes else digest


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
