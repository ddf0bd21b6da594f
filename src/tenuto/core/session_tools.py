"""What the tools of a session get from it: a compaction, skills, MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tenuto.config.mcp.servers import NamedServer
from tenuto.config.settings import Settings
from tenuto.core.state.elicitation import ask_elicitation
from tenuto.core.state.live import LiveSession
from tenuto.core.state.mcp import Place
from tenuto.core.state.skills import load_for_model
from tenuto.protocol.model import ToolSchema


def connect_tools(live: LiveSession) -> None:
    """Let the tools of a session, a sub-agent's too, know what only the session does."""
    live.tool_context.window = live.window_size
    live.tool_context.ask_compaction = partial(_ask_compaction, live)
    live.tool_context.load_skill = partial(load_for_model, live)
    live.tool_context.other_sessions = partial(_other_sessions, live)


async def _ask_compaction(live: LiveSession, focus: str) -> str:
    from tenuto.core.compacting.asked import ask_compaction  # needed by few sessions, and 20 ms to import

    return await ask_compaction(live, focus)


def _other_sessions(live: LiveSession) -> list[Path]:
    """Return the folders of the project's other sessions, sub-agents' behind the one that they worked for."""
    from tenuto.session.library.catalog import newest_first  # needed by few sessions
    from tenuto.session.store import agent_directories
    from tenuto.tool.run.context import ToolError

    wanted = live.settings.session.recall_project
    if not (live.interactive if wanted == "auto" else wanted):
        raise ToolError("Other sessions are not searched in this run; the setting session.recall_project = true does.")
    own = live.session.directory
    others = [
        folder for folder in newest_first(live.home, live.session.cwd) if folder != own and folder not in own.parents
    ]
    return [one for folder in others for one in (folder, *agent_directories(folder))]


def begin_servers(
    live: LiveSession, settings: Settings, environ: Mapping[str, str], given: tuple[NamedServer, ...] = ()
) -> None:
    """Look for MCP servers beside everything else; a session that is only read has none.

    `given` are those that an editor brings.
    """
    if live.session.is_read_only:
        return
    live.mcp.begin(
        settings,
        Place(cwd=live.session.cwd, home=live.home, environ=environ, folder=live.session.directory, given=given),
        live.notify,
        partial(_told, live),
        partial(ask_elicitation, live.approvals, live.notify if not live.can_ask else None),
    )


def _told(live: LiveSession) -> tuple[ToolSchema, ...] | None:
    """Return what the model was told of tools that are not built in, `None` before its first request."""
    stored = live.session.reading.system
    return None if stored is None else stored.registered
