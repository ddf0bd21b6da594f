"""Extensions in the running agent: in nobody's way, and from where they come (R-061, R-085)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

import tenuto
from tenuto.command.registry import run_command
from tenuto.core.errors import TaskFailedError
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProgressEvent,
)
from tests.core.compacting import (
    compact,
    compactions,
    fill,
    interrupt,
    log_of,
    summary_requests,
    talk,
    until,
)
from tests.core.harness import agent, reopened
from tests.extension import witness
from tests.extension.extending import WATCH, WINDOW, about_extensions, before, extend
from tests.server import ScriptedServer

# --- in nobody's way ---


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('broken')", "failed in session_before_compact: RuntimeError: broken (mine.py:9)"),
        ("return 7", "answered session_before_compact with what is no answer"),
        ("raise SystemExit", "tried to end the program"),
    ],
)
async def test_r061_a_bad_hook_is_named_once_and_the_default_goes_on(tmp_path, body, said):
    extend(tmp_path, before(body))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        for _ in range(2):
            await fill(running)
            await compact(running)
        assert len(compactions(running)) == 2
        assert len(witness.of("session_before_compact")) == 2
        (notice,) = about_extensions(running)
        assert said in notice
        assert "mine" in notice
        assert said.encode() in log_of(running)


async def test_a_hanging_hook_ends_by_itself(tmp_path):
    extend(tmp_path, before("time.sleep(60)"))
    environ = {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": "0.3"}
    async with agent(tmp_path, talk(), options=WINDOW, environ=environ) as running:
        await fill(running)
        await compact(running)
        assert len(compactions(running)) == 1
        assert any("no answer within 0.3 seconds" in text for text in about_extensions(running))
        stages = [event.stage for event in running.of(CompactionProgressEvent)]
        assert stages[0] == "asking the extension mine"


@pytest.mark.parametrize("hang", ["time.sleep(20)", "event.signal.wait(20)", "return asyncio.sleep(20)"])
async def test_esc_during_a_hanging_hook_cancels_the_compaction_and_appends_nothing(tmp_path, hang):
    extend(tmp_path, before(hang))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        log = log_of(running)
        compacting = asyncio.create_task(compact(running))
        await until(lambda: witness.of("session_before_compact"))
        await interrupt(running)
        finished = await asyncio.wait_for(compacting, 30)
        assert finished.outcome == "interrupted"
        end = running.of(CompactionEndEvent)[0]
        assert (end.aborted, end.error) == (True, None)
        assert log_of(running) == log
        assert witness.of("session_before_compact")[0].signal.is_set()
        assert about_extensions(running) == []


async def test_a_hook_that_is_told_and_hangs_holds_nobody_up(tmp_path):
    extend(
        tmp_path,
        "import asyncio\ndef setup(tenuto):\n    tenuto.on('session_compact', lambda event: asyncio.sleep(3600))\n",
    )
    environ = {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": "0.5"}
    async with agent(tmp_path, talk(), options=WINDOW, environ=environ) as running:
        await fill(running)
        assert (await compact(running)).outcome == "completed"
        assert (await running.ask("at once")).outcome == "completed"
        await until(lambda: about_extensions(running))
        assert "session_compact" in about_extensions(running)[0]


# --- where extensions come from ---


async def test_r085_a_projects_extensions_are_named_and_not_run(tmp_path):
    folder = tmp_path / "work" / ".tenuto" / "extensions"
    (folder / "package").mkdir(parents=True)
    canary = tmp_path / "canary"
    code = f"open({str(canary)!r}, 'w')\ndef setup(tenuto):\n    open({str(canary)!r}, 'w')\n"
    (folder / "evil\x1b[2J\n.py").write_text(code)
    (folder / "package" / "__init__.py").write_text(code)
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert len(compactions(running)) == 1
        (notice,) = about_extensions(running)
        assert "evil" in notice
        assert "package" in notice
        assert "\x1b" not in notice
        assert "\n" not in notice
        assert not canary.exists()
        await run_command(running.runtime, "/new")
        assert len(about_extensions(running)) == 1


async def test_the_users_own_folder_is_no_projects(tmp_path):
    extend(tmp_path, WATCH)
    (tmp_path / "work").mkdir()
    (tmp_path / "home").rename(tmp_path / "work" / ".tenuto")
    async with agent(tmp_path, talk(), options=WINDOW, home=tmp_path / "work" / ".tenuto") as running:
        assert about_extensions(running) == []
        await fill(running)
        await compact(running)
        assert witness.of("session_before_compact")


async def test_what_cannot_be_loaded_is_told_at_the_start_and_leaves_no_session_behind(tmp_path):
    extend(tmp_path, "import nothing_of_that_name")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await until(lambda: about_extensions(running))
        assert "The extension mine (" in about_extensions(running)[0]
        directory = running.session.directory
    assert not directory.exists()


async def test_switched_off_means_nothing_is_loaded(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk(), options=WINDOW, environ={"TENUTO_EXTENSIONS__ENABLED": "false"}) as running:
        await fill(running)
        await compact(running)
        assert witness.seen == []


async def test_extensions_outlive_the_session_that_they_were_loaded_in(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        await run_command(running.runtime, "/new")
        await fill(running)
        await compact(running)
        first, second = witness.of("session_before_compact")
        assert first.session_id != second.session_id


async def test_reload_imports_what_was_written_meanwhile(tmp_path):
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        extend(tmp_path, "from .inner import TEXT\n" + before("return {'add_text': TEXT}"), "package/__init__")
        for text in ("FIRST", "SECOND"):
            (tmp_path / "home" / "extensions" / "package" / "inner.py").write_text(f"TEXT = '{text}-NONCE'\n")
            said = await run_command(running.runtime, "/reload")
            assert "Extensions: package." in said[-1].text
            await fill(running)
            await compact(running)
            assert f"package: {text}-NONCE" in compactions(running)[-1].replacement[0].text
        (tmp_path / "home" / "extensions" / "package" / "__init__.py").write_text("broken(")
        said = await run_command(running.runtime, "/reload")
        assert "Extensions" not in "".join(str(one) for one in said)
        assert "SyntaxError" in about_extensions(running)[-1]


async def test_the_python_api_says_who_was_against_it(tmp_path):
    extend(tmp_path, before("return {'cancel': True, 'cancel_reason': 'never'}"))
    (tmp_path / "work").mkdir()
    async with ScriptedServer(talk(), **WINDOW) as server:
        options = {"cwd": tmp_path / "work", "home": tmp_path / "home", "environ": server.environ()}
        async with tenuto.Agent(**options, model="openai-chat/test") as running:
            for number in range(6):
                await running.run(f"question {number} " + "because " * 300)
            with pytest.raises(TaskFailedError, match="the extension mine cancelled the compaction: never"):
                await running.compact()


async def test_headless_and_by_command_alike(tmp_path):
    """`tenuto -p /compact` in a process of its own; what was told arrives before it ends."""
    note = tmp_path / "note.json"
    extend(
        tmp_path,
        f"""
import asyncio, json
from pathlib import Path

def setup(tenuto):
    @tenuto.on("session_before_compact")
    def ask(event):
        return {{"compaction": {{"summary": "HEADLESS", "first_kept_index": event.preparation.first_kept_index}}}}

    @tenuto.on("session_compact")
    async def told(event):
        await asyncio.sleep(0.2)
        Path({str(note)!r}).write_text(json.dumps([event.from_extension, event.compaction_entry.summary]))
""",
    )
    async with ScriptedServer(talk(), **WINDOW) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
        arguments = ["-p", "/compact", "--continue", "--model", "openai-chat/test"]
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "tenuto", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path / "work",
            env={"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), **server.environ()},
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "compacted (manual)" in done.stderr
        assert json.loads(note.read_text()) == ["mine", "HEADLESS"]
        assert not summary_requests(server)
