"""Files as they were: kept by hash before every change, taken back by turn, never over somebody else's work."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.files_back import plan_restores, restore_files, restore_planned
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import FilesEntry, FileUse, ToolResultMessage
from tenuto.tool.run.context import digest_of
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.server import Call, Reply, Request


def script(request: Request) -> Reply:
    """Do what the user's text says: `write NAME TEXT`, `edit NAME OLD NEW`, `run COMMAND`."""
    if any(item.kind == "result" for item in request.turn):
        return Reply("done")
    asked = next(item.text for item in reversed(request.items) if item.kind == "user")
    verb, _, rest = asked.strip().splitlines()[0].partition(" ")
    if verb == "write":
        name, _, content = rest.partition(" ")
        return Reply(tool_calls=[Call("write", {"path": name, "content": content})])
    if verb == "edit":
        name, old, new = rest.split(" ")
        return Reply(tool_calls=[Call("edit", {"path": name, "old_string": old, "new_string": new})])
    if verb == "run":
        return Reply(tool_calls=[Call("bash", {"command": rest})])
    return Reply("nothing to do")


def told(running) -> str:
    return running.of(NoticeEvent)[-1].text


async def test_undo_takes_the_last_turns_edits_back_and_again_one_turn_further(tmp_path):
    async with agent(tmp_path, script) as running:
        work = tmp_path / "work"
        (work / "old.txt").write_bytes(b"first\r\nline\r\n")
        await running.ask("edit old.txt first second")
        await running.ask("write new.txt hello")
        await running.ask("edit old.txt second third")
        await running.ask("just talk")
        assert (work / "old.txt").read_bytes() == b"third\r\nline\r\n"
        await running.runtime.run_command("/undo")
        assert (work / "old.txt").read_bytes() == b"second\r\nline\r\n"
        assert (work / "new.txt").exists()
        await running.runtime.run_command("/undo")
        assert not (work / "new.txt").exists()
        assert "Removed 1 file" in told(running)
        await running.runtime.run_command("/undo")
        assert (work / "old.txt").read_bytes() == b"first\r\nline\r\n"
        (answer,) = await running.runtime.run_command("/undo")
        assert "no file edits" in answer.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b10_several_edits_of_one_call_are_one_change_and_undone_together(tmp_path, protocol):
    edits = [
        {"old_string": "one", "new_string": "1"},
        {"old_string": "1\ntwo", "new_string": "1\n2"},
        {"old_string": "x", "new_string": "y", "replace_all": True},
    ]
    unfit = [edits[2] | {"old_string": "y", "new_string": "z"}, {"old_string": "one", "new_string": "3"}]
    script = [
        Reply(tool_calls=[Call("edit", {"path": "a.txt", "edits": edits})]),
        Reply(tool_calls=[Call("edit", {"path": "a.txt", "edits": unfit})]),
        Reply("done"),
    ]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        path = tmp_path / "work" / "a.txt"
        path.write_bytes(b"one\r\ntwo\r\nx x\r\n")
        await running.ask("change it")
        assert path.read_bytes() == b"1\r\n2\r\ny y\r\n"
        results = [item for item in running.server.requests[-1].items if item.kind == "result"]
        assert "with 3 edits (+3 −3)" in results[0].text
        assert "Edit 2 of 2 failed, so none was made" in results[1].text
        entries = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        assert [len(entry.files) for entry in entries] == [1, 0]
        await running.runtime.run_command("/undo")
        assert path.read_bytes() == b"one\r\ntwo\r\nx x\r\n"


async def test_the_model_is_told_that_a_file_is_another_one_now(tmp_path):
    async with agent(tmp_path, script) as running:
        (tmp_path / "work" / "a.txt").write_text("one")
        await running.ask("edit a.txt one two")
        await running.runtime.run_command("/undo")
        await running.ask("and now")
        sent = running.server.requests[-1].raw.decode()
        assert "changed on disk" in sent, "since it wrote it"


async def test_what_the_user_changed_since_is_left_alone(tmp_path):
    async with agent(tmp_path, script) as running:
        path = tmp_path / "work" / "a.txt"
        path.write_text("one")
        await running.ask("edit a.txt one two")
        path.write_text("my own work")
        await running.runtime.run_command("/undo")
        assert path.read_text() == "my own work"
        assert "changed by somebody else" in told(running)
        assert "a.txt" in told(running)


async def test_it_survives_a_restart_a_compaction_and_a_fork(tmp_path):
    async with agent(tmp_path, script) as running:
        path = tmp_path / "work" / "a.txt"
        path.write_text("one")
        await running.ask("edit a.txt one two")
        await running.ask("edit a.txt two three")
        start = next(entry.seq for entry in running.session.path() if entry.seq)
        await running.runtime.close()
        async with reopened(tmp_path, running.server, resume_latest=True) as later:
            await later.runtime.run_command("/fork")
            assert "three" in path.read_text()
            restore_files(later.runtime.live, start)
            assert path.read_text() == "one"
            assert [entry.target for entry in later.session.path() if isinstance(entry, FilesEntry)] == [start]
            restore_files(later.runtime.live, start)
            assert path.read_text() == "one"


async def test_a_file_that_is_too_large_to_keep_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.tool.run.context.MAX_KEPT_FILE", 10)
    async with agent(tmp_path, script) as running:
        path = tmp_path / "work" / "a.txt"
        path.write_text("one and much more than ten bytes")
        await running.ask("edit a.txt one two")
        await running.runtime.run_command("/undo")
        assert path.read_text().startswith("two")
        assert "not known" in told(running)


async def test_a_file_that_is_gone_or_was_made_by_a_command(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("write sub/dir/a.txt hello")
        await running.ask("run echo made > made.txt")
        (tmp_path / "work" / "sub" / "dir" / "a.txt").unlink()
        await running.runtime.run_command("/undo")
        assert "Already restored" in told(running)
        assert (tmp_path / "work" / "made.txt").exists(), "what commands did is not known"


async def test_nothing_is_taken_back_while_something_runs(tmp_path):
    import asyncio

    async with agent(tmp_path, script) as running:
        await running.ask("write a.txt hello")
        await running.send("run sleep 600")
        await asyncio.sleep(0.3)
        outcomes = await running.runtime.run_command("/undo")
        assert "busy: press Esc" in outcomes[0].text
        assert (tmp_path / "work" / "a.txt").exists()
        from tenuto.protocol.operation import InterruptOperation

        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await running.runtime.wait_settled()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.binary(max_size=4))), max_size=12), st.data())
def test_any_entry_can_be_gone_back_to(tmp_path_factory, changes, data):
    """Writes and deletions of a few files in any order; going back to any point gives what they were then."""
    folder: Path = tmp_path_factory.mktemp("files")
    kept: dict[str, bytes] = {}

    def keep(content: bytes) -> str:
        kept[digest_of(content)] = content
        return digest_of(content)

    def present() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    states, entries = [present()], []
    for seq, (name, content) in enumerate(changes, 1):
        path = folder / name
        before = path.read_bytes() if path.exists() else None
        old = keep(before) if before is not None else ""
        if content is None:
            path.unlink(missing_ok=True)
            use = FileUse(path=str(path), op="delete", before=old, created=before is None)
        else:
            path.write_bytes(content)
            use = FileUse(path=str(path), op="write", sha256=digest_of(content), before=old, created=before is None)
        entries.append(ToolResultMessage(seq=seq, call_id=str(seq), name="write", parts=(), files=(use,)))
        states.append(present())
    target = data.draw(st.integers(0, len(entries)))
    restore_planned(plan_restores(entries[target:]), kept.__getitem__, keep)
    assert present() == states[target]


@pytest.mark.parametrize("name", ["link.txt", "hard.txt"])
async def test_links_stay_links(tmp_path, name):
    async with agent(tmp_path, script) as running:
        work = tmp_path / "work"
        (work / "real.txt").write_text("one")
        if name == "link.txt":
            (work / name).symlink_to("real.txt")
        else:
            (work / name).hardlink_to(work / "real.txt")
        await running.ask(f"edit {name} one two")
        assert (work / "real.txt").read_text() == "two"
        await running.runtime.run_command("/undo")
        assert (work / "real.txt").read_text() == "one"
        assert (work / name).read_text() == "one"
