"""Sessions with an extension of their own, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from tenuto.protocol.event import NoticeEvent
from tests.core.harness import Agent

WINDOW = {"window": 32_000}
WATCH = """
from tests.extension import witness

def setup(tenuto):
    for hook in ("session_before_compact", "session_compact", "session_compact_failed"):
        tenuto.on(hook, lambda event, hook=hook: witness.note(hook, event))
"""


def extend(tmp_path: Path, text: str, name: str = "mine") -> None:
    folder = tmp_path / "home" / "extensions"
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def before(body: str) -> str:
    """An extension whose `session_before_compact` has this body."""
    return f"""
import asyncio, time
from tests.extension import witness

def setup(tenuto):
    @tenuto.on("session_before_compact")
    def ask(event):
        witness.note("session_before_compact", event)
        {body}
"""


def notices(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


def about_extensions(running: Agent) -> list[str]:
    return [text for text in notices(running) if "extension" in text]


SUPPLY = before("""
        preparation = event.preparation
        return {"compaction": {
            "summary": "## Goal\\nSUPPLIED-NONCE",
            "first_kept_index": preparation.first_kept_index,
            "tokens_before": preparation.tokens_before,
            "details": {"topics": ["a", "b"], "turns": 3},
        }}
""")
