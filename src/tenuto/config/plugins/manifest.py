"""What a folder brings as a plugin: its manifest, and where its parts lie. Reads files, runs nothing.

The layout is that of Claude Code's plugins and of the Open Plugins format: a `plugin.json`, which may be missing, and
parts in folders of fixed names or where the manifest says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tenuto.config.project import RefusedFileError, is_below, read_text
from tenuto.text.late import late

MANIFESTS = (".claude-plugin/plugin.json", ".plugin/plugin.json", "plugin.json", ".codex-plugin/plugin.json")
"""Where a manifest may stand; the first one counts."""
Part = Literal["skills", "commands", "agents", "hooks", "servers"]
_USUAL: dict[Part, tuple[str, ...]] = {
    "skills": ("skills",),
    "commands": ("commands",),
    "agents": ("agents",),
    "hooks": ("hooks/hooks.json",),
    "servers": (".mcp.json", "mcp.json"),
}
_KEYS: dict[Part, str] = {
    "skills": "skills",
    "commands": "commands",
    "agents": "agents",
    "hooks": "hooks",
    "servers": "mcpServers",
}
_NOT_HERE = {
    "lspServers": "language servers",
    "outputStyles": "output styles",
    "monitors": "monitors",
    "themes": "themes",
    "channels": "channels",
    "userConfig": "questions for the user",
    "dependencies": "other plugins that it needs",
}
"""Keys of a manifest whose things do not exist here."""
_NOT_HERE_FILES = {
    ".lsp.json": "language servers",
    "output-styles": "output styles",
    "monitors": "monitors",
    "themes": "themes",
    "rules": "rules",
    "settings.json": "settings",
}
_NAME = late(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_ROOT = ("CLAUDE_PLUGIN_ROOT", "TENUTO_PLUGIN_ROOT", "PLUGIN_ROOT")
_DATA = ("CLAUDE_PLUGIN_DATA", "TENUTO_PLUGIN_DATA", "PLUGIN_DATA")
PLUGIN_VARIABLES = frozenset((*_ROOT, *_DATA))
"""What every program of a plugin has in its environment."""
_VARIABLE = late(rf"\$\{{({'|'.join((*_ROOT, *_DATA))})\}}")
_PLAIN_PATH = late(r"[\w./@+-]+", re.ASCII)
DATA = "plugin-data"
"""In Tenuto's home: a folder for each plugin, for what its programs keep over updates."""
MANIFEST_BYTES = 500_000
_BYTE = late(r"\(byte (\d+)\)")
_VERSION_CHARS = 64


class PluginError(Exception):
    """A folder that is no plugin, or cannot be used as one; the message says why, behind its name."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin. Its parts are files and folders that are there and really lie in `root`.

    `manifest` is its file, `None` without one. `problems` is a line for each thing of it that is left out.
    """

    name: str
    root: Path
    manifest: Path | None = None
    version: str = ""
    description: str = ""
    license: str = ""
    skills: tuple[Path, ...] = ()
    commands: tuple[Path, ...] = ()
    agents: tuple[Path, ...] = ()
    hooks: tuple[Path, ...] = ()
    servers: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    def named(self, name: str) -> str:
        """Return the name under which a part of this plugin is known."""
        return f"{self.name}:{name}"

    def expand(self, text: str) -> str:
        """Return a text with `${CLAUDE_PLUGIN_ROOT}` and its like replaced."""
        variables = plugin_variables(self.root)
        return _VARIABLE.sub(lambda match: variables[match[1]], text)


def plugin_variables(root: Path) -> dict[str, str]:
    """Return what programs of an added plugin have in their environment: where it lies, and where it keeps things."""
    data = str(root.parent.parent / DATA / root.name)
    return {**dict.fromkeys(_ROOT, str(root)), **dict.fromkeys(_DATA, data)}


def plugin_command(command: str, root: Path) -> str:
    """Return a shell command of a plugin with its places put in, also where quotes would keep the shell from it.

    A path that the shell would take apart is left to the command's environment.
    """
    variables = plugin_variables(root)
    return _VARIABLE.sub(lambda match: _put_in(variables[match[1]], match[0]), command)


def _put_in(path: str, written: str) -> str:
    return path if _PLAIN_PATH.fullmatch(path) else written


def is_name(name: str) -> bool:
    """Say whether a plugin can have this name."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def read_plugin(root: Path, name: str = "") -> Plugin:
    """Return the plugin in a folder. `name` is its name where no manifest has one. Raises `PluginError`."""
    manifest = find_manifest(root)
    values = read_object(manifest, root) if manifest is not None else {}
    named = values.get("name") or name or root.name
    if not isinstance(named, str) or not is_name(named):
        raise PluginError(f"its name {str(named)[:80]!r} cannot be used: letters, digits and single - . _ between them")
    problems: list[str] = []
    parts = {part: tuple(_find(root, part, values, manifest, problems)) for part in _USUAL}
    if not parts["skills"] and (root / "SKILL.md").is_file():
        parts["skills"] = (root,)
    if manifest is None and not any(parts.values()):
        raise PluginError(f"it is no plugin: there is neither {MANIFESTS[0]} nor skills, commands, agents or hooks")
    problems += [f"{what} are not supported ({key})" for key, what in _NOT_HERE.items() if values.get(key)]
    problems += [
        f"{what} are not supported ({file})" for file, what in _NOT_HERE_FILES.items() if (root / file).exists()
    ]
    return Plugin(
        name=named,
        root=root,
        manifest=manifest,
        version=_text(values, "version")[:_VERSION_CHARS],
        description=" ".join(_text(values, "description").split()),
        license=_text(values, "license")[:_VERSION_CHARS],
        problems=tuple(dict.fromkeys(problems)),
        **parts,
    )


def find_manifest(root: Path) -> Path | None:
    """Return the manifest of a folder, `None` where there is none."""
    return next((root / name for name in MANIFESTS if os.path.lexists(root / name)), None)


def read_object(file: Path, root: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a plugin. Raises `PluginError`, which names the line of a fault."""
    shown = os.path.relpath(file, root)
    try:
        text = read_text(file, (root,), limit=MANIFEST_BYTES)
    except (FileNotFoundError, RefusedFileError) as error:
        raise PluginError(f"{shown} cannot be read: {error}") from None
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PluginError(f"{shown}{_line_of(text, str(error))} is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise PluginError(f"{shown} is not one JSON object")
    return cast("dict[str, Any]", values)


def _line_of(text: str, error: str) -> str:
    match = _BYTE.search(error)
    return f":{text.encode()[: int(match[1])].count(10) + 1}" if match else ""


def inner_path(root: Path, written: str) -> Path:
    """Return the path that a manifest names, seen from the plugin's folder. Raises `PluginError` where it leads out."""
    if "\0" not in written and not Path(written).is_absolute():
        path = root / written
        real = os.path.realpath(path)
        if real == os.path.realpath(root) or is_below(real, (root,)):
            return Path(os.path.normpath(path))
    raise PluginError(f"{written[:200]!r} leads out of the plugin's folder")


def _find(root: Path, part: Part, values: dict[str, Any], manifest: Path | None, problems: list[str]) -> Iterator[Path]:
    """Yield the places of one kind of part that are there, each once.

    What a manifest names comes beside the usual place, as authors rely on; an entry of a marketplace with
    `"strict": false` names all that there is.
    """
    named = values.get(_KEYS[part])
    usual = () if named is not None and values.get("strict") is False else _USUAL[part]
    seen: set[str] = set()
    for written in (*usual, *_written(part, named, problems)):
        try:
            path = inner_path(root, written)
        except (PluginError, OSError) as error:
            problems.append(f"{_KEYS[part]}: {error}")
            continue
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        if os.path.exists(path):  # noqa: PTH110 - pathlib raises for a name that is too long
            yield path
        elif written not in usual:
            problems.append(f"{_KEYS[part]}: {written[:200]} is not there")
    if isinstance(named, dict) and part in ("hooks", "servers") and manifest is not None:
        yield manifest


def _written(part: Part, named: object, problems: list[str]) -> Sequence[str]:
    """Return the paths that a manifest names for a part."""
    if named is None or (isinstance(named, dict) and part in ("hooks", "servers")):
        return ()
    if isinstance(named, dict):  # commands by name, each with its file
        entries = cast("dict[str, Any]", named).values()
        named = [cast("dict[str, Any]", entry).get("source") if isinstance(entry, dict) else None for entry in entries]
    listed = cast("list[object]", named) if isinstance(named, list) else [named]
    good = [one for one in listed if isinstance(one, str)]
    if len(good) < len(listed):
        problems.append(f"{_KEYS[part]}: only paths are read here, as texts")
    return good


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""
