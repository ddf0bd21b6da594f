"""The files in which servers stand, and which of them count.

The user's own: `[mcp.servers.NAME]` of `settings.toml`, then `mcp.json` in Tenuto's home. A project's: `.mcp.json` and
`.tenuto/mcp.json` at its root. Of two with the same name the first one counts, so that no project takes the place of a
server of the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.config.mcp.servers import McpServer, NamedServer, ServerError, check_name, check_server, read_server
from tenuto.config.project import RefusedFileError, project_root, read_text
from tenuto.config.settings import Settings
from tenuto.private_files import make_directory, replace_file

OWN_FILE = "mcp.json"
PROJECT_FILES = (".mcp.json", ".tenuto/mcp.json")
KEYS = ("mcpServers", "servers")
"""Under which a JSON file has its servers; the first is what nearly everybody writes."""
MOST = 200
"""Servers of one file."""


class McpFileError(Exception):
    """A file of servers that cannot be read or written; the message says why."""


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that count, those of the project that wait for trust, and a line for everything that is wrong."""

    servers: tuple[NamedServer, ...] = ()
    waiting: tuple[NamedServer, ...] = ()
    problems: tuple[str, ...] = ()


def read_configured(home: Path, cwd: Path, settings: Settings) -> Configured:
    """Return the servers of the settings, of Tenuto's home and of the project. Starts nothing, never raises."""
    problems: list[str] = []
    own = [*of_settings(settings, home, problems), *_of_file(home / OWN_FILE, (), problems)]
    brought = project_servers(cwd, home, problems)
    counted: dict[str, NamedServer] = {}
    for one in (*own, *(one for one in brought if trusts(one, cwd, home))):
        first = counted.setdefault(one.name, one)
        if first is not one:
            problems.append(f"MCP server {one.name}: {first.source} names it, so {one.source} is left out")
    waiting = (one for one in brought if not trusts(one, cwd, home) and one.name not in counted and one.server.enabled)
    return Configured(
        servers=tuple(one for one in counted.values() if one.server.enabled),
        waiting=tuple(waiting),
        problems=tuple(problems),
    )


def trusts(_server: NamedServer, _cwd: Path, _home: Path) -> bool:
    """Say whether the user trusts a server that a project brings. Nobody can say so yet: none is started (R-085)."""
    return False


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


def may_have_servers(home: Path, cwd: Path, settings: Settings) -> bool:
    """Say, at the price of a look at three names, whether there may be servers."""
    root = project_root(cwd)
    files = (home / OWN_FILE, *(root / name for name in PROJECT_FILES))
    return settings.mcp.enabled and (bool(settings.mcp.servers) or any(map(os.path.lexists, files)))


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
        return _named(servers_in(read_json(file, inside)), str(file), problems)
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
            made.append(NamedServer(name=name, server=server, source=source))
        except ServerError as error:
            problems.append(f"{source}: MCP server {name[:80]}: {error}")
    return made


# --- the user's own file, changed by `tenuto mcp` ---


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
        replace_file(file.resolve(), msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    except OSError as error:
        raise McpFileError(f"{file} cannot be written: {error.strerror or error}") from error
    return file
