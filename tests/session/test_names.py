"""A name that is not UTF-8, or that changed, never stops anything (reliability.md S1 cause a, A4, A5)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import TitleEntry
from tenuto.session.errors import Owner, SessionLocked
from tenuto.session.library.catalog import latest_session, list_sessions
from tenuto.session.log.lock import LOCK_NAME, is_local, parse_listed_mounts, parse_mounts
from tenuto.session.moving import relocate
from tenuto.session.session import Session
from tenuto.text.writable import path_text, text_path, to_json
from tests.program import TENUTO
from tests.session.build import user

SOURCES = Path(__file__).parents[2] / "src"
NAMES = st.binary(min_size=1, max_size=30).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_"))
TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates among them


@given(NAMES, NAMES, TEXTS)
def test_s1_a_session_in_a_directory_of_any_name_is_kept_found_and_moved(name, other, title):
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        cwd = Path(folder, "a", "x" + os.fsdecode(name))
        cwd.mkdir(parents=True)
        session = Session.create(home, cwd, durability="none")
        session.append(user("one"))
        session.append(TitleEntry(title=title))
        session.save_meta()
        assert session.unsaved is None
        session.close()
        (session.directory / "meta.json").exists() or pytest.fail("the metadata is not stored")
        latest = latest_session(home, cwd)
        assert latest.directory == session.directory
        (summary,) = list_sessions(home)
        assert summary.place == cwd
        to_json(summary.cwd)
        opened = Session.open(session.directory, durability="none")
        assert opened.cwd == cwd
        copy = opened.fork(home)
        assert copy.cwd == cwd
        copy.close()
        opened.close()
        target = Path(folder, "b", "y" + os.fsdecode(other))
        target.mkdir(parents=True)
        moved = Session.open(relocate(home, session.directory, target), durability="none")
        assert moved.cwd == target
        moved.close()


@given(st.one_of(NAMES.map(lambda name: "/" + os.fsdecode(name)), TEXTS.map(lambda text: "/" + text)))
def test_s1_a_path_as_text_can_be_written_and_loses_no_byte(path):
    text = path_text(Path(path))
    text.encode()
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return  # no name of a file
    assert text_path(text) == Path(path)


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_s1_whatever_text_comes_from_outside_becomes_json(value):
    msgspec.json.decode(to_json(value))


ENCODE_THEMSELVES = {
    "text/writable.py",  # the door
    "compaction/ways/strategies.py",  # refuses what is no text
    "session/log/record.py",  # what the door is not enough for: raw blocks
    "session/log/history.py",  # numbers and our own words alone
    "text/json_access.py",  # the door to the wire, which takes no NUL either
    "model/offline.py",
    "extension/host.py",  # refuses what an extension may not say
}


def test_s1_everything_else_is_encoded_through_the_door():
    found: set[str] = set()
    for path in (SOURCES / "tenuto").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("msgspec.json.encode", "msgspec.json.Encoder"):
                found.add(str(path.relative_to(SOURCES / "tenuto")))
    assert found <= ENCODE_THEMSELVES


def run(home: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TENUTO_HOME": str(home), "PYTHONPATH": str(SOURCES)}
    command = [*TENUTO, *words]
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, errors="replace", timeout=120, check=False
    )


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_s1_a_headless_run_in_such_a_directory_ends_and_continue_finds_it_again(tmp_path, form):
    cwd = Path(os.fsdecode(os.fsencode(tmp_path / "x") + b"\xff\xfe"))
    cwd.mkdir()
    for words in (("-p", "list"), ("-c", "-p", "read x")):
        done = run(tmp_path / "home", cwd, "--model", "offline/tenuto", *form, *words)
        assert (done.returncode, "internal" in done.stdout + done.stderr) == (0, False), done
    (summary,) = list_sessions(tmp_path / "home")
    assert summary.messages > 2
    assert summary.place == cwd


GONE = "import os, sys; os.rmdir(os.getcwd()); from tenuto.cli.main import main; main()"


@pytest.mark.parametrize(
    "words", [("-p", "hi"), ("-c", "-p", "hi"), ("--cwd", ".", "-p", "hi"), ("sessions", "list", "--here")]
)
def test_a4_a_working_directory_that_was_deleted_is_said_in_a_line(tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    environ = {"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", GONE, *words],
        cwd=gone,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "was deleted" in done.stderr
    assert "--cwd" in done.stderr
    assert "Traceback" not in done.stderr


def test_a4_another_directory_can_be_named_from_a_deleted_one(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    environ = {"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", GONE, "--model", "offline/tenuto", "--cwd", str(tmp_path), "-p", "list"]
    done = subprocess.run(command, cwd=gone, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done


def left_open(home: Path, host: str) -> Session:
    """Return a session that a killed process of a machine with this name had open."""
    session = Session.create(home, home, durability="none")
    session.append(user("one"))
    session.close()
    (session.directory / LOCK_NAME).write_bytes(to_json(Owner(pid=1234, host=host)))
    return session


@pytest.mark.parametrize("host", ["old-container", "näme", "\udcff\udcfe"])
def test_a5_a_machine_that_was_renamed_opens_its_sessions_with_a_word(tmp_path, monkeypatch, host):
    monkeypatch.setattr("tenuto.session.log.lock.is_local", lambda directory: True)
    session = left_open(tmp_path, host)
    opened = Session.open(session.directory, durability="none")
    assert opened.left_by is not None
    assert opened.left_by.pid == 1234
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    opened.close()
    again = Session.open(session.directory, durability="none")
    assert again.left_by is None


def test_a5_where_a_lock_proves_nothing_it_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.session.log.lock.is_local", lambda directory: False)
    session = left_open(tmp_path, "elsewhere")
    with pytest.raises(SessionLocked) as refused:
        Session.open(session.directory)
    assert refused.value.can_take_over
    Session.open(session.directory, take_over=True).close()


def test_a5_a_host_name_that_is_not_utf_8_locks_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="host\udcff"))
    session = Session.create(tmp_path, tmp_path, durability="none")
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    session.close()
    Session.open(session.directory).close()


TABLE = b"""\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:35 / /home/a\\040b rw - nfs4 server:/x rw
31 22 0:36 / /disk rw master:2 - overlay overlay rw
32 22 0:37 / /disk/far rw - fuse.sshfs me@there: rw
33 22 0:38 / /disk/new rw - kind-of-next-year none rw
"""
LISTED = b"""\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
//me@nas/home on /Volumes/my home (smbfs, nodev, nosuid, mounted by me)
"""


@pytest.mark.parametrize(
    ("place", "known"),
    [
        ("/x", True),
        ("/home/a b/s", False),
        ("/home/a", True),
        ("/disk/s", True),
        ("/disk/far/s", False),
        ("/disk/new", False),
    ],
)
def test_a5_only_kinds_of_file_systems_that_are_known_are_local(monkeypatch, place, known):
    monkeypatch.setattr("tenuto.session.log.lock._MOUNTS", SimpleNamespace(read_bytes=lambda: TABLE))
    assert is_local(Path(place)) is known
    assert len(parse_mounts(TABLE)) == 5


def test_a5_the_mounts_of_macos_are_read():
    (root, facts), (volume, far) = parse_listed_mounts(LISTED)
    assert (root, "local" in facts) == (b"/", True)
    assert (volume, "local" in far) == (b"/Volumes/my home", False)
