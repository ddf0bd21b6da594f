"""`tenuto skills`, and the examples of docs/skills.md and docs/commands.md as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tenuto.config.commands import find_commands
from tenuto.config.front_matter import read_front_matter
from tenuto.config.places import Where
from tenuto.config.skills import find_skills
from tests.program import TENUTO
from tests.server import Call, Reply, ServerThread

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"```markdown\n<!-- (\S+) -->\n(.*?)```\n", re.DOTALL)
RUN = {"skills.md": ["release-notes"], "commands.md": ["review", "commit"]}
"""The examples of each page, by what they are called: each is run by a test below."""


def example(page: str, root: Path, number: int = 0) -> Path:
    """Write an example of a page where it says that it belongs."""
    where, text = EXAMPLE.findall((DOCS / page).read_text())[number]
    path = root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("page", RUN)
def test_j_every_example_of_a_page_is_one_that_is_run(page):
    text = (DOCS / page).read_text()
    places = [Path(where) for where, _ in EXAMPLE.findall(text)]
    assert [path.parent.name if path.name == "SKILL.md" else path.stem for path in places] == RUN[page]
    assert len(re.findall(r"^```\w", text, re.MULTILINE)) == len(places) + text.count("```sh\n")


def test_j3_the_example_of_a_turn_commits_unasked_by_another_model(work):
    path = example("commands.md", work, 1)
    environ = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run("git init -q; touch a; git add a", shell=True, cwd=work, check=True)
    commit = Reply(tool_calls=[Call("bash", {"command": "git commit -qm 'Add a'"})])
    words = ("-p", "/commit", "--mode", "ask", "--model", "openai-chat/test")
    for trusted in (False, True):
        with ServerThread([commit, Reply("Committed.")]) as server:
            done = tenuto(*words, cwd=work, **server.environ(), **environ)
        if trusted:
            assert done.stdout == "Committed.\n", done.stderr
            assert [request.body["model"] for request in server.requests] == ["large", "large"]
            assert "A  a" in json.dumps(server.requests[0].body)
        else:
            assert f"not trusted, so not used: command commit ({path.relative_to(work)})" in done.stderr
            assert "lets run unasked: Bash(git commit:*)" in done.stderr
            assert not server.requests
        assert tenuto("trust", "allow", cwd=work).returncode == 0
    log = subprocess.run(["git", "log", "--format=%s"], cwd=work, capture_output=True, text=True, check=True)
    assert log.stdout == "Add a\n"


def tenuto(*words: str, cwd: Path, given: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    command = [*TENUTO, *words]
    values = {"PATH": os.environ["PATH"], "HOME": str(cwd.parent), "TENUTO_HOME": str(cwd.parent / "home"), **environ}
    return subprocess.run(command, cwd=cwd, env=values, capture_output=True, text=True, check=False, input=given)


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


def test_j3_prompts_of_standard_input_run_skills_and_command_files_as_the_screens_do(work):
    example("skills.md", work)
    (work / ".tenuto/skills/release-notes/SKILL.md").chmod(0o644)
    folder = work / ".tenuto" / "commands"
    folder.mkdir()
    (folder / "greet.md").write_text("Greet $1 warmly.")
    (folder / "touch.md").write_text("---\nallowed-tools: Bash(touch:*)\n---\nOne: !`touch made.txt`")
    assert tenuto("trust", "allow", cwd=work).returncode == 0
    lines = [
        "/greet Ada",
        "/release-notes for 2.0",
        "/touch",
        "/nosuch thing",
        "/etc/hosts is a file",
        "/skills",
        "plain",
    ]
    given = "".join(json.dumps({"type": "user", "message": {"role": "user", "content": line}}) + "\n" for line in lines)
    with ServerThread([Reply(f"answer {number}") for number in range(8)]) as server:
        words = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--model", "openai-chat/test")
        done = tenuto(*words, cwd=work, given=given, **server.environ())
    assert done.returncode == 0, done.stderr
    results = [row for line in done.stdout.splitlines() if (row := json.loads(line))["type"] == "result"]
    assert len(results) == len(lines)
    sent = [json.dumps(request.body["messages"][-1]) for request in server.requests]
    assert "Greet Ada warmly." in sent[0]
    assert "Run `scripts/commits.sh` and read what it prints." in json.dumps(server.requests[1].body)
    assert (work / "made.txt").exists()
    assert "/nosuch thing" in sent[3]
    assert "/etc/hosts is a file" in sent[4]
    assert "release-notes" in results[5]["result"]
    assert len(sent) == 6, "a list asks no model"


@pytest.mark.parametrize("line", ["/release-notes for 2.0", "/skill:release-notes"])
def test_a_skill_that_waits_for_trust_is_named_and_its_name_is_not_sent(work, line):
    example("skills.md", work)
    script = work / ".tenuto/skills/release-notes/scripts/commits.sh"
    script.parent.mkdir()
    script.write_text("git log\n")
    with ServerThread([]) as server:
        done = tenuto("-p", line, "--model", "openai-chat/test", cwd=work, **server.environ())
        assert done.returncode == 1 and "is a skill with scripts that you do not trust yet" in done.stderr
        assert not server.requests


def test_a_comment_before_the_front_matter_is_named(work):
    """Whoever copies a block of the documentation from its first line has one."""
    for name in ("skills/one/SKILL.md", "commands/two.md"):
        path = work / ".tenuto" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"<!-- .tenuto/{name} -->\n---\nname: one\ndescription: d\n---\nGo.\n")
    (work / ".tenuto/commands/rule.md").write_text("<!-- a remark -->\nGo.\n\n---\n\nOn.\n")
    done = tenuto("skills", "check", cwd=work)
    assert done.stdout.count(":1: a comment stands before the front matter") == 2 and "rule.md" not in done.stdout


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
    (work / ".tenuto" / "commands").mkdir(parents=True)
    (work / ".tenuto" / "commands" / "launch.md").write_text(
        "---\nallowed-tools: Read, Launch(x), Edit(/etc/**)\n---\ngo"
    )
    assert "launch.md:1: allowed-tools has what cannot be allowed here: Launch(x), Edit(/etc/**)" in (
        tenuto("skills", "check", cwd=work).stdout
    )
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
