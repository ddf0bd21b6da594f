"""Run by a test in a process of its own, to be killed: compacts, types the arguments meanwhile, says so and waits."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tenuto.core.runtime import Runtime
from tenuto.protocol.event import CompactionProgressEvent
from tenuto.protocol.operation import CompactSessionOperation
from tenuto.protocol.part import TextPart
from tests.core.harness import make_start


async def main(place: Path, texts: list[str]) -> None:
    runtime = Runtime(make_start(place, dict(os.environ)))
    compacting = asyncio.Event()
    runtime.subscribe(lambda event: compacting.set() if isinstance(event, CompactionProgressEvent) else None)
    await runtime.open()
    await runtime.opener.wait_for_facts()
    for number in range(6):
        await runtime.submit_prompt((TextPart(text=f"question {number} " + "because " * 300),))
        await runtime.wait_settled()
    await runtime.submit(CompactSessionOperation(session_id=runtime.session_id))
    await compacting.wait()
    for text in texts:
        await runtime.submit_prompt((TextPart(text=text),))
    print("typed", flush=True)
    await asyncio.sleep(600)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
