"""Hooks of a project wait for the user's trust, each by itself, and again when anything of them changes (R-085)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tenuto.config.consent import Consent, project_of
from tenuto.config.project import HookFile
from tenuto.core.state.trust import look_at_project
from tenuto.extension.hooks.files import read_hook_file
from tenuto.protocol.event import TrustWaitingEvent
from tests.core.harness import agent, one_call_each
from tests.core.hooking import about_hooks, group, hook, kept, notes, own, told, write_hooks
from tests.core.test_hooks import MAKE, made
from tests.extension.test_hook_files import tenuto
from tests.server import Reply

PLACES = (".tenuto/hooks.json", ".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json")
TOML = """
[hooks.state]
"some/place" = "a digest"

[[hooks.PreToolUse]]
matcher = "^Bash$"

[[hooks.PreToolUse.hooks]]
type = "command"
command = 'COMMAND'
timeout = 30
statusMessage = "Looking at it"
"""


def look(tmp_path: Path) -> dict[str, str]:
    """What is decided about each hook here, by its name."""
    found = look_at_project(tmp_path / "work", tmp_path / "home")
    return {stand.item.name: stand.verdict for stand in found.stands if stand.item.kind == "hook"}


def trust_all(tmp_path: Path, *, trusted: bool = True) -> None:
    found = look_at_project(tmp_path / "work", tmp_path / "home")
    items = [stand.item for stand in found.stands]
    assert all(item.digest for item in items), [item.does for item in items]
    Consent(tmp_path / "home").decide(found.project, items, trusted=trusted)


def script(tmp_path: Path, name: str, text: str = "exit 2") -> Path:
    path = tmp_path / "work" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", [*PLACES, ".codex/config.toml"])
async def test_r085_hooks_of_a_project_run_once_the_user_trusts_them(tmp_path, name):
    path = tmp_path / "work" / name
    if path.suffix == ".toml":
        path.parent.mkdir(parents=True)
        path.write_text(TOML.replace("COMMAND", f"{notes(tmp_path)}; exit 2"))
    else:
        write_hooks(path, PreToolUse=[group(f"{notes(tmp_path)}; exit 2", matcher="Bash")])
    script = [Reply(tool_calls=[MAKE]), Reply("done"), Reply(tool_calls=[MAKE]), Reply("done")]
    async with agent(tmp_path, lambda _request: script.pop(0)) as running:
        assert (await running.until(TrustWaitingEvent)).count == 1
        await running.ask("go")
        assert not told(tmp_path) and made(tmp_path)
        assert "not run: not trusted yet" in (await running.runtime.run_command("/hooks"))[0].text
        (dialog,) = await running.runtime.run_command("/trust")
        (row,) = [choice for choice in dialog.choices if choice.stays]
        assert "hook PreToolUse" in row.label and name in row.preview and "exit 2" in row.preview
        await running.runtime.run_command("/trust allow all")
        await running.ask("again")
        assert len(told(tmp_path)) == 1 and made(tmp_path) == "one\n"
        assert any("blocked bash" in text for text in kept(running))
        await running.runtime.run_command("/trust deny all")
        assert "you refused it" in (await running.runtime.run_command("/hooks"))[0].text


async def test_r085_each_hook_waits_by_itself_and_one_is_enough(tmp_path):
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group(notes(tmp_path), "touch never")])
    found = look_at_project(tmp_path / "work", tmp_path / "home")
    assert [stand.item.name for stand in found.stands] == ["Stop", "Stop #2"]
    Consent(tmp_path / "home").decide(found.project, [found.stands[0].item], trusted=True)
    async with agent(tmp_path, one_call_each()) as running:
        await running.ask("go")
    assert told(tmp_path) and not (tmp_path / "work" / "never").exists()


async def test_hooks_that_are_trusted_in_the_session_still_hear_of_its_start(tmp_path):
    write_hooks(tmp_path / "work" / ".claude/settings.json", SessionStart=[group("echo welcome")])
    async with agent(tmp_path, one_call_each()) as running:
        await running.until(TrustWaitingEvent)
        await running.runtime.run_command("/trust allow all")
        await running.ask("go")
        assert any("welcome" in item.text for item in running.server.requests[0].items)


# --- what asks again ---

ENTRY = {"matcher": "Bash", "hooks": [{"type": "command", "command": "sh .claude/hooks/a.sh", "timeout": 5}]}
CHANGES = {
    "the command": {**ENTRY, "hooks": [{**ENTRY["hooks"][0], "command": "sh .claude/hooks/a.sh -v"}]},
    "the time": {**ENTRY, "hooks": [{**ENTRY["hooks"][0], "timeout": 6}]},
    "the condition": {**ENTRY, "hooks": [{**ENTRY["hooks"][0], "if": "Bash(ls)"}]},
    "async": {**ENTRY, "hooks": [{**ENTRY["hooks"][0], "async": True}]},
    "onFailure": {**ENTRY, "hooks": [{**ENTRY["hooks"][0], "onFailure": "block"}]},
    "the matcher": {**ENTRY, "matcher": "Bash|Edit"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_r085_whatever_changes_of_an_entry_asks_again(tmp_path, what):
    path = write_hooks(tmp_path / "work" / ".claude/settings.json", PreToolUse=[ENTRY])
    script(tmp_path, ".claude/hooks/a.sh")
    trust_all(tmp_path)
    assert set(look(tmp_path).values()) == {"trusted"}
    write_hooks(path, PreToolUse=[CHANGES[what]])
    assert "trusted" not in look(tmp_path).values()
    write_hooks(path, PostToolUse=[ENTRY])
    assert set(look(tmp_path).values()) == {"waiting"}
    write_hooks(path, PreToolUse=[ENTRY])
    assert set(look(tmp_path).values()) == {"trusted"}
    path.rename(path.with_name("settings.local.json"))
    assert set(look(tmp_path).values()) == {"waiting"}


NAMED = {
    "relative": ".claude/hooks/a.sh",
    "with a dot": "./.claude/hooks/a.sh --fix",
    "by the variable of others": '"$CLAUDE_PROJECT_DIR/.claude/hooks/a.sh"',
    "quoted in part": '"${CLAUDE_PROJECT_DIR}"/.claude/hooks/a.sh',
    "with a default": 'bash "${CLAUDE_PROJECT_DIR:-.}/.claude/hooks/a.sh"',
    "by our variable": "$TENUTO_PROJECT_DIR/.claude/hooks/a.sh",
    "by git": 'sh "$(git rev-parse --show-toplevel)/.claude/hooks/a.sh"',
    "by git, quietly": 'sh "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/.claude/hooks/a.sh"',
    "from its folder": 'cd "$CLAUDE_PROJECT_DIR/.claude/hooks" && sh a.sh',
    "in another line": "bash -c 'true; .claude/hooks/a.sh && true'",
    "from two folders": "cd .claude && cd hooks && ./a.sh",
    "in a test": "[ -x .claude/hooks/a.sh ]&&.claude/hooks/a.sh||true",
    "in a variable": "hooks=.claude/hooks; $hooks/a.sh",
    "absolute": "{root}/.claude/hooks/a.sh",
}


@pytest.mark.parametrize("way", NAMED)
def test_r085_a_script_that_has_changed_asks_again_however_it_is_named(tmp_path, way):
    path = script(tmp_path, ".claude/hooks/a.sh")
    beside = script(tmp_path, ".claude/hooks/lib/common.sh")
    command = NAMED[way].replace("{root}", str(tmp_path / "work"))
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group(command)])
    trust_all(tmp_path)
    for changed in (path, beside):
        before = changed.read_text()
        changed.write_text(f"{before}touch more\n")
        assert look(tmp_path) == {"Stop": "changed"}
        changed.write_text(before)
        assert look(tmp_path) == {"Stop": "trusted"}
    path.unlink()
    assert look(tmp_path) == {"Stop": "changed"}


def test_what_a_hook_writes_and_only_reads_does_not_ask_again(tmp_path):
    script(tmp_path, ".claude/hooks/a.sh")
    script(tmp_path, "src/tool.sh")
    (tmp_path / "work" / "TASKS.txt").write_text("paint")
    write_hooks(
        tmp_path / "work" / ".claude/settings.json",
        Stop=[group(".claude/hooks/a.sh", "cat TASKS.txt", "ls src")],
    )
    trust_all(tmp_path)
    log = tmp_path / "work" / ".claude" / "hooks" / "logs" / "stop.json"
    log.parent.mkdir()
    log.write_text("{}")
    compiled = tmp_path / "work" / ".claude" / "hooks" / "__pycache__" / "a.cpython-313.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"x")
    (tmp_path / "work" / "TASKS.txt").write_text("paint the door")
    script(tmp_path, "src/tool.sh", "other")
    assert set(look(tmp_path).values()) == {"trusted"}


async def test_r085_a_compiled_file_of_the_project_never_runs_in_the_place_of_its_source(tmp_path):
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group("env > environ")])
    trust_all(tmp_path)
    async with agent(tmp_path, one_call_each()) as running:
        await running.ask("go")
    assert "PYTHONPYCACHEPREFIX=/dev/null" in (tmp_path / "work" / "environ").read_text()


def test_r085_a_link_that_leads_elsewhere_asks_again_and_a_script_behind_one_too(tmp_path):
    (tmp_path / "one").write_text("#!/bin/sh\n")
    link = tmp_path / "work" / ".venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "one")
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group(".venv/bin/python -m this")])
    trust_all(tmp_path)
    link.unlink()
    link.symlink_to("/bin/sh")
    assert look(tmp_path) == {"Stop": "changed"}


def test_r085_another_directory_in_the_place_of_the_project_asks_again(tmp_path):
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group("true")])
    trust_all(tmp_path)
    shutil.copytree(tmp_path / "work", tmp_path / "other")
    os.rename(tmp_path / "work", tmp_path / "gone")
    os.rename(tmp_path / "other", tmp_path / "work")
    assert look(tmp_path) == {"Stop": "changed"}
    assert project_of(tmp_path / "work", tmp_path / "home").inode


async def test_r085_a_script_that_the_model_changes_in_the_session_does_not_run(tmp_path):
    path = script(tmp_path, ".claude/hooks/a.sh", notes(tmp_path))
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group(".claude/hooks/a.sh")])
    trust_all(tmp_path)
    async with agent(tmp_path, one_call_each()) as running:
        await running.ask("go")
        assert len(told(tmp_path)) == 1
        path.write_text(f"{path.read_text()}touch pwned\n")
        await running.ask("go")
        await running.ask("go")
        assert len(told(tmp_path)) == 1 and not (tmp_path / "work" / "pwned").exists()
        (line,) = about_hooks(running)
        assert "has changed since you trusted it and is not run; /trust" in line


async def test_a_guard_that_must_not_fail_blocks_when_its_script_is_changed(tmp_path):
    path = script(tmp_path, ".claude/hooks/a.sh", "exit 0")
    guard = hook(".claude/hooks/a.sh", onFailure="block")
    write_hooks(tmp_path / "work" / ".claude/settings.json", PreToolUse=[group(guard)])
    replies = [Reply(tool_calls=[MAKE]), Reply("done")] * 2
    async with agent(tmp_path, lambda _request: replies.pop(0)) as running:
        await running.ask("go")  # not trusted yet: it is no guard
        assert made(tmp_path) == "one\n"
    trust_all(tmp_path)
    replies = [Reply(tool_calls=[MAKE]), Reply("done")] * 2
    async with agent(tmp_path, lambda _request: replies.pop(0)) as running:
        (tmp_path / "work" / "made.txt").unlink()
        await running.ask("go")
        assert made(tmp_path) == "one\n"
        (tmp_path / "work" / "made.txt").unlink()
        path.write_text("#!/bin/sh\nexit 0 # other\n")
        await running.ask("go")
        assert not made(tmp_path) and any("has changed since you trusted it" in text for text in kept(running))


# --- without a screen, and the command line ---


def test_r085_a_run_without_a_screen_runs_none_and_says_so(tmp_path):
    (tmp_path / "home").mkdir()
    write_hooks(tmp_path / "work" / ".claude/settings.json", UserPromptSubmit=[group("echo no >&2; exit 2")])
    done = tenuto(tmp_path, "-p", "hello", "--model", "offline/tenuto")
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "hook UserPromptSubmit" in line]
    assert "not trusted, so not used" in line and ".claude/settings.json" in line and "exit 2" in line
    assert tenuto(tmp_path, "trust", "allow").returncode == 0
    done = tenuto(tmp_path, "-p", "hello", "--model", "offline/tenuto")
    assert done.returncode == 1 and "A hook blocked the prompt: no" in done.stderr and "not trusted" not in done.stderr


def test_the_command_line_shows_what_is_decided(tmp_path):
    (tmp_path / "home").mkdir()
    path = write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group("true")])
    assert "not run: not trusted yet" in tenuto(tmp_path, "hooks", "list").stdout
    assert "hook Stop (.claude/settings.json): runs as you" in tenuto(tmp_path, "trust").stdout
    assert "is not used:" in tenuto(tmp_path, "doctor").stdout and "tenuto trust" in tenuto(tmp_path, "doctor").stdout
    tenuto(tmp_path, "trust", "allow")
    assert "not run" not in tenuto(tmp_path, "hooks", "list").stdout
    assert json.loads(tenuto(tmp_path, "hooks", "--json").stdout)["hooks"][0]["runs"] is True
    write_hooks(path, Stop=[group("false")])
    assert "not run: it has changed since you decided" in tenuto(tmp_path, "hooks", "list").stdout
    tenuto(tmp_path, "trust", "deny")
    assert "not run: you refused it" in tenuto(tmp_path, "hooks", "list").stdout


def test_hooks_that_are_switched_off_are_not_asked_about(tmp_path):
    (tmp_path / "home").mkdir()
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group("true")])
    (tmp_path / "home" / "settings.toml").write_text("[hooks]\nshared = false\n")
    assert not look(tmp_path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (".claude/settings.json", {"disableAllHooks": True}),
        (".codex/config.toml", "[features]\nhooks = false\n"),
    ],
)
def test_what_another_agents_file_switches_off_does_not_run(tmp_path, name, values):
    path = tmp_path / name
    path.parent.mkdir()
    if isinstance(values, str):
        path.write_text(values + TOML)
    else:
        path.write_text(json.dumps({**values, "hooks": {"Stop": [group("true")]}}))
    read = read_hook_file(HookFile(path, is_shared=True))
    assert not read.commands and not read.problems


async def test_a_hook_of_a_plugin_knows_its_folder(tmp_path):
    plugin = tmp_path / "plugin"
    path = write_hooks(
        plugin / "hooks" / "hooks.json", Stop=[group('echo "$CLAUDE_PLUGIN_ROOT $TENUTO_PLUGIN_ROOT" > at')]
    )
    own(tmp_path, PreToolUse=[group("true")])
    async with agent(tmp_path, lambda _request: Reply("done")) as running:
        hooks = running.runtime.live.hooks
        assert hooks is not None
        await hooks.reload([HookFile(path, plugin=plugin)])
        await running.ask("go")
    assert (tmp_path / "work" / "at").read_text() == f"{plugin} {plugin}\n"


def test_the_same_entry_twice_is_one_hook(tmp_path):
    write_hooks(tmp_path / "work" / ".claude/settings.json", Stop=[group("true", hook("true"))])
    assert list(look(tmp_path)) == ["Stop"]
