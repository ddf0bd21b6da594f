"""What a project brings that waits for the user's trust: one finder for each kind of it, and what was decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tenuto.config.commands import find_commands
from tenuto.config.consent import Consent, Project, TrustItem, Verdict, project_of, shown_path
from tenuto.config.mcp.files import waiting_items
from tenuto.config.places import Where, user_home
from tenuto.config.programs import SHORT_CHARS, command_item, files_below, read_bundle, skill_item
from tenuto.config.project import EXTENSIONS, find_hook_files, find_upwards
from tenuto.config.skills import find_skills
from tenuto.config.sources import project_items
from tenuto.guard.terminal import sanitize_line
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.text.writable import clean_text

MAX_ITEMS = 200
"""So many things of one project can be asked about; what is beyond them stays off."""
NAMED_AT_MOST = 8
_LINE_CHARS = 160


class Stand(msgspec.Struct, frozen=True):
    """One item and what the user decided about it."""

    item: TrustItem
    verdict: Verdict

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return self.verdict in ("waiting", "changed")


class Look(msgspec.Struct, frozen=True):
    """What a project brings, as it is now. `problem` says why no decision counts, empty when they do."""

    project: Project
    stands: tuple[Stand, ...]
    problem: str = ""

    @property
    def open_items(self) -> list[TrustItem]:
        """The items that wait for a decision."""
        return [stand.item for stand in self.stands if stand.is_open]

    def find(self, word: str) -> list[TrustItem]:
        """Return the item with this id, or beginning of one, or all of them for `all`."""
        return [stand.item for stand in self.stands if word == "all" or (word and stand.item.id.startswith(word))]


def look_at_project(cwd: Path, home: Path, touched: frozenset[str] = frozenset()) -> Look:
    """Return what the project of a directory brings. Reads files and asks git; runs nothing of the project's."""
    project, consent = project_of(cwd, home, touched), Consent(home)
    stands = [Stand(item, consent.verdict(project, item)) for item in find_items(project)]
    return Look(project, tuple(stands), consent.problem)


def find_items(project: Project) -> list[TrustItem]:
    """Return everything of a project that needs trust, at most `MAX_ITEMS`."""
    return [item for find in FINDERS for item in find(project)][:MAX_ITEMS]


def use_git_trust(cwd: Path, home: Path) -> None:
    """Let git use what the user trusts of this project."""
    from tenuto.guard.git import TRUSTED

    project = project_of(cwd, home)
    decisions = Consent(home).of(project)
    TRUSTED.learn(project.root, (one.digest for one in decisions if one.kind == "git" and one.trusted))


def trusted_extensions(cwd: Path, home: Path) -> dict[Path, str]:
    """Return the extensions of a project that the user trusts as they are now, each with its digest."""
    project, consent = project_of(cwd, home), Consent(home)
    found = _extensions(project)
    return {path: item.digest for path, item in found if consent.verdict(project, item) == "trusted"}


def describe_left_out(look: Look) -> list[str]:
    """Return a line for each item that is not trusted and not refused, a bounded number of them."""
    left = look.open_items
    lines = [f"not trusted, so not used: {describe(item)}" for item in left[:NAMED_AT_MOST]]
    if left[NAMED_AT_MOST:]:
        lines.append(f"not trusted, so not used: {plural(len(left) - NAMED_AT_MOST, 'other thing')} of this project")
    if left:
        lines.append("tenuto trust shows what this project brings, tenuto trust allow trusts it")
    return [*([look.problem] if look.problem else []), *lines]


def describe(item: TrustItem) -> str:
    """Return an item on one line that a terminal can take."""
    return shorten(sanitize_line(f"{item.label} ({item.file}): {item.does}"), _LINE_CHARS)


# --- finders ---


def find_settings(project: Project) -> Iterable[TrustItem]:
    """Find settings beyond those that a project may make unasked."""
    return project_items(project)


def find_extensions(project: Project) -> Iterable[TrustItem]:
    """Find Python extensions."""
    return [item for _, item in _extensions(project)]


def find_git_settings(project: Project) -> Iterable[TrustItem]:
    """Find settings of the repository that let git run programs, or look elsewhere."""
    if not os.path.lexists(project.root / ".git"):
        return []
    from tenuto.guard.git import (
        GitFailedError,
        GitRefusedError,
        is_plainly_harmless,
        risky_settings,
        setting_digest,
    )

    if is_plainly_harmless(project.root):
        return []
    try:
        found = risky_settings(project.root, os.environ)
    except (GitRefusedError, GitFailedError):
        return []  # git is not asked here at all, whatever is trusted
    items: list[TrustItem] = []
    times: dict[str, int] = {}
    for key, value in found[1] if found is not None else ():
        times[key] = times.get(key, 0) + 1
        items.append(
            TrustItem(
                kind="git",
                name=key if times[key] == 1 else f"{key} #{times[key]}",
                does=f"lets git use {shorten(value, SHORT_CHARS) or 'it'}",
                file=".git/config",
                digest=setting_digest(key, value),
                content=f"{key} = {value}",
            )
        )
    return items


def find_skill_programs(project: Project) -> Iterable[TrustItem]:
    """Find skills with scripts, or with any executable file, and those that ask for something."""
    found = find_skills(_where(project)).files
    own = [(file.skill, Path(file.path)) for file in found if file.origin == "project" and file.skill is not None]
    items = (skill_item(project, skill.name, path, skill.wishes) for skill, path in own)
    return [item for item in items if item is not None]


def find_command_programs(project: Project) -> Iterable[TrustItem]:
    """Find command files with shell commands in them, and those that ask for something."""
    return [
        command_item(project, file.name, Path(file.path), file.shell, file.wishes)
        for file in find_commands(_where(project)).files
        if file.origin == "project" and (file.shell or file.wishes)
    ]


def _where(project: Project) -> Where:
    return Where(project.home, project.cwd, user_home(os.environ), project.touched)


def find_servers(project: Project) -> Iterable[TrustItem]:
    """Find MCP servers: programs that would be started, addresses that would be asked."""
    return waiting_items(project, os.environ)


def find_hooks(project: Project) -> Iterable[TrustItem]:
    """Find hook commands: programs that would be run at events."""
    if not any(file.root is not None for file in find_hook_files(project.home, project.cwd, os.environ)):
        return []
    from tenuto.extension.hooks.trusting import project_hooks

    return project_hooks(project)


FINDERS: tuple[Callable[[Project], Iterable[TrustItem]], ...] = (
    find_settings,
    find_extensions,
    find_servers,
    find_hooks,
    find_git_settings,
    find_skill_programs,
    find_command_programs,
)
"""A kind of thing that a project can bring is one function here."""


def _extensions(project: Project) -> Iterable[tuple[Path, TrustItem]]:
    folder = find_upwards(project.cwd, project.home, EXTENSIONS)
    if folder is None:
        return
    from tenuto.extension.finding import list_files

    for path in list_files(folder):
        files = sorted(_files_of(path), key=str)
        digest, content, problem = read_bundle("extension", project, folder, files)
        yield (
            path,
            TrustItem(
                kind="extension",
                name=clean_text(path.name),
                does=problem or f"runs Python in Tenuto, with all that you may do ({plural(len(files), 'file')})",
                file=shown_path(project, path),
                digest=digest,
                content=content,
            ),
        )


def _files_of(path: Path) -> list[Path]:
    """Return the files that an extension is made of, what was compiled of it too: Python may run that instead."""
    if path.is_dir():
        return files_below(path)
    return [path, *path.parent.glob(f"__pycache__/{path.stem}.*")]
