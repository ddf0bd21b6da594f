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
from tenuto.extension.finding import ENTRY_POINT_GROUP, find_extensions
from tenuto.extension.host import ExtensionHost
from tenuto.protocol.event import (
    AssistantMessageEvent,
    CompactionEndEvent,
    ExtensionStatusEvent,
    NoticeEvent,
    ToolOutputEvent,
    ToolResultEvent,
)
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
from tests.server import Call, Reply

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
        assert hasattr(ExtensionApi("x"), name)
    assert f"({ExtensionSettings().hook_timeout:g} unless" in TEXT


# --- what an extension registers, and what it may do ---


async def test_the_example_of_a_tool(tmp_path):
    install(tmp_path, "### A tool")
    notes = tmp_path / "work" / "notes"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("about NONCE")
    (notes / "b.md").write_text("about nothing")
    script = [Reply(tool_calls=[Call("find_notes", {"word": "NONCE"})]), Reply("done")]
    async with agent(tmp_path, script, mode="plan") as running:
        assert (await running.ask("find it")).outcome == "completed"
        (schema,) = (
            tool for tool in running.server.requests[0].body["tools"] if tool["function"]["name"] == "find_notes"
        )
        parameters = schema["function"]["parameters"]
        assert parameters["properties"]["word"] == {"type": "string", "description": "a word that the notes have"}
        assert sorted(parameters["properties"]["order"]["enum"]) == ["newest", "oldest"]
        assert parameters["required"] == ["word"]
        result = running.of(ToolResultEvent)[0].message
        assert result.parts[0].text == "a.md"
        assert result.ui[0].lines == ((("notes with ", "dim"), ("NONCE", "accent")), (("  a.md", "text"),))
        assert [event.text for event in running.of(ToolOutputEvent)] == ["2 notes looked through\n"]


async def test_the_example_of_a_command(tmp_path):
    install(tmp_path, "### A command")
    async with agent(tmp_path, [Reply("we did it")]) as running:
        await running.ask("hello")
        (answer,) = await running.runtime.run_command("/standup tomorrow")
        assert answer.text == "Today or yesterday?"
        assert [one.value for one in await running.runtime.complete_argument("standup", "")] == ["today", "yesterday"]
        await running.runtime.run_command("/standup")
        await running.runtime.wait_settled()
        assert "what we did today" in running.server.requests[-1].items[-1].text


async def test_the_example_of_a_provider(tmp_path):
    install(tmp_path, "### A provider")
    async with agent(tmp_path, [], model="parrot/grey", environ={"LAB_KEY": "key"}) as running:
        await running.ask("hello there")
        assert running.of(AssistantMessageEvent)[-1].message.parts[0].text == "You said: hello there"
        assert running.runtime.live.models.facts("lab/coder").context_window == 128_000
        running.runtime.live.models.require("lab/coder")


async def test_the_example_of_events_and_the_footer(tmp_path):
    install(tmp_path, "## Events and the footer")
    script = [Reply(tool_calls=[Call("glob", {"pattern": "*"})] * 2), Reply("done")]
    async with agent(tmp_path, script) as running:
        await running.ask("look")
        await until(lambda: [event.text for event in running.of(ExtensionStatusEvent)][-1:] == ["2 calls"])
        await running.runtime.run_command("/new")
        await until(lambda: running.of(ExtensionStatusEvent)[-1].text == "")


async def test_the_example_of_the_model_and_the_view(tmp_path):
    install(tmp_path, "## The model and the view")

    def script(request):
        return Reply("RISK-NONCE" if "Which risks" in request.items[-1].text else "fine")

    async with agent(tmp_path, script) as running:
        await running.ask("hello")
        (answer,) = await running.runtime.run_command("/risks to move the house")
        assert answer.text == "RISK-NONCE"
        assert running.server.requests[-1].body["max_tokens"] == 400
        await running.ask("go on")
        assert b"Risks to keep in mind:\\nRISK-NONCE" in running.server.requests[-1].raw


def test_no_example_of_the_page_is_left_out_here():
    source = Path(__file__).read_text(encoding="utf-8")
    headings = re.findall(r"^(##+ .*)\n(?:(?!^##).*\n)*?^```python", TEXT, re.MULTILINE)
    assert headings
    for heading in headings:
        assert f'install(tmp_path, "{heading}"' in source, heading


def test_everything_that_can_be_called_is_named():
    names = {name for name in vars(ExtensionApi) if not name.startswith("_")}
    for name in names - {"handlers", "close_registration", "is_asking"}:
        assert re.search(rf"\btenuto\.{name}\b", TEXT), name
