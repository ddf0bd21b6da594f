"""The full screen on a scripted stream of events, to look at: `python -m tests.tui.full.demo [items]`.

Typing a prompt plays the script again. `/break` is a fault, `/noise` a library that writes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from tenuto import heap
from tenuto.command.outcome import Choice, Choose, CommandOutcome, Leave, Say
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    ContextUsageEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    TodoChangedEvent,
    ToolOutputEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import DiffView
from tenuto.protocol.operation import AnswerApprovalOperation, AnyOperation, ChangeModeOperation, InterruptOperation
from tenuto.protocol.part import ContentPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.runner import LateRuntime
from tenuto.tui.terminal.terminal import borrow_terminal, leave_on_signals
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import SESSION, FakeRuntime, answer, opened, replay, tool, user
from tests.tui.kinds import kinds

ANSWER = """I looked at `render/live.py` and found two things.

1. The **tail block** is parsed again at each flush, which is right.
2. The fence is frozen in pieces of 24 lines:

```python
def settle(self, look: Look) -> list[Extent]:
    for block in look.document.blocks[:-1]:
        self.draw(look, block)
    return blocks[-1:]
```

| what | before | after |
|---|---:|---:|
| first paint | 141 ms | 122 ms |
| 宽字符 and 😀 | 3 ms | 2 ms |

Shall I go on with the *second* one? See <https://example.org/notes>.
"""
THOUGHT = "The user wants to know about the stream. Let me look at the file first."
DIFF = "@@ -1,4 +1,5 @@\n import os\n-VALUE = 1\n+VALUE = 2\n+OTHER = 3\n \n def main():\n"


class DemoRuntime(FakeRuntime):
    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="tenuto-demo-")))
        self.tasks: set[asyncio.Task[None]] = set()
        self.answered = asyncio.Event()
        self.seq = 100_000
        self.app: TenutoApp | None = None

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        task = asyncio.create_task(self.play(text_of(parts)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return "demo"

    async def submit(self, operation: AnyOperation) -> str:
        match operation:
            case InterruptOperation():
                for task in self.tasks:
                    task.cancel()
            case AnswerApprovalOperation(request_id=request_id, decision=decision):
                self.emit(ApprovalResolvedEvent(session_id=SESSION, request_id=request_id, decision=decision))
                self.answered.set()
            case ChangeModeOperation(mode=mode):
                from tenuto.protocol.event import ModeChangedEvent

                self.emit(ModeChangedEvent(session_id=SESSION, mode=mode))
            case _:
                pass
        return operation.submission_id

    async def resources(self) -> tuple[Choice, ...]:
        return ()

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        return ()

    async def run_command(self, line: str) -> list[CommandOutcome]:
        if line.startswith("/exit"):
            return [Leave()]
        if line == "/model":
            choices = tuple(Choice(f"m{n}", f"provider/model-{n}", f"{n * 32}k tokens") for n in range(1, 30))
            return [Choose("Which model?", "model", choices)]
        if line == "/break":
            assert self.app is not None
            self.app.call_later(break_down)
        if line == "/noise":
            os.write(2, b"NOISE FROM A LIBRARY\n" * 50)
        if line.startswith("/size"):
            return [Say(f"{len(line) - len('/size ')} characters")]
        return [Say(f"You ran {line}")]

    async def play(self, text: str) -> None:
        outcome = "completed"
        self.seq += 10
        self.emit(TaskStartedEvent(session_id=SESSION, submission_id="demo", kind="agent"), user(text, self.seq))
        try:
            await self.act()
        except asyncio.CancelledError:
            outcome = "interrupted"
        self.emit(
            TaskFinishedEvent(session_id=SESSION, submission_id="demo", kind="agent", outcome=outcome),
            TaskSettledEvent(session_id=SESSION, outcome=outcome),
        )

    async def stream(self) -> None:
        """Stream for a while without a stop: for measuring."""
        for start in range(400):
            piece = ANSWER[start * 20 % len(ANSWER) :][:20]
            self.emit(AssistantTextDeltaEvent(session_id=SESSION, text=piece))
            await asyncio.sleep(0.02)

    async def act(self) -> None:
        if os.environ.get("DEMO_STREAM"):
            await self.stream()
            return
        for word in THOUGHT.split():
            self.emit(AssistantThinkingDeltaEvent(session_id=SESSION, text=word + " "))
            await asyncio.sleep(0.04)
        started, running, finished = tool(
            f"call{self.seq}", "pytest -q tests/tui", "..........\n10 passed in 0.31s", self.seq + 1
        )
        self.emit(started, running)
        for line in range(8):
            self.emit(ToolOutputEvent(session_id=SESSION, call_id=f"call{self.seq}", text=f"collecting {line}\n"))
            await asyncio.sleep(0.1)
        self.emit(finished)
        self.emit(
            TodoChangedEvent(
                session_id=SESSION,
                items=(
                    TodoItem(text="Read the renderer", status="done"),
                    TodoItem(text="Measure the flush", status="in_progress"),
                    TodoItem(text="Write the test"),
                ),
            )
        )
        self.emit(
            ToolStartedEvent(session_id=SESSION, call_id="edit", name="edit", arguments="{}", summary="src/app.py"),
            ApprovalRequestedEvent(
                session_id=SESSION, request_id=f"r{self.seq}", call_id="edit", tool="edit", summary="src/app.py",
                detail="", reason="edits ask in this mode", kinds=kinds("src/**"),
                diffs=(DiffView(path="src/app.py", diff=DIFF, added=2, removed=1),),
            ),
        )  # fmt: skip
        await self.answered.wait()
        self.answered.clear()
        for start in range(0, len(ANSWER), 7):
            self.emit(AssistantTextDeltaEvent(session_id=SESSION, text=ANSWER[start : start + 7]))
            await asyncio.sleep(0.01)
        self.emit(answer(ANSWER, self.seq + 3))
        usage = Usage(input=12_000, output=900, cost=0.1234)
        self.emit(
            ContextUsageEvent(
                session_id=SESSION, tokens=12_400, window=200_000, trigger=183_000, estimated=True, total=usage
            )
        )


def break_down() -> None:
    """What a fault in the front-end does."""
    raise RuntimeError("a fault on purpose")


async def main(items: int) -> None:
    runtime = DemoRuntime()
    late = LateRuntime(runtime.home)

    async def opening() -> None:
        late.attach(runtime)
        if items:
            runtime.emit(*replay(items))
        else:
            runtime.emit(opened(cwd=str(Path.cwd())))
        late.ready()
        heap.settle()

    app = TenutoApp(late, opening, themes=ThemeChooser("dark", {}, runtime.home))
    runtime.app = app
    with borrow_terminal(), leave_on_signals(asyncio.get_running_loop(), app.leave):
        await app.run_async()
    await app.finish()
    if app.failure is not None:
        raise app.failure
    sys.exit(app.return_code)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
