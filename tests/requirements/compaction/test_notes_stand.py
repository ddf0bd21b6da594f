"""What the model was told in notes stands in every request, behind each compaction too (seeds-000-003.md, defect 1)."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from tenuto.compaction.ways.strategies import DigestCompaction, HidingThenSummaryCompaction
from tenuto.core.state.reminders import MODE_TEXTS
from tenuto.protocol.entry import Mode, ViewEditEntry
from tenuto.protocol.event import StepStartedEvent
from tenuto.protocol.operation import ChangeModeOperation
from tests.core.harness import Agent, agent
from tests.requirements.compaction.support import (
    FROM_A_TRANSCRIPT,
    SUMMARISED,
    compactions,
    is_summary_request,
    step_requests,
    write_big_file,
)
from tests.server import Call, Reply, Request

WAYS = {
    "same prefix": {},
    "serialised": {"environ": FROM_A_TRANSCRIPT},
    "digest": {"compaction": DigestCompaction()},
    "hidden": {"compaction": HidingThenSummaryCompaction()},
    "overflow": {},
}
MODES: tuple[Mode, ...] = get_args(Mode)
WINDOW = 16_000
LINES = 400


def read_on(count: int):
    """Read `seen.txt` for the first prompt; for the second one another part of a file in each of `count` steps."""
    taken = 0

    def script(request: Request) -> Reply:
        nonlocal taken
        if is_summary_request(request):
            return SUMMARISED
        taken += 1
        if taken == 1:
            return Reply(tool_calls=[Call("read", {"path": "seen.txt"})])
        if taken == 2 or taken > count + 2:
            return Reply("done")
        part = {"path": "big.txt", "offset": 1 + taken % LINES, "limit": 250 + taken // LINES}
        return Reply(tool_calls=[Call("read", part)])

    return script


def notes_of(request: Request) -> str:
    return "\n".join(item.text for item in request.items)


def check(running: Agent, requests: list[Request], modes: list[Mode], changed: Path) -> None:
    """Each request has where, when, the mode of that moment as the last word on it, and the changed file, once."""
    for number, (request, mode) in enumerate(zip(requests, modes, strict=True)):
        text = notes_of(request)
        assert text.count(f"Working directory: {running.session.cwd}") == 1, number
        assert text.count("\nDate: ") == 1, number
        last = max(MODES, key=lambda one: text.rfind(MODE_TEXTS[one]))
        assert last == mode, number
        assert text.count(MODE_TEXTS[mode]) >= 1, number
        assert text.count(f"\n- {changed}") == 1, number


CASES = [
    *((way, MODES[place % len(MODES)], 50) for place, way in enumerate(WAYS)),
    *(
        pytest.param(way, mode, 300 if MODES[place % len(MODES)] == mode else 40, marks=pytest.mark.full)
        for (place, way), mode in product(enumerate(WAYS), MODES)
    ),
]


@pytest.mark.parametrize(("way", "mode", "steps"), CASES)
async def test_d1_the_notes_stand_in_every_request_of_a_task_with_compactions(
    tmp_path: Path, way: str, mode: Mode, steps: int
) -> None:
    write_big_file(tmp_path, LINES + 400)
    changed = tmp_path / "work" / "seen.txt"
    changed.write_text("as the model sees it\n")
    options = {"window": WINDOW, **({"listed_window": 200_000} if way == "overflow" else {})}
    async with agent(tmp_path, read_on(steps), mode=mode, options=options, **WAYS[way]) as running:
        await running.ask("look at seen.txt")
        changed.write_text("as it is now\n")
        settled = await running.ask("read all of the big one", timeout=240)
        assert settled.outcome == "completed", settled.error
        every = step_requests(running)
        begun = next(number for number, one in enumerate(every) if "all of the big one" in notes_of(one))
        requests = every[begun:]
        assert sum(request.status == 200 for request in requests) > steps
        smaller = compactions(running)
        if way == "hidden":
            smaller += [entry for entry in running.session.path() if isinstance(entry, ViewEditEntry)]
        assert len(smaller) >= steps // 12, "or this would show nothing"
        if way == "overflow":
            assert any(request.status == 400 for request in running.server.requests)
        check(running, requests, [mode] * len(requests), changed)


@pytest.mark.parametrize("way", list(WAYS))
async def test_d1_a_mode_changed_in_mid_task_is_told_with_the_next_request(tmp_path: Path, way: str) -> None:
    write_big_file(tmp_path, LINES + 400)
    changed = tmp_path / "work" / "seen.txt"
    changed.write_text("as the model sees it\n")
    async with agent(tmp_path, read_on(32), mode="ask", options={"window": WINDOW}, **WAYS[way]) as running:
        await running.ask("look at seen.txt")
        changed.write_text("as it is now\n")
        expected: list[Mode] = []

        def change(event: object) -> None:
            """Every seventh step changes the mode, as a key of the user would."""
            if isinstance(event, StepStartedEvent):
                if len(expected) % 7 == 6:
                    mode = MODES[len(expected) // 7 % len(MODES)]
                    operation = ChangeModeOperation(session_id=running.session.id, mode=mode)
                    with pytest.raises(StopIteration):
                        running.runtime.executor.submit(operation).send(None)
                expected.append(running.runtime.live.mode)

        running.runtime.subscribe(change)
        settled = await running.ask("read all of the big one", timeout=240)
        assert settled.outcome == "completed", settled.error
        assert len(set(expected)) == len(MODES)
        check(running, step_requests(running)[2:], expected, changed)


async def test_d1_that_a_job_has_ended_stands_until_the_next_message_of_the_user(tmp_path: Path) -> None:
    write_big_file(tmp_path, LINES + 400)
    (tmp_path / "work" / "seen.txt").write_text("seen\n")
    reading = read_on(40)
    first = [
        Reply("done"),
        Reply(tool_calls=[Call("bash", {"command": "sleep 0.7; echo built", "background": True})]),
        Reply(tool_calls=[Call("bash", {"command": "sleep 1.5"})]),
    ]

    def script(request: Request) -> Reply:
        return first.pop(0) if first and not is_summary_request(request) else reading(request)

    async with agent(tmp_path, script, options={"window": WINDOW}) as running:
        await running.ask("hello")
        for _ in range(2):  # what it says of the other file
            reading(step_requests(running)[0])
        settled = await running.ask("build, then read all of the big one", timeout=120)
        assert settled.outcome == "completed", settled.error
        assert len(compactions(running)) > 2
        told = [notes_of(request).count("Background job job-1 ") for request in step_requests(running)]
        assert told[:3] == [0, 0, 0]
        assert set(told[3:]) == {1}
