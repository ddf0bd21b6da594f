"""JSON lines byte for byte, and how an export becomes a file."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from tenuto.protocol.entry import BranchEntry, QueuedEntry, TitleEntry
from tenuto.session.errors import SessionUnreadable
from tenuto.session.exporters.export import (
    FORMATS,
    Export,
    ExportFailed,
    ExportRefused,
    ExportRequest,
    Format,
    choose_format,
    copy_log,
    copy_path,
    default_name,
)
from tenuto.session.log.record import encode
from tenuto.session.session import Session
from tenuto.session.view.state import SessionState
from tests.session.build import answer, log_of, new_session, result, text, user


@pytest.fixture
def session(tmp_path: Path):
    (tmp_path / "out").mkdir()
    made = new_session(tmp_path)
    made.append(TitleEntry(title="Repair the roof!"))
    made.append(user("first"))
    made.append(answer("look", ("c1",)))
    made.append(result("c1"))
    made.append(user("left behind"))
    made.append(BranchEntry(parent=4))
    made.append(user("second way"))
    yield made
    made.close()


def test_json_lines_are_the_log_byte_for_byte_damage_included(session: Session, tmp_path: Path) -> None:
    log = log_of(session)
    with log.open("ab") as file:
        file.write(
            b'{"seq": 8, "type": "user", "par\0\0\0\n\xff\xfe rubbish\n{"seq":9,"type":"later","x":[1, 2]}\ntorn'
        )
    done = Export.of_directory(session.directory).write(ExportRequest(output="all.jsonl"), tmp_path / "out")
    assert done.path.read_bytes() == log.read_bytes()
    assert done.size == log.stat().st_size


def test_json_lines_of_the_active_path_alone(session: Session, tmp_path: Path) -> None:
    lines = log_of(session).read_bytes().splitlines(keepends=True)
    export = Export.of_session(session)
    done = export.write(ExportRequest(output="path.jsonl", active_path=True), tmp_path / "out")
    assert done.path.read_bytes() == b"".join(lines[:5] + lines[7:])
    with pytest.raises(ExportRefused, match="jsonl"):
        export.write(ExportRequest(output="path.html", active_path=True), tmp_path / "out")


def test_what_the_disk_did_not_take_is_exported_too() -> None:
    waiting = [user("kept in memory", seq=5), QueuedEntry(parts=text("queued"), seq=6)]
    whole = encode(user("on disk", seq=4))[1]
    lines = b"".join(encode(entry)[1] for entry in waiting)
    assert b"".join(copy_log(io.BytesIO(whole), waiting)) == whole + lines
    assert b"".join(copy_log(io.BytesIO(whole + b"torn"), waiting)) == whole + b"torn\n" + lines
    assert b"".join(copy_path(io.BytesIO(whole + b"torn"), waiting)) == whole + lines


def test_a_session_that_cannot_be_saved_can_still_be_exported(session: Session, tmp_path: Path) -> None:
    log_of(session).rename(tmp_path / "gone.jsonl")
    session.directory.rename(tmp_path / "moved")
    session.append(user("after the disk was gone"))
    session.directory.parent.mkdir(parents=True, exist_ok=True)
    done = Export.of_session(session).write(ExportRequest(format="md"), tmp_path / "out")
    assert "after the disk was gone" in done.path.read_text(encoding="utf-8")


def test_r075_the_file_is_private_and_named_after_title_and_day(session: Session, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        done = [
            Export.of_session(session).write(ExportRequest(format=form), tmp_path / "out")
            for form in ("html", "md", "jsonl")
        ]
    finally:
        os.umask(before)
    assert [one.path.name for one in done] == [f"repair-the-roof-2023-11-14.{form}" for form in ("html", "md", "jsonl")]
    for one in done:
        assert stat.S_IMODE(one.path.stat().st_mode) == 0o600
        assert one.path.stat().st_size == one.size > 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {one.path.name for one in done}, (
        "nothing else is left"
    )


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (SessionState(title="../../etc/passwd", created=1e9), "etc-passwd-2001-09-09.html"),
        (SessionState(first_text="Wie groß\x1b[0m ist  Łódź?\n"), "wie-groß-0m-ist-łódź.html"),
        (SessionState(title="\x00 ... ///"), "session-0123abcd.html"),
        (SessionState(title="\u65e5" * 300), "\u65e5" * 26 + ".html"),
        (SessionState(title="x\ud800"), "x.html"),
        (SessionState(), "session-0123abcd.html"),
    ],
)
def test_a_default_name_is_always_one_plain_name(state: SessionState, name: str) -> None:
    assert default_name(state, "0123abcdef", "html") == name


def test_the_format_goes_by_word_then_by_name(tmp_path: Path) -> None:
    named = [
        choose_format("", name, tmp_path)
        for name in ("a.HTML", "a.md", "b/a.markdown", "a.jsonl", "a.json", "a", "", ".hidden")
    ]
    assert named == ["html", "md", "md", "jsonl", "atif", "html", "html", "html"]
    assert choose_format("md", "a.html", tmp_path) == "md"
    (tmp_path / "folder.v2").mkdir()
    assert choose_format("", "folder.v2", tmp_path) == "html"
    for wanted, name in (("pdf", ""), ("", "a.pdf"), ("", "~nobody-at-all/x.txt")):
        with pytest.raises(ExportRefused):
            choose_format(wanted, name, tmp_path)


def test_places(session: Session, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "folder").mkdir()
    export = Export.of_session(session)
    name = "repair-the-roof-2023-11-14.html"
    assert export.write(ExportRequest(output="plain"), out).path == out / "plain.html"
    assert export.write(ExportRequest(output="folder"), out).path == out / "folder" / name
    assert export.write(ExportRequest(output=str(out / "my file.html")), tmp_path).path == out / "my file.html"
    assert export.write(ExportRequest(output="as.named", format="html"), out).path == out / "as.named"


def test_an_existing_file_stays_unless_forced(session: Session, tmp_path: Path) -> None:
    target = tmp_path / "out" / "notes.html"
    target.write_text("mine")
    target.chmod(0o644)
    export = Export.of_session(session)
    with pytest.raises(ExportRefused, match="exists already; add --force"):
        export.write(ExportRequest(output=str(target)), tmp_path)
    assert target.read_text() == "mine"
    export.write(ExportRequest(output=str(target), force=True), tmp_path)
    assert "Repair the roof!" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_is_an_existing_file_and_what_it_points_to_stays(session: Session, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name, points_to in (("link.html", mine), ("dangling.html", tmp_path / "nothing")):
        link = tmp_path / "out" / name
        link.symlink_to(points_to)
        with pytest.raises(ExportRefused):
            Export.of_session(session).write(ExportRequest(output=str(link)), tmp_path)
        Export.of_session(session).write(ExportRequest(output=str(link), force=True), tmp_path)
        assert not link.is_symlink()
    assert mine.read_text() == "mine"


def test_nothing_may_stand_in_the_logs_place(session: Session, tmp_path: Path) -> None:
    log = log_of(session)
    before = log.read_bytes()
    (tmp_path / "way").symlink_to(session.directory)
    for place in (str(log), str(session.directory), str(session.directory / "outputs" / "x.html"), "way/x.jsonl"):
        with pytest.raises(ExportRefused, match="inside the session itself"):
            Export.of_session(session).write(ExportRequest(output=place, force=True), tmp_path)
    assert log.read_bytes() == before


@pytest.mark.parametrize("place", ["missing/folder/x.html", "mine/x.html", "x" * 300 + ".html", "nul\0.html"])
def test_what_cannot_be_written_says_so_and_leaves_nothing(session: Session, tmp_path: Path, place: str) -> None:
    (tmp_path / "out" / "mine").write_text("a file, no folder")
    with pytest.raises((ExportFailed, ExportRefused)) as raised:
        Export.of_session(session).write(ExportRequest(output=place), tmp_path / "out")
    assert "\n" not in str(raised.value)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_failure_while_writing_leaves_nothing(session: Session, tmp_path: Path) -> None:
    export = Export.of_directory(session.directory)
    log_of(session).unlink()
    for form in ("html", "jsonl"):
        with pytest.raises(SessionUnreadable):
            export.write(ExportRequest(format=form), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("is_open", [True, False])
def test_k4_an_export_says_how_far_it_is_and_ends_when_it_is_told_to(
    session: Session, tmp_path: Path, form: Format, is_open: bool
) -> None:
    export = Export.of_session(session) if is_open else Export.of_directory(session.directory)
    heard: list[tuple[str, int, int]] = []
    whole = b"".join(export.chunks(form, ExportRequest(), lambda *far: heard.append(far)))
    assert whole == b"".join(export.chunks(form, ExportRequest()))
    for counted in {what for what, _, _ in heard}:
        steps = [(done, all_) for what, done, all_ in heard if what == counted]
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert all(done <= all_ or all_ == 0 for done, all_ in steps) and len({all_ for _, all_ in steps}) == 1
    assert any("written" in what for what, _, _ in heard)

    class Enough(Exception):
        pass

    def stop(what: str, _done: int, _whole: int) -> None:
        if "written" in what:
            raise Enough

    with pytest.raises(Enough):
        export.write(ExportRequest(format=form), tmp_path, stop)
    assert not [file for file in tmp_path.iterdir() if file.is_file()]
