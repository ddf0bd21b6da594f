"""What is sent before there is a runtime is handed over in the order in which it was sent."""

from __future__ import annotations

import asyncio

from tenuto.protocol.part import TextPart
from tenuto.tui.runner import LateRuntime
from tests.tui.full.fake_runtime import FakeRuntime


async def test_who_comes_at_the_moment_of_opening_does_not_overtake() -> None:
    runtime = FakeRuntime()
    late = LateRuntime(runtime.home)
    late.attach(runtime)

    def send(text: str) -> asyncio.Task[str]:
        return asyncio.create_task(late.submit_prompt((TextPart(text=text),)))

    tasks = [send("one"), send("two")]
    await asyncio.sleep(0)
    tasks.append(send("three"))
    late.ready()
    tasks.append(send("four"))
    await asyncio.gather(*tasks)
    assert runtime.prompts == ["one", "two", "three", "four"]
