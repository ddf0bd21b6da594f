"""Checks of the program itself and of those that it uses: Python, ripgrep, git, the editor, what reads documents."""

from __future__ import annotations

import asyncio
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tenuto
from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.config.project import read_branch
from tenuto.guard.git import GitFailedError, GitRefusedError, git_version, open_git
from tenuto.tool.documents.pdf import install_command
from tenuto.tui.programs import EDITOR_VARIABLES, PAGER_VARIABLES, USUAL_EDITORS, USUAL_PAGERS, find_program
from tenuto.version import __version__

ANSWER_SECONDS = 3.0
"""Seconds that a program has to say which version it is."""
_BRANCH_DIGITS = 8


async def check_python(place: Surroundings) -> list[Row]:
    """Tell the versions of the program and of Python, and where they are."""
    where = place.short(Path(tenuto.__file__).parent)
    name = f"{platform.python_implementation()} {platform.python_version()}"
    return [Row("tenuto", f"{__version__} in {where}"), Row("python", f"{name}, {place.short(sys.executable)}")]


async def check_ripgrep(place: Surroundings) -> list[Row]:
    """Tell whether searches have ripgrep."""
    program = shutil.which("rg", path=place.environ.get("PATH"))
    if program is None:
        return [Row("ripgrep", "not found; searches work, and take longer", "note", "install ripgrep")]
    found, runs = await asyncio.to_thread(_ask_version, program)
    if not runs:
        return [Row("ripgrep", f"{place.short(program)} {found}", "problem", "install ripgrep again")]
    return [Row("ripgrep", f"{found}, {place.short(program)}")]


def _ask_version(program: str) -> tuple[str, bool]:
    """Return the version of ripgrep, or why it does not run, and whether it does."""
    try:
        ran = subprocess.run(
            [program, "--no-config", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run: {error}", False
    said = ran.stdout.decode("utf-8", "replace").partition("\n")[0]
    if ran.returncode != 0 or not said.startswith("ripgrep "):
        return f"is no ripgrep that works (exit code {ran.returncode})", False
    return said.removeprefix("ripgrep "), True


async def check_git(place: Surroundings) -> list[Row]:
    """Tell whether there is git, and whether it is used in this directory."""
    found = git_version(place.environ)
    if not found:
        return [
            Row("git", "not found; /diff and what the model is told of a repository need it", "note", "install git")
        ]
    try:
        git = open_git(place.cwd, place.environ)
    except (GitRefusedError, GitFailedError) as error:
        do = "look at the repository's configuration; /diff and what the model is told leave git out until then"
        return [Row("git", f"{found}; not used here: {error}", "note", do)]
    if git is None:
        return [Row("git", f"{found}; no repository here")]
    branch = read_branch(place.cwd, _BRANCH_DIGITS)
    return [Row("git", f"{found}; {place.short(git.root)}{f', on {branch}' if branch else ''}")]


async def check_editor(place: Surroundings) -> list[Row]:
    """Tell which editor and pager are opened."""
    rows: list[Row] = []
    kinds = (("editor", EDITOR_VARIABLES, USUAL_EDITORS), ("pager", PAGER_VARIABLES, USUAL_PAGERS))
    for kind, variables, usual in kinds:
        command = find_program(place.environ, variables, usual)
        set_by = next((name for name in variables if place.environ.get(name, "").strip()), "")
        if not command:
            rows.append(Row(kind, "none found", "note", f"set {variables[0]}, or install {usual[0]}"))
        elif shutil.which(command[0], path=place.environ.get("PATH")) is None:
            rows.append(Row(kind, f"{command[0]} is not there ({set_by})", "problem", f"set {set_by} to one that is"))
        else:
            rows.append(Row(kind, " ".join(command) + (f" ({set_by})" if set_by else "")))
    return rows


async def check_documents(place: Surroundings) -> list[Row]:
    """Tell whether PDF files can be read."""
    del place
    try:
        return [Row("documents", f"PDF files are read (pypdf {version('pypdf')})")]
    except PackageNotFoundError:
        return [Row("documents", "PDF files are not read: pypdf is not installed", "note", install_command())]
