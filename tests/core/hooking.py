"""Sessions with hook files, and what their commands were told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import DeveloperMessage, NoticeEntry
from tests.core.harness import Agent


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def group(*hooks: dict[str, Any] | str, matcher: str | None = None) -> dict[str, Any]:
    inner = [hook(one) if isinstance(one, str) else one for one in hooks]
    return {"hooks": inner} if matcher is None else {"matcher": matcher, "hooks": inner}


def write_hooks(path: Path, **events: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": events}))
    return path


def own(tmp_path: Path, **events: list[dict[str, Any]]) -> Path:
    """Write the user's own file."""
    return write_hooks(tmp_path / "home" / "hooks.json", **events)


def says(tmp_path: Path, answer: object, name: str = "answer") -> str:
    """A command that writes what it is told to `told.jsonl`, and answers with this."""
    path = tmp_path / f"{name}.json"
    path.write_text(answer if isinstance(answer, str) else json.dumps(answer))
    return f"{notes(tmp_path)}; cat {path}"


def notes(tmp_path: Path) -> str:
    """A command that writes what it is told to `told.jsonl`, and says nothing."""
    return f'given=$(cat); echo "$given" >> {tmp_path / "told.jsonl"}'


def told(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def events_told(tmp_path: Path) -> list[str]:
    return [one["hook_event_name"] for one in told(tmp_path)]


def python(code: str) -> str:
    return f"{sys.executable} -c '{code}'"


def notices(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


def about_hooks(running: Agent) -> list[str]:
    return [text for text in notices(running) if "hook" in text.lower()]


def kept(running: Agent) -> list[str]:
    """What of hooks stands in the log for the user."""
    return [
        entry.text for entry in running.session.entries() if isinstance(entry, NoticeEntry) and entry.kind == "hook"
    ]


def to_model(running: Agent) -> list[str]:
    """What of hooks stands in the log for the model."""
    entries = running.session.entries()
    return [entry.text for entry in entries if isinstance(entry, DeveloperMessage) and entry.kind == "hook"]


def is_dead(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked about yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
