"""The client's own files and terminals, behind the guard's judgement."""

from __future__ import annotations

import asyncio

import pytest

from tests.acp.client import Recorder, editor
from tests.server import Call, Reply

READ = Call("read", {"path": "a.py"})
AUTO = ("--mode", "auto", "--no-sandbox")


def result(running, place: int = -1) -> str:
    return running.server.requests[place].items[-1].text


async def test_what_is_open_and_unsaved_is_what_the_model_reads_and_edits(tmp_path):
    edit = Call("edit", {"path": "a.py", "old_string": "unsaved = 1", "new_string": "edited = 2"})
    client = Recorder(files={})
    async with editor(
        tmp_path, [Reply(tool_calls=[READ]), Reply(tool_calls=[edit]), Reply("Done.")], *AUTO, client=client
    ) as running:
        path = running.work / "a.py"
        path.write_bytes(b"on_disk = 0\r\nlast = 1\r\n")
        client.files[str(path)] = "unsaved = 1\nlast = 1\n"
        await running.ask(await running.new(), "change it")
        assert "unsaved = 1" in result(running, 1) and "on_disk" not in result(running, 1)
        assert client.written == [(str(path), "edited = 2\r\nlast = 1\r\n")]  # the line ends are the file's own
        assert path.read_bytes() == b"edited = 2\r\nlast = 1\r\n"


async def test_undo_gives_back_what_was_unsaved(tmp_path):
    edit = Call("edit", {"path": "a.py", "old_string": "unsaved = 1", "new_string": "edited = 2"})
    client = Recorder(files={})
    script = [Reply(tool_calls=[READ]), Reply(tool_calls=[edit]), Reply("Done.")]
    async with editor(tmp_path, script, *AUTO, client=client) as running:
        path = running.work / "a.py"
        path.write_text("on_disk = 0\n")
        client.files[str(path)] = "unsaved = 1\n"
        session = await running.new()
        await running.ask(session, "change it")
        await running.ask(session, "/undo")
        assert path.read_text() == "unsaved = 1\n"


async def test_files_that_no_editor_can_hold_are_read_and_written_here(tmp_path):
    edit = Call("edit", {"path": "old.txt", "old_string": "größe", "new_string": "weite"})
    client = Recorder(files={})
    script = [Reply(tool_calls=[Call("read", {"path": "old.txt"})]), Reply(tool_calls=[edit]), Reply("Done.")]
    async with editor(tmp_path, script, *AUTO, client=client) as running:
        path = running.work / "old.txt"
        path.write_bytes("die größe\n".encode("utf-16"))
        await running.ask(await running.new(), "change it")
        assert path.read_bytes() == "die weite\n".encode("utf-16") and not client.written


async def test_a_client_without_files_is_not_asked_for_any(tmp_path):
    write = Call("write", {"path": "b.txt", "content": "b\n"})
    async with editor(tmp_path, [Reply(tool_calls=[write]), Reply("Done.")], *AUTO) as running:
        await running.ask(await running.new(), "write b")
        assert (running.work / "b.txt").read_text() == "b\n"
        assert not [one for one in running.client.messages if str(one.get("method")).startswith("fs/")]


async def test_the_guard_asks_before_the_editor_is_asked_for_anything(tmp_path):
    client = Recorder(files={}, choose=lambda _question: "")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n")
    calls = [Call("read", {"path": str(outside)}), Call("write", {"path": "b.txt", "content": "b\n"})]
    script = [*(Reply(tool_calls=[call]) for call in calls), Reply("Done.")]
    async with editor(tmp_path, script, client=client, terminal=True) as running:
        client.files[str(outside)] = "secret\n"
        await running.ask(await running.new(), "read and write")
        assert len(client.questions) == 2 and not client.written
        assert not [one for one in client.messages if str(one.get("method")).startswith(("fs/", "terminal/"))]


async def test_a_command_runs_in_the_clients_terminal_and_shows_there(tmp_path):
    command = Call("bash", {"command": "echo out; echo err >&2; pwd; exit 3"})
    async with editor(tmp_path, [Reply(tool_calls=[command]), Reply("Done.")], *AUTO, terminal=True) as running:
        await running.ask(await running.new(), "run it")
        client = running.client
        assert (
            "out\nerr\n" in result(running)
            and "Exit code 3" in result(running)
            and str(running.work) in result(running)
        )
        contents = [one["content"] for one in client.updates("tool_call_update") if one.get("content")]
        assert contents == [[{"type": "terminal", "terminalId": "terminal-0"}]] * 2
        assert client.released == ["terminal-0"]
        assert client.commands[0]["cwd"] == str(running.work) and client.commands[0]["output_byte_limit"]


async def test_a_command_in_a_terminal_gets_no_secrets(tmp_path, monkeypatch):
    command = Call("bash", {"command": "env"})
    environ = {"MY_API_KEY": "sk-very-secret-000", "PLAIN": "seen"}
    monkeypatch.setenv("MY_API_KEY", environ["MY_API_KEY"])  # the client has it, and its terminals inherit that
    script = [Reply(tool_calls=[command]), Reply("Done.")]
    async with editor(tmp_path, script, *AUTO, terminal=True, environ=environ) as running:
        await running.ask(await running.new(), "run it")
        assert "PLAIN=seen" in result(running) and "PAGER=cat" in result(running)
        assert "sk-very-secret" not in running.client.outputs["terminal-0"]


async def test_cancelling_kills_the_terminal_and_lets_it_go(tmp_path):
    command = Call("bash", {"command": "sleep 600"})
    async with editor(tmp_path, [Reply(tool_calls=[command]), Reply("On.")], *AUTO, terminal=True) as running:
        session = await running.new()
        prompt = asyncio.create_task(running.ask(session, "sleep"))
        await running.until(lambda: running.client.terminals)
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        await running.until(lambda: running.client.released)
        await running.until(lambda: running.client.terminals["terminal-0"].returncode is not None)


async def test_a_time_limit_kills_the_terminal(tmp_path):
    command = Call("bash", {"command": "echo begun; sleep 600", "timeout": 1})
    async with editor(tmp_path, [Reply(tool_calls=[command]), Reply("On.")], *AUTO, terminal=True) as running:
        await running.ask(await running.new(), "sleep")
        assert "Stopped after 1 s" in result(running)


@pytest.mark.parametrize("method", ["create_terminal", "wait_for_terminal_exit", "terminal_output"])
async def test_a_terminal_that_fails_is_said_to_the_model(tmp_path, method):
    client = Recorder()

    async def fail(**_):
        raise RuntimeError("no terminal today")

    setattr(client, method, fail)
    command = Call("bash", {"command": "echo hi"})
    script = [Reply(tool_calls=[command]), Reply("Well.")]
    async with editor(tmp_path, script, *AUTO, client=client, terminal=True) as running:
        assert (await running.ask(await running.new(), "run it")).stop_reason == "end_turn"
        assert "the editor's terminal could not run it" in result(running)


async def test_an_edit_that_is_cancelled_while_the_editor_writes_is_whole_and_known(tmp_path):
    write = Call("write", {"path": "b.txt", "content": "b\n"})
    writes = asyncio.Event()

    class Slow(Recorder):
        async def write_text_file(self, session_id, path, content, **more):
            writes.set()
            await asyncio.sleep(0.5)
            return await super().write_text_file(session_id, path, content, **more)

    client = Slow(files={})
    async with editor(tmp_path, [Reply(tool_calls=[write]), Reply("On.")], *AUTO, client=client) as running:
        session = await running.new()
        prompt = asyncio.create_task(running.ask(session, "write b"))
        await asyncio.wait_for(writes.wait(), 60)
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        assert (running.work / "b.txt").read_text() == "b\n"
        await running.ask(session, "/undo")
        assert not (running.work / "b.txt").exists()
