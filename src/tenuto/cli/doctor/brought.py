"""Checks of what users and projects bring: skills and command files."""

from __future__ import annotations

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.command.registry import find_command
from tenuto.config.commands import find_commands
from tenuto.config.places import Where, user_home
from tenuto.config.skills import find_skills
from tenuto.text.figures import plural

MAX_DETAILS = 30
"""So many files are listed."""
LEFT_OUT = "tenuto skills check names every fault"
WAITS = "tenuto trust shows it"


async def check_skills(place: Surroundings) -> list[Row]:
    """Tell the skills that a session here gets, and the files that are left out with the reason."""
    found = find_skills(_where(place))
    rows = [Row("skills", place.short(line), "note", LEFT_OUT) for line in found.lines()]
    rows += [
        Row(
            "skills", f"{place.short(file.path)} is not used: {place.short(file.shadowed_by)} has the same name", "note"
        )
        for file in found.files
        if file.shadowed_by
    ]
    rows += [
        Row("skills", f"{place.short(skill.path)} is not used: it has scripts and is not trusted", "note", WAITS)
        for skill in found.waiting
    ]
    details = [f"{skill.name}: {place.short(skill.path)}" for skill in found.usable]
    none = "none; one is a folder with a SKILL.md in .tenuto/skills"
    count = plural(len(found.usable), "skill") if found.usable else none
    return [*rows, Row("skills", count, details=_bounded(details))]


async def check_commands(place: Surroundings) -> list[Row]:
    """Tell the command files that can be typed here, and those that are left out with the reason."""
    found = find_commands(_where(place))
    rows = [Row("commands", place.short(line), "note", LEFT_OUT) for line in found.lines()]
    rows += [
        Row(
            "commands", f"{place.short(file.path)} is not used: /{file.name} is a built-in command", "note", "rename it"
        )
        for file in found.usable
        if find_command(file.name) is not None
    ]
    rows += [
        Row("commands", f"{place.short(file.path)} is not used: it runs commands and is not trusted", "note", WAITS)
        for file in found.files
        if file.waits
    ]
    usable = [file for file in found.usable if find_command(file.name) is None]
    details = [f"/{file.name}: {place.short(file.path)}" for file in usable]
    none = "none; one is a Markdown file in .tenuto/commands"
    return [*rows, Row("commands", plural(len(usable), "command file") if usable else none, details=_bounded(details))]


def _where(place: Surroundings) -> Where:
    return Where(place.home, place.cwd, user_home(place.environ))


def _bounded(details: list[str]) -> tuple[str, ...]:
    more = [f"and {len(details) - MAX_DETAILS} more"] if details[MAX_DETAILS:] else []
    return (*details[:MAX_DETAILS], *more)
