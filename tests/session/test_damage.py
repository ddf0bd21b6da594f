"""Reading a log whatever is wrong with it (R-062 to R-065, T-23)."""

from __future__ import annotations

import pytest

from tenuto.protocol.entry import UnknownEntry
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.log.log import Damage
from tenuto.session.session import Session
from tests.session.build import answer, log_of, new_session, reopen, result, user


def said(session: Session) -> list[str]:
    return [text_of(entry.parts) for entry in session.path() if isinstance(entry, UserMessage)]


def session_of(home, *texts: str) -> Session:
    session = new_session(home)
    for value in texts:
        session.append(user(value))
    return session


GOOD = b'{"type":"user","seq":9,"parts":[{"type":"text","text":"glued"}]}'
# What is put between the second and the third message; the reason reported; what is loaded from it.
DAMAGE = [
    pytest.param(b"\0" * 400 + b"\n", "NUL bytes", [], id="400 NULs"),
    pytest.param(b'{"type":"user","seq":9,"parts":[{"ty\n', "not valid JSON", [], id="half a line"),
    pytest.param(b"\xff\xfe\n", "invalid UTF-8", [], id="not UTF-8"),
    pytest.param(b'{"type":"user","seq":9,"parts":[{"type":"text","text":"\xff"}]}\n', "invalid UTF-8", [], id="in"),
    pytest.param(b'{"seq":9}\n', "an object without a type", [], id="no type"),
    pytest.param(b"[1]\n", "not an object", [], id="no object"),
    pytest.param(b"\0" * 9 + GOOD + b"\n", "NUL bytes", ["glued"], id="NULs before a good one"),
    pytest.param(b'{"type":"user","seq":8,"pa' + GOOD + b"\n", "not valid JSON", ["glued"], id="glued to a half"),
    pytest.param(GOOD + GOOD.replace(b'"seq":9', b'"seq":10') + b"\n", "not valid JSON", ["glued"] * 2, id="two"),
    pytest.param(b"{" * 5_000 + b"\n", "not valid JSON", [], id="braces"),
]


@pytest.mark.parametrize(("bad", "reason", "kept"), DAMAGE)
def test_r064_what_is_good_loads_and_what_is_not_is_named(tmp_path, bad, reason, kept):
    session = session_of(tmp_path, "one", "two")
    log = log_of(session)
    session.close()
    before = log.read_bytes()
    log.write_bytes(before + bad + b'{"type":"user","seq":20,"parts":[{"type":"text","text":"three"}]}\n')
    damaged = log.read_bytes()

    opened = Session.open(session.directory)

    assert said(opened) == ["one", "two", *kept, "three"]
    assert opened.damage == (Damage(line=4, size=len(bad) - 1, reason=reason),)
    assert f"line 4 ({len(bad) - 1} bytes)" in str(opened.damage[0])
    assert opened.append(user("four")).seq == 21
    assert log.read_bytes().startswith(damaged), "the file is only ever appended to"


def test_r064_carriage_returns_and_empty_lines_harm_nothing(tmp_path):
    session = session_of(tmp_path, "one", "two")
    session.close()
    log = log_of(session)
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n") + b"\n\r\n")
    opened = Session.open(session.directory)
    assert said(opened) == ["one", "two"]
    assert opened.damage == ()


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\r", "\x1c", "\0"])
def test_r065_only_a_line_feed_ends_a_record(tmp_path, mark):
    session = session_of(tmp_path, f"a{mark}b", "next")
    opened = reopen(session)
    assert said(opened) == [f"a{mark}b", "next"]
    assert opened.damage == ()


def test_r063_a_line_that_was_cut_off_is_closed_before_the_next_one(tmp_path):
    session = session_of(tmp_path, "one", "two")
    session.close()
    log = log_of(session)
    log.write_bytes(log.read_bytes()[:-10])

    opened = Session.open(session.directory)
    assert said(opened) == ["one"]
    assert [damage.reason for damage in opened.damage] == ["cut off"]
    opened.append(user("three"))

    again = reopen(opened)
    assert said(again) == ["one", "three"]
    assert len(again.damage) == 1
    assert reopen(again).damage == again.damage


def test_r063_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    session = session_of(tmp_path, "one", "two")
    session.close()
    log = log_of(session)
    log.write_bytes(log.read_bytes()[:-1])
    opened = Session.open(session.directory)
    opened.append(user("three"))
    again = reopen(opened)
    assert said(again) == ["one", "two", "three"]
    assert again.damage == ()


def test_r062_cut_at_any_byte_at_most_the_last_record_is_missing(tmp_path):
    session = new_session(tmp_path)
    session.append(user("ä question"))
    session.append(answer("", ("c",)))
    session.append(result("c"))
    session.append(user("end"))
    session.close()
    log = log_of(session)
    whole = log.read_bytes()
    for cut in range(len(whole)):
        log.write_bytes(whole[:cut])
        opened = Session.open(session.directory, durability="none")
        complete = whole[:cut].count(b"\n") + (whole[cut : cut + 1] == b"\n")
        loaded = [entry for entry in opened.entries() if not getattr(entry, "interrupted", False)]
        assert max(complete, 1) <= len(loaded) <= complete + 1
        opened.append(user("after"))
        opened.close()
        assert said(Session.open(session.directory, read_only=True))[-1] == "after"


def test_a_duplicate_seq_stays_and_is_reported_and_references_mean_the_first(tmp_path):
    session = session_of(tmp_path, "one", "two")
    session.close()
    log = log_of(session)
    log.write_bytes(log.read_bytes() + b'{"type":"user","seq":2,"parts":[{"type":"text","text":"other"}]}\n')
    opened = Session.open(session.directory)
    assert said(opened) == ["one", "two", "other"]
    assert "seq 2" in opened.damage[0].reason
    found = opened.find(2)
    assert isinstance(found, UserMessage)
    assert text_of(found.parts) == "two"
    assert opened.append(user()).seq == 3


def test_a_log_without_header_opens_with_what_the_metadata_knows(tmp_path):
    session = session_of(tmp_path, "one")
    session.close()
    log = log_of(session)
    log.write_bytes(b"garbage" + log.read_bytes()[8:])
    opened = Session.open(session.directory)
    assert (opened.id, opened.cwd) == (session.id, tmp_path)
    assert said(opened) == ["one"]
    opened.close()
    (session.directory / "meta.json").unlink()
    again = Session.open(session.directory)
    assert again.cwd == tmp_path, "the header was written anew"


def test_an_empty_log_opens_and_takes_entries(tmp_path):
    session = session_of(tmp_path)
    session.close()
    log_of(session).write_bytes(b"")
    opened = Session.open(session.directory)
    opened.append(user("first"))
    assert said(reopen(opened)) == ["first"]


def test_an_entry_of_a_later_version_stays_where_it_is(tmp_path):
    session = session_of(tmp_path, "one")
    session.close()
    log = log_of(session)
    line = b'{"type":"hologram","seq":2,"depth":3}'
    log.write_bytes(log.read_bytes() + line + b"\n")
    opened = Session.open(session.directory)
    assert opened.damage == ()
    assert opened.path()[-1] == UnknownEntry(kind="hologram", raw=line, seq=2)
    assert len(opened.get_llm_history()) == 1
    assert line in log_of(opened.fork(tmp_path)).read_bytes()


def test_no_record_is_made_of_a_message_inside_a_torn_one(tmp_path):
    session = session_of(tmp_path, "one")
    session.close()
    log = log_of(session)
    torn = (
        b'{"type":"compaction","seq":2,"first_kept_index":1,"replacement":'
        b'[{"type":"user","seq":1,"parts":[{"type":"text","text":"one"}]},{"type":"system","text":"s"}'
    )
    log.write_bytes(log.read_bytes() + torn)
    opened = Session.open(session.directory)
    assert said(opened) == ["one"]
    assert len(list(opened.entries())) == 2


def test_a_byte_order_mark_that_an_editor_put_before_the_header_is_no_damage(tmp_path):
    session = session_of(tmp_path, "one")
    session.close()
    log = log_of(session)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())
    opened = Session.open(session.directory)
    assert opened.damage == ()
    assert (opened.id, said(opened)) == (session.id, ["one"])
