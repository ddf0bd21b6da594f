"""What a project's settings may say: how things look, unasked; most others once the user trusts them; some never.

Everything else waits, whatever it is: a setting that is added later needs the user's trust until it is named here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tenuto.config.fitting import name_key
from tenuto.text.bounding import shorten

if TYPE_CHECKING:
    from tenuto.config.consent import Project, TrustItem

PROJECT_KEYS = frozenset(
    {
        "mode",
        "ui.diff",
        "ui.inline",
        "ui.progress",
        "ui.reduce_motion",
        "ui.show_thinking",
        "ui.status_items",
        "ui.theme",
        "ui.title",
    }
)
"""What a project may set unasked. `mode` only to a stricter one than the user's; a looser one waits for trust."""
NEVER_KEYS = frozenset(
    {
        "approvals",
        "compaction.strategy",
        "extensions",
        "hooks",
        "keys",
        "mcp",
        "profiles",
        "providers",
        "sandbox",
        "session.recall_project",
        "tools.mask_sent",
        "tools.pass_environment",
        "ui.mask_secrets",
        "ui.notification_command",
        "ui.status_command",
        "telemetry",
        "update",
    }
)
"""Settings and whole sections that are the user's alone, also of a project that they trust: what is asked and what
holds a command, where a key goes, and what runs code that the setting's value only names."""
NEVER_MODE = "auto"
STRICTEST_FIRST = ("plan", "ask", "edits", "auto")
MAX_DEPTH = 5
NAMED_AT_MOST = 8
"""So many keys of a file are named."""
VALUE_CHARS = 2_000
"""Characters of a value that is shown."""
SHORT_CHARS = 80
"""The same where one line has to do."""

KeyPath = tuple[str, ...]
"""A key with the tables that it stands in."""


class Sorted(msgspec.Struct, frozen=True):
    """A project's settings: what counts unasked, what needs trust, and what is to be said of the rest.

    `{own}` in a line is the user's own file.
    """

    kept: dict[str, Any]
    asked: dict[KeyPath, object]
    said: tuple[str, ...]


def sort_settings(values: dict[str, Any], mode: object) -> Sorted:
    """Return what becomes of a project's settings, which fit, where the user's own mode is `mode`."""
    asked: dict[KeyPath, object] = {}
    never: list[str] = []
    said: list[str] = []
    kept = _keep(values, (), asked, never)
    if never:
        names = ", ".join(never[:NAMED_AT_MOST]) + (
            f" and {len(never) - NAMED_AT_MOST} more" if never[NAMED_AT_MOST:] else ""
        )
        they = "are" if never[1:] else "is"
        said.append(f"{_braces(names)} {they} ignored: no project may set that; put it into {{own}} if you want it")
    wanted = kept.get("mode")
    if wanted in STRICTEST_FIRST and not _is_stricter(str(wanted), mode):
        del kept["mode"]
        if wanted == NEVER_MODE != mode:
            said.append(f"mode = {wanted} is ignored: no project may set that; put it into {{own}} if you want it")
        elif wanted != mode:
            asked["mode",] = wanted
    return Sorted(kept, asked, tuple(said))


def keep_allowed(
    values: dict[str, Any], mode: object, file: Path, places: tuple[Path, Path]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what of a project's `file` counts, with what the user trusts, and what is to be said of the rest.

    What waits for trust is not said here: it is asked about with all else that a project brings. `places` are the
    working directory and Tenuto's home.
    """
    found = sort_settings(values, mode)
    if found.asked:
        from tenuto.config.consent import Consent, project_of

        project, consent = project_of(*places), Consent(places[1])
        for path, item in setting_items(found, file, project).items():
            if consent.verdict(project, item) == "trusted":
                put_value(found.kept, path, found.asked[path])
    return found.kept, found.said


def setting_items(found: Sorted, file: Path, project: Project) -> dict[KeyPath, TrustItem]:
    """Return the settings that need trust as items."""
    from tenuto.config.consent import TrustItem, digest_of, shown_path

    place = shown_path(project, file)
    items: dict[KeyPath, TrustItem] = {}
    for path, value in found.asked.items():
        shown = show_value(value)
        items[path] = TrustItem(
            kind="setting",
            name=name_key(path),
            does=f"sets {name_key(path)} = {shorten(shown, SHORT_CHARS)}",
            file=place,
            digest=digest_of("setting", json.dumps(path), json.dumps(value, sort_keys=True, default=str)),
            content=f"{name_key(path)} = {shown}",
        )
    return items


def put_value(target: dict[str, Any], path: KeyPath, value: object) -> None:
    """Set a key in nested tables, those that are missing are made."""
    *sections, key = path
    for section in sections:
        inner = target.get(section)
        if not isinstance(inner, dict):
            inner = target[section] = {}
        target = cast("dict[str, Any]", inner)
    target[key] = value


def show_value(value: object) -> str:
    """Return a value as it is written in TOML, as far as one line of JSON is that; a long one is cut."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str), VALUE_CHARS)


def _is_stricter(wanted: str, present: object) -> bool:
    return present not in STRICTEST_FIRST or STRICTEST_FIRST.index(wanted) < STRICTEST_FIRST.index(str(present))


def _keep(
    values: dict[str, Any],
    path: KeyPath,
    asked: dict[KeyPath, object],
    never: list[str],
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        name = ".".join(here)
        if name in NEVER_KEYS:
            never += [name_key(leaf) for leaf, _ in _leaves(cast("object", value), here)]
        elif name in PROJECT_KEYS:
            kept[key] = value
        elif isinstance(value, dict) and any(known.startswith(f"{name}.") for known in PROJECT_KEYS | NEVER_KEYS):
            kept[key] = _keep(cast("dict[str, Any]", value), here, asked, never)
        else:
            asked.update(_leaves(cast("object", value), here))
    return kept


def _leaves(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if isinstance(value, dict) and value and len(path) < MAX_DEPTH:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
