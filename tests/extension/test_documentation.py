"""`docs/extensions.md`: every example runs as it is printed, and every field is named."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from tenuto.config.settings import ExtensionSettings
from tenuto.extension.api import ExtensionApi
from tenuto.extension.host import ENTRY_POINT_GROUP, ExtensionHost, find_extensions
from tenuto.protocol.event import CompactionEndEvent, NoticeEvent
from tenuto.protocol.hooks import (
    HOOKS,
    BeforeCompactAnswer,
    CompactionPreparation,
    PreparationSettings,
    SessionBeforeCompact,
    SessionBeforeTree,
    SessionCompact,
    SessionCompactFailed,
    SessionTree,
    SuppliedCompaction,
    TreePreparation,
)
from tests.core.compacting import compact, compactions, fill, reads, summary_requests, talk, until, write_big_file
from tests.core.harness import Agent, agent

DOCUMENT = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text(encoding="utf-8")
TEXT = DOCUMENT.partition("## Compaction strategies")[0]
WINDOW = {"window": 32_000}


def part(heading: str) -> str:
    """The document's text under a heading, up to the next of its level."""
    marks = heading.split(" ", 1)[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,{len(marks)}}} |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"docs/extensions.md has no part “{heading}”"
    return found[1]


def install(tmp_path: Path, heading: str, name: str = "mine") -> None:
    """Write the first Python example under a heading where a user would put it."""
    example = re.search(r"^```python\n(.*?)^```", part(heading), re.MULTILINE | re.DOTALL)
    assert example, f"no example under {heading}"
    folder = tmp_path / "home" / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(example[1], encoding="utf-8")


def said(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


async def test_the_first_one(tmp_path):
    install(tmp_path, "## A first one", "announce")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        line = f"announce: {entry.tokens_before:,} tokens became {entry.tokens_after:,} (same prefix)"
        await until(lambda: line in said(running))


async def test_the_example_of_cancelling(tmp_path):
    install(tmp_path, "### Cancel")
    async with agent(tmp_path, talk("fine " * 1000), options={"window": 16_000}) as running:
        (tmp_path / "work" / ".hold").touch()
        for number in range(20):
            settled = await running.ask(f"question {number}")
            if running.of(CompactionEndEvent):
                break
        assert settled.outcome == "completed"
        assert [event.aborted for event in running.of(CompactionEndEvent)] == [True]
        assert "Not compacted: the extension mine cancelled the compaction: remove .hold first." in said(running)
        await compact(running)
        assert len(compactions(running)) == 1, "only automatic ones are held"


async def test_the_example_of_adding(tmp_path):
    install(tmp_path, "### Add")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        (tmp_path / "work" / "NOTES.md").write_text("NOTES-NONCE")
        await fill(running)
        await compact(running)
        assert (
            "Additional focus: Name the ticket of every change." in summary_requests(running.server)[-1].items[-1].text
        )
        await running.ask("and now?")
        assert b"The project's notes:\\nNOTES-NONCE" in running.server.requests[-1].raw


class Service(BaseHTTPRequestHandler):
    asked: ClassVar[list[dict]] = []
    status = 200

    def do_POST(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(f"SERVICE-{len(self.asked)}".encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def service(monkeypatch):
    Service.asked.clear()
    Service.status = 200
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("SUMMARY_URL", f"http://127.0.0.1:{server.server_port}/")
    yield Service
    server.shutdown()
    server.server_close()


async def test_the_example_of_supplying(tmp_path, service):
    install(tmp_path, "### Supply")
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(1), options=WINDOW) as running:
        await running.ask("read")
        await fill(running, 4, 900)
        await compact(running)
        await fill(running, 4, 900)
        await compact(running)
        first, second = compactions(running)[0], compactions(running)[-1]
        assert first.from_extension == second.from_extension == "mine"
        assert first.summary.startswith("SERVICE-1")
        assert not summary_requests(running.server)
        assert "[Assistant tool calls]: read(" in service.asked[0]["text"]
        assert service.asked[0]["previous"] == ""
        assert service.asked[1]["previous"] == "SERVICE-1"
        assert first.details.extension == {"characters": len(service.asked[0]["text"])}


async def test_the_example_of_supplying_when_the_service_fails(tmp_path, service):
    install(tmp_path, "### Supply")
    service.status = 500
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert compactions(running)[0].from_extension == ""
        assert any("HTTPError: HTTP Error 500" in text and "mine" in text for text in said(running))


async def test_the_example_of_a_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("TENUTO_HOME", str(tmp_path / "home"))
    install(tmp_path, "## `session_compact_failed`")
    journal = tmp_path / "home" / "compactions.jsonl"
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        await compact(running)
        await until(lambda: journal.exists() and journal.read_text().count("\n") == 2)
        done, failed = map(json.loads, journal.read_text().splitlines())
        assert done["before"] > done["after"] > 0
        assert "nothing to compact" in failed["error"]


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_example_of_the_tree(tmp_path, wanted):
    install(tmp_path, "## `session_before_tree` and `session_tree`")
    lines: list[str] = []
    host = ExtensionHost(lambda text, _: lines.append(text), lines.append, 20)
    await host.load(find_extensions(tmp_path / "home", ExtensionSettings()).sources)
    preparation = TreePreparation(
        target=3, old_leaf=9, common_ancestor=3, entries_to_summarize=(), user_wants_summary=wanted
    )
    before = SessionBeforeTree(session_id="s", cwd="/", preparation=preparation)
    answers = await host.ask_before_tree(before, lambda _: None)
    assert [one.answer.summary.summary for one in answers] == (
        ["Another way was tried and left (0 entries)."] if wanted else []
    )
    host.tell(
        "session_tree",
        SessionTree(session_id="s", cwd="/", new_leaf=3, old_leaf=9, summary_entry=None, from_extension=""),
    )
    await until(lambda: lines)
    assert lines == ["mine: from entry 9 to entry 3"]
    await host.close()


@pytest.mark.parametrize(
    ("heading", "struct", "prefix"),
    [
        ("## `session_before_compact`", SessionBeforeCompact, ""),
        ("## `session_before_compact`", CompactionPreparation, ""),
        ("## `session_before_compact`", PreparationSettings, ""),
        ("## `session_before_compact`", BeforeCompactAnswer, ""),
        ("## `session_before_compact`", SuppliedCompaction, ""),
        ("## `session_compact`", SessionCompact, ""),
        ("## `session_compact_failed`", SessionCompactFailed, ""),
        ("## `session_before_tree` and `session_tree`", TreePreparation, "preparation."),
        ("## `session_before_tree` and `session_tree`", SessionTree, ""),
    ],
)
def test_every_field_is_named(heading: str, struct: type[msgspec.Struct], prefix: str):
    named = set(re.findall(r"`([\w.]+)`", part(heading)))
    assert {f"{prefix}{field}" for field in struct.__struct_fields__} <= named


def test_every_hook_has_a_part_and_an_example():
    headings = " ".join(re.findall(r"^## .*", TEXT, re.MULTILINE))
    examples = " ".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
    for hook in HOOKS:
        assert f"`{hook}`" in headings
        assert f'"{hook}"' in examples


def test_the_group_of_entry_points_and_the_attributes_are_the_true_ones():
    example = re.search(r"^ *```toml\n(.*?)^ *```", TEXT, re.MULTILINE | re.DOTALL)
    assert list(tomllib.loads(example[1])["project"]["entry-points"]) == [ENTRY_POINT_GROUP]
    for name in re.findall(r"`tenuto\.(on|notify|name)\b", TEXT):
        assert hasattr(ExtensionApi("x", lambda *_: None), name)
    assert f"({ExtensionSettings().hook_timeout:g} unless" in TEXT
