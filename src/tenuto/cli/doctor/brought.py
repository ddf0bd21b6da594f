"""Checks of what users, projects and plugins bring: a row for each kind, and one for each thing that is left out."""

from __future__ import annotations

import asyncio

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.command.registry import built_in_names
from tenuto.core.state.found import Around, Found, FoundKind, find_everything
from tenuto.text.figures import plural

MAX_DETAILS = 30
"""So many things of one kind are listed."""
NAMES: dict[FoundKind, tuple[str, str, str]] = {
    "instructions": ("instructions", "file", "none; /init writes an AGENTS.md"),
    "hooks": ("hooks", "hook", "none"),
    "skills": ("skills", "skill", "none; one is a folder with a SKILL.md in .tenuto/skills"),
    "commands": ("commands", "command file", "none; one is a Markdown file in .tenuto/commands"),
    "agents": ("agents", "agent", "none beside those that are built in"),
    "servers": ("mcp", "server", "no servers"),
    "plugins": ("plugins", "plugin", "none; tenuto plugins add PATH or URL adds one"),
    "extensions": ("extensions", "extension", "none"),
}
"""Each kind by the name of its row, the word for one, and what is said where there are none."""


async def check_brought(place: Surroundings) -> list[Row]:
    """Tell everything that is brought here, from where, and what is left out and why."""
    around = Around(
        home=place.home,
        cwd=place.cwd,
        environ=place.environ,
        settings=place.settings,
        built_in=built_in_names(),
    )
    found = await asyncio.to_thread(find_everything, around, tuple(NAMES))
    return [row for kind in NAMES for row in _rows(place, kind, [one for one in found if one.kind == kind])]


def _rows(place: Surroundings, kind: FoundKind, found: list[Found]) -> list[Row]:
    name, word, none = NAMES[kind]
    if kind == "servers" and not place.settings.mcp.enabled:
        return [Row(name, "off (mcp.enabled)")]
    if kind == "hooks" and not place.settings.hooks.enabled:
        return [Row(name, "switched off (hooks.enabled)")]
    left = [one for one in found if not one.is_used]
    rows = [_left_out(place, name, one) for one in left[:MAX_DETAILS]]
    if left[MAX_DETAILS:]:
        rows.append(Row(name, f"{len(left) - MAX_DETAILS} more are left out", "note", "begin with those above"))
    used = [one for one in found if one.is_used]
    details = [_used(place, one) for one in used[:MAX_DETAILS]]
    details += [f"and {len(used) - MAX_DETAILS} more"] if used[MAX_DETAILS:] else []
    return [*rows, Row(name, plural(len(used), word) if used else none, details=tuple(details))]


def _left_out(place: Surroundings, name: str, one: Found) -> Row:
    shown = place.short(one.file) if one.file else ""
    what = shown if not shown or one.name in shown else f"{one.name} ({shown})"
    why = place.short(one.left_out)
    verb = ": left out:" if one.in_part else " is not used:"
    text = f"{what}{verb} {why}" if what else why
    return Row(name, text, "problem" if one.is_fault else "note", one.do or "change or remove it")


def _used(place: Surroundings, one: Found) -> str:
    does = f": {one.does}" if one.does and one.kind in ("instructions", "hooks", "servers", "plugins") else ""
    if one.origin == "plugin":
        return f"{one.name} ({one.product}){place.short(does)}"
    product = f", {one.product}" if one.product not in ("Tenuto", "shared") else ""
    return f"{one.name} ({place.short(one.file)}{product}){place.short(does)}"
