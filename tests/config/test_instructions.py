from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from tenuto.config.imports import MAX_CHARS
from tenuto.config.instructions import MAX_RULES, Instructions, read_instructions, read_touched
from tenuto.config.project import MAX_BYTES, RefusedFileError, read_branch, read_regular
from tenuto.config.sources import load_settings


def test_the_general_comes_first_and_the_nearest_last(tmp_path):
    home, root = tmp_path / "home", tmp_path / "repo"
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    home.mkdir()
    (root / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    (home / "AGENTS.md").write_text("global")
    (root / "AGENTS.md").write_text("root")
    (root / "a" / "CLAUDE.md").write_text("middle")
    (inner / "AGENTS.md").write_text("near")
    assert [file.text for file in read_instructions(home, inner).files] == ["global", "root", "middle", "near"]


def test_the_same_text_under_both_names_is_given_once(tmp_path):
    (tmp_path / "AGENTS.md").write_text("rules")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(read_instructions(tmp_path / "none", tmp_path).files) == 1


def test_an_empty_file_is_left_out(tmp_path):
    (tmp_path / "CLAUDE.md").write_text("  \n")
    assert read_instructions(tmp_path / "none", tmp_path) == Instructions()


def test_a_giant_file_is_cut_and_says_so(tmp_path):
    (tmp_path / "AGENTS.md").write_text("x" * (MAX_CHARS + 5))
    (file,) = read_instructions(tmp_path / "none", tmp_path).files
    assert file.truncated
    assert str(MAX_CHARS + 5) in file.text


SECRET = "sk-planted-and-never-sent"


def link_out(path, outside):
    path.symlink_to(os.path.relpath(outside, path.parent))


def through_a_folder(path, outside):
    (path.parent / "up").symlink_to(outside.parent)
    path.symlink_to(f"up/{outside.name}")


def link_to_environment(path, _outside):
    path.symlink_to("/proc/self/environ")


def link_to_zero(path, _outside):
    path.symlink_to("/dev/zero")


def link_to_the_system(path, _outside):
    path.symlink_to("/sys/kernel/mm/transparent_hugepage/enabled")


def pipe(path, _outside):
    os.mkfifo(path)


def link_to_pipe(path, _outside):
    os.mkfifo(path.parent / "pipe")
    path.symlink_to("pipe")


def directory(path, _outside):
    path.mkdir()


def huge(path, _outside):
    with path.open("wb") as file:
        file.write(SECRET.encode())
        file.truncate(5_000_000_000)


def a_byte_too_long(path, _outside):
    path.write_text(SECRET + "x" * (MAX_BYTES + 1 - len(SECRET)))


def not_text(path, _outside):
    path.write_bytes(SECRET.encode() + b"\xff\xfe")


def link_to_gits_own(path, _outside):
    (path.parent / ".git" / "config").write_text(f"[remote]\nurl = https://{SECRET}@host\n")
    path.symlink_to(".git/config")


def loop(path, _outside):
    path.symlink_to(path.name)


VECTORS = [
    link_out,
    through_a_folder,
    link_to_environment,
    link_to_zero,
    link_to_the_system,
    pipe,
    link_to_pipe,
    directory,
    huge,
    a_byte_too_long,
    not_text,
    link_to_gits_own,
    loop,
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.__name__)
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
@pytest.mark.parametrize("deep", [False, True], ids=["root", "below"])
def test_s3_only_regular_files_of_the_project_are_read(vector, name, deep, tmp_path):
    """security.md S3. Read in a process of its own: a pipe must not be waited for, /dev/zero not be read to its end."""
    outside = tmp_path / "outside" / "id_rsa"
    outside.parent.mkdir()
    outside.write_text(SECRET)
    root = tmp_path / "repo"
    cwd = root / "src" if deep else root
    cwd.mkdir(parents=True)
    (root / ".git").mkdir()
    place = cwd if vector is not link_to_gits_own else root
    vector(place / name, outside)
    (root / {"AGENTS.md": "CLAUDE.md", "CLAUDE.md": "AGENTS.md"}[name]).write_text("good rules")
    code = (
        "import sys, msgspec; from pathlib import Path; from tenuto.config.instructions import read_instructions as r;"
        "sys.stdout.buffer.write(msgspec.json.encode(r(Path(sys.argv[1]), Path(sys.argv[2]))))"
    )
    limit = "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))"
    done = subprocess.run(
        [sys.executable, "-c", f"import resource; {limit}; {code}", str(tmp_path / "home"), str(cwd)],
        env={"SECRET": SECRET, "HOME": str(tmp_path / "person")},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert SECRET.encode() not in done.stdout
    found = msgspec.json.decode(done.stdout, type=Instructions)
    assert [file.text for file in found.files] == ["good rules"]
    assert len(found.problems) == 1 and f"{place / name} is not read as instructions: " in found.problems[0]


def test_s3_a_project_cannot_link_into_the_home_of_tenuto_that_lies_in_it(tmp_path):
    """security.md S3: the project may be the user's home directory."""
    home = tmp_path / ".tenuto"
    home.mkdir()
    (home / "auth.json").write_text(SECRET)
    (tmp_path / "AGENTS.md").symlink_to(".tenuto/auth.json")
    found = read_instructions(home, tmp_path)
    assert found.files == () and len(found.problems) == 1


def test_s3_links_inside_the_project_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    root, home = tmp_path / "repo", tmp_path / "person" / ".tenuto"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "agents.md").write_text("\ufeffrules")
    (root / "AGENTS.md").symlink_to("docs/agents.md")
    home.mkdir(parents=True)
    (tmp_path / "person" / "dotfiles.md").write_text("mine")
    (home / "AGENTS.md").symlink_to("../dotfiles.md")
    found = read_instructions(home, root)
    assert [file.text for file in found.files] == ["mine", "rules"] and not found.problems


def test_s3_a_user_may_work_in_the_home_of_tenuto(tmp_path):
    (tmp_path / "AGENTS.md").write_text("mine")
    assert [file.text for file in read_instructions(tmp_path, tmp_path).files] == ["mine"]


@pytest.mark.parametrize("text", [b"secret", b"ref: refs/heads/a\x1b[31m", b"\xff", b""])
def test_s3_the_branch_is_a_name_and_nothing_else(text, tmp_path):
    """What `.git/HEAD` says is told to the model."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(text)
    assert read_branch(tmp_path, 8) == ""


@pytest.mark.parametrize("name", ["HEAD", ""])
def test_s3_the_branch_does_not_wait_for_a_pipe(name, tmp_path):
    if name:
        (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / name if name else tmp_path / ".git")
    assert read_branch(tmp_path, 8) == ""


def test_s3_a_file_without_end_is_refused_though_it_says_that_it_is_short(tmp_path):
    with pytest.raises(RefusedFileError):
        read_regular(tmp_path / ".." / ".." / ".." / ".." / ".." / "proc" / "self" / "environ")
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "gone" / "file")


# --- B14: more files, and each text once ---


def place(tmp_path):
    root, home = tmp_path / "repo", tmp_path / "home"
    (root / ".git").mkdir(parents=True)
    home.mkdir()
    return home, root


def texts(found):
    return [file.text for file in found.files]


def test_b14_in_a_folder_the_files_come_in_their_order(tmp_path):
    home, root = place(tmp_path)
    (root / ".claude" / "rules" / "more").mkdir(parents=True)
    (home / "rules").mkdir()
    for number, name in enumerate(
        ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/rules/b.md", ".claude/rules/more/a.md", "CLAUDE.local.md"], 3
    ):
        (root / name).write_text(f"{number}")
    (root / ".claude" / "rules" / "other.txt").write_text("no rule")
    (home / "AGENTS.md").write_text("1")
    (home / "rules" / "a.md").write_text("2")
    assert texts(read_instructions(home, root, ("GEMINI.md", ".cursorrules"))) == [
        str(number) for number in range(1, 9)
    ]
    assert "5" not in texts(read_instructions(home, root)), "other names are read where the user says so"


@pytest.mark.parametrize("kind", ["equal", "link", "import", "import within", "imported"])
def test_b14_what_two_files_of_a_folder_say_is_told_once(tmp_path, kind):
    home, root = place(tmp_path)
    (root / "AGENTS.md").write_text("The rules.\n" if kind != "imported" else "@CLAUDE.md")
    claude = root / "CLAUDE.md"
    if kind == "link":
        claude.symlink_to("AGENTS.md")
    else:
        words = {"import": "\n@AGENTS.md\n", "import within": "More.\n\n@./AGENTS.md"}
        claude.write_text(words.get(kind, "The rules."))
    found = read_instructions(home, root)
    assert "\n".join(texts(found)).count("The rules.") == 1
    assert len(found.files) == (2 if kind == "import within" else 1)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("head", "patterns"),
    [
        ("paths: src/**/*.py", ("src/**/*.py",)),
        ("paths:\n  - \"src/**\"\n  - '*.{ts,tsx}'\n", ("src/**", "*.{ts,tsx}")),
        ('description: x\nglobs: ["*.py", b/*]\nalways: no', ("*.py", "b/*")),
        ("globs: a/{b,c}/*.md, *.sql  # both", ("a/{b,c}/*.md", "*.sql")),
        ("paths:", ()),
        ("title: rules", ()),
    ],
)
def test_b14_a_rule_names_the_files_that_it_is_for(tmp_path, head, patterns):
    home, root = place(tmp_path)
    (root / ".claude" / "rules").mkdir(parents=True)
    (root / ".claude" / "rules" / "one.md").write_text(f"---\n{head}\n---\nThe rule.\n")
    found = read_instructions(home, root)
    rules = found.on_touch if patterns else found.files
    assert [(rule.text, rule.patterns) for rule in rules] == [("The rule.", patterns)]
    assert len(found.files) + len(found.on_touch) == 1


def test_b14_rules_are_bounded_and_stay_in_the_project(tmp_path):
    home, root = place(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text(SECRET)
    (root / ".claude").mkdir()
    (root / ".claude" / "rules").symlink_to("../../outside")
    found = read_instructions(home, root)
    assert found.files == () and "leads out of" in found.problems[0]
    (root / ".claude" / "rules").unlink()
    rules = root / ".claude" / "rules"
    rules.mkdir()
    (rules / "000.md").symlink_to("../../../outside/a.md")
    os.mkfifo(rules / "001.md")
    (rules / "link").symlink_to("../../../outside")
    for number in range(2, MAX_RULES + 20):
        (rules / f"{number:03}.md").write_text(f"{number} " + "x" * 2_000)
    found = read_instructions(home, root)
    assert SECRET not in str(found)
    assert 0 < len(found.files) < MAX_RULES and sum(len(file.text) for file in found.files) <= MAX_CHARS
    said = "\n".join(found.problems)
    assert all(part in said for part in ("000.md is not read", "001.md is not read", "has more than 100 rules"))


@pytest.mark.parametrize("name", ["../x.md", "a/b.md", "/etc/passwd", "..", ".", "", "a\nb", "a\x00b"])
def test_b14_only_names_of_files_are_added(tmp_path, name):
    import tomlkit

    (tmp_path / "settings.toml").write_text(tomlkit.dumps({"instructions": {"also": ["GEMINI.md", name]}}))
    loaded, problems = load_settings(tmp_path, None, {})
    assert loaded.instructions.also == ()
    assert problems == [f"{tmp_path / 'settings.toml'}:2: instructions.also is ignored: it takes a list of file names"]


def test_b14_names_are_added_by_a_variable(tmp_path):
    environ = {"TENUTO_INSTRUCTIONS__ALSO": '["GEMINI.md", ".cursorrules"]'}
    loaded, problems = load_settings(tmp_path, None, environ)
    assert loaded.instructions.also == ("GEMINI.md", ".cursorrules") and problems == []


def test_b14_a_repository_inside_and_packages_are_not_the_projects(tmp_path):
    home, root = place(tmp_path)
    for name in ("own", "clone/lib", "node_modules/evil", "module"):
        (root / name).mkdir(parents=True)
        (root / name / "AGENTS.md").write_text(name)
    (root / "clone" / ".git").mkdir()
    (root / "module" / ".git").write_text("gitdir: ../.git/modules/module")
    touched = [str(root / name) for name in ("own", "clone/lib", "node_modules/evil", "module")]
    assert texts(read_touched(home, root, (), touched, ())) == ["module", "own"]


def test_b14_what_is_above_or_elsewhere_is_no_nested_folder(tmp_path):
    home, root = place(tmp_path)
    for name in ("", "app", "app/pkg", "lib", "../other"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "AGENTS.md").write_text(name or "root")
    touched = [str(root), *(str(root / name) for name in ("app", "app/pkg", "lib")), str(tmp_path / "other")]
    assert texts(read_touched(home, root / "app", (), touched, ())) == ["app/pkg", "lib"]
