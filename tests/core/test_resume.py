"""Sessions of other versions, damaged ones and interrupted ones, taken up by the whole agent (DESIGN sections 2, 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenuto.protocol.entry import UnknownEntry
from tenuto.protocol.event import NoticeEvent, ToolResultEvent, UserMessageEvent
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import ForkSessionOperation
from tenuto.protocol.part import text_of
from tests.core.harness import PROTOCOLS, reopened
from tests.server import Call, Reply, Request, ScriptedServer


def script(request: Request) -> Reply:
    """Run one command in the first turn, then only talk."""
    if not any(item.kind == "call" for item in request.items):
        return Reply("Let me look.", tool_calls=[Call("bash", {"command": "echo seen"})])
    return Reply(f"Answer {len(request.items)}.")


def log_of(tmp_path: Path) -> Path:
    (log,) = (tmp_path / "home").glob("sessions/*/*/events.jsonl")
    return log


def without_meta(log: Path) -> None:
    for extra in log.parent.glob("meta.json*"):
        extra.unlink()


def make_newer(log: Path) -> list[bytes]:
    """Rewrite a log as a later version might have written it; return the lines that this version cannot know."""
    lines = [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]
    written: list[dict[str, Any]] = []
    for line in lines:
        line |= {name: line[name] * 10 for name in ("seq", "from_queued") if name in line}  # room for more between them
        match line["type"]:
            case "user":
                line |= {"mood": {"name": "curious", "values": [1, 2.5, None]}}
            case "assistant":
                line["parts"].insert(0, {"type": "hologram", "depth": 3})
                line |= {"weather": "fair", "stop_reason": line.get("stop_reason", "end_turn")}
            case "tool_result":
                line["ui"] = [*line.get("ui", []), {"type": "chart", "points": [1, 2]}]
            case _:
                pass
        written.append(line)
        if line["type"] in ("assistant", "user"):
            written.append(
                {"type": "aura", "seq": line["seq"] + 1, "ts": 1.5, "colour": "blue ✓", "deep": {"a": [1, {"b": 2}]}}
            )
    encoded = [json.dumps(line, ensure_ascii=False).encode() for line in written]
    log.write_bytes(b"\n".join(encoded) + b"\n")
    return [line for line in encoded if b"aura" in line or b"mood" in line or b"hologram" in line or b"chart" in line]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_unknown_fields_and_types_survive_open_fork_and_resume(tmp_path: Path, protocol: str) -> None:
    model = f"{protocol}/test"
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=model) as running:
            await running.ask("first")
        log = log_of(tmp_path)
        unknown = make_newer(log)
        without_meta(log)
        assert len(unknown) == 1 + 2 + 1 + 3
        newer = log.read_bytes()

        async with reopened(tmp_path, server, model=model, resume_latest=True) as running:
            assert running.session.damage == ()
            assert [event for event in running.of(NoticeEvent) if event.level != "info"] == []
            assert len([entry for entry in running.session.entries() if isinstance(entry, UnknownEntry)]) == 3
            assert [text_of(event.parts) for event in running.of(UserMessageEvent)] == ["first"]
            assert len(running.of(ToolResultEvent)) == 1
            assert (await running.ask("second")).outcome == "completed"
            assert log.read_bytes().startswith(newer), "a log is only ever appended to"
            await running.runtime.submit(ForkSessionOperation(session_id=running.runtime.session_id))
            assert running.session.directory != log.parent
            fork = running.session.directory / "events.jsonl"
            assert set(unknown) <= set(fork.read_bytes().split(b"\n"))
            assert (await running.ask("third, in the copy")).outcome == "completed"
            copied = running.session.id

        async with reopened(tmp_path, server, model=model, resume=copied) as running:
            assert running.session.damage == ()
            assert [text_of(event.parts) for event in running.of(UserMessageEvent)] == [
                "first",
                "second",
                "third, in the copy",
            ]
            assert (await running.ask("fourth")).outcome == "completed"
        assert set(unknown) <= set(fork.read_bytes().split(b"\n"))
        assert not any(request.refused for request in server.requests)
        texts = [item.text for item in server.requests[-1].items]
        for said in ("first", "second", "third, in the copy", "fourth", "Let me look."):
            assert any(said in text for text in texts), said


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r064_r065_t23_a_damaged_session_goes_on_and_the_damage_is_named(tmp_path: Path, protocol: str) -> None:
    model = f"{protocol}/test"
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=model) as running:
            await running.ask("one\u2028line\u2029with\u0085all\vkinds\fof ends")
        log = log_of(tmp_path)
        lines = log.read_bytes().split(b"\n")
        place = next(number for number, line in enumerate(lines) if b'"tool_result"' in line) + 1
        lines[place:place] = [b"\0" * 400, b'{"type":"user","seq":77,"parts":[{"ty', b"\xff\xfe", b""]
        log.write_bytes(b"\n".join(lines))
        without_meta(log)
        damaged = log.read_bytes()
        async with reopened(tmp_path, server, model=model, resume_latest=True) as running:
            said = [event.text for event in running.of(NoticeEvent) if "damaged" in event.text]
            assert [f"line {place + 1} (400 bytes)" in said[0], "3 lines" in said[0], len(said)] == [True, True, 1]
            assert (await running.ask("go on")).outcome == "completed"
        assert log.read_bytes().startswith(damaged)
        last = server.requests[-1]
        assert not last.refused
        assert any("one\u2028line\u2029with\u0085all\vkinds\fof ends" in item.text for item in last.items)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r068_calls_without_results_get_them_once_and_every_provider_accepts(
    tmp_path: Path, protocol: str
) -> None:
    calls = [Call("bash", {"command": f"echo {number}"}) for number in range(3)]
    first = iter([Reply("Three.", tool_calls=calls), Reply("done")])
    async with ScriptedServer(lambda _: next(first, Reply("I will check."))) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.ask("go")
        log = log_of(tmp_path)
        lines = log.read_bytes().splitlines(keepends=True)
        # As it stands when the program dies after the first of three results.
        results = [number for number, line in enumerate(lines) if b'"tool_result"' in line]
        log.write_bytes(b"".join(lines[: results[0] + 1]))
        without_meta(log)
        for _ in range(2):
            async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
                entries = list(running.session.entries())
                stored = [entry for entry in entries if isinstance(entry, ToolResultMessage)]
                assert [entry.interrupted for entry in stored] == [False, True, True]
                assert all("may have taken effect" in text_of(entry.parts) for entry in stored[1:])
                assert (await running.ask("go on")).outcome == "completed"
        assert not any(request.refused for request in server.requests)
        told = [item.text for item in server.requests[-1].items if item.kind == "result"]
        assert len(told) == 3
        assert sum("may have taken effect" in text for text in told) == 2
        assert len([entry for entry in entries if isinstance(entry, AssistantMessage)]) == 2
