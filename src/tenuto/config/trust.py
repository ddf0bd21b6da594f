"""What a project's settings may say before its owner has agreed: how things look, and a stricter mode.

Everything else waits, whatever it is: a setting that is added later is the user's alone until it is named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tenuto.config.faults import name_key, type_at

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
"""What a project may set. `mode` only to a stricter one than the user's."""
STRICTEST_FIRST = ("plan", "ask", "edits", "auto")
MAX_DEPTH = 4
NAMED = 8
"""So many keys of a file are named."""


def keep_trusted(
    values: dict[str, Any], settings: type[msgspec.Struct], mode: object
) -> tuple[dict[str, Any], list[str]]:
    """Return what of a project's settings counts where the user's mode is `mode`, and what is to be said of the rest.

    A key that is no setting at all stays, to be named as such. `{own}` in a line is the user's own file.
    """
    waiting: list[str] = []
    kept = _keep(values, settings, (), waiting)
    said: list[str] = []
    if waiting:
        names = ", ".join(waiting[:NAMED]) + (f" and {len(waiting) - NAMED} more" if waiting[NAMED:] else "")
        they = "are" if waiting[1:] else "is"
        said.append(f"{_braces(names)} {they} ignored: a project may not set that; put it into {{own}} if you want it")
    wanted = kept.get("mode")
    if wanted in STRICTEST_FIRST and not _is_stricter(str(wanted), mode):
        del kept["mode"]
        if wanted != mode:
            said.append(
                f"mode = {wanted} is ignored: a project may only make the mode stricter than yours, which is {mode}; "
                "put it into {own} if you want it"
            )
    return kept, said


def _is_stricter(wanted: str, present: object) -> bool:
    return present not in STRICTEST_FIRST or STRICTEST_FIRST.index(wanted) < STRICTEST_FIRST.index(str(present))


def _keep(
    values: dict[str, Any], settings: type[msgspec.Struct], path: tuple[str, ...], waiting: list[str]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        name = ".".join(here)
        if name in PROJECT_KEYS or type_at(here, settings) is None:
            kept[key] = value
        elif isinstance(value, dict) and any(known.startswith(f"{name}.") for known in PROJECT_KEYS):
            kept[key] = _keep(cast("dict[str, Any]", value), settings, here, waiting)
        else:
            waiting += (name_key(leaf) for leaf in _leaves(cast("object", value), here))
    return kept


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value and len(path) < MAX_DEPTH:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
