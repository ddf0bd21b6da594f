"""MCP servers that a client brings for a session. They are the user's own: no project names them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from tenuto.config.mcp.servers import NAME_CHARS, McpServer, NamedServer

SOURCE = "the editor"
"""Where such a server comes from, as `/mcp` shows it."""
GivenServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
_UNUSABLE = re.compile(r"[^\w.-]+")


def read_servers(given: Sequence[GivenServer]) -> tuple[tuple[NamedServer, ...], list[str]]:
    """Return the servers that can be used, and a line for each that cannot."""
    servers: dict[str, NamedServer] = {}
    problems: list[str] = []
    for one in given:
        name = _UNUSABLE.sub("-", one.name).strip("-")[:NAME_CHARS] or "server"
        match one:
            case McpServerStdio():
                server = McpServer(
                    command=one.command, args=tuple(one.args), env={each.name: each.value for each in one.env}
                )
            case HttpMcpServer():
                server = McpServer(url=one.url, headers={each.name: each.value for each in one.headers})
            case SseMcpServer() | AcpMcpServer():
                problems.append(
                    f"MCP server {name} of the editor is left out: there are stdio and http, not {one.type}"
                )
                continue
        servers.setdefault(name, NamedServer(name=name, server=server, source=SOURCE))
    return tuple(servers.values()), problems
