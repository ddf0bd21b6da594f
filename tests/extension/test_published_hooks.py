"""Hook files that other projects have published, taken as they stand: every command runs at its event.

The programs that they name are not here: each is a stand-in that writes down what it was given. Whose the files are
stands in `tests/fixtures/hooks/LICENSES.md`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenuto.config.project import HookFile
from tenuto.extension.hooks.files import read_hook_file
from tests.core.harness import agent
from tests.core.hooking import about_hooks
from tests.extension.test_hook_trust import look, trust_all
from tests.server import Call, Reply

FILES = Path(__file__).parents[1] / "fixtures" / "hooks"
STAND_IN = """#!/bin/sh
{ printf '%s\\t' "$(basename "$0") $*" "$CLAUDE_PROJECT_DIR" "$CLAUDE_PLUGIN_ROOT"; tr -d '\\n'; echo; } >> RECORD
echo "said by $(basename "$0")"
"""
PATCH = "*** Begin Patch\n*** Add File: a.rs\n+fn main() {}\n*** End Patch"
BLOCK = "npx block-no-verify@1.1.2"
PUBLISHED: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "ruff": ((".claude/hooks/session-start.sh",), {"session-start.sh ": "SessionStart", BLOCK: "PreToolUse"}),
    "workers-sdk": ((".claude/hooks/UserPromptSubmit/prompt_flags.py",), {"prompt_flags.py ": "UserPromptSubmit"}),
    "agent-hooks": (("bin/run-hook.sh",), {"run-hook.sh 1password-validate-mounted-env-files": "PreToolUse"}),
    "mineral": ((".codex/hooks/check_file_size.py",), {"uv run": "PostToolUse"}),
}
"""By folder: the project's programs that it names, and what is run at which event."""


def stand_in(path: Path, record: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STAND_IN.replace("RECORD", str(record)))
    path.chmod(0o755)


def read_record(record: Path) -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = [line.split("\t", 3) for line in record.read_text().splitlines()]
    return [(command, project, plugin, json.loads(given)) for command, project, plugin, given in rows]


def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin"}


CALLS = (Call("bash", {"command": "git commit --no-verify"}), Call("apply_patch", {"input": PATCH}))


@pytest.mark.parametrize("name", PUBLISHED)
async def test_a_published_file_runs_as_it_stands(tmp_path, name):
    programs, expected = PUBLISHED[name]
    record, work = tmp_path / "record", tmp_path / "work"
    shutil.copytree(FILES / name, work)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    for program in programs:
        stand_in(work / program, record)
    for program in ("npx", "uv"):
        stand_in(tmp_path / "bin" / program, record)
    assert len(look(tmp_path)) == len(expected)
    trust_all(tmp_path)
    replies = [Reply(tool_calls=[call]) for call in CALLS] + [Reply("done")]
    async with agent(tmp_path, lambda _request: replies.pop(0), environ=environ(tmp_path)) as running:
        assert (await running.ask("fix it -u")).outcome == "completed"
        assert not about_hooks(running) or all("added: said by" in text for text in about_hooks(running))
    rows = read_record(record)
    for command, event in expected.items():
        found = [row for row in rows if row[0].startswith(command.strip())]
        assert found and all(given["hook_event_name"] == event for *_, given in found), (command, rows)
        assert all(project == str(work) and not plugin for _, project, plugin, _ in found)
    for program in programs:
        (work / program).write_text("#!/bin/sh\n: changed\n")
        assert "changed" in look(tmp_path).values()


async def test_codexs_script_gets_the_patch_that_it_looks_for(tmp_path):
    await test_a_published_file_runs_as_it_stands(tmp_path, "mineral")
    (row,) = [given for *_, given in read_record(tmp_path / "record") if given["tool_name"] == "apply_patch"]
    assert row["tool_input"]["command"] == PATCH and row["cwd"] == str(tmp_path / "work")


async def test_a_published_plugins_file_finds_its_folder(tmp_path):
    plugin, record = tmp_path / "plugin with spaces", tmp_path / "record"
    shutil.copytree(FILES / "agent-hooks-plugin", plugin)
    stand_in(plugin / "bin" / "run-hook.sh", record)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "hooks.json").write_text('{"hooks": {}}')
    replies = [Reply(tool_calls=[CALLS[0]]), Reply("done")]
    async with agent(tmp_path, lambda _request: replies.pop(0), environ=environ(tmp_path)) as running:
        hooks = running.runtime.live.hooks
        assert hooks is not None
        await hooks.reload([HookFile(plugin / "hooks" / "hooks.json", plugin=plugin)])
        await running.ask("go")
    ((command, _, root, given),) = read_record(record)
    assert command == "run-hook.sh 1password-validate-mounted-env-files" and root == str(plugin)
    assert given["tool_input"]["command"] == "git commit --no-verify"


def test_every_published_file_is_read_whole():
    files = [path for path in FILES.rglob("*") if path.suffix in (".json", ".toml")]
    assert len(files) >= 5
    for path in files:
        read = read_hook_file(HookFile(path, is_shared=True))
        assert read.commands and not read.problems, path
        assert path.relative_to(FILES).parts[0] in (FILES / "LICENSES.md").read_text()
