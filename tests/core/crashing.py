"""A process with an open session, to be killed: `python -m tests.core.crashing HOME DIRECTORY MODEL`.

Resumes the directory's latest session. Lines on stdin: `compact`, `say TEXT`, `/COMMAND`, `!COMMAND`, `!!COMMAND`.
Lines on stdout: `ready`, then the name of every event.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tenuto.command.registry import run_command
from tenuto.core.runtime import Runtime
from tenuto.core.start import Start
from tenuto.protocol.event import AnyEvent
from tenuto.protocol.operation import CompactSessionOperation, RunShellOperation
from tenuto.protocol.part import TextPart


def tell(event: AnyEvent) -> None:
    print(type(event).__name__, flush=True)


async def serve(home: Path, directory: Path, model: str) -> None:
    start = Start(cwd=directory, home=home, model=model, mode="auto", environ=dict(os.environ), resume_latest=True)
    runtime = Runtime(start)
    await runtime.open()
    await runtime.opener.wait_for_facts()
    runtime.subscribe(tell)
    print("ready", flush=True)
    running: set[asyncio.Task[object]] = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.startswith("/"):
            running.add(asyncio.create_task(run_command(runtime, line.strip())))
        elif line.startswith("!"):
            command, excluded = line.strip().lstrip("!"), line.startswith("!!")
            await runtime.submit(RunShellOperation(session_id=runtime.session_id, command=command, excluded=excluded))
        elif line.startswith("say "):
            await runtime.submit_prompt((TextPart(text=line.removeprefix("say ").strip()),))
        else:
            await runtime.submit(CompactSessionOperation(session_id=runtime.session_id))


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
