"""Marketplaces: a file in a repository that lists plugins, in it and elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.config.plugins.manifest import PluginError, inner_path, is_name, read_object
from tenuto.text.json_access import as_dict
from tenuto.text.matching import did_you_mean

MARKETPLACES = (
    ".claude-plugin/marketplace.json",
    ".plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
)
MAX_ENTRIES = 1_000
GITHUB = "https://github.com/"
SHORT = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""`owner/name`, a repository of GitHub."""


class Elsewhere(msgspec.Struct, frozen=True):
    """A plugin in another repository: its address, what to check out, and the folder in it."""

    address: str
    ref: str = ""
    folder: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin of a marketplace. `source` is a folder of it, or where else the plugin is.

    `values` is the whole entry: a plugin without a manifest of its own is what its entry says. `problem` says why it
    cannot be added.
    """

    name: str
    description: str = ""
    version: str = ""
    source: str | Elsewhere = ""
    values: dict[str, Any] = {}
    problem: str = ""


class Marketplace(msgspec.Struct, frozen=True):
    """A list of plugins. `folder` is what paths in it are seen from."""

    name: str
    folder: str
    entries: tuple[Entry, ...]

    def find(self, name: str) -> Entry:
        """Return the plugin of a name. Raises `PluginError` where there is none, or it cannot be had."""
        entry = next((entry for entry in self.entries if entry.name == name), None)
        if entry is None:
            names = [one.name for one in self.entries]
            raise PluginError(f"{self.name} lists no plugin {name}{did_you_mean(name, names)}")
        if entry.problem:
            raise PluginError(f"{name} of {self.name}: {entry.problem}")
        return entry


def read_marketplace(root: Path) -> Marketplace | None:
    """Return the marketplace that a folder is, `None` where it is none. Raises `PluginError` for a broken file."""
    file = next((root / name for name in MARKETPLACES if os.path.lexists(root / name)), None)
    if file is None:
        return None
    values = read_object(file, root)
    listed = values.get("plugins")
    if not isinstance(listed, list):
        raise PluginError(f"{os.path.relpath(file, root)} has no list of plugins")
    head = values.get("metadata")
    base = cast("dict[str, Any]", head).get("pluginRoot") if isinstance(head, dict) else None
    name = values.get("name")
    entries = [_entry(one) for one in cast("list[object]", listed)[:MAX_ENTRIES]]
    return Marketplace(
        name if isinstance(name, str) else root.name,
        base if isinstance(base, str) else "",
        tuple(entry for entry in entries if entry is not None),
    )


def folder_of(root: Path, market: Marketplace, written: str) -> Path:
    """Return the folder of a plugin that lies in its marketplace. Raises `PluginError`."""
    for base in dict.fromkeys(("", market.folder)):
        path = inner_path(root, os.path.normpath(f"{base or '.'}/{written}"))
        if path.is_dir():
            return path
    raise PluginError(f"{written[:200]} is no folder of the marketplace")


def _entry(values: object) -> Entry | None:
    given = as_dict(values)
    name, description, version = given.get("name"), given.get("description"), given.get("version")
    if not isinstance(name, str) or not is_name(name):
        return None
    source = _source(given.get("source"))
    return Entry(
        name=name,
        description=" ".join(description.split()) if isinstance(description, str) else "",
        version=version if isinstance(version, str) else "",
        source=source or "",
        values=given,
        problem="" if source is not None else "it comes from where nothing is fetched from; only folders and git are",
    )


def _source(written: object) -> str | Elsewhere | None:
    """Return where a plugin is, `None` where that is no folder and no git repository."""
    if isinstance(written, str):
        return written
    if not isinstance(written, dict):
        return None
    given = {key: value for key, value in cast("dict[str, Any]", written).items() if isinstance(value, str)}
    kind, ref, folder = given.get("source"), given.get("sha") or given.get("ref") or "", given.get("path", "")
    repository, address = given.get("repo", ""), given.get("url", "")
    if kind == "github" and SHORT.fullmatch(repository):
        return Elsewhere(f"{GITHUB}{repository}", ref, folder)
    if kind in ("url", "git", "git-subdir") and address:
        full = f"{GITHUB}{address}" if SHORT.fullmatch(address) else address
        return Elsewhere(full, ref, folder)
    return folder if kind == "local" and folder else None
