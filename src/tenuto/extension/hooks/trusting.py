"""Hooks of a project wait for the user's trust (R-085): what each one is, the programs that it names among that.

A hook is bound to its event, its matcher, its command and the rest of its entry, to the file that it stands in, and to
what stands in the project's programs that its command names. When any of these has changed the user is asked again.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tenuto.config.consent import Consent, Project, TrustItem, Verdict, digest_of, project_of, shown_path
from tenuto.config.programs import SHORT_CHARS, Stamp, files_below, is_program, read_bundle, stamp_of
from tenuto.config.project import MADE_BY_RUNNING, find_hook_files, is_below
from tenuto.config.sources import load_settings
from tenuto.extension.hooks.files import HookCommand, read_hook_files
from tenuto.text.bounding import shorten
from tenuto.text.writable import clean_text

STATES: Mapping[Verdict, str] = {
    "trusted": "",
    "refused": "not run: you refused it",
    "waiting": "not run: not trusted yet",
    "changed": "not run: it has changed since you decided",
}
"""What lists say of a hook that does not run."""
_ROOT = "\0"
_ROOTS = re.compile(
    r"\$\{(?:CLAUDE|TENUTO)_PROJECT_DIR[^}]*\}|\$(?:CLAUDE|TENUTO)_PROJECT_DIR\b"
    r"|\$\(git rev-parse --show-toplevel[^)]*\)|\$\(pwd\)|\$\{PWD\}|\$PWD\b"
)
"""What stands for the project's root in a command."""
_BETWEEN = re.compile(r"""[\s"'`;|&<>()=,{}]+""")
_INTERPRETER = re.compile(
    r"(?:.*/)?(?:\.|source|(?:ba|da|fi|k|z)?sh|python[\d.]*|uv|uvx|node|npx|tsx|bun|deno|ruby|perl|php|lua)"
)
_DATA = frozenset({".csv", ".json", ".jsonl", ".log", ".md", ".toml", ".txt", ".yaml", ".yml"})
"""Endings of files that a command reads, and does not run where it names no interpreter."""
_HOUSES = frozenset({".claude", ".codex", ".tenuto", ".hooks", "hooks"})
"""Folders whose scripts use each other: with one of them all count."""
_MOST_FOLDERS = 20


class HookTrust:
    """What the user decided about the hooks of one project. For any thread."""

    def __init__(self, cwd: Path, home: Path) -> None:
        self._cwd, self._home = cwd, home
        self._consent = Consent(home)

    def verdicts(self, commands: Sequence[HookCommand]) -> dict[HookCommand, Verdict]:
        """Return what holds of each command as it is now: `trusted` are the user's own, and what they trust."""
        found: dict[HookCommand, Verdict] = dict.fromkeys(commands, "trusted")
        if any(command.file.root is not None for command in commands):
            project = project_of(self._cwd, self._home)
            for command, item in hook_items(project, commands):
                found[command] = self._consent.verdict(project, item)
        return found


def project_hooks(project: Project) -> list[TrustItem]:
    """Return the hooks that a project brings and that would run here once they are trusted."""
    settings = load_settings(project.home, project.cwd, os.environ)[0].hooks
    if not settings.enabled:
        return []
    files = find_hook_files(project.home, project.cwd, os.environ, shared=settings.shared)
    read = read_hook_files([file for file in files if file.root is not None])
    return [item for _, item in hook_items(project, read.commands)]


def hook_items(project: Project, commands: Iterable[HookCommand]) -> list[tuple[HookCommand, TrustItem]]:
    """Return those of these commands that are the project's, each as something to be trusted."""
    items: list[tuple[HookCommand, TrustItem]] = []
    times: dict[tuple[str, str], int] = {}
    for command in dict.fromkeys(commands):
        if command.file.root is None:
            continue
        which = f" {command.matcher}" if command.matcher not in ("", "*") else ""
        name, file = clean_text(f"{command.event}{which}"), shown_path(project, command.file.path)
        times[name, file] = times.get((name, file), 0) + 1
        numbered = name if times[name, file] == 1 else f"{name} #{times[name, file]}"
        items.append((command, _item(project, command, numbered, file)))
    return items


def _item(project: Project, command: HookCommand, name: str, file: str) -> TrustItem:
    inside, outside = _named_files(project, command.command)
    bundle, shown, problem = _read(project, tuple(inside), tuple(map(stamp_of, inside)))
    more = [f"if {command.condition}"] if command.condition else []
    more += [f"{one} leads to {real}" for one, real in outside]
    text = clean_text(shorten(" ".join(command.command.split()), SHORT_CHARS))
    entry = (command.event, command.matcher, command.condition, command.command, str(command.timeout))
    rest = (str(command.waits), str(command.blocks_on_failure), *(word for pair in outside for word in pair))
    return TrustItem(
        kind="hook",
        name=name,
        does=problem or f"runs as you, outside of the sandbox: {text}",
        file=file,
        digest="" if problem else digest_of("hook", *entry, *rest, bundle),
        content="\n".join(clean_text(line) for line in (command.command, *more, *([shown] if shown else []))),
    )


@lru_cache(maxsize=256)
def _read(project: Project, files: tuple[Path, ...], stamps: tuple[Stamp, ...]) -> tuple[str, str, str]:
    """`stamps` are others when a file has changed."""
    del stamps
    return read_bundle("hook", project, project.root, files)


def _named_files(project: Project, command: str) -> tuple[list[Path], list[tuple[str, str]]]:
    """Return the programs of the project that a command names, and links of the project that lead out of it."""
    words = _words(_ROOTS.sub(_ROOT, command))
    runs_any = any(_INTERPRETER.fullmatch(word) for word in words)
    bases = [project.cwd, project.root]
    found: dict[Path, None] = {}
    outside: list[tuple[str, str]] = []
    for path in _paths(project, words, bases):
        if path.is_dir():
            found |= dict.fromkeys(_house_of(project, path))
        elif not is_below(os.path.realpath(path), (project.root,)):
            outside.append((shown_path(project, path), clean_text(os.path.realpath(path))))
        elif path.suffix.lower() not in _DATA or runs_any or is_program(path, path.parent, stamp_of(path)):
            found |= {path: None, **dict.fromkeys(_house_of(project, path.parent))}
    return sorted(found, key=str), outside


def _words(text: str) -> list[str]:
    """Return what may be paths in a command, however it is quoted."""
    try:
        whole = shlex.split(text)
    except ValueError:
        whole = []
    return [word for word in dict.fromkeys([*_BETWEEN.split(text), *whole]) if word]


def _paths(project: Project, words: Sequence[str], bases: Sequence[Path]) -> list[Path]:
    """Return what words name in the project, in a folder that another word names too."""
    found: dict[Path, None] = {}
    folders = list(bases)
    for place in folders:
        for word in words:
            try:
                path = Path(os.path.normpath(place / word.replace(_ROOT, str(project.root))))
                path = Path(os.path.realpath(path.parent), path.name)
                is_there = path.exists() and is_below(str(path), (project.root,))
            except (OSError, ValueError):
                continue
            if is_there and path not in found:
                found[path] = None
                if path.is_dir() and len(folders) < _MOST_FOLDERS:
                    folders.append(path)
    return list(found)


def _house_of(project: Project, folder: Path) -> list[Path]:
    """Return the programs in a folder of hooks; none for any other folder."""
    inner = os.path.relpath(os.path.realpath(folder), project.root)
    if not _HOUSES & set(Path(inner).parts):
        return []
    files = [file for file in files_below(folder) if not MADE_BY_RUNNING & set(file.relative_to(folder).parts)]
    return [file for file in files if is_program(file, folder, stamp_of(file))]
