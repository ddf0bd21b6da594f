"""/export on a real runtime."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tenuto.command.file_commands import parse_export
from tenuto.command.outcome import Say
from tenuto.core.errors import UsageError
from tenuto.protocol.entry import NoticeEntry
from tenuto.protocol.event import AnyEvent, CommandProgressEvent, CompactionEndEvent
from tenuto.session.exporters.export import FORMATS, Export, ExportRequest
from tenuto.tool.search import search
from tests.core.harness import Agent, agent, reopened
from tests.server import Reply, Request, ScriptedServer, Tokens
from tests.session.exporters.reading import check_page

ENDINGS = {"html": ".html", "md": ".md", "jsonl": ".jsonl", "atif": ".json"}


def echo(request: Request) -> Reply:
    return Reply(f"You said {request.last_user.splitlines()[0]}.", usage=Tokens(input=1_200, output=30, cache_read=800))


async def said(running: Agent, line: str) -> Say:
    (outcome,) = await running.runtime.run_command(line)
    assert isinstance(outcome, Say)
    return outcome


async def test_a_session_becomes_one_page_and_goes_on(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("mend the <roof>")
        entries = len(list(running.session.entries()))
        outcome = await said(running, "/export")
        (made,) = (tmp_path / "home" / "exports").glob("*.html")
        assert str(made) in outcome.text and outcome.level == "info"
        assert made.name.startswith("mend-the-roof-20")
        page = check_page(made.read_text(encoding="utf-8"))
        shown = page.by_id("transcript").text
        assert "mend the <roof>" in shown and "You said mend the <roof>." in shown
        assert "calls" in [cell.text for cell in page.all("td")], "what the models used"
        assert len(list(running.session.entries())) == entries, "an export is no part of the session"
        assert (await running.ask("go on")).outcome == "completed"


@pytest.mark.parametrize("form", ["", *FORMATS])
async def test_f13_without_a_path_nothing_is_written_where_the_user_works(tmp_path: Path, form: str) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        outcome = await said(running, f"/export {form}")
        (made,) = (tmp_path / "home" / "exports").iterdir()
        assert f"Exported to {made} (" in outcome.text, "the whole path"
        assert made.stat().st_mode & 0o777 == 0o600 and made.parent.stat().st_mode & 0o777 == 0o700
        assert list((tmp_path / "work").iterdir()) == []
        await said(running, f"/export {form} .")
        assert [file.name for file in (tmp_path / "work").iterdir()] == [made.name], "what is asked for is done"


async def test_f13_a_home_that_takes_no_export_is_one_line_and_a_path_still_works(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        (running.runtime.home / "exports").write_text("in the way")
        outcome = await said(running, "/export")
        assert outcome.level == "warning" and "cannot write" in outcome.text and "\n" not in outcome.text
        assert (await said(running, "/export notes.md")).level == "info"


async def test_the_same_name_again_needs_force(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        await said(running, "/export notes.md")
        before = (tmp_path / "work" / "notes.md").read_text(encoding="utf-8")
        await running.ask("and more")
        refused = await said(running, "/export notes.md")
        assert refused.level == "warning" and "--force" in refused.text and "\n" not in refused.text
        assert (tmp_path / "work" / "notes.md").read_text(encoding="utf-8") == before
        await said(running, "/export --force notes.md")
        assert "and more" in (tmp_path / "work" / "notes.md").read_text(encoding="utf-8")


async def test_json_lines_are_the_log(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        await said(running, f"/export jsonl {tmp_path}/all of it")
        log = running.session.directory / "events.jsonl"
        assert (tmp_path / "all of it.jsonl").read_bytes() == log.read_bytes()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("/export --pdf", "no --pdf"),
        ("/export notes.docx", ".docx does not tell the format"),
        ("/export missing/folder/x.html", "No such file"),
        ("/export --active-path x.html", "only jsonl"),
        ("/export \0", "null "),
    ],
)
async def test_bad_arguments_give_one_clear_line(tmp_path: Path, line: str, part: str) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        outcome = await said(running, line)
        assert outcome.level == "warning"
        assert part in outcome.text and "\n" not in outcome.text
        assert list((tmp_path / "work").iterdir()) == []


async def test_an_empty_and_a_temporary_session_can_be_exported(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, temporary=True) as running:
        assert (await said(running, "/export empty.html")).level == "info"
        check_page((tmp_path / "work" / "empty.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("argument", "wish"),
    [
        ("", ExportRequest()),
        ("a b.html", ExportRequest(output="a b.html")),
        ('"a b.html"', ExportRequest(output="a b.html")),
        ("md", ExportRequest(format="md")),
        ("md --force", ExportRequest(format="md", force=True)),
        (
            "--force  jsonl --active-path  x y",
            ExportRequest(output="x y", format="jsonl", force=True, active_path=True),
        ),
        ("x.html --force", ExportRequest(output="x.html", force=True)),
        ("x--force", ExportRequest(output="x--force")),
        ("html md", ExportRequest(output="md", format="html")),
    ],
)
def test_what_is_typed_behind_it(argument: str, wish: ExportRequest) -> None:
    assert parse_export(argument) == wish


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(UsageError, match="--path"):
        parse_export("--path x")


FILLER = "some words that fill the window " * 600


SUMMARY = "## Goal\nThe user wants words.\n\n## Next Steps\n1. Wait for the next prompt and answer it with words."


def words(request: Request) -> Reply:
    is_prompt = request.last_user.startswith("prompt ")
    return Reply(f"Understood. {FILLER}" if is_prompt else SUMMARY)


async def exports(running: Agent, folder: Path) -> dict[str, bytes]:
    """Every format of the session as it is now, by its name."""
    folder.mkdir()
    for form in FORMATS:
        assert (await said(running, f"/export {form} {folder}/it")).level == "info"
    return {form: (folder / f"it{ENDINGS[form]}").read_bytes() for form in FORMATS}


async def test_r028_t43_a_compacted_session_exports_the_same_after_a_restart(tmp_path: Path) -> None:
    async with ScriptedServer(words, window=60_000) as server:
        async with reopened(tmp_path, server) as running:
            for number in range(4):
                await running.ask(f"prompt {number} {FILLER}")
            await running.runtime.run_command("/compact")
            assert (await running.until(CompactionEndEvent)).entry is not None
            await asyncio.wait_for(running.runtime.wait_settled(), 20)
            before = await exports(running, tmp_path / "before")
            entries = len(list(running.session.entries()))
            log = running.session.directory / "events.jsonl"
        async with reopened(tmp_path, server, resume_latest=True) as running:
            after = await exports(running, tmp_path / "after")
            assert len(list(running.session.entries())) == entries
    assert after == before
    assert all(f"prompt {number}".encode() in exported for number in range(4) for exported in after.values())
    shown = check_page(after["html"].decode()).by_id("transcript").text
    assert "Compacted" in shown and "The user wants words." in shown
    log.write_bytes(b"".join(strip(line) for line in log.read_bytes().splitlines(keepends=True)))
    stripped = Export.of_directory(log.parent)
    for form in FORMATS:
        again = stripped.write(ExportRequest(output=f"stripped{ENDINGS[form]}"), tmp_path).path.read_bytes()
        assert all(f"prompt {number}".encode() in again for number in range(4))
        assert form == "jsonl" or b"Compact" in again


def strip(line: bytes) -> bytes:
    """A compaction with what it cannot do without; every other line as it is."""
    entry = json.loads(line)
    if entry["type"] != "compaction":
        return line
    kept = ("seq", "type", "ts", "summary", "first_kept_index")
    return json.dumps({name: entry[name] for name in kept}).encode() + b"\n"


class Ear:
    """Hears how far a command is, and tells it to stop when that is wanted."""

    def __init__(self, running: Agent) -> None:
        self.texts: list[str] = []
        self.heard = asyncio.Event()
        running.runtime.subscribe(self._hear)

    def _hear(self, event: AnyEvent) -> None:
        if isinstance(event, CommandProgressEvent):
            self.texts.append(event.text)
            self.heard.set()


def lengthen(running: Agent) -> None:
    """Make the session one that takes its time to write."""
    for number in range(8_000):
        running.session.append(NoticeEntry(text=f"note {number}: all is `well`, and **so** on", level="info"))


@pytest.mark.parametrize("line", ["/export html", "/export md", "/copy all"])
async def test_k4_a_long_session_is_exported_with_a_count(tmp_path: Path, monkeypatch, line: str) -> None:
    monkeypatch.setattr(search, "TELL_SECONDS", 0.001)
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        lengthen(running)
        ear = Ear(running)
        await running.runtime.run_command(line)
        verb = "Copying" if "copy" in line else "Exporting"
        *counts, last = ear.texts
        assert counts and all(re.match(rf"{verb}, (entries|MB) \w+: [\d,]+( of [\d,]+)?$", text) for text in counts)
        assert last == "", "the count is gone when it is done"


async def test_k4_an_export_that_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(search, "TELL_SECONDS", 0.001)
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        lengthen(running)
        ear = Ear(running)
        command = asyncio.create_task(running.runtime.run_command("/export html"))
        await asyncio.wait_for(ear.heard.wait(), 60)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command
        assert ear.texts[-1] == "" and list((tmp_path / "home" / "exports").iterdir()) == []
        assert (await said(running, "/export html")).text.startswith("Exported to")
