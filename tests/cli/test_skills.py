"""`tenuto skills`, and the examples of docs/skills.md and docs/commands.md as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.config.commands import find_commands
from tenuto.config.front_matter import read_front_matter
from tenuto.config.places import Where
from tenuto.config.skills import find_skills
from tests.server import Reply, ServerThread

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"```markdown\n<!-- (\S+) -->\n(.*?)```\n", re.DOTALL)


def example(page: str, root: Path) -> Path:
    """Write the example of a page where it says that it belongs."""
    found = EXAMPLE.search((DOCS / page).read_text())
    assert found is not None
    path = root / found[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found[2])
    return path


def tenuto(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tenuto", *words]
    values = {"PATH": os.environ["PATH"], "HOME": str(cwd.parent), "TENUTO_HOME": str(cwd.parent / "home"), **environ}
    return subprocess.run(
        command, cwd=cwd, env=values, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_j2_the_example_of_the_page_is_listed_checked_and_used(work):
    path = example("skills.md", work)
    found = find_skills(Where(work.parent / "home", work))
    assert [skill.name for skill in found.usable] == ["release-notes"]
    assert not found.files[0].faults
    lines = re.findall(r"^(tenuto skills [^#\n]*?) *(?:#.*)?$", (DOCS / "skills.md").read_text(), re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        done = tenuto(*line.split()[1:], cwd=work)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert "no fault" in done.stdout or "release-notes" in done.stdout
    listed = json.loads(tenuto("skills", "list", "--json", cwd=work).stdout)
    assert listed["skills"][0]["path"] == str(path)
    with ServerThread([Reply("Here they are.")]) as server:
        done = tenuto("-p", "/release-notes for 2.0", "--model", "openai-chat/test", cwd=work, **server.environ())
    assert done.stdout == "Here they are.\n", done.stderr
    sent = json.dumps(server.requests[0].body)
    assert "/release-notes for 2.0" in sent
    assert "Run `scripts/commits.sh` and read what it prints." in sent


def test_j3_the_example_of_the_page_is_sent_from_the_command_line(work):
    example("commands.md", work)
    (work / "CONTRIBUTING.md").write_text("RULES-OF-THE-HOUSE")
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    assert not find_commands(Where(work.parent / "home", work)).usable
    untrusted = tenuto("-p", "/review 12", cwd=work)
    assert "not trusted, so not used: command review" in untrusted.stderr
    assert tenuto("trust", "allow", cwd=work).returncode == 0
    (file,) = find_commands(Where(work.parent / "home", work)).usable
    assert (file.name, file.argument_hint) == ("review", "NUMBER [what to look at]")
    with ServerThread([Reply("Looks good.")]) as server:
        line = "/review 12 error handling"
        done = tenuto("-p", line, "--model", "openai-chat/test", cwd=work, **server.environ())
    assert done.stdout == "Looks good.\n", done.stderr
    sent = json.dumps(server.requests[0].body)
    for piece in ("Review pull request 12. Look above all at: error handling", "?? .tenuto/", "RULES-OF-THE-HOUSE"):
        assert piece in sent, piece


def test_check_names_every_fault_with_file_and_line(work):
    path = work / ".agents" / "skills" / "bad" / "SKILL.md"
    path.parent.mkdir(parents=True)
    head = f"name: Bad_Name\nlicense: [a]\ndescription: {'x' * 1100}\ncompatibility: {'y' * 501}\nmetadata: no"
    path.write_text(f"---\n{head}\n---\ntext\n")
    (path.parent.parent / "none").mkdir()
    (path.parent.parent / "none" / "SKILL.md").write_text("no head\n")
    done = tenuto("skills", "check", cwd=work)
    assert done.returncode == 1
    lines = [re.search(r"SKILL\.md:(\d+): (\w+)", line) for line in done.stdout.splitlines()]
    assert [(int(line[1]), line[2]) for line in lines if line] == [
        (2, "name"), (3, "license"), (4, "description"), (5, "compatibility"), (6, "metadata"), (1, "there"),
    ]  # fmt: skip
    rows = json.loads(tenuto("skills", "check", "--json", cwd=work).stdout)
    assert [fault["line"] for fault in rows["files"][0]["faults"]] == [2, 3, 4, 5, 6]


def test_doctor_tells_what_is_there_and_what_is_left_out(work):
    example("skills.md", work)
    example("commands.md", work)
    waits = [row["found"] for row in json.loads(tenuto("doctor", "--json", cwd=work).stdout)["rows"]]
    assert any("review.md is not used: it runs commands and is not trusted" in line for line in waits)
    tenuto("trust", "allow", cwd=work)
    (work / ".tenuto" / "commands" / "help.md").write_text("mine")
    (work / ".tenuto" / "commands" / "empty.md").write_text("")
    rows = json.loads(tenuto("doctor", "--json", cwd=work).stdout)["rows"]
    found = {name: [row["found"] for row in rows if row["name"] == name] for name in ("skills", "commands")}
    assert found["skills"] == ["1 skill"]
    assert found["commands"][-1] == "1 command file"
    assert any("nothing to send" in line for line in found["commands"])
    assert any("/help is a built-in command" in line for line in found["commands"])


@pytest.mark.parametrize(
    "head",
    [
        "name: x\ndescription: &a [*a]",
        "a: " + "[" * 4_000,
        "x: &a [1,1]\ny: &b [*a,*a]\nz: [*b,*b]",
        "name: !!python/object/apply:os.system ['touch made']\ndescription: d",
        "description: Use it: always: here\nname: 'x",
        "\x00\x01",
        "- a\n- b",
        "? [a, b]\n: c",
    ],
)
def test_no_front_matter_does_more_than_be_read(tmp_path, monkeypatch, head):
    monkeypatch.chdir(tmp_path)
    found = read_front_matter(f"---\n{head}\n---\nbody\n")
    assert found.body == "body\n"
    assert not (tmp_path / "made").exists()


def test_what_published_heads_have_is_read():
    head = read_front_matter(
        "---\nname: x\ndescription: >\n  Two\n  lines.\nargument-hint: [a] [b]\n"
        "allowed-tools: Bash(git a:*), Read\n---\nb"
    )
    assert head.text("description") == "Two lines."
    assert head.text("argument-hint") == "[a] [b]"
    assert head.words("allowed-tools") == ("Bash(git a:*)", "Read")
    assert head.line("argument-hint") == 6
