"""The fault table of skills and command files: no start is held up, each fault costs one line, what is good works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.core.agent import command_text
from tenuto.protocol.part import text_of
from tests.cli.test_skills import tenuto
from tests.core.compacting import talk
from tests.core.harness import agent, one_call_each
from tests.core.hooking import notices
from tests.core.test_command_files import last_user, run, write
from tests.core.test_skills import sent, steps, trust, work, write_skill
from tests.server import Call


def dead(folder: Path) -> None:
    (folder / "nothing").mkdir(parents=True)


def unreadable(folder: Path) -> None:
    (folder / "bad" / "SKILL.md").mkdir(parents=True)  # a folder of that name: root could read a file of any mode


def hanging(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    os.mkfifo(folder / "bad" / "SKILL.md")


def device(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").symlink_to("/dev/zero")


def flooding(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    with (folder / "bad" / "SKILL.md").open("wb") as file:
        file.write(b"---\nname: bad\ndescription: d\n---\n")
        file.truncate(100_000_000)


def binary(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").write_bytes(b"\xff\xfe\x00\x01" * 100)


def empty(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").write_text("---\nname: bad\ndescription: d\n---\n")


def huge_description(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").write_text(f"---\nname: bad\ndescription: {'long ' * 30_000}\n---\nbody")


def lost(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").symlink_to("nowhere.md")


def outside(folder: Path) -> None:
    secret = folder.parents[2] / "secret.md"
    secret.write_text("---\nname: bad\ndescription: KEY-4711\n---\nKEY-4711")
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").symlink_to(secret)


def outside_folder(folder: Path) -> None:
    write_skill(folder.parents[2] / "elsewhere", "bad", "KEY-4711")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bad").symlink_to(folder.parents[2] / "elsewhere" / "bad")


def cycle(folder: Path) -> None:
    (folder / "round").mkdir(parents=True)
    (folder / "round" / "again").symlink_to(folder)


def self_link(folder: Path) -> None:
    (folder / "bad").mkdir(parents=True)
    (folder / "bad" / "SKILL.md").symlink_to("SKILL.md")


SAID: dict[Callable[[Path], None], str] = {
    dead: "",
    unreadable: "bad",
    hanging: "a pipe",
    device: "a file of the system",
    flooding: "200,000",
    binary: "UTF-8",
    empty: "nothing behind",
    lost: "bad",
    huge_description: "front matter",
    outside: "leads out",
    outside_folder: "leads out",
    cycle: "",
    self_link: "bad",
}


@pytest.mark.parametrize("fault", SAID, ids=lambda fault: fault.__name__)
async def test_j2_a_bad_skill_costs_one_line_and_the_good_one_beside_it_works(tmp_path, fault):
    folder = work(tmp_path) / ".claude" / "skills"
    write_skill(folder)
    fault(folder)
    async with agent(tmp_path, talk("fine")) as running:
        await asyncio.wait_for(run(running, "/release-notes"), 60)
        (request,) = steps(running.server)
        assert "- release-notes:" in sent(request)
        assert "KEY-4711" not in sent(request)
        lines = [text for text in notices(running) if "no skill" in text or "not read" in text or "cannot be" in text]
        assert len(lines) == bool(SAID[fault]), lines
        assert all(SAID[fault] in line and "\n" not in line for line in lines), lines
        await running.ask("again")
        assert len([text for text in notices(running) if text in lines]) == len(lines), "said once"


LIES = {
    "another name": "name: other\ndescription: d",
    "types": "name: [a]\ndescription: {a: b}\nallowed-tools: 7\nmodel: {a: b}\neffort: [x]\nmetadata: no",
    "a long description": f"name: bad\ndescription: {'long ' * 1_500}",
    "terminal": 'name: bad\ndescription: "\\e]0;owned\\a\\e[31mred"',
}


@pytest.mark.parametrize("head", LIES.values(), ids=LIES)
async def test_j2_a_skill_that_lies_is_used_by_what_it_is_and_check_says_so(tmp_path, head):
    folder = work(tmp_path) / ".claude" / "skills" / "bad"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\nBODY-TEXT")
    write_skill(folder.parent)
    async with agent(tmp_path, talk("fine")) as running:
        names = {skill.name for skill in running.runtime.live.skills().usable}
        assert len(names) == 2
        (name,) = names - {"release-notes"}
        assert await run(running, f"/{name}") == []
        text = sent(steps(running.server)[0])
        assert "BODY-TEXT" in text
        assert "\x1b" not in text
        assert len(text) < 40_000
        for command in await running.runtime.own_commands():
            assert "\x1b" not in command.description
    checked = tenuto("skills", "check", cwd=work(tmp_path))
    if head is not LIES["terminal"]:
        assert checked.returncode == 1, checked.stdout
        assert f"{folder}/SKILL.md:" in checked.stdout
    assert "\x1b" not in checked.stdout


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -SEGV $$", "Exit code 139"),
        ("sleep 600", "1 s"),
        ("exit 3", "3"),
        ("yes flood | head -c 3000000", "flood"),
    ],
)
async def test_j2_a_skills_script_that_crashes_hangs_or_floods_is_one_result(tmp_path, script, said):
    path = write_skill(work(tmp_path) / ".claude" / "skills")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "collect.sh").write_text(f"#!/bin/bash\n{script}\n")
    trust(tmp_path)
    calls = [
        Call("skill", {"name": "release-notes"}),
        Call("bash", {"command": f"bash {path.parent}/scripts/collect.sh", "timeout": 1}),
    ]
    async with agent(tmp_path, one_call_each(*calls)) as running:
        settled = await running.ask("write the notes")
        assert settled.outcome == "completed"
        assert said in sent(steps(running.server)[-1])
        assert len(sent(steps(running.server)[-1])) < 200_000


async def test_j3_a_commands_own_command_that_hangs_floods_or_crashes_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(command_text, "SHELL_SECONDS", 1)
    write(tmp_path / "home", "commands/hang.md", "Here: !`sleep 1000`")
    write(tmp_path / "home", "commands/flood.md", "Here: !`yes flood | head -c 3000000`")
    write(tmp_path / "home", "commands/crash.md", "Here: !`kill -SEGV $$`")
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/flood")
        assert 100 < len(text_of(last_user(running).parts)) < 200_000
        await run(running, "/crash")
        assert "Exit code 139" in text_of(last_user(running).parts)
        await run(running, "/hang")
        assert "1 s" in text_of(last_user(running).parts)
        assert len(steps(running.server)) == 3


async def test_names_in_several_places_one_wins_and_the_list_says_which(tmp_path):
    root = work(tmp_path)
    write_skill(root / ".tenuto" / "skills")
    write_skill(root / ".claude" / "skills")
    write_skill(tmp_path / "home" / "skills")
    write(root, ".claude/commands/git/pr.md", "project")
    write(tmp_path / "home", "commands/git/pr.md", "user")
    async with agent(tmp_path, talk("fine")) as running:
        (skill,) = running.runtime.live.skills().usable
        assert skill.path == str(root / ".tenuto/skills/release-notes/SKILL.md")
        await run(running, "/git:pr")
        assert text_of(last_user(running).parts) == "/git:pr\n\nproject"
        (listed,) = await running.runtime.run_command("/skills")
        assert "goes before another of this name" in listed.choices[0].detail
    text = tenuto("skills", "list", cwd=root).stdout
    assert text.count(f"not used: {skill.path} has the same name") == 2
