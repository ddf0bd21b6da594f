"""`tenuto sessions export` as a script sees it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tenuto.session.session import Session
from tests.program import TENUTO
from tests.session.build import answer, log_of, result, user
from tests.session.exporters.reading import check_page

EXPORT = [*TENUTO, "sessions", "export"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


@pytest.fixture
def session(home: Path, tmp_path: Path):
    made = Session.create(home, tmp_path / "work", durability="none")
    made.append(user("mend the roof"))
    made.append(answer("I look.", ("c1",)))
    made.append(result("c1", "a long way down"))
    yield made
    made.close()


@pytest.fixture
def export(home: Path, tmp_path: Path):
    def run(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(home)}
        options = {"cwd": tmp_path / "work", **options}
        return subprocess.run(
            [*EXPORT, *arguments],
            check=False,
            capture_output=True,
            env=environ,
            timeout=60,
            stdin=subprocess.DEVNULL,
            **options,
        )

    return run


def test_a_session_is_exported_by_the_beginning_of_its_id_while_it_is_open(session, export, tmp_path: Path) -> None:
    done = export(session.id[:6])
    assert (done.returncode, done.stderr) == (0, b"")
    (made,) = (tmp_path / "work").iterdir()
    assert made.name.startswith("mend-the-roof-") and made.suffix == ".html"
    assert made.name in done.stdout.decode()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert "a long way down" in check_page(made.read_text(encoding="utf-8")).by_id("transcript").text


def test_format_and_output(session, export, tmp_path: Path) -> None:
    assert export(session.id, "--format", "md", "--output", "notes").returncode == 0
    assert "> mend the roof" in (tmp_path / "work" / "notes.md").read_text(encoding="utf-8")
    assert export(session.id, "--output", "x.jsonl", "--active-path").returncode == 0
    assert (tmp_path / "work" / "x.jsonl").read_bytes() == log_of(session).read_bytes()


def test_to_standard_output(session, export) -> None:
    done = export(session.id, "--format", "jsonl", "--output", "-")
    assert (done.returncode, done.stdout) == (0, log_of(session).read_bytes())
    assert export(session.id, "--output", "-").stdout.startswith(b"<!DOCTYPE html>")


def test_an_existing_file_is_kept(session, export, tmp_path: Path) -> None:
    target = tmp_path / "work" / "mine.html"
    target.write_text("mine")
    done = export(session.id, "--output", "mine.html")
    assert done.returncode == 2
    assert b"exists already" in done.stderr and done.stderr.count(b"\n") == 1
    assert target.read_text() == "mine"
    assert export(session.id, "--output", "mine.html", "--force").returncode == 0
    assert target.read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "ID"),
        (("nothing-like-it",), "there is no session nothing-like-it"),
        (("",), "there is no session"),
        (("../../etc",), "there is no session"),
        (("ID", "--format", "pdf"), "pdf"),
        (("ID", "--output", "x.pdf"), ".pdf does not tell the format"),
        (("ID", "--active-path"), "only jsonl"),
        (("ID", "--wrong"), "--wrong"),
        (("ID", "second"), "second"),
    ],
)
def test_bad_input_gives_one_clear_line_and_exit_2(session, export, tmp_path: Path, arguments, part: str) -> None:
    done = export(*[session.id if word == "ID" else word for word in arguments])
    assert (done.returncode, done.stdout) == (2, b"")
    assert part in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert list((tmp_path / "work").iterdir()) == []


def test_a_beginning_that_fits_several_sessions_names_them(session, export, home: Path) -> None:
    twin = session.directory.with_name(session.id[:4] + "-twin")
    shutil.copytree(session.directory, twin)
    done = export(session.id[:4])
    assert done.returncode == 2
    assert b"fits 2 sessions" in done.stderr


def test_a_target_that_cannot_be_written_is_a_failure(session, export) -> None:
    done = export(session.id, "--output", "missing/x.html")
    assert done.returncode == 1
    assert b"No such file or directory" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_damaged_log_is_exported_and_the_damage_told(session, export, tmp_path: Path) -> None:
    session.close()
    with log_of(session).open("ab") as file:
        file.write(b'\0\0\0{"seq":\n{"type":"user","seq":9,"parts":[{"type":"text","text":"after the damage"}]}\n')
    assert export(session.id, "--output", "x.html").returncode == 0
    page = check_page((tmp_path / "work" / "x.html").read_text(encoding="utf-8"))
    assert "could not be read" in page.all("details", "aside")[0].text
    assert "after the damage" in page.by_id("transcript").text
