"""Nothing that a command of the model does reaches outside of the workspace, and the model is told what held it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.guard.sandbox.places import KINDS, places

LINES = [
    line
    for line in Path(__file__).with_name("writes_outside.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]

TOLD = ("sandbox may have blocked", "The sandbox blocked this", "is protected")


def test_s8_the_table_is_long_enough():
    assert len(LINES) >= 80
    assert len(set(LINES)) == len(LINES)


@pytest.mark.parametrize("kind", KINDS)
async def test_s8_no_line_changes_anything_outside_and_each_is_told(kind):
    changed: list[str] = []
    untold: list[str] = []
    with places(kind) as made:
        before, protected = made.outer(), made.inner()
        for line in LINES:
            _, text = await made.run(line)
            if made.outer() != before:
                changed.append(line)
                before = made.outer()
            if made.inner() != protected and (made.work / ".git" / "HEAD").exists():
                changed.append(f"protected: {line}")
                protected = made.inner()
            if not any(word in text for word in TOLD):
                untold.append(f"{line}\n    {text}")
            gone = made.work / ".gone"
            if gone.exists():  # Landlock lets a folder be renamed inside of the workspace
                shutil.rmtree(made.work / ".git")
                gone.rename(made.work / ".git")
    assert changed == []
    assert untold == []
    for path in ("/etc/tenuto-test", "/usr/tenuto-test", "/opt/tenuto-test", "/tenuto-test", "/dev/tenuto-disk"):
        assert not Path(path).exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_usual_work_goes_on_inside(kind):
    with places(kind) as made:
        for line in (
            "echo x > new.txt && cat new.txt",
            "mkdir -p a/b && mv new.txt a/b/ && rm -r a",
            "git add -A && git -c user.name=n -c user.email=e commit -qm one && git log --oneline",
            "git checkout -q -b topic && git branch && git status --short",
            "git stash -q 2>/dev/null; git gc -q && git tag v1",
            "python3 -c 'import tempfile; tempfile.NamedTemporaryFile().write(b\"x\")'",
            "python3 -m venv --without-pip env && env/bin/python -c 'print(1)'",
            "t=$(mktemp) && echo x > $t && cat $t",
            "echo x | tee /dev/null > /dev/null; ls / > /dev/null || true",
            "python3 -c 'import multiprocessing as m; print(m.Pool(1).map(abs, [-1]))'",
        ):
            result, text = await made.run(line)
            assert not result.is_error, (line, text)


@pytest.mark.parametrize("kind", KINDS)
async def test_s9_a_protected_name_that_was_not_there_is_taken_back(kind):
    with places(kind) as made:
        _, text = await made.run(
            "echo 'run me' > CLAUDE.md; mkdir -p .claude .idea; echo x > .idea/x; echo x > .Claude/x"
        )
        assert not (made.work / "CLAUDE.md").exists()
        assert not (made.work / ".idea").exists()
        assert "CLAUDE.md was made and is protected: it was moved to" in text
        (kept,) = (made.bench.context.outputs / "taken-back").glob("*CLAUDE.md")
        assert kept.read_text() == "run me\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_new_repository_stays_unless_its_configuration_runs_something(kind):
    with places(kind) as made:
        shutil.rmtree(made.work / ".git")
        _, text = await made.run("git init -q . && git add keep && git status --short")
        assert "protected" not in text
        assert (made.work / ".git" / "config").exists()
        shutil.rmtree(made.work / ".git")
        _, text = await made.run("git init -q . && git config core.fsmonitor ./evil && echo x > .git/hooks/pre-commit")
        assert ".git/config was made and is protected" in text
        assert ".git/hooks/pre-commit was made and is protected" in text


@pytest.mark.parametrize("kind", KINDS)
async def test_a_work_tree_commits_to_the_repository_that_knows_it_and_to_no_other(kind):
    with places(kind) as made:
        shutil.rmtree(made.work / ".git")
        main = made.root / "main"
        identity = ("-c", "user.name=n", "-c", "user.email=e")
        for words in (
            ("init", "-q"),
            (*identity, "commit", "-q", "--allow-empty", "-m", "0"),
            ("worktree", "add", "-q", "--detach", str(made.root / "tree")),
        ):
            main.mkdir(exist_ok=True)
            subprocess.run(["git", *words], cwd=main, check=True)
        (made.root / "tree" / ".git").rename(made.work / ".git")
        (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{made.work / '.git'}\n")
        commit = "git add keep && git -c user.name=n -c user.email=e commit -qm one && git log --oneline | wc -l"
        result, text = await made.run(commit)
        assert not result.is_error, text
        _, text = await made.run("git config core.fsmonitor ./evil")
        assert "sandbox may have blocked" in text or "was put back" in text
        assert "fsmonitor" not in (main / ".git" / "config").read_text()
        _, text = await made.run(f"echo x > {main}/.git/hooks/pre-commit")
        assert not (main / ".git" / "hooks" / "pre-commit").exists()
        (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{made.root / 'tree' / '.git'}\n")
        result, _ = await made.run(f"echo x > {main}/.git/x")
        assert result.is_error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "line",
    [
        "rm -rf .vscode; ln -s $OUT .vscode",
        "mv .vscode .v; ln -s $OUT .vscode",
        "rm -rf .github; ln -s $OUT .github",
        "rm -rf .github/workflows; ln -s $OUT .github/workflows",
        "rm AGENTS.md; ln -s $OUT/keep AGENTS.md",
        "rm AGENTS.md; mkdir AGENTS.md; echo x > AGENTS.md/x",
        "rm -rf .claude; ln -s $OUT .claude; ln -s $OUT/keep CLAUDE.md",
        "rm -rf .git/hooks; ln -s $OUT .git/hooks",
    ],
)
async def test_what_is_put_back_follows_no_link(kind, line):
    with places(kind) as made:
        (made.work / ".vscode" / "keep").write_text("other")
        (made.outside / "workflows").mkdir()
        (made.outside / "workflows" / "ci.yml").write_text("theirs")
        before = made.outer()
        await made.run(line)
        assert made.outer() == before
        assert not (made.work / ".vscode").is_symlink()
        assert (made.work / ".vscode" / "keep").read_text() == "other"
        assert (made.work / "AGENTS.md").read_text() == "a\n"
        assert not (made.work / "CLAUDE.md").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["", "echo begun; "])
async def test_an_interrupted_command_is_put_back_as_well(kind, output):
    with places(kind) as made:
        task = asyncio.create_task(made.run(f"{output}echo x > CLAUDE.md; echo x > AGENTS.md; sleep 600"))
        async with asyncio.timeout(30):
            while not (made.work / "CLAUDE.md").exists():
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert not (made.work / "CLAUDE.md").exists()
        assert (made.work / "AGENTS.md").read_text() == "a\n"
