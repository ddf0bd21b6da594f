"""A session that is compacted eleven times, with restarts between: all that was promised is in the last request.

Read from the bytes that the server got: instructions, pins, plan, file lists, the user's words, mode and approvals
(T-07, R-030 to R-033, R-036, R-037).
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenuto.command.registry import run_command
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.message import CompactionEntry, FileUse, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, ChangeModeOperation
from tests.compaction.listing import listed_in
from tests.core.harness import PROTOCOLS, Agent, reopened
from tests.examples import one_of
from tests.requirements.compaction.support import SUMMARY, compact, last_instruction
from tests.requirements.recovery.ladder import (
    SUMMARISED,
    answering,
    asks_for_summary,
    made_smaller,
    step_requests,
    summary_requests,
    words,
)
from tests.server import Call, Reply, Request, ScriptedServer

ROUNDS = 11
NONCE = "RULE-NONCE-5d1e"
FIRST_PIN = "PIN-ONE: never touch legacy/,\n\tthe port is 8443 “always”."
SECOND_PIN = "PIN-TWO: ‘frobnicate’ keeps its name."
GONE_PIN = "PIN-THREE: only for a while."
CANCELLED = 3
RESTARTS = (4, 8)
COMMAND = {"command": "touch asked-for-once"}


def plan_after(number: int) -> list[dict[str, str]]:
    """The todo list after so many rounds: all that came before is done, one item was cancelled, the rest is open."""

    def status(item: int) -> str:
        if item == CANCELLED:
            return "cancelled" if number >= CANCELLED else "pending"
        return "done" if item <= number else "in_progress" if item == number + 1 else "pending"

    return [{"text": f"PLAN-ITEM-{item:02}", "status": status(item)} for item in range(1, ROUNDS + 2)]


def work(request: Request) -> Reply:
    """In each round: write a file, read one, run a command, keep the plan; then answer at length."""
    found = re.match(r"round (\d+) begins", last_instruction(request))
    if found is None or request.items[-1].kind == "result":
        return Reply(f"DONE. {words(1_000)}", chunk_size=2_000)
    number = int(found[1])
    return Reply(
        "I work.",
        tool_calls=[
            Call("write", {"path": f"made-{number:02}.txt", "content": words(60)}),
            Call("read", {"path": "read.txt"}),
            Call("bash", COMMAND),
            Call("todo", {"items": plan_after(number)}),
        ],
    )


def summarise(request: Request) -> Reply:
    """The model's own notes claim what is not so: data has to win over them."""
    del request
    return Reply(SUMMARY.replace("1. go on", "1. PLAN-ITEM-03 is still open and PLAN-ITEM-01 has not been begun"))


@asynccontextmanager
async def opened(tmp_path: Path, server: ScriptedServer, protocol: str, *, resume: bool):
    """A process of its own; mode, pins and approvals come from the session alone."""
    async with reopened(tmp_path, server, model=f"{protocol}/test", mode=None, resume_latest=resume) as running:
        yield running


async def prepare(running: Agent) -> None:
    """Pins, the mode, and an approval that holds for the session."""
    session_id = running.runtime.session_id
    await running.runtime.submit(ChangeModeOperation(session_id=session_id, mode="edits"))
    await running.ask("FIRST-WORDS: build it, keep `legacy/` as it is.")
    for pin in (FIRST_PIN, GONE_PIN):
        await run_command(running.runtime, f"/pin {pin}")


async def do_round(running: Agent, number: int) -> None:
    if number == 1:
        await running.send("round 1 begins " + words(1_000))
        asked = await running.until(ApprovalRequestedEvent)
        answer = AnswerApprovalOperation(
            session_id=running.runtime.session_id, request_id=asked.request_id, decision="session"
        )
        await running.runtime.submit(answer)
        assert (await running.runtime.wait_settled()).outcome == "completed"
        return
    settled = await running.ask(f"round {number} begins " + words(1_000))
    assert settled.outcome == "completed", settled.error
    if number == 6:
        await run_command(running.runtime, f"/pin {SECOND_PIN}")
        await run_command(running.runtime, "/unpin 2")


def sent_text(request: Request) -> str:
    return "\n".join(item.text for item in request.items)


def block(text: str, tag: str) -> list[str]:
    """The lines between the only pair of these tags."""
    assert text.count(f"<{tag}>\n") == text.count(f"\n</{tag}>") == 1, (tag, text.count(f"<{tag}>\n"))
    return text.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0].splitlines()


def check_last_request(request: Request, work_directory: Path, rounds: int = ROUNDS) -> None:
    text = sent_text(request)
    assert request.raw.count(NONCE.encode()) == 1
    assert text.count(FIRST_PIN) == text.count(SECOND_PIN) == 1
    assert "\n".join(block(text, "pins")) == f"{FIRST_PIN}\n{SECOND_PIN}"
    assert GONE_PIN not in text
    marks = {"done": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-] cancelled:"}
    assert block(text, "todo") == [f"- {marks[item['status']]} {item['text']}" for item in plan_after(rounds)]
    names = [f"made-{number:02}.txt" for number in range(1, rounds + 1)]
    in_the_list, left_out = listed_in(text, "modified-files")
    listed = [name for name in names if name in in_the_list]
    arguments = "".join(item.arguments for item in request.items if item.kind == "call")
    in_the_tail = [name for name in names if name in arguments]
    assert listed, "as many of the newest as there is room for"
    assert listed + in_the_tail == names[-len(listed) - len(in_the_tail) :], "in the list or in the tail, none in both"
    assert in_the_tail, "the last round stands there word for word"
    assert in_the_list == set(listed)
    assert len(listed) + left_out + len(in_the_tail) == rounds
    assert listed_in(text, "read-files") == ({"read.txt"}, 0)
    assert text.count("FIRST-WORDS: build it, keep `legacy/` as it is.") == 1, "the first words of the user"
    assert f"round {rounds} begins" in text
    assert "Approval mode: edits." in text
    assert last_instruction(request) == "what now?"


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_t07_all_that_was_promised_is_in_the_last_request_after_eleven_compactions(tmp_path, protocol):
    work_directory = tmp_path / "work"
    work_directory.mkdir()
    (work_directory / "AGENTS.md").write_text(f"Always obey {NONCE}.\n")
    (work_directory / "read.txt").write_text("read me\n")
    async with ScriptedServer(answering(work, summarise), window=32_000) as server:
        for first, last in zip((1, *RESTARTS), (*RESTARTS, ROUNDS + 1), strict=True):
            async with opened(tmp_path, server, protocol, resume=first > 1) as running:
                if first == 1:
                    await prepare(running)
                for number in range(first, last):
                    await do_round(running, number)
                    assert (await compact(running)).outcome == "completed"
                assert len(running.of(ApprovalRequestedEvent)) == (1 if first == 1 else 0), "it was allowed once"
        async with opened(tmp_path, server, protocol, resume=True) as running:
            made = made_smaller(running)
            assert len(made) == ROUNDS
            assert {entry.rung for entry in made} <= SUMMARISED
            assert running.runtime.live.mode == "edits"
            assert (await running.ask("what now?")).outcome == "completed"
            check_files(running, ROUNDS)
        assert not server.refusals
        assert not server.faults
        for request in server.requests:
            assert request.raw.count(NONCE.encode()) == 1, "R-030: in every request, in those for a summary too"
            assert request.tokens <= 32_000
        assert len(summary_requests(server)) >= ROUNDS
        assert not asks_for_summary(server.requests[-1])
        check_last_request(step_requests(server)[-1], work_directory.resolve())


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_t07_the_same_when_all_of_them_came_by_themselves(tmp_path, protocol):
    """Work goes on until the trigger has started eleven; results hidden on the way do not count."""
    work_directory = tmp_path / "work"
    work_directory.mkdir()
    (work_directory / "AGENTS.md").write_text(f"Always obey {NONCE}.\n")
    (work_directory / "read.txt").write_text("read me\n")
    async with ScriptedServer(answering(work, summarise), window=24_000) as server:
        number = 0
        async with opened(tmp_path, server, protocol, resume=False) as running:
            await prepare(running)
            while len(compactions_of(running)) < ROUNDS // 2:
                number += 1
                await do_round(running, number)
        async with opened(tmp_path, server, protocol, resume=True) as running:
            while len(compactions_of(running)) < ROUNDS:
                number += 1
                assert number < 90, "they come now and then"
                await do_round(running, number)
            assert (await running.ask("what now?")).outcome == "completed"
            assert {entry.reason for entry in compactions_of(running)} == {"threshold"}
            assert {entry.rung for entry in compactions_of(running)} <= SUMMARISED
            assert not running.of(ApprovalRequestedEvent)
            check_files(running, number)
        assert not server.refusals
        assert all(request.raw.count(NONCE.encode()) == 1 for request in server.requests)
        assert max(request.tokens for request in server.requests) <= 24_000
        check_last_request(step_requests(server)[-1], work_directory.resolve(), number)


def check_files(running: Agent, rounds: int) -> None:
    """Data forgets none of them: what the newest compaction covers, and what came after it."""
    newest = compactions_of(running)[-1]
    made = [f"made-{number:02}.txt" for number in range(1, rounds + 1)]
    covered = [Path(path).name for path in newest.details.modified_files]
    assert covered == made[: len(covered)]
    path = running.session.path()
    kept = {Path(use.path).name for entry in path if entry.seq >= newest.first_kept_index for use in uses_of(entry)}
    assert set(made[len(covered) :]) <= kept


def uses_of(entry: object) -> tuple[FileUse, ...]:
    return entry.files if isinstance(entry, ToolResultMessage) else ()


def compactions_of(running: Agent) -> list[CompactionEntry]:
    return [entry for entry in made_smaller(running) if isinstance(entry, CompactionEntry)]
