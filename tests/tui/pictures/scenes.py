"""What the pictures show: events as the core sends them. Nothing here depends on the machine or on the time."""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    ContextUsageEvent,
    OfferedAnswer,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    TodoChangedEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DiffView,
    FoundView,
    ResultView,
    ShellView,
    ToolResultMessage,
)
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tests.tui.full.fake_runtime import SESSION, answer, opened, user
from tests.tui.kinds import kinds
from tests.tui.render.samples import DIFF

OPENED = opened(cwd="/code/shop")
STARTED = TaskStartedEvent(session_id=SESSION, submission_id="one", kind="agent")
ENDED: tuple[AnyEvent, ...] = (
    TaskFinishedEvent(session_id=SESSION, submission_id="one", kind="agent", outcome="completed"),
    TaskSettledEvent(session_id=SESSION, outcome="completed"),
)
USED = ContextUsageEvent(
    session_id=SESSION, tokens=89_900, window=200_000, trigger=167_000, estimated=False,
    total=Usage(input=420_000, output=18_000, cost=1.24),
)  # fmt: skip
ANSWER = """\
The discount was taken off **twice**: `total()` multiplied by `1 - discount` once too often.

| order | before | now |
|---|---:|---:|
| 2 × 10.00, 50 % off | 5.00 | 10.00 |
| 2 × 10.00, no discount | 20.00 | 20.00 |

- [x] the total is fixed
- [ ] the orders of March are charged again

```python
def total(amount: float, discount: float) -> float:
    return round(amount * (1 - discount), 2)  # once
```
"""


def call(
    number: int, name: str, arguments: str, text: str, *views: ResultView, is_error: bool = False, seconds: float = 0.3
) -> list[AnyEvent]:
    """One call of a tool with its result."""
    part = ToolCallPart(id=f"c{number}", name=name, arguments=arguments)
    result = ToolResultMessage(
        seq=10 + 2 * number, call_id=part.id, name=name, parts=(TextPart(text=text),), ui=views, is_error=is_error,
        duration=seconds,
    )  # fmt: skip
    return [
        AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(seq=9 + 2 * number, parts=(part,))),
        ToolStartedEvent(session_id=SESSION, call_id=part.id, name=name, arguments=arguments, summary=""),
        ToolResultEvent(session_id=SESSION, message=result),
    ]


def thought(text: str, seconds: float) -> AnyEvent:
    message = AssistantMessage(seq=3, parts=(ThinkingPart(text=text),), thinking_duration=seconds)
    return AssistantMessageEvent(session_id=SESSION, message=message)


def edit(number: int) -> list[AnyEvent]:
    view = DiffView(path="shop/area.py", diff=DIFF, added=3, removed=3)
    return call(number, "edit", '{"path":"shop/area.py"}', "done", view)


def conversation() -> list[AnyEvent]:
    read = "\n".join(f"{line}\tcode {line}" for line in range(1, 31))
    found = "shop/price.py:14:    return round(amount * (1 - discount) * (1 - discount), 2)"
    ending = "[Exit code 0 · /code/shop]"
    tests = f"....\n4 passed in 0.05s\n{ending}"
    ran = ShellView(command="x", exit_code=0, ending=ending)
    return [
        OPENED,
        user("Find out why the discount is wrong, fix it, and run the tests."),
        STARTED,
        thought("Where is the total made?", 4.2),
        *call(1, "read", '{"path":"shop/price.py"}', read),
        *call(2, "grep", '{"pattern":"discount","path":"shop"}', found, FoundView(files=1, lines=1)),
        *edit(3),
        *call(4, "bash", '{"command":"python -m pytest -q"}', tests, ran, seconds=1.4),
        answer(ANSWER, seq=30),
        *ENDED,
        USED,
    ]


def asking_for_a_command() -> list[AnyEvent]:
    return [
        OPENED, user("Clean up."), STARTED,
        *call(1, "glob", '{"pattern":"build/**"}', "build/a.o\nbuild/b.o", FoundView(files=2)),
        AssistantTextDeltaEvent(session_id=SESSION, text="I remove what the build left."),
        ApprovalRequestedEvent(
            session_id=SESSION, request_id="r1", call_id="c9", tool="bash", summary="rm -r build",
            detail="rm -r build && make -j2 all 2>&1 | tail -20", reason="rm -r deletes files",
            kinds=kinds("this exact command"),
        ),
    ]  # fmt: skip


def asking_a_question() -> list[AnyEvent]:
    return [
        OPENED, user("Book it."), STARTED,
        ApprovalRequestedEvent(
            session_id=SESSION, request_id="r1", call_id="", tool="mcp", kind="question",
            summary="booking asks: How many people come, and when?",
            detail="How many: children count as well\nA whole number, at least 1", asked=0, behind=2,
            answers=(
                OfferedAnswer(label="As proposed: 2"), OfferedAnswer(label="Write it", writes=True),
                OfferedAnswer(label="Leave it out"), OfferedAnswer(label="Decline: nothing is sent"),
            ),
        ),
    ]  # fmt: skip


def asking_for_a_change() -> list[AnyEvent]:
    view = DiffView(path="shop/area.py", diff=DIFF, added=3, removed=3)
    return [
        OPENED, user("Fix the area."), STARTED,
        ApprovalRequestedEvent(
            session_id=SESSION, request_id="r1", call_id="c9", tool="edit", summary="shop/area.py",
            detail="shop/area.py", reason="changes a file (mode: ask)", diffs=(view,),
            kinds=kinds("edits below shop/", "edits below the working directory", "edits of shop/area.py"),
        ),
    ]  # fmt: skip


def compacting() -> list[AnyEvent]:
    return [
        *conversation(),
        user("/compact keep the order numbers", seq=40),
        TaskStartedEvent(session_id=SESSION, submission_id="two", kind="compaction"),
        CompactionStartEvent(session_id=SESSION, reason="manual"),
        CompactionProgressEvent(session_id=SESSION, stage="summarising", summary_tokens=1_234),
    ]


SUMMARY = """\
## Goal
Find out which orders of the last weeks were charged wrongly.
## Progress
- [x] Read the order logs of nine weeks
- [ ] Fix the total in `shop/price.py`
## Key Decisions
- **Fix the code first**: then the orders are charged again."""


def compacted() -> list[AnyEvent]:
    entry = CompactionEntry(
        seq=41, summary=SUMMARY, first_kept_index=31, tokens_before=182_000, tokens_after=24_100, rung="same_prefix",
        reason="manual", focus="keep the order numbers", duration=12.4,
        usage=Usage(input=1_000, cache_read=180_000, output=2_000, cost=0.034),
    )  # fmt: skip
    return [
        OPENED,
        user("Which orders were charged wrongly?"),
        answer("Those with a discount, since week 3."),
        TaskStartedEvent(session_id=SESSION, submission_id="two", kind="compaction"),
        CompactionStartEvent(session_id=SESSION, reason="manual"),
        CompactionEndEvent(session_id=SESSION, reason="manual", entry=entry),
        TaskFinishedEvent(session_id=SESSION, submission_id="two", kind="compaction", outcome="completed"),
        TaskSettledEvent(session_id=SESSION, outcome="completed"),
    ]


def working_through_a_list() -> list[AnyEvent]:
    todos = (
        TodoItem(text="Read the code", status="done"),
        TodoItem(text="Write a failing test", status="in_progress"),
        TodoItem(text="Fix the total"),
        TodoItem(text="Run the tests"),
    )
    return [OPENED, user("Fix it."), STARTED, TodoChangedEvent(session_id=SESSION, items=todos)]


def tree() -> Choose:
    rows: Iterable[tuple[str, int, str, str]] = (
        ("Which orders were charged wrongly?", 0, "●", "9:02"),
        ("Find out why the discount is wrong", 0, "●", "9:10"),
        ("Try it with decimals", 1, "○", "9:14 · left"),
        ("and write a test for it", 1, "○", "9:15 · left"),
        ("Fix it where the total is made", 0, "●", "9:21 · here"),
    )
    choices = tuple(
        Choice(
            value=str(place), label=label, detail=detail, indent=indent, mark=mark, present="here" in detail,
            preview=f"{label}.\n\nThe answer began: the discount was taken off twice.",
        )
        for place, (label, indent, mark, detail) in enumerate(rows)
    )  # fmt: skip
    return Choose("Tree", "tree", choices, in_order=True)


def trust() -> Choose:
    """What a project brings: one item trusted, one refused, one that is being looked at."""
    rows = (
        ("1a2b", "✓", "setting model", 'trusted · sets model = "openai/gpt-6-sol"'),
        ("2b3c", "✗", "git setting core.fsmonitor", "refused · lets git use .git/hooks/watch"),
        ("3c4d", "?", "extension prices.py", "not decided · runs Python in Tenuto, with all that you may do (1 file)"),
    )
    code = (
        "extension prices.py in .tenuto/extensions/prices.py: runs Python in Tenuto, with all that you may do (1 file)"
    )
    choices = tuple(
        Choice(
            value, label, detail, mark=mark, preview=f"{code}\n# prices.py\ndef setup(tenuto):\n    ...\n", stays=True
        )
        for value, mark, label, detail in rows
    )
    first = (
        Choice("", "Not now", "asked at the next start"),
        Choice("allow all", "Trust all 3", "they count, and run, at once"),
        Choice("deny all", "Refuse all 3", "asked again when they change"),
    )
    title = "This project brings 3 things. Enter trusts one"
    return Choose(title, "trust", (*first, *choices), in_order=True, acts=("refuse",))
