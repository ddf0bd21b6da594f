"""Repositories that make git run something: every way that is known, each as a function that builds one.

`place` is a work tree with a committed file `a` that has been changed since; `canary` is a shell command that leaves a
file behind and passes its input on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

IDENTITY = (
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@t",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "protocol.file.allow=always",
)


class Trap(msgspec.Struct, frozen=True):
    """One way. `alive` is a git command that springs it where git is run without care, empty for none known."""

    name: str
    build: Callable[[Path, str], Path | None]
    alive: tuple[str, ...] = ()


def git(cwd: Path, *words: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *words], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    (place / "a").write_text("one\n")
    (place / "sub").mkdir(exist_ok=True)
    (place / "sub" / "b").write_text("b\n")
    git(place, "add", "a", "sub/b")
    git(place, "commit", "-q", "-m", "c")
    (place / "a").write_text("two\n")
    (place / "new").write_text("new\n")


def append(file: Path, text: str, bom: bool = False) -> None:
    before = file.read_text() if file.exists() else ""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\ufeff" * bom + (f"{text}{before}" if bom else f"{before}{text}"))


def filter_file(place: Path, canary: str) -> Path:
    (place / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    evil = place / "evil.cfg"
    evil.write_text(f'[filter "x"]\n\tclean = "{canary}"\n[core]\n\tfsmonitor = "{canary}"\n')
    return evil


def setting(key: str, attributes: str = "") -> Callable[[Path, str], None]:
    def build(place: Path, canary: str) -> None:
        if attributes:
            (place / ".gitattributes").write_text(attributes)
        git(place, "config", key, canary)

    return build


def include_on_one_line(place: Path, canary: str) -> None:
    filter_file(place, canary)
    append(place / ".git" / "config", "[core] [include]\n\tpath = ../evil.cfg\n")


def include_behind_a_mark(place: Path, canary: str) -> None:
    filter_file(place, canary)
    append(place / ".git" / "config", "[include]\n\tpath = ../evil.cfg\n", bom=True)


def include_if(place: Path, canary: str) -> None:
    filter_file(place, canary)
    append(place / ".git" / "config", f'[includeIf "gitdir:{place}/**"]\n\tpath = ../evil.cfg\n')


def include_in_an_include(place: Path, canary: str) -> None:
    filter_file(place, canary)
    (place / "first.cfg").write_text("[include]\n\tpath = evil.cfg\n")
    append(place / ".git" / "config", "[include]\n\tpath = ../first.cfg\n")


def textconv_behind_a_hash(place: Path, canary: str) -> None:
    (place / ".gitattributes").write_text("a diff=a#b\n")
    append(place / ".git" / "config", f'[diff "a#b"] textconv = "{canary}"\n')


def common_directory(place: Path, canary: str) -> None:
    other = place.parent / "other"
    make_repository(other)
    git(other, "config", "core.fsmonitor", canary)
    (place / ".git" / "commondir").write_text(str(other / ".git"))


def git_file(place: Path, canary: str) -> None:
    git(place, "config", "core.fsmonitor", canary)
    (place / ".git").rename(place / "elsewhere")
    (place / ".git").write_text("gitdir: elsewhere\n")


def worktree_configuration(place: Path, canary: str) -> None:
    git(place, "config", "extensions.worktreeConfig", "true")
    git(place, "config", "--worktree", "core.fsmonitor", canary)


def gitlink(place: Path, canary: str) -> None:
    inner = place / "inner"
    make_repository(inner)
    git(inner, "config", "core.fsmonitor", canary)
    git(inner, "config", "filter.x.clean", canary)
    (inner / ".gitattributes").write_text("* filter=x\n")
    git(place, "update-index", "--add", "--cacheinfo", f"160000,{git(inner, 'rev-parse', 'HEAD')},inner")


def submodule(place: Path, canary: str) -> None:
    gitlink(place, canary)
    (place / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n')
    git(place, "config", "submodule.inner.active", "true")


def submodule_summary(place: Path, canary: str) -> None:
    submodule(place, canary)
    git(place, "config", "status.submoduleSummary", "true")
    git(place, "config", "diff.submodule", "log")
    git(place, "config", "submodule.recurse", "true")


def add_submodule(place: Path, name: str = "inner") -> Path:
    """Add one as git does, whose own files lie in `.git/modules`; return these."""
    origin = place.parent / f"{name}-origin"
    make_repository(origin)
    git(place, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), name)
    git(place, "commit", "-q", "-m", "submodule")
    own = git(place / name, "rev-parse", "--absolute-git-dir")
    return Path(own)


def submodule_added(place: Path, canary: str) -> None:
    git(add_submodule(place), "config", "core.fsmonitor", canary)


def submodule_in_submodule(place: Path, canary: str) -> None:
    add_submodule(place)
    git(add_submodule(place / "inner", "deep"), "config", "core.fsmonitor", canary)


def submodule_from_elsewhere(place: Path, canary: str) -> None:
    own = add_submodule(place)
    git(own, "config", "core.fsmonitor", canary)
    git(own, "config", "core.worktree", str(place / "inner"))
    own.rename(place.parent / "elsewhere")
    (place / "inner" / ".git").write_text("gitdir: ../../elsewhere\n")


def submodule_behind_a_link(place: Path, canary: str) -> None:
    own = add_submodule(place)
    git(own, "config", "core.fsmonitor", canary)
    git(own, "config", "core.worktree", str(place / "inner"))
    own.rename(place.parent / "elsewhere")
    own.symlink_to(place.parent / "elsewhere")


def submodule_with_a_filter(place: Path, canary: str) -> None:
    own = add_submodule(place)
    git(own, "config", "filter.x.clean", canary)
    (own / "info" / "attributes").write_text("* filter=x\n")
    (place / "inner" / "a").write_text("four\n")


def submodule_with_a_hook(place: Path, canary: str) -> None:
    hooks = add_submodule(place) / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_text(f"#!/bin/sh\n{canary} >/dev/null\n")
    (hooks / "post-index-change").chmod(0o755)


def submodule_of_the_past(place: Path, canary: str) -> None:
    """The history has a submodule where now an untracked repository lies."""
    gitlink(place, canary)
    git(place / "inner", "config", "diff.external", canary)
    git(place, "commit", "-q", "-m", "submodule")
    git(place / "inner", "-c", "core.fsmonitor=", "commit", "-q", "--allow-empty", "-m", "next")
    git(place, "update-index", "--cacheinfo", f"160000,{git(place / 'inner', 'rev-parse', 'HEAD')},inner")
    git(place, "commit", "-q", "-m", "next")
    git(place, "rm", "-q", "--cached", "inner")
    git(place, "commit", "-q", "-m", "gone")


def untracked_repository(place: Path, canary: str) -> None:
    inner = place / "inner"
    make_repository(inner)
    git(inner, "config", "core.fsmonitor", canary)


def bare_repository_as_files(place: Path, canary: str) -> Path:
    """Ordinary files that a clone brings; the program is started among them."""
    bare = place / "b"
    git(place, "init", "-q", "--bare", "b")
    git(bare, "config", "core.fsmonitor", canary)
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", "..")
    return bare


def bare_repository_alone(place: Path, canary: str) -> Path:
    """The same without a repository around it."""
    bare = place.parent / "alone"
    git(place.parent, "init", "-q", "--bare", "alone")
    git(bare, "config", "core.fsmonitor", canary)
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", ".")
    return bare


def lose(place: Path, name: str) -> None:
    """Take an object away: a partial clone would ask for it."""
    digest = git(place, "rev-parse", name)
    (place / ".git" / "objects" / digest[:2] / digest[2:]).unlink()


def partial_clone(place: Path, canary: str) -> None:
    git(place, "config", "core.repositoryFormatVersion", "1")
    git(place, "config", "extensions.partialClone", "origin")
    git(place, "config", "remote.origin.promisor", "true")
    git(place, "config", "remote.origin.url", str(place))
    git(place, "config", "remote.origin.uploadpack", f"{canary}; false")
    lose(place, "HEAD:sub")
    lose(place, "HEAD:a")


def partial_clone_by_ext(place: Path, canary: str) -> None:
    git(place, "config", "extensions.partialClone", "origin")
    git(place, "config", "core.repositoryFormatVersion", "1")
    git(place, "config", "remote.origin.promisor", "true")
    script = place.parent / "ext"
    script.write_text(f"#!/bin/sh\n{canary}\n")
    script.chmod(0o700)
    git(place, "config", "remote.origin.url", f"ext::{script}")
    git(place, "config", "protocol.ext.allow", "always")
    lose(place, "HEAD:sub")
    lose(place, "HEAD:a")


def partial_clone_by_ssh(place: Path, canary: str) -> None:
    partial_clone(place, canary)
    git(place, "config", "--unset", "remote.origin.uploadpack")
    git(place, "config", "remote.origin.url", "ssh://host/x")
    git(place, "config", "core.sshCommand", canary)


def hook(place: Path, canary: str) -> None:
    for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        file = place / ".git" / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{canary}\n")
        file.chmod(0o700)


def hooks_elsewhere(place: Path, canary: str) -> None:
    hook(place, canary)
    (place / ".git" / "hooks").rename(place / "hooks")
    git(place, "config", "core.hooksPath", "hooks")


def alias(place: Path, canary: str) -> None:
    for word in ("status", "diff", "ls-files", "rev-parse", "config"):
        git(place, "config", f"alias.{word}", f"!{canary}")


def work_tree_elsewhere(place: Path, canary: str) -> None:
    """Not a program, but somebody's key: `core.worktree` names another directory."""
    git(place, "config", "core.worktree", str(secret_place(place)))
    git(place, "update-index", "--add", "--cacheinfo", f"100644,{git(place, 'rev-parse', 'HEAD:a')},id_rsa")


def secret_place(place: Path) -> Path:
    secrets = place.parent / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "id_rsa").write_text("PRIVATE KEY of somebody\n")
    return secrets


def users_own_filter(place: Path, canary: str) -> None:
    """The user's configuration has a filter, and the project's attributes name it."""
    filter_file(place, canary).rename(place.parent / "global.cfg")
    text = f'[filter "x"]\n\tclean = "{canary}"\n\tprocess = "{canary}"\n\trequired = true\n'
    text += f'[diff "x"]\n\ttextconv = "{canary}"\n\tcommand = "{canary}"\n[diff]\n\texternal = "{canary}"\n'
    (place.parent / "global.cfg").write_text(text)
    os.environ["GIT_CONFIG_GLOBAL"] = str(place.parent / "global.cfg")  # put back by the fixture


TRAPS = (
    Trap("include_on_one_line", include_on_one_line, ("status",)),
    Trap("include_behind_a_mark", include_behind_a_mark, ("status",)),
    Trap("include_if", include_if, ("status",)),
    Trap("include_in_an_include", include_in_an_include, ("status",)),
    Trap("textconv_behind_a_hash", textconv_behind_a_hash, ("diff",)),
    Trap("common_directory", common_directory, ("status",)),
    Trap("git_file", git_file, ("status",)),
    Trap("worktree_configuration", worktree_configuration, ("status",)),
    Trap("gitlink", gitlink, ("status",)),
    Trap("submodule", submodule, ("status",)),
    Trap("submodule_summary", submodule_summary, ("status",)),
    Trap("submodule_added", submodule_added, ("status",)),
    Trap("submodule_in_submodule", submodule_in_submodule, ("status",)),
    Trap("submodule_from_elsewhere", submodule_from_elsewhere, ("status",)),
    Trap("submodule_behind_a_link", submodule_behind_a_link, ("status",)),
    Trap("submodule_with_a_filter", submodule_with_a_filter, ("status",)),
    Trap("submodule_with_a_hook", submodule_with_a_hook),
    Trap("submodule_of_the_past", submodule_of_the_past),
    Trap("untracked_repository", untracked_repository),
    Trap("bare_repository_as_files", bare_repository_as_files, ("status",)),
    Trap("bare_repository_alone", bare_repository_alone, ("status",)),
    Trap("partial_clone", partial_clone, ("status",)),
    Trap("partial_clone_by_ext", partial_clone_by_ext, ("diff",)),
    Trap("partial_clone_by_ssh", partial_clone_by_ssh, ("diff",)),
    Trap("hook", hook, ("status",)),
    Trap("hooks_elsewhere", hooks_elsewhere, ("status",)),
    Trap("alias", alias),
    Trap("work_tree_elsewhere", work_tree_elsewhere),
    Trap("users_own_filter", users_own_filter, ("diff",)),
    Trap("fsmonitor", setting("core.fsmonitor"), ("status",)),
    Trap("filter", setting("filter.x.clean", "* filter=x\n"), ("status",)),
    Trap("filter_process", setting("filter.x.process", "* filter=x\n"), ("status",)),
    Trap("external_diff", setting("diff.external"), ("diff",)),
    Trap("driver_command", setting("diff.x.command", "* diff=x\n"), ("diff",)),
    Trap("textconv", setting("diff.x.textconv", "* diff=x\n"), ("diff",)),
    Trap("merge_driver", setting("merge.x.driver", "* merge=x\n")),
    Trap("pager", setting("core.pager")),
    Trap("pager_of_diff", setting("pager.diff")),
    Trap("ssh_command", setting("core.sshCommand")),
    Trap("editor", setting("core.editor")),
    Trap("askpass", setting("core.askPass")),
    Trap("credential_helper", setting("credential.helper")),
    Trap("gpg_program", setting("gpg.program")),
    Trap("alternate_refs", setting("core.alternateRefsCommand")),
    Trap("diff_filter", setting("interactive.diffFilter")),
)
