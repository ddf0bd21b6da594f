"""T-19, R-058, R-059: nothing that was sent before the last turn changes, on every protocol.

Bytes are compared, not data: what a provider's prefix cache sees.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tenuto.command.registry import run_command
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import ChangeModeOperation, RunShellOperation, SetTitleOperation
from tests.core.harness import PROTOCOLS, Agent, agent
from tests.requirements.compaction.support import SUMMARY
from tests.requirements.recovery.ladder import answering, asks_for_summary, made_smaller, words
from tests.server import Call, Reply, Request

TURNS = 20
ASIDE = re.compile(rb',?"cache_control":\{[^{}]*\}|"max_(?:output_|completion_)?tokens":\d+,')
"""What is no part of the prefix: where to cache, and how long the answer may be."""
ODD = "“quotes”, tabs\t, \u2028 lines, emoji 🎵, <tags> & \\u0041 \\n"


def work(request: Request) -> Reply:
    """Do what the turn's number asks for: several calls at once, failing ones, thinking, plain answers."""
    said = "\n".join(item.text for item in request.items if item.kind == "user")
    number = int(re.findall(r"^turn (\d+) “", said, re.MULTILINE)[-1])
    if request.items[-1].kind == "result" or number % 4 == 0:
        return Reply(f"ANSWER-{number} {ODD}", thinking="So that was it." if number % 3 == 0 else "")
    calls = [
        [Call("read", {"path": "read.txt"}), Call("glob", {"pattern": "*"}), Call("grep", {"pattern": "me"})],
        [Call("write", {"path": f"made-{number}.txt", "content": f"{ODD}\n"}), Call("read", {"path": "no-such-file"})],
        [Call("todo", {"items": [{"text": f"item {number}", "status": "in_progress"}]}), Call("read", "{broken")],
    ]
    return Reply("I look.", thinking=f"First {number}.", tool_calls=calls[number % 3])


async def meanwhile(running: Agent, number: int, directory: Path) -> None:
    """What else happens between turns, all of it told to the model without changing what was sent."""
    session_id = running.runtime.session_id
    match number:
        case 3:
            await running.runtime.submit(ChangeModeOperation(session_id=session_id, mode="edits"))
        case 5:
            (directory / "read.txt").write_text("changed by somebody else\n")
        case 7:
            await run_command(running.runtime, "/pin the port is 8443")
        case 9:
            await running.runtime.submit(RunShellOperation(session_id=session_id, command="echo from the user"))
            await running.runtime.wait_settled()
        case 11:
            await running.runtime.submit(SetTitleOperation(session_id=session_id, title="a name"))
            (directory / "AGENTS.md").write_text("Other rules: told with the next compaction.\n")
        case 13:
            await run_command(running.runtime, "/unpin 1")
        case _:
            pass


def bytes_before_the_end(request: Request) -> bytes:
    """A request's bytes up to the end of its last message, without what is no part of the prefix."""
    raw = ASIDE.sub(b"", request.raw)
    return raw[: raw.rindex(b"]}")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t19_r059_each_request_begins_with_the_bytes_of_the_one_before(tmp_path, protocol):
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "read.txt").write_text("read me\n")
    (directory / "AGENTS.md").write_text("Rules of the project.\n")
    options = {"window": 200_000, "check_thinking": True}
    async with agent(tmp_path, work, model=f"{protocol}/test", options=options) as running:
        for number in range(1, TURNS + 1):
            settled = await running.ask(f"turn {number} {ODD} {words(30 * number)}")
            assert settled.outcome == "completed", settled.error
            await meanwhile(running, number, directory)
        assert not [entry for entry in running.session.entries() if isinstance(entry, CompactionEntry)]
        requests = running.server.requests
        assert len(requests) == TURNS + sum(number % 4 != 0 for number in range(1, TURNS + 1))
        assert running.server.prefix_breaks() == []
        for before, after in pairwise(requests):
            assert ASIDE.sub(b"", after.raw).startswith(bytes_before_the_end(before)), f"request {after.index}"
        assert not running.server.refusals
        cached = [request.tokens for request in requests]
        assert cached == sorted(cached)


def text_before_the_end(request: Request) -> bytes:
    """The same up to the end of its last text: what asks for a summary may join the user's last message."""
    return bytes_before_the_end(request).rstrip(b'"}]')


def summary_and_the_request_before(running: Agent) -> tuple[Request, Request]:
    requests = running.server.requests
    place = next(place for place, request in enumerate(requests) if asks_for_summary(request))
    return requests[place], requests[place - 1]


def check_same_beginning(summary: Request, before: Request) -> None:
    """All that the provider cached of the last request is read again; what is new stands behind it."""
    assert ASIDE.sub(b"", summary.raw).startswith(text_before_the_end(before))
    names = ("tools", "system", "instructions", "thinking", "reasoning", "reasoning_effort", "tool_choice", "model")
    assert {name: summary.body.get(name) for name in names if name in MARKLESS} == {
        name: before.body.get(name) for name in names if name in MARKLESS
    }
    assert summary.continues(before)


MARKLESS = ("instructions", "thinking", "reasoning", "reasoning_effort", "tool_choice", "model")
"""Fields in which no cache mark can stand."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r058_so_does_a_summary_in_place_before_a_prompt_and_between_two_steps(tmp_path, protocol):
    """The threshold: what is queued and what the step before brought in stand behind the bytes that were sent."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "read.txt").write_text("read me\n" * 3_000)
    options = {"window": 64_000, "check_thinking": True}
    script = answering(work, Reply(SUMMARY))
    async with agent(tmp_path, script, model=f"{protocol}/test", options=options) as running:
        for number in range(1, 16):
            settled = await running.ask(f"turn {number} {ODD} {words(3_000)}")
            assert settled.outcome == "completed", settled.error
            if made_smaller(running):
                break
        (entry,) = made_smaller(running)
        assert (entry.rung, entry.reason) == ("same prefix", "threshold")
        check_same_beginning(*summary_and_the_request_before(running))
        assert not running.server.refusals
