"""The `system` entry: what the system prompt and the tools were when they were first sent.

It is written at the first request and again only by a compaction, `/reload`, or an agreed change of tools; a resumed
session sends the stored one and never a newly built one (DESIGN section 3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tenuto.config.instructions import read_instructions
from tenuto.core.live import LiveSession
from tenuto.core.prompt import build_system_prompt
from tenuto.protocol.message import SystemMessage
from tenuto.protocol.model import ToolSchema


def tools_digest(schemas: Sequence[ToolSchema]) -> str:
    """Return a digest of the schemas as they are sent."""
    digest = hashlib.sha256()
    for schema in schemas:
        digest.update(f"{schema.name}\0{schema.description}\0".encode())
        digest.update(bytes(schema.parameters))
    return digest.hexdigest()[:16]


def build_system_entry(live: LiveSession) -> SystemMessage:
    """Return the entry for the instruction files and tools of this moment."""
    schemas = live.tool_schemas()
    instructions = read_instructions(live.home, live.session.cwd)
    for problem in instructions.problems:
        if problem not in live.told_once:
            live.told_once.add(problem)
            live.notify(problem, "warning")
    return SystemMessage(
        text=build_system_prompt(instructions.files, live.extra_prompt),
        tools=tuple(schema.name for schema in schemas),
        tools_digest=tools_digest(schemas),
    )


def ensure_system_entry(live: LiveSession) -> None:
    """Write the session's `system` entry if it has none yet."""
    view = live.session.get_llm_history()
    if not view or not isinstance(view[0], SystemMessage):
        live.session.append(build_system_entry(live))


def refreshed_system_entry(live: LiveSession) -> SystemMessage | None:
    """Return a new `system` entry if instruction files or tools differ from what is sent now, else `None` (R-031)."""
    entry = build_system_entry(live)
    view = live.session.get_llm_history()
    present = view[0] if view else None
    if isinstance(present, SystemMessage) and (present.text, present.tools_digest) == (entry.text, entry.tools_digest):
        return None
    return entry


def reload_system_entry(live: LiveSession) -> bool:
    """Write a new `system` entry if one is due; say whether it was."""
    entry = refreshed_system_entry(live)
    if entry is None:
        return False
    live.session.append(entry)
    return True
