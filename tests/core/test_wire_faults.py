"""What providers send that they should not, through the whole agent (R-092 to R-095, T-40)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tenuto.protocol.entry import NoticeEntry
from tenuto.protocol.event import RetryEvent, TaskSettledEvent, ToolResultEvent
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tests.core.harness import PROTOCOLS, Agent, agent
from tests.model.streams import DONE, Numbered, anthropic_end, anthropic_start, block_delta, block_start, block_stop
from tests.model.streams import call as chat_call
from tests.model.streams import chunk as chat_chunk
from tests.server import Call, Cut, HttpError, RawStream, Reply, StreamError

MORE_EVENTS_THAN_ANY = 24


def answers(running: Agent) -> list[AssistantMessage]:
    return [entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]


def results(running: Agent) -> list[ToolResultMessage]:
    return [event.message for event in running.of(ToolResultEvent)]


@pytest.mark.parametrize("how", ["drop", "clean"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t40_r092_cut_after_each_event_no_partial_tool_runs_and_one_answer_is_stored(
    tmp_path: Path, protocol: str, how: str
) -> None:
    whole = Reply("I will make a file.", thinking="Which one?", tool_calls=[Call("bash", {"command": "touch ran"})])

    async def cut_after(events: int) -> bool:
        place = tmp_path / str(events)
        place.mkdir()
        script = [Cut(whole, after_events=events, how=how), Reply("done")]  # pyright: ignore[reportArgumentType]
        async with agent(place, script, model=f"{protocol}/test") as running:
            settled = await running.ask("go", timeout=60)
            assert settled.outcome == "completed", settled.error
            stored, ran = answers(running), (place / "work" / "ran").exists()
            assert not any(request.refused for request in running.server.requests)
            assert text_of(stored[-1].parts) == "done"
            assert len(running.server.requests) == 2
            if not running.of(RetryEvent):
                # Only what stands after the terminal event was missing: the answer was whole, and was taken as it is.
                assert (len(stored), ran, len(results(running))) == (2, True, 1)
                return False
            assert (len(stored), ran, results(running)) == (1, False, [])
            assert not any(item.kind == "call" for item in running.server.requests[-1].items)
            assert "make a file" not in text_of(stored[0].parts)
            return True

    broken = await asyncio.gather(*(cut_after(events) for events in range(MORE_EVENTS_THAN_ANY)))
    assert broken[:6] == [True] * 6
    assert broken == sorted(broken, reverse=True), "from some event on the answer is whole"
    assert not broken[-1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r092_what_was_shown_of_a_broken_answer_leaves_a_notice(tmp_path: Path, protocol: str) -> None:
    script = [Cut(Reply("A text that breaks off. " * 20), after_events=6), Reply("done")]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        await running.ask("go")
        notices = [entry.text for entry in running.session.entries() if isinstance(entry, NoticeEntry)]
        assert len(notices) == 1
        assert "Discarded" in notices[0]
        assert "breaks off" not in running.server.requests[-1].raw.decode()


@pytest.mark.parametrize("fault", [HttpError(529, "Overloaded", {"retry-after": "0.05"}), StreamError(2)], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r093_after_the_last_attempt_the_turn_stops_and_can_be_taken_up(
    tmp_path: Path, protocol: str, fault: HttpError | StreamError
) -> None:
    environ = {"TENUTO_REQUEST__RETRIES": "1"}
    call = Reply(tool_calls=[Call("bash", {"command": "echo made"})])
    script = [call, fault, fault, Reply("Here it is.")]
    async with agent(tmp_path, script, model=f"{protocol}/test", environ=environ) as running:
        settled = await running.ask("go")
        assert settled.outcome == "failed"
        assert settled.error
        retries = running.of(RetryEvent)
        assert [(event.attempt, event.attempts) for event in retries] == [(1, 1)]
        assert retries[0].wait > 0
        assert retries[0].reason
        assert (await running.ask("go on")).outcome == "completed"
        last = running.server.requests[-1]
        assert not last.refused
        assert next(item.text for item in last.items if item.kind == "result").startswith("made")
        said = [item.text for item in last.items if item.kind == "user"]
        assert any("go on" in text for text in said)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stop", [None, "max_tokens"])
async def test_r094_arguments_that_are_no_object_run_nothing_and_are_stored_valid(
    tmp_path: Path, protocol: str, stop: str | None
) -> None:
    bad = '{"command": "touch ran'
    script = [Reply(tool_calls=[Call("bash", bad)], stop=stop), Reply("sorry")]  # pyright: ignore[reportArgumentType]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        assert (await running.ask("go")).outcome == "completed"
        (result,) = results(running)
        assert result.is_error
        assert len(text_of(result.parts)) < 1_000
        assert not (tmp_path / "work" / "ran").exists()
        (stored,) = [part for part in answers(running)[0].parts if isinstance(part, ToolCallPart)]
        assert json.loads(stored.arguments) == {}
        assert stored.fault
        assert not running.server.requests[-1].refused


def raw_calls(protocol: str, ids: tuple[str, str, str]) -> RawStream:
    """Three calls whose ids are chosen by the provider."""
    commands = [json.dumps({"path": f"{number}.txt"}) for number in range(3)]
    chunks: list[bytes] = []
    match protocol:
        case "anthropic":
            chunks.append(anthropic_start())
            for index, (call_id, text) in enumerate(zip(ids, commands, strict=True)):
                chunks.append(block_start(index, type="tool_use", id=call_id, name="read", input={}))
                chunks += [block_delta(index, "input_json_delta", partial_json=text), block_stop(index)]
            chunks += anthropic_end("tool_use")
        case "openai-chat":
            calls = [
                chat_call(index, call_id, "read", text)
                for index, (call_id, text) in enumerate(zip(ids, commands, strict=True))
            ]
            chunks += [chat_chunk({"tool_calls": calls}), chat_chunk({}, "tool_calls"), DONE]
        case _:
            event = Numbered()
            items = [
                {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": "read", "arguments": text}
                for index, (call_id, text) in enumerate(zip(ids, commands, strict=True))
            ]
            response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
            chunks.append(event("response.created", response=response))
            for index, item in enumerate(items):
                began = {**item, "arguments": "", "status": "in_progress"}
                chunks.append(event("response.output_item.added", output_index=index, item=began))
                done = {**item, "status": "completed"}
                chunks.append(event("response.output_item.done", output_index=index, item=done))
            usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
            whole = {**response, "status": "completed", "output": items, "usage": usage}
            chunks.append(event("response.completed", response=whole))
    return RawStream(chunks)


@pytest.mark.parametrize("ids", [("", "", ""), ("same", "same", "same"), ("", "a", "a")], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r095_duplicate_and_empty_call_ids_are_made_unique_and_pairs_stay_valid(
    tmp_path: Path, protocol: str, ids: tuple[str, str, str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for number in range(3):
        (work / f"{number}.txt").write_text(f"text of {number}")
    # Twice the same ids: those of an earlier step must not come again either.
    script = [raw_calls(protocol, ids), raw_calls(protocol, ids), Reply("done")]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        settled = await running.ask("go")
        assert settled.outcome == "completed", settled.error
        assert not any(request.refused for request in running.server.requests)
        stored = [part.id for answer in answers(running) for part in answer.parts if isinstance(part, ToolCallPart)]
        assert len(set(stored)) == len(stored) == 6
        assert all(stored)
        assert [result.call_id for result in results(running)] == stored
        items = running.server.requests[-1].items
        calls = [item for item in items if item.kind == "call"]
        found = {item.call_id: item.text for item in items if item.kind == "result"}
        assert len(calls) == len(found) == 6
        for call in calls:
            assert f"text of {json.loads(call.arguments)['path'][0]}" in found[call.call_id]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t30_r073_hostile_text_from_everywhere_makes_valid_bodies(tmp_path: Path, protocol: str) -> None:
    """Lone surrogates, NULs and half characters: typed, answered, and out of tools."""
    command = r"printf 'nul\000 half\360\237\230 lone\355\240\200 end'"
    script = [
        Reply("half of a smile \ud83d", tool_calls=[Call("bash", {"command": command, "note": "\udc00"})]),
        Reply("and the other half \ude00"),
        Reply("done"),
    ]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        parts = (TextPart(text="typed \ud800 and \0 and \ud83d\ude00"),)
        await running.runtime.submit_prompt(parts)
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.outcome == "completed", settled.error
        assert (await running.ask("again")).outcome == "completed"
        for request in running.server.requests:
            assert not request.refused
            body = json.loads(request.raw.decode("utf-8", "strict"), parse_constant=lambda _: 1 / 0)
            json.dumps(body, ensure_ascii=False).encode("utf-8", "strict")
        assert any("😀" in item.text for item in running.server.requests[0].items)
        assert any("end" in item.text for item in running.server.requests[-1].items if item.kind == "result")
        log = (running.session.directory / "events.jsonl").read_bytes()
        for line in log.split(b"\n")[:-1]:
            json.dumps(json.loads(line.decode("utf-8", "strict")), ensure_ascii=False).encode("utf-8", "strict")
    assert len(running.of(TaskSettledEvent)) == 2
