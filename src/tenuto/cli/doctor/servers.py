"""Checks of MCP servers: what is configured here. Nothing is started and nobody is asked."""

from __future__ import annotations

import shutil

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.config.mcp.files import read_configured
from tenuto.config.mcp.servers import NamedServer, ServerError, describe_server, expand
from tenuto.text.figures import plural

NAME = "mcp"


async def check_mcp(place: Surroundings) -> list[Row]:
    """Tell the servers of a session here, which of them cannot start, and those of the project that wait for trust."""
    if not place.settings.mcp.enabled:
        return [Row(NAME, "off (mcp.enabled)")]
    configured = read_configured(place.home, place.cwd, place.settings)
    rows = [Row(NAME, place.short(line), "problem", "correct the entry") for line in configured.problems]
    for one in configured.servers:
        fault = _fault(one, place)
        if fault:
            rows.append(Row(NAME, f"{one.name}: {fault}", "problem", f"correct it in {place.short(one.source)}"))
    if configured.waiting:
        names = ", ".join(one.name for one in configured.waiting)
        rows.append(Row(NAME, f"of this project, not started: {names}", "note", "tenuto mcp list --project shows them"))
    details = tuple(f"{one.name}: {place.short(describe_server(one.server))}" for one in configured.servers)
    count = len(configured.servers)
    return [*rows, Row(NAME, plural(count, "server") if count else "no servers", details=details)]


def _fault(one: NamedServer, place: Surroundings) -> str:
    """Return why a server cannot be started, as far as can be seen without starting it."""
    try:
        server = expand(one.server, place.environ)
    except ServerError as error:
        return str(error)
    if server.command and shutil.which(server.command, path=place.environ.get("PATH")) is None:
        return f"there is no program {server.command}"
    return ""
