"""The task manager: a cancellation counts at every moment, whichever way the loop starts tasks."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tenuto.core.bus import EventBus
from tenuto.core.tasks import TaskManager
from tenuto.protocol.event import TaskFinishedEvent, TaskStartedEvent

pytestmark = pytest.mark.matrix

FACTORIES = [
    "lazy",
    pytest.param("eager", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")),
]


@pytest.fixture(params=FACTORIES)
def tasks(request: pytest.FixtureRequest) -> str:
    return request.param


async def run(tasks: str, moment: str) -> tuple[list[str], list[TaskFinishedEvent]]:
    if tasks == "eager":
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    bus, said, ended = EventBus(print), [], []
    manager = TaskManager(bus)

    def listen(event: object) -> None:
        if isinstance(event, TaskStartedEvent) and moment == "started event":
            manager.cancel("session")

    async def body() -> None:
        said.append("began")
        if moment == "body before it waits":
            manager.cancel("session")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        said.append("went on")

    bus.subscribe(listen)
    manager.start("session", "submission", "agent", body(), ended.append)
    if moment == "behind start":
        manager.cancel("session")
    async with asyncio.timeout(60):
        await manager.wait("submission")
    assert manager.running("session") is None
    return said, ended


@pytest.mark.parametrize("moment", ["started event", "behind start", "body before it waits"])
def test_a_task_that_is_cancelled_stops_at_every_moment_of_its_start(tasks, moment):
    said, ended = asyncio.run(run(tasks, moment))
    assert "went on" not in said
    assert [event.outcome for event in ended] == ["interrupted"]


def test_a_task_that_nobody_cancels_runs_to_its_end(tasks):
    said, ended = asyncio.run(run(tasks, "never"))
    assert said == ["began", "went on"]
    assert [event.outcome for event in ended] == ["completed"]
