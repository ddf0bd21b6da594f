"""/export on a real runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.export_command import parse_wish
from tenuto.command.outcome import Say
from tenuto.core.errors import UsageError
from tenuto.session.exporters.export import Wish
from tests.core.harness import Agent, agent
from tests.server import Reply, Request, Tokens
from tests.session.exporters.reading import check_page


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
        (made,) = (tmp_path / "work").glob("*.html")
        assert str(made) in outcome.text and outcome.level == "info"
        assert made.name.startswith("mend-the-roof-20")
        page = check_page(made.read_text(encoding="utf-8"))
        shown = page.by_id("transcript").text
        assert "mend the <roof>" in shown and "You said mend the <roof>." in shown
        assert len(page.all("rect", "fresh")) == 1
        assert len(list(running.session.entries())) == entries, "an export is no part of the session"
        assert (await running.ask("go on")).outcome == "completed"


async def test_the_same_name_again_needs_force(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        await said(running, "/export notes.md")
        before = (tmp_path / "work" / "notes.md").read_text(encoding="utf-8")
        await running.ask("and more")
        refused = await said(running, "/export notes.md")
        assert refused.level == "error" and "--force" in refused.text and "\n" not in refused.text
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
        ("/export \0", "null byte"),
    ],
)
async def test_bad_arguments_give_one_clear_line(tmp_path: Path, line: str, part: str) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        outcome = await said(running, line)
        assert outcome.level == "error"
        assert part in outcome.text and "\n" not in outcome.text
        assert list((tmp_path / "work").iterdir()) == []


async def test_an_empty_and_a_temporary_session_can_be_exported(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, temporary=True) as running:
        assert (await said(running, "/export empty.html")).level == "info"
        check_page((tmp_path / "work" / "empty.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("argument", "wish"),
    [
        ("", Wish()),
        ("a b.html", Wish(output="a b.html")),
        ('"a b.html"', Wish(output="a b.html")),
        ("md", Wish(format="md")),
        ("md --force", Wish(format="md", force=True)),
        ("--force  jsonl --active-path  x y", Wish(output="x y", format="jsonl", force=True, active_path=True)),
        ("x.html --force", Wish(output="x.html", force=True)),
        ("x--force", Wish(output="x--force")),
        ("html md", Wish(output="md", format="html")),
    ],
)
def test_what_is_typed_behind_it(argument: str, wish: Wish) -> None:
    assert parse_wish(argument) == wish


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(UsageError, match="--path"):
        parse_wish("--path x")
