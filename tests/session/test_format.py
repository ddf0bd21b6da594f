"""The version of the log's format is written and checked (reliability.md S7, DESIGN section 3)."""

from __future__ import annotations

import json

import pytest

from tenuto.protocol.entry import FORMAT_VERSION
from tenuto.session.errors import SessionNewer
from tenuto.session.library.catalog import list_sessions
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.session.build import log_of, new_session, user


def headers(directory) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (directory / LOG_NAME).read_bytes().splitlines()]
    return [line for line in lines if line["type"] == "header"]


def in_format(session: Session, version: object) -> None:
    session.close()
    first, rest = log_of(session).read_bytes().split(b"\n", 1)
    header = {**json.loads(first), "version": version}
    if version is None:
        del header["version"]
    log_of(session).write_bytes(json.dumps(header).encode() + b"\n" + rest)


def test_s7_every_header_says_its_version(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    copy = session.fork(tmp_path)
    temporary = Session.create_temporary(tmp_path)
    agent = new_session(tmp_path, directory=session.directory / "agents" / "one", parent_session=session.id)
    for one in (session, copy, temporary, agent):
        assert headers(one.directory)[0]["version"] == FORMAT_VERSION
        one.close()


def test_s7_a_header_that_was_lost_is_written_with_its_version(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    session.close()
    log_of(session).write_bytes(b"x" + log_of(session).read_bytes()[8:])
    Session.open(session.directory).close()
    assert json.loads(log_of(session).read_bytes().splitlines()[-1])["version"] == FORMAT_VERSION


@pytest.mark.parametrize("version", [None, 1, 0, "one", -7, [2]])
def test_s7_a_log_without_a_version_is_of_the_first(tmp_path, version):
    session = new_session(tmp_path)
    session.append(user("one"))
    in_format(session, version)
    opened = Session.open(session.directory)
    assert len(opened.path()) == 1
    opened.append(user("two"))
    opened.close()


@pytest.mark.parametrize("with_meta", [True, False])
def test_s7_a_newer_log_is_read_and_never_written(tmp_path, with_meta):
    session = new_session(tmp_path)
    session.append(user("one"))
    in_format(session, FORMAT_VERSION + 98)
    if not with_meta:
        (session.directory / "meta.json").unlink()
    before = log_of(session).read_bytes()
    with pytest.raises(SessionNewer) as refused:
        Session.open(session.directory)
    assert f"format {FORMAT_VERSION + 98}" in str(refused.value)
    assert f"format {FORMAT_VERSION}:" in str(refused.value)
    reader = Session.open(session.directory, read_only=True)
    assert len(reader.get_llm_history()) == 1
    with pytest.raises(SessionNewer):
        reader.fork(tmp_path)
    with pytest.raises(SessionNewer):
        Session.open(session.directory)  # the refusal let go of the lock
    assert log_of(session).read_bytes() == before
    assert [one.name for one in list_sessions(tmp_path)] == ["one"]
