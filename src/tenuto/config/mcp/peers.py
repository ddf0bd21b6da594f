"""Servers in the files of other agents, for `tenuto mcp import`. Facts of their formats; nothing of theirs is changed.

| file | where | servers |
|---|---|---|
| `.claude.json` | home | `mcpServers`, and `projects[DIR].mcpServers` |
| `.mcp.json` | project | `mcpServers` |
| `.codex/config.toml` | home, project | `[mcp_servers.NAME]` |
| `.gemini/settings.json` | home, project | `mcpServers` |
| `.vscode/mcp.json` | project | `servers` |
| `.cursor/mcp.json` | home, project | `mcpServers` |
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tenuto.config.mcp.files import McpFileError, read_json, servers_in
from tenuto.config.mcp.servers import McpServer, NamedServer, ServerError, check_name, read_server
from tenuto.config.project import RefusedFileError, project_root, read_text
from tenuto.text.json_access import as_dict
from tenuto.text.writable import to_json

IN_HOME = (".claude.json", ".codex/config.toml", ".gemini/settings.json", ".cursor/mcp.json")
IN_PROJECT = (".mcp.json", ".codex/config.toml", ".gemini/settings.json", ".vscode/mcp.json", ".cursor/mcp.json")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of other agents, the first of each name, and a line for everything that was left out."""

    servers: tuple[NamedServer, ...] = ()
    problems: tuple[str, ...] = ()


def find_servers(user_home: Path, cwd: Path) -> Found:
    """Return the servers in all of their files for this user and this project."""
    root = project_root(cwd)
    places = dict.fromkeys([*(root / name for name in IN_PROJECT), *(user_home / name for name in IN_HOME)])
    return read_files([place for place in places if place.is_file()], root)


def read_files(files: list[Path], root: Path) -> Found:
    """Return the servers in these files; what `.claude.json` has for a project counts for the one at `root`."""
    servers: dict[str, NamedServer] = {}
    problems: list[str] = []
    for file in files:
        for name, values in _entries(file, root, problems):
            try:
                if fault := check_name(name):
                    raise ServerError(fault)
                server = _rewritten(read_server(values))
            except ServerError as error:
                problems.append(f"{file}: {name[:80]}: {error}")
                continue
            first = servers.setdefault(name, NamedServer(name=name, server=server, source=str(file)))
            if first.source != str(file):
                problems.append(f"{file}: {name}: {first.source} has one of that name, which is taken")
    return Found(servers=tuple(servers.values()), problems=tuple(problems))


def _entries(file: Path, root: Path, problems: list[str]) -> Iterator[tuple[str, object]]:
    try:
        if file.suffix == ".toml":
            yield from as_dict(tomllib.loads(read_text(file)).get("mcp_servers")).items()
            return
        values = read_json(file)
    except (OSError, ValueError, RecursionError, RefusedFileError, McpFileError) as error:
        problems.append(f"{file}: {error}")
        return
    own = as_dict(as_dict(values.get("projects")).get(str(root)))
    yield from as_dict(own.get("mcpServers")).items()
    yield from servers_in(values).items()


def _rewritten(server: McpServer) -> McpServer:
    """Return a server with `${env:NAME}` of VS Code in our spelling. Raises `ServerError` for its questions."""
    text = to_json(server).decode().replace("${env:", "${")
    for word in ("${input:", "${workspaceFolder"):
        if word in text:
            raise ServerError(f"it uses {word}…}}, which only an editor can fill in; put the value in its place")
    return msgspec.json.decode(text, type=McpServer)
