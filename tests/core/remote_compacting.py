"""Sessions whose provider compacts: their settings, a server's answers, and what its requests carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tenuto.protocol.message import NoticeEntry
from tests.core.compacting import LONG_ANSWER, SUMMARY, is_summary_request
from tests.core.harness import Agent
from tests.server import Reply, Request, ScriptedServer
from tests.server.openai_compaction import read_item
from tests.server.reply import AnyReply

WINDOW = 16_400
WAYS = [("anthropic", "request"), ("openai", "request"), ("openai", "endpoint")]
REMOTE_SUMMARY = SUMMARY.replace("Keep the tests green.", "Keep the tests green, said the provider.")


def choose(tmp_path: Path, model: str, **settings: object) -> None:
    """Write the settings of one model."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    lines = [f'[models."{model}"]', *(f"{key} = {_toml(value)}" for key, value in settings.items())]
    (home / "settings.toml").write_text("\n".join(lines) + "\n")


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def remote(answer: AnyReply | str = LONG_ANSWER, compaction: AnyReply | str = REMOTE_SUMMARY):
    """Answer steps with `answer`, what the provider is asked to compact with `compaction`, summaries made here too."""

    def script(request: Request) -> AnyReply:
        local = SUMMARY if is_summary_request(request) else answer
        chosen = compaction if request.is_compaction else local
        return Reply(chosen) if isinstance(chosen, str) else chosen

    return script


def asked(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if request.is_compaction]


def steps(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if not request.is_compaction and not is_summary_request(request)]


def sent(request: Request) -> str:
    """Everything that a request tells the model, what the provider sealed included."""
    if request.protocol == "responses":
        items = [item for item in request.body["input"] if isinstance(item, dict)]
        sealed = [read_item(item) for item in items if item.get("type") == "compaction"]
        return "\n".join([*(item.text for item in request.items), *sealed])
    return "\n".join(item.text for item in request.items)


def block_of(request: Request) -> dict[str, Any]:
    """The one compaction of the provider in a request."""
    if request.protocol == "anthropic":
        return request.body["messages"][0]["content"][0]
    found = [item for item in request.body["input"] if item.get("type") == "compaction"]
    assert len(found) == 1
    return found[0]


def warnings(running: Agent) -> list[str]:
    return [entry.text for entry in running.session.entries() if isinstance(entry, NoticeEntry)]
