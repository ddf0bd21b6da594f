"""Hook files as people have them, what of them is left out, and what finding them costs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.project import HookFile, find_hook_files
from tenuto.extension.hooks.answers import BLOCKED, HALTED, Finished, HookFault, read_answer
from tenuto.extension.hooks.files import EVENTS, read_hook_file
from tenuto.extension.hooks.matching import holds, matches, names_of, our_input, their_input, their_name
from tests.extension.test_start import modules_after_a_prompt
from tests.program import TENUTO

BY_SHAPE = {
    "a plugin of Claude Code, with its description": {
        "description": "keep notes",
        "hooks": {
            "SessionStart": [
                {"matcher": "startup|clear|compact", "hooks": [{"type": "command", "command": '"${ROOT}/start.sh"'}]}
            ],
            "PostToolUse": [
                {
                    "matcher": "*",
                    "hooks": [{"type": "command", "command": "node save.js", "timeout": 120, "async": True}],
                }
            ],
            "SessionEnd": [{"hooks": [{"type": "command", "command": "node end.js"}]}],
        },
    },
    "settings of Claude Code": {
        "permissions": {"allow": ["Bash(ls)"]},
        "model": "opus",
        "hooks": {
            "PreToolUse": [
                {
                    "matcher": "Edit|MultiEdit|Write",
                    "hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"}],
                },
                {"matcher": "mcp__.*", "hooks": [{"type": "command", "command": "log.sh"}]},
            ],
            "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "notify-send done"}]}],
        },
    },
    "Codex": {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": "x run", "timeout": 30, "statusMessage": "Checking"}]}]
            for event in ("SessionStart", "UserPromptSubmit", "PostToolUse")
        }
    },
    "Crush, a hook where a group is": {
        "hooks": {"PreToolUse": [{"matcher": "^bash$", "command": "./no-rm.sh", "timeout": 10}]}
    },
    "Goose, without matchers": {
        "hooks": {
            "pre_tool_use": [{"hooks": [{"command": "a"}]}],
            "Stop": [{"hooks": [{"command": "b"}, {"command": "c"}]}],
        }
    },
}


@pytest.mark.parametrize("shape", BY_SHAPE)
def test_files_of_every_shape_are_read_whole(tmp_path, shape):
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps(BY_SHAPE[shape]))
    read = read_hook_file(HookFile(path))
    assert not read.problems and len(read.commands) == 3 if shape != "Crush, a hook where a group is" else read.commands
    assert {command.event for command in read.commands} <= set(EVENTS)


def test_what_cannot_run_is_named_and_the_rest_holds(tmp_path):
    path = tmp_path / "hooks.json"
    good = {"type": "command", "command": "true"}
    events = {
        "PreToolUse": [
            {"hooks": [good, {"type": "prompt", "prompt": "is it safe?"}, {"type": "command"}, 5]},
            {"matcher": "[", "hooks": [good]},
            {"hooks": [{**good, "timeout": "soon"}, {**good, "if": "no (such"}]},
        ],
        "PreToolUsed": [{"hooks": [good]}],
        "PermissionRequest": [{"hooks": [good]}],
    }
    path.write_text(json.dumps({"hooks": events}))
    read = read_hook_file(HookFile(path))
    assert len(read.commands) == 2
    said = "\n".join(read.problems)
    for words in ("type prompt", "no command", "5 is no object", "matcher [", "timeout soon", "condition no (such"):
        assert words in said
    assert "did you mean PreToolUse" in said and "PermissionRequest is no event here" in said
    assert len(read.problems) == 8


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("command"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["hooks", "matcher", "command", "type", "PreToolUse", "Stop", "if"]), inner)
    ),
    max_leaves=12,
)


@given(values=json_values)
def test_no_file_raises(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("any") / "hooks.json"
    path.write_text(json.dumps(values))
    read_hook_file(HookFile(path))


@given(
    output=st.binary(max_size=60), errors=st.text(max_size=30), code=st.integers(0, 255), event=st.sampled_from(EVENTS)
)
def test_no_answer_raises_anything_but_a_fault(output, errors, code, event):
    try:
        answer = read_answer(event, Finished(exit_code=code, output=output, errors=errors))
    except HookFault as fault:
        assert ("\n" not in str(fault) and code != 0) or output.strip().startswith(b"{")
    else:
        assert code in (0, BLOCKED, HALTED) and (answer.verdict != "deny" or answer.reason)


@pytest.mark.parametrize(
    ("matcher", "tool", "fits"),
    [
        ("Edit", "apply_patch", True),
        ("Write", "apply_patch", True),
        ("MultiEdit|Write", "edit", True),
        ("Bash", "bash", True),
        ("Bas", "bash", False),
        ("^Ba", "bash", True),
        ("mcp__memory", "mcp__memory__add", False),
        ("mcp__memory__.*", "mcp__memory__add", True),
        ("Read, Grep", "grep", True),
        ("recall", "recall", True),
    ],
)
def test_what_a_matcher_means(matcher, tool, fits):
    assert matches(matcher, names_of(tool)) is fits


@pytest.mark.parametrize(
    ("condition", "tool", "values", "fits"),
    [
        ("Bash(git push *)", "bash", {"command": "git push origin"}, True),
        ("Bash(git push *)", "bash", {"command": "make && git push origin"}, True),
        ("Bash(git push:*)", "bash", {"command": "git push"}, True),
        ("Bash(git push *)", "bash", {"command": "git status"}, False),
        ("Bash", "edit", {"path": "a"}, False),
        ("Edit(*.py)", "edit", {"path": "a.py", "file_path": "/w/a.py"}, True),
        ("", "bash", {}, True),
    ],
)
def test_what_a_condition_means(condition, tool, values, fits):
    assert holds(condition, tool, values) is fits


@given(
    path=st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1),
    tool=st.sampled_from(["read", "write", "edit"]),
)
def test_what_a_hook_hands_back_unchanged_is_unchanged(path, tool):
    values = {"path": path, "limit": 3}
    told = their_input(tool, values, Path("/place"))
    assert our_input(tool, told, told) == values
    assert our_input(tool, told, {**told, "file_path": "/else"})["path"] == "/else"


def test_a_patch_has_the_name_and_the_argument_that_codex_has():
    told = their_input("apply_patch", {"input": "*** Begin Patch"}, Path("/place"))
    assert told["command"] == "*** Begin Patch" and their_name("apply_patch") == "apply_patch"
    assert our_input("apply_patch", told, told) == {"input": "*** Begin Patch"}
    assert our_input("apply_patch", told, {**told, "command": "other"}) == {"input": "other"}


def test_the_users_own_file_in_their_home_is_not_the_projects(tmp_path):
    (tmp_path / ".tenuto").mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".tenuto" / "hooks.json").write_text("{}")
    (tmp_path / ".claude" / "settings.json").write_text("{}")
    files = find_hook_files(tmp_path / ".tenuto", tmp_path, {"HOME": str(tmp_path)})
    assert [file.root for file in files] == [None, None]


def test_a_projects_file_does_not_lead_out_of_it(tmp_path):
    work = tmp_path / "work"
    (work / ".tenuto").mkdir(parents=True)
    (tmp_path / "secret.json").write_text('{"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}')
    (work / ".tenuto" / "hooks.json").symlink_to(tmp_path / "secret.json")
    (file,) = find_hook_files(tmp_path / "home", work, {})
    read = read_hook_file(file)
    assert not read.commands and "leads out of" in read.problems[0]


HOOKS = ("tenuto.extension.hooks", "tenuto.core.hooks.life", "tenuto.core.hooks.running")


def test_without_files_nothing_is_imported_for_hooks(tmp_path):
    assert not [name for name in modules_after_a_prompt(tmp_path) if name.startswith(HOOKS)]


def test_a_run_without_a_screen_has_hooks_too(tmp_path):
    (tmp_path / "home").mkdir()
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": "echo no thanks >&2; exit 2"}]}]}
    (tmp_path / "home" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    done = tenuto(tmp_path, "-p", "hello", "--model", "offline/tenuto")
    assert done.returncode == 1 and "A hook blocked the prompt: no thanks" in done.stderr


def tenuto(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_program(tmp_path, *TENUTO, *words)


def run_program(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    (tmp_path / "work").mkdir(exist_ok=True)
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        env=environ,
        cwd=tmp_path / "work",
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )


def test_the_command_lists_and_checks(tmp_path):
    (tmp_path / "home").mkdir()
    assert tenuto(tmp_path, "hooks").stdout == "No hooks.\n"
    (tmp_path / "home" / "hooks.json").write_text(json.dumps(BY_SHAPE["Codex"]))
    project = tmp_path / "work" / ".claude" / "settings.json"
    project.parent.mkdir(parents=True)
    project.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}))
    listed = tenuto(tmp_path, "hooks", "list")
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 5
    assert "UserPromptSubmit: x run" in listed.stdout and "not run: not trusted yet" in listed.stdout
    assert tenuto(tmp_path, "hooks", "check").returncode == 0
    project.write_text('{"hooks": {"Stopp": []}}')
    checked = tenuto(tmp_path, "hooks", "check")
    assert checked.returncode == 1 and "did you mean Stop" in checked.stdout
    data = json.loads(tenuto(tmp_path, "hooks", "check", "--json").stdout)
    assert len(data["hooks"]) == 3 and len(data["problems"]) == 1
    assert tenuto(tmp_path, "hooks", "lst").returncode == 2
