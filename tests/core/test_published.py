"""Published skills and command files, taken as they stand: listed, checked, sent, and what the model gets of each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tenuto.config.skills import check_skill
from tenuto.protocol.part import text_of
from tests.cli.test_skills import tenuto
from tests.core.compacting import talk
from tests.core.harness import agent, one_call_each
from tests.core.hooking import notices
from tests.core.test_command_files import last_user, run
from tests.core.test_skills import sent, steps, trust, work
from tests.server import Call

PUBLISHED = Path(__file__).parents[1] / "fixtures" / "published"
SKILLS = sorted(path.name for path in (PUBLISHED / "skills").iterdir())
WITH_PROGRAMS = {"systematic-debugging"}
COMMANDS = {
    "clean_gone": "Cleans up all git branches marked as [gone]",
    "commit": "Create a git commit",
    "commit-push-pr": "Commit, push, and open a PR",
    "example-command": "An example slash command",
    "implement": "Full implementation workflow",
    "implement-and-review": "Worker implements, reviewer reviews",
    "is": "Analyze GitHub issues",
    "revise-claude-md": "Update CLAUDE.md with learnings",
    "scout-and-plan": "Scout gathers context",
    "spark-preflight": "Preflight a DGX Spark system",
}
ALLOWED = {
    "commit": "bash(git add *), bash(git status *), bash(git commit *)",
    "commit-push-pr": "bash(git checkout --branch *), bash(git add *), bash(git status *), bash(git push *), "
    "bash(git commit *), bash(gh pr create *)",
    "example-command": "bash",
    "revise-claude-md": "edit",
}
ARGUMENT = "the parser; and $1"


def lay_out(tmp_path: Path) -> Path:
    """Put everything where its own agent reads it, in a project under git."""
    root = work(tmp_path)
    for name, place in (("skills", ".claude/skills"), ("commands", ".claude/commands"), ("prompts", ".pi/prompts")):
        shutil.copytree(PUBLISHED / name, root / place)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-qb", "trunk"], cwd=root, check=True)
    (root / "first.txt").write_text("one\n")
    subprocess.run([*git, "add", "first.txt"], cwd=root, check=True)
    subprocess.run([*git, "commit", "-qm", "The first commit"], cwd=root, check=True)
    (root / "first.txt").write_text("two\n")
    return root


def body_of(path: Path) -> str:
    return path.read_text().split("\n---\n", 1)[1].strip()


def test_every_licence_is_here_and_named():
    readme = (PUBLISHED / "README.md").read_text()
    files = [*SKILLS, *(path.stem for place in ("commands", "prompts") for path in (PUBLISHED / place).iterdir())]
    assert [name for name in files if name not in readme] == []
    licences = [path.name for path in (PUBLISHED / "licences").iterdir()]
    assert [name for name in licences if name.removesuffix(".txt") not in readme] == []


def test_j_all_of_them_are_listed_and_have_no_fault(tmp_path):
    root = lay_out(tmp_path)
    done = tenuto("skills", "check", cwd=root)
    assert done.stdout == f"{len(SKILLS) + len(COMMANDS)} files, no fault\n"
    listed = tenuto("skills", "list", cwd=root).stdout
    assert [name for name in SKILLS if f"{name} (project" not in listed] == []


@pytest.mark.parametrize("name", SKILLS)
async def test_j2_a_published_skill_is_listed_and_loaded_word_for_word(tmp_path, name):
    lay_out(tmp_path)
    source = PUBLISHED / "skills" / name / "SKILL.md"
    skill = check_skill(source, "project", source.read_text()).skill
    script = one_call_each(Call("skill", {"name": name}))
    async with agent(tmp_path, script) as running:
        waiting = {one.name for one in running.runtime.live.skills().waiting}
        assert waiting == WITH_PROGRAMS
        trust(tmp_path)
        await running.ask("use it")
        first, second = steps(running.server)
        assert f"- {name}: {skill.description[:60]}" in sent(first)
        assert sent(second).count(body_of(source)) == 1
        for other in source.parent.rglob("*"):
            if other.is_file() and other != source:
                assert str(other.relative_to(source.parent)) in sent(second)
        assert not running.server.faults


@pytest.mark.parametrize("name", COMMANDS)
async def test_j3_a_published_command_sends_its_text_with_arguments_and_outputs(tmp_path, name):
    root = lay_out(tmp_path)
    (source,) = PUBLISHED.glob(f"[cp]*/{name}.md")
    trust(tmp_path)
    async with agent(tmp_path, talk("fine"), mode="ask", interactive=False) as running:
        (command,) = [one for one in await running.runtime.own_commands() if one.name == name]
        assert command.description.startswith(COMMANDS[name])
        body = body_of(source)
        argument = ARGUMENT if "$ARGUMENTS" in body or "$@" in body else ""
        assert await run(running, f"/{name} {argument}") == []
        text = text_of(last_user(running).parts)
        assert text.startswith(f"/{name} {argument}".strip() + "\n\n")
        for line in body.splitlines():
            if "!`" in line:
                assert line not in text
            else:
                assert line.replace("$ARGUMENTS", argument).replace("$@", argument) in text, line
        if "!`git diff HEAD`" in body:
            assert "-one\n+two" in text
            assert "- Current branch: trunk" in text
        assert "not run" not in text
        allowed = [text for text in notices(running) if "allows for this turn" in text]
        assert [text.partition(": ")[2] for text in allowed] == [text for one, text in ALLOWED.items() if one == name]
        assert sent(steps(running.server)[0]).count(text) == 1
        assert (root / "first.txt").read_text() == "two\n"


async def test_j3_a_published_commit_commits_without_a_question(tmp_path):
    root = lay_out(tmp_path)
    trust(tmp_path)
    calls = [
        Call("bash", {"command": "git add first.txt"}),
        Call("bash", {"command": "git -c user.name=A -c user.email=a@example.org commit -qm Second"}),
        Call("bash", {"command": "git commit -qm Second --author='A <a@example.org>'"}),
        Call("bash", {"command": "rm first.txt"}),
    ]
    environ = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    async with agent(tmp_path, one_call_each(*calls), mode="ask", interactive=False, environ=environ) as running:
        await run(running, "/commit")
        log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True, check=True)
        assert log.stdout.splitlines() == ["Second", "The first commit"]
        assert (root / "first.txt").exists(), "what the command does not name is refused as ever"
