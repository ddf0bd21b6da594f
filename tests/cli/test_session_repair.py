"""`tenuto sessions repair`: a damaged session in a real home, by a real process."""

from __future__ import annotations

from pathlib import Path

from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.cli.test_sessions import tenuto
from tests.session.build import new_session, user


def damaged(home: Path) -> Path:
    session = new_session(home)
    session.append(user("one"))
    session.append(user("two"))
    session.close()
    log = session.directory / LOG_NAME
    log.write_bytes(log.read_bytes() + b"\0" * 30 + b"\n" + b'{"type":"user","seq":3,"par')
    (session.directory / "meta.json").write_text("{")
    (session.directory / "index.jsonl").write_text("broken")
    return session.directory


def test_r064_repair_names_the_damage_and_makes_anew_what_lies_beside_the_log(tmp_path):
    directory = damaged(tmp_path)
    before = (directory / LOG_NAME).read_bytes()
    done = tenuto(tmp_path, "repair", directory.name[:8])
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert first == "line 4 (30 bytes): NUL bytes"
    assert second.startswith("line 5 (27 bytes)")
    assert last == f"session {directory.name}: 3 entries, 2 damaged lines; what is good in them is kept"
    assert (directory / LOG_NAME).read_bytes().startswith(before)
    session = Session.open(directory)
    assert len(session.path()) == 2
    assert not (directory / "index.jsonl").exists(), "too short a log to need one"


def test_r066_a_session_that_is_open_elsewhere_is_not_repaired(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    done = tenuto(tmp_path, "repair", session.id)
    assert done.returncode == 1
    assert "is open in process" in done.stderr
    session.close()


def test_a_session_that_is_not_there(tmp_path):
    done = tenuto(tmp_path, "repair", "nothing")
    assert done.returncode == 2
    assert "there is no session nothing" in done.stderr
