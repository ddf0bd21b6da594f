"""`/rewind`: back to before a message of the user, with the files as they were then."""

from __future__ import annotations

import re
from pathlib import Path

from tenuto.command.outcome import Choose, Edit, Say
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import FilesEntry
from tests.core.compacting import compactions, fill, log_of, talk
from tests.core.going_back import check, command, message, script, texts, transcript, view_texts
from tests.core.harness import Agent, agent, reopened
from tests.server import ScriptedServer


async def work(running: Agent, folder: Path) -> None:
    """Three turns that change two files."""
    (folder / "old.txt").write_text("first")
    await running.ask("edit old.txt first second")
    await running.ask("write new.txt hello")
    await running.ask("edit old.txt second third")


async def test_messages_are_offered_the_newest_first_with_the_files_that_changed_since(tmp_path):
    async with agent(tmp_path, script) as running:
        assert isinstance((await command(running, "/rewind"))[0], Say)
        await work(running, tmp_path / "work")
        await running.ask("just talk")
        (choose,) = await command(running, "/rewind")
        assert isinstance(choose, Choose)
        assert [row.label.split()[0] for row in choose.choices] == ["just", "edit", "write", "edit"]
        assert [row.detail.split(" · ")[1] for row in choose.choices] == [
            "no file changed",
            "1 file changed",
            "2 files changed",
            "2 files changed",
        ]
        (choose,) = await command(running, f"/{choose.command} {choose.choices[1].value}")
        assert isinstance(choose, Choose)
        assert [row.value for row in choose.choices] == ["both", "talk", "files"]
        seq = message(running, "just").seq
        assert await command(running, f"/rewind {seq}") == [Edit("just talk")], "nothing to choose between"


async def test_both_goes_back_with_the_files_and_never_over_the_users_own_work(tmp_path):
    folder = tmp_path / "work"
    async with agent(tmp_path, script) as running:
        await work(running, folder)
        before = check(running)
        assert await command(running, f"/rewind {message(running, 'write').seq} both") == [Edit("write new.txt hello")]
        assert not any("changed on disk" in getattr(entry, "text", "") for entry in running.session.path()[-6:])
        assert (folder / "old.txt").read_text() == "second"
        assert not (folder / "new.txt").exists()
        assert view_texts(running) == ["edit old.txt first second"]
        before = check(running, before)
        (folder / "old.txt").write_text("mine")
        await command(running, f"/rewind {message(running, 'edit old.txt first').seq} both")
        assert (folder / "old.txt").read_text() == "mine"
        assert (
            "changed by somebody else" in running.of(NoticeEvent)[-1].text
            and "old.txt" in running.of(NoticeEvent)[-1].text
        )
        assert view_texts(running) == []
        await running.ask("read old.txt")
        assert not any(request.refused for request in running.server.requests)
        check(running, before)


async def test_talk_leaves_the_files_and_files_the_talk(tmp_path):
    folder = tmp_path / "work"
    async with agent(tmp_path, script) as running:
        await work(running, folder)
        seq = message(running, "write").seq
        assert await command(running, f"/rewind {seq} files") == []
        assert (folder / "old.txt").read_text() == "second" and not (folder / "new.txt").exists()
        assert len(view_texts(running)) == 3
        assert [e.target for e in running.session.path() if isinstance(e, FilesEntry)] == [seq]
        assert await command(running, f"/rewind {seq} files") == []
        assert "Already restored: 2 files" in running.of(NoticeEvent)[-1].text
        await running.ask("write other.txt more")
        await command(running, f"/rewind {message(running, 'write other').seq} talk")
        assert (folder / "other.txt").read_text() == "more"
        assert len(view_texts(running)) == 3
        for wrong in (f"{seq} sideways", "9999 both", "nine"):
            (said,) = await command(running, f"/rewind {wrong}")
            assert said.level in {"warning", "error"}, wrong


async def test_over_a_compaction_and_a_restart_word_for_word(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    answer = talk(script, script)
    async with ScriptedServer(answer, window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("first question")
            await running.ask("edit a.txt one two")
            early = list(running.session.get_llm_history())
            await fill(running, 4, 900)
            await command(running, "/compact")
            (entry,) = compactions(running)
            assert entry.first_kept_index > message(running, "edit").seq
            await running.ask("after it")
        async with reopened(tmp_path, server, resume_latest=True) as running:
            before = log_of(running)
            target = message(running, "question 0")
            assert target.seq < entry.first_kept_index
            (edit,) = await command(running, f"/rewind {target.seq} both")
            assert edit.text.startswith("question 0")
            assert list(running.session.get_llm_history()) == early, "what was summarised is there as itself"
            assert (folder / "a.txt").read_text() == "two"
            await command(running, f"/rewind {message(running, 'edit').seq} both")
            assert (folder / "a.txt").read_text() == "one"
            assert texts(list(running.session.path())) == ["first question"]
            await running.ask("go on")
            check(running, before)
            shown = transcript(running)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert transcript(running) == shown
            await command(running, f"/tree {message(running, 'after it').seq}")
            assert running.session.reading.compaction == entry, "its own branch has it still"
            await running.ask("and here")
            assert not any(request.refused for request in server.requests)


def told(running: Agent) -> str:
    """What the model was told last of files, in its newest request."""
    notes = re.findall(r"changed on disk.*?</harness-note>", running.server.requests[-1].raw.decode())
    return notes[-1] if notes else ""


async def test_the_model_is_told_of_files_that_are_not_what_it_saw_on_this_way_and_of_no_others(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("first")
    async with agent(tmp_path, script) as running:
        await running.ask("edit old.txt first second")
        await running.ask("edit old.txt second third")
        await running.ask("write new.txt hello")
        await command(running, f"/rewind {message(running, 'edit old.txt second').seq} talk")
        await running.ask("what now")
        assert "old.txt" in told(running), "it saw it as it was before the second edit"
        assert "new.txt" not in told(running), "it never saw that"
        await running.ask("and now")
        assert running.server.requests[-1].raw.decode().count("changed on disk") == 1
        answer = next(e for e in reversed(list(running.session.entries())) if "done" in str(getattr(e, "parts", "")))
        await command(running, f"/tree {answer.seq}")
        await running.ask("back again")
        assert told(running) == "", "on that way it saw them as they are"


async def test_files_that_went_back_with_the_talk_are_no_news(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("first")
    async with agent(tmp_path, script) as running:
        await running.ask("edit old.txt first second")
        await running.ask("edit old.txt second third")
        await running.ask("write new.txt hello")
        answer = next(e for e in reversed(running.session.path()) if "done" in str(getattr(e, "parts", "")))
        await command(running, f"/rewind {message(running, 'edit old.txt second').seq} both")
        await running.ask("what now")
        assert told(running) == ""
        await command(running, f"/tree {answer.seq}")
        await running.ask("back again")
        assert "old.txt" in told(running) and "new.txt" in told(running)
