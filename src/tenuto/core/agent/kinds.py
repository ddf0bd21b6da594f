"""The agents that a session can give tasks to, and the note that lists those of the user and the project."""

from __future__ import annotations

from pathlib import Path

from tenuto.config.agents import Agents, list_agents, read_agents
from tenuto.core.state.live import AGENT_TOOL, LiveSession, SessionServices


def agents_of(services: SessionServices) -> Agents:
    """Return the agents for the session's directory as they are on disk now, and tell what is wrong with any, once."""
    own = Path(services.tool_context.environ.get("HOME") or services.home)
    found = read_agents(services.home, own, services.session.cwd, services.tools.names())
    for problem in found.problems:
        services.notify_once(problem, problem, "warning")
    return found


def look_for_agents(live: LiveSession) -> None:
    """Note which agents the model is to be told of; none where it has no tool for them."""
    if any(schema.name == AGENT_TOOL for schema in live.tool_schemas()):
        live.reminders.agents = list_agents(agents_of(live).own)
