"""What is told between two answers: once, again when it changes, and only what concerns the model."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tenuto.core.state.reminders import (
    KINDS,
    MAX_CHANGED_FILES,
    MODE_TEXTS,
    ChangedFiles,
    changed_files_message,
    current_branch,
    due_messages,
    environment_text,
    last_told,
)
from tenuto.protocol.entry import Mode
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, FileUse, UserMessage
from tenuto.protocol.part import TextPart
from tenuto.tool.run.context import digest_of
from tests.core.harness import PROTOCOLS, agent
from tests.server import Call, Reply

NOW = time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))
DAY = 86_400


def due(told: dict[str, str], mode: Mode, cwd: Path, now: float = NOW) -> list[str]:
    return [message.kind for message in due_messages(told, MODE_TEXTS[mode], cwd, now, "a note on the place")]


def test_everything_is_told_once_and_again_when_it_changes(tmp_path: Path) -> None:
    first = due_messages({}, MODE_TEXTS["ask"], tmp_path, NOW, "what is here")
    assert [message.kind for message in first] == ["environment", "place", "mode"]
    assert {message.kind for message in first} < set(KINDS)
    told = {message.kind: message.text for message in first}
    assert due(told, "ask", tmp_path) == []
    assert due(told, "plan", tmp_path) == ["mode"]
    assert due(told, "ask", tmp_path, NOW + DAY) == ["environment"]
    assert due(told, "ask", tmp_path, NOW + 60) == [], "the time of day is not told"
    assert due(told, "ask", tmp_path / "below") == ["environment", "place"]
    assert due({"environment": told["environment"]}, "ask", tmp_path) == ["place", "mode"]


def test_each_mode_has_words_of_its_own() -> None:
    assert set(MODE_TEXTS) == {"ask", "edits", "auto", "plan"}
    assert len(set(MODE_TEXTS.values())) == 4
    assert all(mode in text for mode, text in MODE_TEXTS.items())


def test_the_surroundings_name_directory_system_branch_and_day(tmp_path: Path) -> None:
    text = environment_text(tmp_path, NOW)
    assert str(tmp_path) in text
    assert os.uname().sysname in text
    assert "Wednesday, 2026-03-04" in text
    assert "git branch" not in text
    subprocess.run(["git", "init", "-q", "-b", "topic/a", str(tmp_path)], check=True)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert "git branch topic/a" in environment_text(below, NOW)


def test_the_branch_is_read_without_running_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    git = tmp_path / ".git"
    git.mkdir()
    assert current_branch(tmp_path) == ""
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert current_branch(tmp_path) == "main"
    (git / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert current_branch(tmp_path) == "0123456789ab"
    (git / "HEAD").write_bytes(b"\xff\xfe")
    assert current_branch(tmp_path) == ""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "admin").mkdir()
    (tmp_path / "admin" / "HEAD").write_text("ref: refs/heads/other\n")
    (tree / ".git").write_text(f"gitdir: {tmp_path / 'admin'}\n")
    assert current_branch(tree) == "other", "a work tree names its directory in a file"


def test_of_each_kind_the_newest_that_the_model_sees_counts() -> None:
    view = [
        DeveloperMessage(text="old mode", kind="mode"),
        UserMessage(parts=(TextPart(text="mode"),)),
        DeveloperMessage(text="here", kind="environment"),
        AssistantMessage(parts=(TextPart(text="ok"),)),
        DeveloperMessage(text="new mode", kind="mode"),
        DeveloperMessage(text="a job ended"),
    ]
    assert last_told(view) == {"mode": "new mode", "environment": "here"}
    assert last_told([]) == {}


def uses(path: Path) -> dict[str, FileUse]:
    return {str(path): FileUse(path=str(path), op="read", sha256=digest_of(path.read_bytes()))}


def test_r090_only_changed_content_is_told_and_each_change_once(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("one")
    seen, known = ChangedFiles(), uses(path)
    assert seen.find(known) == []
    os.utime(path, (1, 1))
    assert seen.find(known) == [], "a time stamp is no change"
    path.write_text("two")
    assert seen.find(known) == [str(path)]
    assert seen.find(known) == []
    os.utime(path, (2, 2))
    assert seen.find(known) == []
    path.write_text("three")
    assert seen.find(known) == [str(path)]
    assert seen.find(uses(path)) == [], "it has been read again"
    path.unlink()
    assert seen.find(known) == [str(path)]
    assert seen.find(known) == []
    path.write_text("one")
    assert seen.find(known) == [], "it is what the model saw"


def test_what_was_changed_back_and_changed_again_is_told_again(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("one")
    seen, known = ChangedFiles(), uses(path)
    for content, told in (("two", True), ("one", False), ("two", True)):
        path.write_text(content)
        assert bool(seen.find(known)) is told, content


def test_unreadable_and_untracked_files_are_not_told(tmp_path: Path) -> None:
    seen = ChangedFiles()
    assert seen.find({"x": FileUse(path="x", op="read", sha256="")}) == []
    assert seen.find({str(tmp_path): FileUse(path=str(tmp_path), op="read", sha256="a" * 64)}) == []


def test_many_changed_files_are_counted() -> None:
    text = changed_files_message([f"/f{number}" for number in range(MAX_CHANGED_FILES + 5)]).text
    assert text.count("\n- /f") == MAX_CHANGED_FILES
    assert "and 5 more" in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_model_hears_of_a_file_that_changed_and_of_the_mode_and_nothing_sent_changes(
    tmp_path: Path, protocol: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    path = work / "f.txt"
    path.write_text("one\n")
    script = [Reply(tool_calls=[Call("read", {"path": "f.txt"})]), *(Reply("ok") for _ in range(3))]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        await running.ask("read it")
        await running.ask("nothing new")
        path.write_text("two\n")
        await running.runtime.run_command("/mode plan")
        await running.ask("and now")
        first, second, third, fourth = running.server.requests
        for before, after in ((first, second), (second, third), (third, fourth)):
            assert after.prefix_items[: len(before.prefix_items)] == before.prefix_items
        new = "".join(third.prefix_items[len(second.prefix_items) :])
        assert "changed on disk" not in new
        assert "Approval mode" not in new
        new = "".join(fourth.prefix_items[len(third.prefix_items) :])
        assert new.count("changed on disk") == 1
        assert str(path) in new
        assert "Approval mode: plan" in new
        assert "Working directory" not in new
