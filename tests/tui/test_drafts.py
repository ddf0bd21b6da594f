"""Drafts on disk: written after a pause, read when the session is opened again, never at a key."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tenuto.tui.complete.history import Extras
from tenuto.tui.editor_services import DRAFT_LATEST, DRAFT_PAUSE, MAX_AGE, DraftFiles, StoredDraft
from tenuto.tui.state.intents import Cancel, DraftChanged, Escape, ImageAttached, SendDraft
from tests.session.long import write_session
from tests.tui.images_of import png
from tests.tui.machine.driving import SESSION
from tests.tui.machine.test_draft import SHOT
from tests.tui.test_runner import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def file_of(home: Path, session: str = SESSION) -> Path:
    return home / "drafts" / f"{session}.json"


def stored(home: Path, session: str = SESSION) -> StoredDraft | None:
    path = file_of(home, session)
    return msgspec.json.decode(path.read_bytes(), type=StoredDraft) if path.exists() else None


async def type_text(stage: Stage, text: str) -> None:
    for end in range(1, len(text) + 1):
        stage.runner.handle(DraftChanged(text[:end], end))
        stage.pass_time(0.1)
        await stage.rest()


async def test_a_draft_is_written_a_second_after_the_last_key(stage: Stage, tmp_path: Path) -> None:
    await stage.open("/tmp")
    await type_text(stage, "a thought that takes some time")
    assert stored(tmp_path) is None, "nothing is written at a key"
    stage.pass_time(DRAFT_PAUSE)
    await stage.rest()
    draft = stored(tmp_path)
    assert draft is not None
    assert draft.text == "a thought that takes some time"
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert not [timer for timer in stage.timers if not timer.cancelled], "an idle program has no timers"


async def test_whoever_types_on_and_on_has_it_written_all_the_same(stage: Stage, tmp_path: Path) -> None:
    await stage.open("/tmp")
    for count in range(1, 21):
        stage.runner.handle(DraftChanged("x" * count, count))
        stage.pass_time(DRAFT_LATEST / 15)
        await stage.rest()
    kept = stored(tmp_path)
    assert kept is not None and len(kept.text) >= 14


async def test_a_sent_draft_leaves_nothing(stage: Stage, tmp_path: Path) -> None:
    await stage.open("/tmp")
    stage.runner.handle(DraftChanged("send me", 7))
    stage.runner.keep_draft()
    await stage.rest()
    assert stored(tmp_path) is not None
    stage.runner.handle(SendDraft())
    await stage.rest()
    assert stored(tmp_path) is None, "and at once: after kill -9 it would come back"


async def test_a_draft_comes_back_with_its_session(tmp_path: Path) -> None:
    first = Stage(tmp_path)
    await first.open("/tmp")
    mark = first.runner.fold_paste("long\n" * 50)
    first.runner.handle(ImageAttached(SHOT))
    first.runner.handle(DraftChanged(f"see {mark}", 4))
    first.runner.keep_draft()
    await first.rest()
    second = Stage(tmp_path)
    await second.open("/tmp")
    draft = second.runner.state.draft
    assert draft.text == "see [Pasted text #1 +51 lines]"
    assert second.runner.state.pastes.expand(draft.text) == "see " + "long\n" * 50
    assert draft.images == (SHOT,)


async def test_the_end_of_the_program_keeps_draft_and_stash(tmp_path: Path) -> None:
    first = Stage(tmp_path)
    await first.open("/tmp")
    first.runner.handle(DraftChanged("aside", 5))
    first.runner.handle(Escape())
    first.runner.handle(Escape())
    first.runner.handle(DraftChanged("present", 7))
    await first.runner.close()
    second = Stage(tmp_path)
    await second.open("/tmp")
    assert second.runner.state.draft.text == "present"
    assert second.runner.state.ladder.stash == "aside"
    second.runner.handle(Cancel())
    await second.runner.close()
    draft = stored(tmp_path)
    assert draft is not None and (draft.text, draft.stash) == ("", "aside")


async def test_a_draft_that_begins_with_a_space_is_not_written(stage: Stage, tmp_path: Path) -> None:
    await stage.open("/tmp")
    stage.runner.handle(DraftChanged(" secret", 7))
    stage.runner.keep_draft()
    await stage.rest()
    await stage.runner.close()
    assert stored(tmp_path) is None


async def test_another_session_takes_the_draft_along(stage: Stage, tmp_path: Path) -> None:
    from tenuto.protocol.event import SessionOpenedEvent

    await stage.open("/tmp")
    stage.runner.handle(DraftChanged("on the way", 10))
    stage.runner.keep_draft()
    await stage.rest()
    stage.publish(SessionOpenedEvent(session_id="other", cwd="/tmp", model="a/b", mode="ask", resumed=True))
    await stage.rest()
    assert stage.runner.state.draft.text == "on the way"
    assert stage.runner.state.history.prompts == [], "it is not taken for another one"
    assert stored(tmp_path) is None
    kept = stored(tmp_path, "other")
    assert kept is not None and kept.text == "on the way", "also when the program is killed now"


async def test_what_was_typed_before_the_session_was_open_is_written_then(stage: Stage, tmp_path: Path) -> None:
    stage.runner.handle(DraftChanged("typed early", 11))
    stage.pass_time(2 * DRAFT_PAUSE)
    await stage.rest()
    await stage.open("/tmp")
    kept = stored(tmp_path)
    assert kept is not None and kept.text == "typed early"


async def test_the_draft_of_a_session_that_is_open_elsewhere_is_left_to_it(stage: Stage, tmp_path: Path) -> None:
    from tenuto.protocol.event import SessionOpenedEvent

    DraftFiles(tmp_path).write(SESSION, StoredDraft(cwd="/tmp", text="theirs"))
    stage.publish(
        SessionOpenedEvent(session_id=SESSION, cwd="/tmp", model="a/b", mode="ask", resumed=True, read_only=True)
    )
    await stage.rest()
    assert stage.runner.state.draft.text == ""
    await type_text(stage, "mine")
    stage.pass_time(2 * DRAFT_PAUSE)
    await stage.rest()
    await stage.runner.close()
    kept = stored(tmp_path)
    assert kept is not None and kept.text == "theirs"


def test_the_draft_of_a_session_that_never_began_comes_back_in_the_next_one(tmp_path: Path) -> None:
    files = DraftFiles(tmp_path)
    script = (
        "import sys, pathlib; from tenuto.tui.editor_services import *; "
        "DraftFiles(pathlib.Path(sys.argv[1])).write('gone', StoredDraft(cwd='/p', text='orphan'))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert files.take("new", "/other") is None, "it belongs to its project"
    files.write("old", StoredDraft(cwd="/p", text="its own"))
    own = files.take("old", "/p")
    assert own is not None and own.text == "its own", "a session that has one keeps it"
    files.write("old", StoredDraft())
    taken = files.take("new", "/p")
    assert taken is not None and taken.text == "orphan"
    assert files.take("newer", "/p", "new") is None, "once"
    assert not file_of(tmp_path, "gone").exists()
    kept = stored(tmp_path, "new")
    assert kept is not None and kept.text == "orphan", "killed right now, it is there all the same"


def test_a_draft_that_somebody_is_writing_is_left_alone(tmp_path: Path) -> None:
    files = DraftFiles(tmp_path)
    files.write("theirs", StoredDraft(cwd="/p", text="x"))
    path = file_of(tmp_path, "theirs")
    path.write_bytes(msgspec.json.encode(StoredDraft(cwd="/p", text="x", pid=os.getppid())))
    assert files.take("new", "/p") is None
    session = write_session(tmp_path, tmp_path, 4, 1_000, "openai-chat/test")
    path.rename(file_of(tmp_path, session.name))
    path = file_of(tmp_path, session.name)
    path.write_bytes(msgspec.json.encode(StoredDraft(cwd="/p", text="x", pid=0x3FFFFFFF)))
    assert files.take("new", "/p") is None, "its session can be resumed"
    log = session / "events.jsonl"
    for beside in [file for file in session.iterdir() if file != log]:
        beside.unlink()
    log.write_bytes(log.read_bytes().split(b"\n")[0] + b"\n")
    taken = files.take("new", "/p")
    assert taken is not None and taken.text == "x", "a killed program leaves a log in which nothing was said"


def test_damaged_and_old_files_cost_nothing(tmp_path: Path) -> None:
    files = DraftFiles(tmp_path)
    files.write("a", StoredDraft(cwd="/p", text="x", extras=Extras((SHOT,))))
    file_of(tmp_path, "a").write_bytes(b"{broken")
    assert files.take("a", "/p") is None
    old = time.time() - MAX_AGE - 10
    os.utime(file_of(tmp_path, "a"), (old, old))
    files.take("new", "/p")
    assert not file_of(tmp_path, "a").exists()


def test_a_disk_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("in the way")
    DraftFiles(tmp_path).write("a", StoredDraft(text="x"))
    assert DraftFiles(tmp_path).take("a", "/p") is None


def test_a_draft_that_could_not_take_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    file_of(tmp_path, "a").mkdir(parents=True)
    DraftFiles(tmp_path).write("a", StoredDraft(text="x"))
    assert [path.name for path in (tmp_path / "drafts").iterdir()] == ["a.json"]


@pytest.mark.parametrize("temporary", [False, True])
async def test_what_was_typed_before_there_was_a_session_is_in_the_next(tmp_path: Path, temporary: bool) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from tenuto.core.start import Start
from tenuto.tui.runner import LateRuntime
from tenuto.tui.launch import Opening
from tenuto.tui.state.state import Draft, Echo, UiState
home = Path(sys.argv[1])
state = UiState(draft=Draft(text="typed", cursor=5), echoes=[Echo(1, "sent")])
start = Start(cwd=home, home=home, temporary={temporary})
asyncio.run(Opening(start, LateRuntime(home), []).close(state))
"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True, cwd=Path(__file__).parents[2])
    taken = DraftFiles(tmp_path).take("new", str(tmp_path))
    assert (taken.text if taken else "") == ("" if temporary else "sent\n\ntyped")


async def test_without_a_session_nothing_that_is_written_stays_on_the_disk(tmp_path: Path) -> None:
    other = StoredDraft(cwd="/tmp", text="of another run")
    DraftFiles(tmp_path).write("0" * 16, other)
    (tmp_path / "drafts" / "old.json").write_bytes(
        msgspec.json.encode(StoredDraft(cwd="/tmp", pid=2**22 + 1, text="old"))
    )
    session, picture = tmp_path.with_name(f"{tmp_path.name}-session"), tmp_path.with_name(f"{tmp_path.name}-shot.png")
    picture.write_bytes(png())
    stage = Stage(tmp_path, temporary=True)
    await stage.open("/tmp")
    stage.runner.state.status.directory = str(session)
    assert stage.runner.state.draft.text == ""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    await type_text(stage, "a secret")
    stage.runner.handle(SendDraft())
    await stage.rest()
    await type_text(stage, "half a secret")
    stage.pass_time(2 * DRAFT_PAUSE)
    stage.runner.keep_draft()
    stage.runner.take_images(str(picture), lambda _text: None)
    await stage.rest()
    (image,) = stage.runner.state.draft.images
    assert (session / "blobs" / image.sha256).read_bytes() == picture.read_bytes(), "it goes with the session"
    await stage.runner.close()
    assert stage.runner.state.history.prompts[-1:] == ["a secret"], "Up finds it while the program runs"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


async def test_a_completion_that_was_asked_for_too_early_comes_with_the_session(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.md").write_text("x")
    stage = Stage(tmp_path / "home")
    stage.runner.handle(DraftChanged("see @no", 7))
    await stage.rest()
    assert stage.runner.state.completion is None
    await stage.open(str(tmp_path / "project"))
    popup = stage.runner.state.completion
    assert popup is not None and [item.insert for item in popup.items] == ["@notes.md "]
