"""What an interrupted command had written is kept, whatever interrupted it (daily-user.md F2, F8)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ToolOutputEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.operation import InterruptOperation, RunShellOperation
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.session.session import Session
from tenuto.session.store import RunningCommand, found_result
from tenuto.session.view.pairing import interruption, output_before
from tests.core.compacting import until
from tests.core.harness import Agent, agent, reopened
from tests.program import PYTHON
from tests.server import Call, Reply, ScriptedServer

THREE = "for i in 1 2 3; do echo line $i; done; exec sleep 600"
MANY = "seq 1 200000; echo over; exec sleep 600"
EntryT = TypeVar("EntryT")


def calling(command: str, **arguments: object) -> list[Reply]:
    return [Reply(tool_calls=[Call("bash", {"command": command, **arguments})]), Reply("fine"), Reply("fine")]


def stored(directory: Path, kind: type[EntryT]) -> list[EntryT]:
    """The entries of that kind as another process reads them."""
    session = Session.open(directory, read_only=True)
    return [entry for entry in session.everything() if isinstance(entry, kind)]


async def until_written(running: Agent, kind: type[ToolOutputEvent | ShellOutputEvent], last: str) -> None:
    async with asyncio.timeout(60):
        while last not in "".join(event.text for event in running.of(kind)):
            await asyncio.sleep(0.01)


async def stop_by(running: Agent, how: str) -> None:
    session_id = running.runtime.session_id
    if how == "close":
        await running.runtime.close()
        return
    for _ in range(3 if how == "thrice" else 1):
        await running.runtime.submit(InterruptOperation(session_id=session_id))
        await asyncio.sleep(0)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)


@pytest.mark.parametrize("how", ["once", "thrice", "close"])
async def test_f2_the_output_of_an_interrupted_call_is_in_log_event_and_request(tmp_path: Path, how: str) -> None:
    async with agent(tmp_path, calling(THREE)) as running:
        directory = running.session.directory
        await running.send("go")
        await until_written(running, ToolOutputEvent, "line 3")
        await stop_by(running, how)
        (result,) = stored(directory, ToolResultMessage)
        assert result.interrupted and result.is_error
        text = text_of(result.parts)
        assert text.startswith("interrupted after 3 lines")
        assert "may have taken effect; check" in text
        assert output_before(text) == "line 1\nline 2\nline 3\n"
        assert running.of(ToolResultEvent)[-1].message == result
        assert list(directory.glob("outputs/*")) == [], "what the log has is kept once"
        assert list(directory.glob("running/*")) == []
        if how == "once":
            await running.ask("and now?")
            sent = [item.text for item in running.server.requests[-1].items if item.kind == "result"]
            assert sent == [text]


async def test_f2_a_long_output_is_bounded_and_whole_in_a_file(tmp_path: Path) -> None:
    async with agent(tmp_path, calling(MANY)) as running:
        await running.send("go")
        await until_written(running, ToolOutputEvent, "over")
        await stop_by(running, "once")
        (result,) = stored(running.session.directory, ToolResultMessage)
        assert result.interrupted and result.truncated
        assert len(text_of(result.parts)) < 40_000
        assert text_of(result.parts).startswith("interrupted after 200,001 lines")
        assert Path(result.output_path).read_text().split() == [*map(str, range(1, 200_001)), "over"]


async def test_f2_what_is_written_while_it_is_being_ended_is_kept_too(tmp_path: Path) -> None:
    trapping = "trap 'echo cleaned up; exit' TERM; echo begun; while :; do sleep 0.05; done"
    async with agent(tmp_path, calling(trapping)) as running:
        await running.send("go")
        await until_written(running, ToolOutputEvent, "begun")
        await stop_by(running, "once")
        (result,) = stored(running.session.directory, ToolResultMessage)
        assert output_before(text_of(result.parts)).startswith("begun\n")
        assert "\ncleaned up\n" in text_of(result.parts)


async def test_f2_an_interrupted_call_without_output_says_what_it_said(tmp_path: Path) -> None:
    async with agent(tmp_path, calling("touch begun; sleep 600")) as running:
        await running.send("go")
        await until((tmp_path / "work" / "begun").exists)
        await stop_by(running, "once")
        (result,) = stored(running.session.directory, ToolResultMessage)
        assert text_of(result.parts) == "interrupted; may have taken effect; check"
        assert list(running.session.directory.glob("*/*")) == []


async def test_f2_the_output_of_a_call_over_its_time_limit_is_kept(tmp_path: Path) -> None:
    async with agent(tmp_path, calling(THREE, timeout=1)) as running:
        await running.ask("go")
        (result,) = stored(running.session.directory, ToolResultMessage)
        assert text_of(result.parts).startswith("line 1\nline 2\nline 3\n[Stopped after 1 s (time limit)")
        assert list(running.session.directory.glob("*/*")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_f2_a_signal_to_the_program_keeps_the_output(tmp_path: Path, number: signal.Signals) -> None:
    async with ScriptedServer(calling(THREE)) as server:
        process = start_process(
            tmp_path, server, "tenuto", "-p", "go", "--json", "--mode", "auto", "--model", "openai-chat/test"
        )
        try:
            await until_line(process, "line 3")
            process.send_signal(number)
            await asyncio.to_thread(process.wait, 20)
        finally:
            process.kill()
            process.wait()
        (result,) = stored(only_session(tmp_path), ToolResultMessage)
        assert output_before(text_of(result.parts)) == "line 1\nline 2\nline 3\n"


@pytest.mark.parametrize("excluded", [False, True], ids=["!", "!!"])
@pytest.mark.parametrize("how", ["once", "thrice", "close"])
async def test_f8_an_interrupted_command_of_the_user_says_so_and_keeps_its_output(
    tmp_path: Path, how: str, excluded: bool
) -> None:
    async with agent(tmp_path, [Reply("fine")]) as running:
        directory, session_id = running.session.directory, running.runtime.session_id
        await running.runtime.submit(RunShellOperation(session_id=session_id, command=THREE, excluded=excluded))
        await until_written(running, ShellOutputEvent, "line 3")
        await stop_by(running, how)
        (entry,) = stored(directory, ShellEntry)
        assert entry.interrupted
        assert entry.excluded == excluded
        assert entry.output == "line 1\nline 2\nline 3\n"
        assert running.of(ShellFinishedEvent)[-1].entry == entry
        assert list(directory.glob("running/*")) == []
        if how == "once" and not excluded:
            await running.ask("and now?")
            assert "interrupted" in "".join(item.text for item in running.server.requests[-1].items)


# --- kill -9 ---


def start_process(tmp_path: Path, server: ScriptedServer, module: str, *arguments: str) -> subprocess.Popen[str]:
    (tmp_path / "work").mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    return subprocess.Popen(
        [PYTHON, "-m", module, *arguments],
        cwd=tmp_path / "work" if module == "tenuto" else None,
        env=environ | server.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def only_session(tmp_path: Path) -> Path:
    (log,) = tmp_path.glob("home/sessions/*/*/events.jsonl")
    return log.parent


async def until_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        while True:
            line = await asyncio.to_thread(process.stdout.readline)
            assert line, f"{text!r} never came"
            if text in line:
                return


@asynccontextmanager
async def other_process(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[subprocess.Popen[str]]:
    """A process with the session of `tmp_path` open."""
    async with reopened(tmp_path, server) as running:
        await running.ask("hello")
    home, work = str(tmp_path / "home"), str(tmp_path / "work")
    process = start_process(tmp_path, server, "tests.core.crashing", home, work, "openai-chat/test")
    try:
        await until_line(process, "ready")
        yield process
    finally:
        process.kill()
        process.wait()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


async def until_in_a_file(directory: Path, text: str) -> None:
    async with asyncio.timeout(30):
        while not any(text in path.read_text() for path in directory.glob("outputs/*")):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(("command", "last", "lines"), [(THREE, "line 3", "3"), (MANY, "over", "200,001")])
async def test_f2_kill_9_loses_nothing_of_what_a_call_wrote(
    tmp_path: Path, command: str, last: str, lines: str
) -> None:
    script = [Reply("hello"), *calling(command)]
    async with ScriptedServer(script) as server, other_process(tmp_path, server) as process:
        say(process, "say go")
        await until_line(process, "ToolOutputEvent")
        await until_in_a_file(only_session(tmp_path), last)
        process.kill()
        process.wait()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            (result,) = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
            text = text_of(result.parts)
            assert result.interrupted
            assert text.startswith(f"interrupted after {lines} lines of output; may have taken effect; check. ")
            assert f"The output so far is in {result.output_path}:" in text
            assert text.rstrip().endswith(last)
            assert Path(result.output_path).read_text().rstrip().endswith(last)
            assert len(text) < 10_000
            await running.ask("and now?")
            assert text in [item.text for item in server.requests[-1].items if item.kind == "result"]
        assert list(only_session(tmp_path).glob("running/*")) == []


async def test_f8_kill_9_loses_nothing_of_what_a_command_of_the_user_wrote(tmp_path: Path) -> None:
    async with ScriptedServer([Reply("hello"), Reply("fine")]) as server, other_process(tmp_path, server) as process:
        say(process, f"!{THREE}")
        await until_in_a_file(only_session(tmp_path), "line 3")
        process.kill()
        process.wait()
        for _ in range(2):  # found once
            async with reopened(tmp_path, server, resume_latest=True) as running:
                (entry,) = [entry for entry in running.session.path() if isinstance(entry, ShellEntry)]
                assert entry.interrupted
                assert (entry.command, entry.output) == (THREE, "line 1\nline 2\nline 3\n")


@pytest.mark.parametrize("slow", [False, True], ids=["short", "long"])
async def test_item_5_kill_9_loses_no_command_beside_the_task_that_waits_for_a_boundary(
    tmp_path: Path, slow: bool
) -> None:
    answer = Reply(" ".join(f"word{number}" for number in range(4_000)), delay_per_event=0.2, chunk_size=8)
    async with ScriptedServer([Reply("hello"), answer]) as server, other_process(tmp_path, server) as process:
        say(process, "say go")
        await until_line(process, AssistantTextDeltaEvent.__name__)
        wait = "sleep 0.5; " if slow else ""
        for command in (f"!{wait}echo one; exit 3", "!!echo two", "!echo two"):
            say(process, command)
            await until_line(process, ShellFinishedEvent.__name__)
        process.kill()
        process.wait()
        for _ in range(2):
            async with reopened(tmp_path, server, resume_latest=True) as running:
                found = [entry for entry in running.session.path() if isinstance(entry, ShellEntry)]
                assert [(entry.output, entry.exit_code, entry.excluded) for entry in found] == [
                    ("one\n", 3, False),
                    ("two\n", 0, True),
                    ("two\n", 0, False),
                ]
                assert not any(entry.interrupted for entry in found)


async def test_item_5_an_entry_that_was_stored_right_before_the_kill_is_not_stored_again(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("fine")]) as running:
        session = running.session
        for output in ("one\n", "two\n"):
            entry = ShellEntry(command="ls", output=output)
            session.store.running.note(output.strip(), RunningCommand(shell=entry, since=session.path()[-1].seq))
        session.append(ShellEntry(command="ls", output="one\n"))
        directory = session.directory
    again = Session.open(directory)
    assert [entry.output for entry in again.path() if isinstance(entry, ShellEntry)] == ["one\n", "two\n"]
    again.close()


@given(st.binary(max_size=400), st.integers(1, 400))
def test_f2_a_found_output_is_bounded_and_keeps_both_ends(tmp_path_factory, data: bytes, times: int) -> None:
    outputs = tmp_path_factory.mktemp("outputs")
    (outputs / "call.txt").write_bytes(b"first" + data * times + b"last")
    call = ToolCallPart(id="call", name="bash", arguments="{}")
    result = found_result(call, RunningCommand(output="call.txt", call_id="call", command="x"), outputs)
    output = output_before(text_of(result.parts))
    assert result.interrupted
    assert len(output) < 9_000
    controls = any(byte < 32 or 0x7F <= byte < 0xA0 for byte in data)
    assert controls or (output.startswith("first") and output.endswith("last"))
    (outputs / "call.txt").unlink()


@given(st.text(), st.integers(0, 10**9), st.text(st.characters(exclude_characters="\n"), max_size=80))
def test_f2_the_output_is_read_back_from_an_interrupted_result(output: str, lines: int, path: str) -> None:
    assert output_before(interruption(output, lines, path)) == output
