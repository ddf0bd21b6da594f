"""What is seen in the pictures: a session in the sample repository. Only what the model says is written here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.server import Call, Reply, Request
from tests.server.reply import AnyReply

WEEKS = 9
"""Long files that are read before the picture begins, so that there is something to compact."""
READ = "Which orders were charged wrongly since week 1? Read the logs."
WISH = "Find out why the discount is wrong, fix it, and run the tests."
DECIMALS = "Try it with decimals instead."

SUMMARY = """## Goal
Find out which orders of the last weeks were charged wrongly.
## Constraints & Preferences
- Money is rounded to cents, once, at the end.
## Progress
### Done
- [x] Read the order logs of nine weeks
### In Progress
- [ ] Fix the total in `shop/price.py`
### Blocked
## Key Decisions
- **Fix the code first**: then the orders are charged again.
## Next Steps
1. Fix the discount
## Critical Context
- Orders with a discount are charged too little since week 3."""

BEFORE = "return round(amount * (1 - discount) * (1 - discount), 2)"
AFTER = "return round(amount * (1 - discount), 2)"
ANSWER = """The discount was taken off **twice**: `total()` multiplied by `1 - discount` once too often.

| order | before | now |
|---|---:|---:|
| 2 × 10.00, 50 % off | 5.00 | 10.00 |
| 2 × 10.00, no discount | 20.00 | 20.00 |

All four tests pass. The weeks 3 to 9 of the order log are affected; shall I list the orders to charge again?"""
PLAN = [
    {"text": "Read the code and its tests", "status": "done"},
    {"text": "Take the discount off once", "status": "in_progress"},
    {"text": "Run the tests", "status": "pending"},
]


def write_logs(folder: Path) -> None:
    """Write the order logs that the model reads."""
    folder.mkdir()
    for week in range(1, WEEKS + 1):
        lines = [f"2026-{week:02}-{day % 28 + 1:02} order {week * 1000 + day} paid" for day in range(900)]
        (folder / f"week-{week}.log").write_text("\n".join(lines))


def is_summary(request: Request) -> bool:
    """Return whether a request asks for the summary of a compaction: those have no tools to use."""
    return "## Critical Context" in request.last_user or not request.tool_names


def model(slow_summary: float = 0.0) -> Callable[[Request], AnyReply]:
    """Return what plays the model; `slow_summary` is seconds before each piece of a summary."""
    turns: dict[str, list[Reply]] = {
        READ: [
            *(Reply(tool_calls=[Call("read", {"path": f"orders/week-{week}.log"})]) for week in range(1, WEEKS + 1)),
            Reply("The totals with a discount are too low from week 3 on. All others are right."),
        ],
        WISH: [
            Reply(
                "I look at the code and its tests first.",
                thinking="Where is the total made?",
                tool_calls=[Call("read", {"path": "shop/price.py"}), Call("read", {"path": "tests/test_price.py"})],
            ),
            Reply(tool_calls=[Call("todo", {"items": PLAN})]),
            Reply(tool_calls=[Call("edit", {"path": "shop/price.py", "old_string": BEFORE, "new_string": AFTER})]),
            Reply(tool_calls=[Call("bash", {"command": "python -m pytest -q"})]),
            Reply(tool_calls=[Call("todo", {"items": [{**one, "status": "done"} for one in PLAN]})]),
            Reply(ANSWER),
        ],
        DECIMALS: [Reply("With `decimal.Decimal` the totals are exact to the cent; the tests stay as they are.")],
    }
    told: dict[str, int] = {}

    def answer(request: Request) -> AnyReply:
        if is_summary(request):
            return Reply(SUMMARY, delay_per_event=slow_summary)
        prompt = next((one for one in turns if one in request.last_user), "")
        if not prompt:
            return Reply("Yes.")
        place = told.get(prompt, 0)
        told[prompt] = place + 1
        return turns[prompt][min(place, len(turns[prompt]) - 1)]

    return answer
