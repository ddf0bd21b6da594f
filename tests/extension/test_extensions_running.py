"""Extensions in the running agent: in nobody's way, and from where they come (R-061, R-085)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess

import pytest

import tenuto
from tenuto.command.registry import run_command
from tenuto.config.consent import Consent
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.trust import look_at_project, trusted_extensions
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProgressEvent,
    TrustWaitingEvent,
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
from tests.program import TENUTO
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


@pytest.mark.parametrize("interactive", [True, False])
async def test_r085_a_projects_extensions_are_named_and_not_run(tmp_path, interactive):
    folder = tmp_path / "work" / ".tenuto" / "extensions"
    (folder / "package").mkdir(parents=True)
    canary = tmp_path / "canary"
    code = f"open({str(canary)!r}, 'w')\ndef setup(tenuto):\n    open({str(canary)!r}, 'w')\n"
    (folder / "evil\x1b[2J\n.py").write_text(code)
    (folder / "package" / "__init__.py").write_text(code)
    async with agent(tmp_path, talk(), options=WINDOW, interactive=interactive) as running:
        await fill(running)
        await compact(running)
        assert len(compactions(running)) == 1
        await running.runtime.opener.wait_for_checks()
        if interactive:
            (event,) = (event for event in running.events if isinstance(event, TrustWaitingEvent))
            assert event.count == 2
        else:
            lines = [line for line in about_extensions(running) if line.startswith("not trusted, so not used: ext")]
            assert len(lines) == 2 and "evil" in lines[0] and "package" in lines[1]
            assert not any(letter in line for letter in "\x1b\n" for line in lines)
        assert not canary.exists()
        await run_command(running.runtime, "/new")
        await running.runtime.opener.wait_for_checks()
        assert len([event for event in running.events if isinstance(event, TrustWaitingEvent)]) == interactive
        assert not canary.exists()


async def test_r085_what_is_trusted_runs_at_once_until_it_changes_or_trust_is_taken_back(tmp_path):
    folder = tmp_path / "work" / ".tenuto" / "extensions"
    folder.mkdir(parents=True)
    code = "def setup(tenuto): open({!r}, 'a').write('ran ')\n"
    (folder / "mine.py").write_text(code.format(str(tmp_path / "canary")))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await running.runtime.run_command("/trust allow")
        assert (tmp_path / "canary").read_text() == "ran "
        assert not (folder / "__pycache__").exists()
        await run_command(running.runtime, "/reload")
        assert (tmp_path / "canary").read_text() == "ran ran "
        await running.runtime.run_command("/trust deny")
        assert running.runtime.live.extensions.loaded is None
        await run_command(running.runtime, "/reload")
        await running.runtime.run_command("/trust allow")
        (folder / "mine.py").write_text(code.format(str(tmp_path / "other")))
        await run_command(running.runtime, "/reload")
        assert not (tmp_path / "other").exists()
        await running.runtime.run_command("/trust allow")
        assert (tmp_path / "other").exists()
        assert (tmp_path / "canary").read_text() == "ran ran ran "


@pytest.mark.parametrize("change", ["module", "compiled", "data", "link"])
async def test_r085_every_file_of_a_package_is_part_of_what_is_trusted(tmp_path, change):
    package = tmp_path / "work" / ".tenuto" / "extensions" / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from .inner import first\ndef setup(tenuto): pass\n")
    (package / "inner" / "first.py").write_text("")
    cwd, home = tmp_path / "work", tmp_path / "home"
    look = look_at_project(cwd, home)
    Consent(home).decide(look.project, look.open_items, trusted=True)
    assert list(trusted_extensions(cwd, home)) == [package]
    match change:
        case "module":
            (package / "inner" / "first.py").write_text("import os")
        case "compiled":
            (package / "__pycache__").mkdir()
            (package / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"code")
        case "data":
            (package / "data").write_text("x")
        case _:
            (tmp_path / "elsewhere").mkdir()
            (package / "more").symlink_to(tmp_path / "elsewhere")
    assert trusted_extensions(cwd, home) == {}
    assert len(look_at_project(cwd, home).open_items) == 1


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
            [*TENUTO, *arguments],
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
