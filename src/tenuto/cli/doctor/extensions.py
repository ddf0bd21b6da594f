"""Checks of extensions: which there are here. None is run."""

from __future__ import annotations

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.cli.extensions import list_extensions
from tenuto.text.figures import plural

NAME = "extensions"


async def check_extensions(place: Surroundings) -> list[Row]:
    """Tell the extensions of a session here, and those that are not used."""
    if not place.settings.extensions.enabled:
        return [Row(NAME, "off (extensions.enabled)")]
    found, problems = list_extensions(place.home, place.cwd, place.settings)
    rows = [Row(NAME, place.short(line), "note", "correct the setting, or rename one") for line in problems]
    used = [one for one in found if one.state == "loaded"]
    rows += [
        Row(NAME, f"{one.name}: {one.state}", "note", "tenuto trust list shows what waits")
        for one in found
        if one.state.startswith("not ")
    ]
    details = tuple(f"{one.name}: {place.short(one.place)}" for one in used)
    said = f"{plural(len(used), 'extension')}; tenuto extensions check tries them" if used else "none"
    return [*rows, Row(NAME, said, details=details)]
