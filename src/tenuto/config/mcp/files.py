"""The files in which servers stand, and which of them count.

The user's own: `[mcp.servers.NAME]` of `settings.toml`, then `mcp.json` in Tenuto's home. A project's: `.mcp.json` and
`.tenuto/mcp.json` at its root. Of two with the same name the first one counts, so that no project takes the place of a
server of the user's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.config.consent import Consent, Project, TrustItem, digest_of, project_of, shown_path
from tenuto.config.mcp.servers import (
    McpServer,
    NamedServer,
    ServerError,
    check_name,
    check_server,
    describe_server,
    read_server,
)
from tenuto.config.plugins.installed import FILE as PLUGINS_FILE
from tenuto.config.plugins.installed import usable_plugins
from tenuto.config.plugins.manifest import Plugin, plugin_variables
from tenuto.config.project import RefusedFileError, project_root, read_text
from tenuto.config.settings import Settings
from tenuto.config.sources import load_settings
from tenuto.private_files import make_directory, replace_file
from tenuto.text.bounding import shorten
from tenuto.text.writable import clean_text, to_json

OWN_FILE = "mcp.json"
PROJECT_FILES = (".mcp.json", ".tenuto/mcp.json")
KEYS = ("mcpServers", "servers")
"""Under which a JSON file has its servers; the first is what nearly everybody writes."""
MOST = 200
"""Servers of one file."""
DOES_CHARS, CONTENT_CHARS = 400, 20_000
"""Characters of what a server does, and of its entry, that a user is shown."""


class McpFileError(Exception):
    """A file of servers that cannot be read or written; the message says why."""


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that count, those of the project that wait for trust, and a line for everything that is wrong."""

    servers: tuple[NamedServer, ...] = ()
    waiting: tuple[NamedServer, ...] = ()
    problems: tuple[str, ...] = ()


def read_configured(home: Path, cwd: Path, settings: Settings, given: Sequence[NamedServer] = ()) -> Configured:
    """Return the servers of the settings, of Tenuto's home and of the project. Starts nothing, never raises.

    `given` are those that an editor brings for the session; they are the user's own, and go before all.
    """
    problems: list[str] = []
    own = [*given, *of_settings(settings, home, problems), *_of_file(home / OWN_FILE, (), problems)]
    own += plugin_servers(home, problems)
    brought = project_servers(cwd, home, problems)
    trusted = trusted_names(brought, cwd, home)
    counted: dict[str, NamedServer] = {}
    for one in (*own, *(one for one in brought if one.name in trusted)):
        first = counted.setdefault(one.name, one)
        if first is not one:
            problems.append(f"MCP server {one.name}: {first.source} names it, so {one.source} is left out")
    waiting = (one for one in brought if one.name not in trusted and one.name not in counted and one.server.enabled)
    return Configured(
        servers=tuple(one for one in counted.values() if one.server.enabled),
        waiting=tuple(waiting),
        problems=tuple(problems),
    )


def trusted_names(servers: Iterable[NamedServer], cwd: Path, home: Path) -> frozenset[str]:
    """Return the names of the servers of a project that the user trusts as they are now (R-085)."""
    project, consent = project_of(cwd, home), Consent(home)
    return frozenset(one.name for one in servers if consent.verdict(project, trust_item(one, project)) == "trusted")


def trust_item(one: NamedServer, project: Project) -> TrustItem:
    """Return a project's server as something to be trusted."""
    verb = "connects to" if one.server.url else "runs as you, outside of the sandbox:"
    return TrustItem(
        kind="mcp",
        name=clean_text(one.name),
        does=f"{verb} {clean_text(shorten(describe_server(one.server), DOES_CHARS))}",
        file=shown_path(project, Path(one.source)),
        digest=digest_of("mcp", one.name, one.written),
        content=shorten(one.written, CONTENT_CHARS),
    )


def waiting_items(project: Project, environ: Mapping[str, str]) -> list[TrustItem]:
    """Return the servers that a project brings, as far as the user does not name them already; none with servers off.

    The settings are read only where there are any.
    """
    brought = project_servers(project.cwd, project.home, [])
    if not brought:
        return []
    settings, _ = load_settings(project.home, project.cwd, environ)
    if not settings.mcp.enabled:
        return []
    named = [*of_settings(settings, project.home, []), *_of_file(project.home / OWN_FILE, (), [])]
    own = {one.name for one in named}
    return [trust_item(one, project) for one in brought if one.server.enabled and one.name not in own]


def project_servers(cwd: Path, home: Path, problems: list[str]) -> list[NamedServer]:
    """Return what the project's own files name, the first of each name."""
    root = project_root(cwd)
    found: dict[str, NamedServer] = {}
    for name in PROJECT_FILES:
        file = root / name
        if os.path.lexists(file) and file.parent.resolve() != home.resolve():
            for one in _of_file(file, (root,), problems):
                found.setdefault(one.name, msgspec.structs.replace(one, of_project=True))
    return list(found.values())


def of_settings(settings: Settings, home: Path, problems: list[str]) -> list[NamedServer]:
    """Return the servers that the user's settings name."""
    return _named(settings.mcp.servers, str(home / "settings.toml"), problems)


def may_have_servers(home: Path, cwd: Path, settings: Settings, given: Sequence[NamedServer] = ()) -> bool:
    """Say, at the price of a look at three names, whether there may be servers."""
    root = project_root(cwd)
    files = (home / OWN_FILE, home / PLUGINS_FILE, *(root / name for name in PROJECT_FILES))
    return settings.mcp.enabled and (bool(given or settings.mcp.servers) or any(map(os.path.lexists, files)))


def plugin_servers(home: Path, problems: list[str]) -> list[NamedServer]:
    """Return the servers of the plugins that count, named as Claude Code names them."""
    found: list[NamedServer] = []
    for plugin in usable_plugins(home):
        for file in plugin.servers:
            try:
                values = read_json(file, (plugin.root,))
            except (McpFileError, FileNotFoundError) as error:
                problems.append(str(error))
                continue
            listed = servers_in(values) or (values if file != plugin.manifest else {})  # some have no object around
            entries = {
                f"plugin_{plugin.name}_{name}": _in_plugin(entry, plugin, file) for name, entry in listed.items()
            }
            found += _named(entries, str(file), problems)
    return found


def _in_plugin(entry: object, plugin: Plugin, file: Path) -> object:
    """Return a server's entry with the plugin's places put in: what it names there, and what its program is told."""
    if not isinstance(entry, dict):
        return entry
    made = cast("dict[str, Any]", _expanded(cast("object", entry), plugin))
    command, env, cwd = made.get("command"), made.get("env"), made.get("cwd")
    if isinstance(command, str) and command.startswith("./"):
        made["command"] = str(plugin.root / command)
    if isinstance(command, str) and (cwd is None or isinstance(cwd, str)) and (cwd or file.name == "mcp.json"):
        made["cwd"] = str(plugin.root / (cwd or ""))  # Open Plugins: a server starts in its plugin's folder
    if isinstance(command, str) and (env is None or isinstance(env, dict)):
        made["env"] = {**(cast("dict[str, Any]", env) or {}), **plugin_variables(plugin.root)}
    return made


def _expanded(value: object, plugin: Plugin) -> object:
    match value:
        case str():
            return plugin.expand(value)
        case list():
            return [_expanded(one, plugin) for one in cast("list[object]", value)]
        case dict():
            return {key: _expanded(one, plugin) for key, one in cast("dict[str, object]", value).items()}
        case _:
            return value


def read_json(file: Path, inside: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the object in a JSON file. Raises `McpFileError`, and `FileNotFoundError`."""
    try:
        values = msgspec.json.decode(read_text(file, inside).strip() or "{}")
    except (RefusedFileError, msgspec.DecodeError, RecursionError) as error:
        raise McpFileError(f"{file} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise McpFileError(f"{file} cannot be read: it is not one JSON object")
    return cast("dict[str, Any]", values)


def servers_in(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object of servers in a file's object."""
    key = next((key for key in KEYS if isinstance(values.get(key), dict)), "")
    return cast("Mapping[str, Any]", values[key]) if key else {}


def _of_file(file: Path, inside: tuple[Path, ...], problems: list[str]) -> list[NamedServer]:
    try:
        values = read_json(file, inside)
        if values and not any(isinstance(values.get(key), dict) for key in KEYS):
            raise McpFileError(f'{file} has no object "{KEYS[0]}", so nothing of it counts')
        return _named(servers_in(values), str(file), problems)
    except FileNotFoundError:
        return []
    except McpFileError as error:
        problems.append(str(error))
        return []


def _named(servers: Mapping[str, object], source: str, problems: list[str]) -> list[NamedServer]:
    """Return those that hold; a line for each that does not."""
    made: list[NamedServer] = []
    for name, values in list(servers.items())[:MOST]:
        try:
            if fault := check_name(name):
                raise ServerError(fault)
            server = check_server(values) if isinstance(values, McpServer) else read_server(values)
            made.append(NamedServer(name=name, server=server, source=source, written=_written(values)))
        except ServerError as error:
            problems.append(f"{source}: MCP server {name[:80]}: {error}")
    return made


def _written(values: object) -> str:
    """Return a whole entry as text, whatever of it is known here. Raises `ServerError`."""
    plain_values = plain(values) if isinstance(values, McpServer) else values
    try:
        return json.dumps(plain_values, indent=2, sort_keys=True)
    except RecursionError:
        raise ServerError("it has too many levels") from None


# --- the user's own file, changed by `tenuto mcp` ---


def own_servers(home: Path) -> list[NamedServer]:
    """Return what the user's own file names; nothing where it cannot be read."""
    return _of_file(home / OWN_FILE, (), [])


def keep_servers(home: Path, servers: Iterable[tuple[str, McpServer]]) -> Path:
    """Write servers into the user's own file, over those of the same names; return it. Raises `McpFileError`."""
    return _change(home, {name: plain(server) for name, server in servers})


def drop_server(home: Path, name: str) -> bool:
    """Take a server out of the user's own file; `False` when it is not there. Raises `McpFileError`."""
    try:
        if name not in servers_in(read_json(home / OWN_FILE)):
            return False
    except FileNotFoundError:
        return False
    _change(home, {name: None})
    return True


def plain(server: McpServer) -> dict[str, Any]:
    """Return a server as it is written into a file: what is set, and nothing else."""
    defaults = McpServer()
    values = msgspec.to_builtins(server)
    return {name: value for name, value in values.items() if getattr(server, name) != getattr(defaults, name)}


def _change(home: Path, changes: Mapping[str, dict[str, Any] | None]) -> Path:
    file = home / OWN_FILE
    try:
        make_directory(home)
        try:
            values = read_json(file)
        except FileNotFoundError:
            values = {}
        key = next((key for key in KEYS if isinstance(values.get(key), dict)), KEYS[0])
        servers = {**servers_in(values), **changes}
        values[key] = {name: one for name, one in servers.items() if one is not None}
        replace_file(file.resolve(), msgspec.json.format(to_json(values)) + b"\n")
    except OSError as error:
        raise McpFileError(f"{file} cannot be written: {error.strerror or error}") from error
    return file
