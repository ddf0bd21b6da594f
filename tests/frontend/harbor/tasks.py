"""Small tasks in Harbor's form, each with the answers of a scripted model and what has to come of it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.requirements.compaction.support import SUMMARISED, is_summary_request
from tests.server import Call, Reply, Request

Replies = Sequence[Reply] | Callable[[Request], Reply]


@dataclass(frozen=True)
class Task:
    """`files` are there at the start; `check` is what the verifier runs; `error` is Harbor's name for a bad end."""

    name: str
    instruction: str
    replies: Replies
    check: str
    files: dict[str, str] = field(default_factory=dict)
    reward: float = 1.0
    error: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    window: int | None = None
    seconds: float = 60.0

    def write(self, folder: Path) -> Path:
        """Write the task as Harbor reads it; return its folder."""
        place = folder / self.name
        for name in ("environment/app", "tests"):
            (place / name).mkdir(parents=True)
        (place / "task.toml").write_text(
            f'version = "1.0"\n[agent]\ntimeout_sec = {self.seconds}\n[environment]\nworkdir = "/app"\n'
        )
        (place / "instruction.md").write_text(self.instruction)
        (place / "environment" / "Dockerfile").write_text("FROM debian:stable\n")
        for name, content in self.files.items():
            path = place / "environment" / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
        (place / "tests" / "test.sh").write_text(
            f"cd /app\nif ( set -e; {self.check} ); then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
        )
        return place


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


BROKEN = textwrap.dedent("""\
    def total(prices, discount=0.0):
        amount = sum(prices)
        return amount * (1 - discount) * (1 - discount)
    """)


def explorer(request: Request) -> Reply:
    """Send a sub-agent to look, which looks; then write down what it said."""
    is_child = "write" not in request.tool_names
    results = [item for item in request.items if item.kind == "result"]
    if is_child:
        return Reply("It is in deep/down.txt: 4711.") if results else Reply("", tool_calls=[bash("grep -rn secret .")])
    if not results:
        return Reply(
            "", tool_calls=[Call("agent", {"agent": "explore", "title": "look", "prompt": "Where is the secret?"})]
        )
    if len(results) == 1:
        return Reply("", tool_calls=[Call("write", {"path": "answer.txt", "content": "4711\n"})])
    return Reply("Done.")


def reader() -> Callable[[Request], Reply]:
    """Read seven large files, one a step, in a window that holds three; then say how many there were."""
    work = [Call("read", {"path": f"part{number}.txt"}) for number in range(7)]
    work.append(Call("write", {"path": "count.txt", "content": "7\n"}))

    def answer(request: Request) -> Reply:
        if is_summary_request(request):
            return SUMMARISED
        return Reply("", tool_calls=[work.pop(0)]) if work else Reply("There were seven.")

    return answer


def looker(request: Request) -> Reply:
    """Write a.txt, then look around for ever."""
    if any(item.kind == "result" for item in request.items):
        return Reply("", tool_calls=[bash(f"echo {len(request.items)}")])
    return Reply("", tool_calls=[Call("write", {"path": "a.txt", "content": "a\n"})])


def sleeper(request: Request) -> Reply:
    """Write a.txt, then think for longer than anybody waits."""
    done = any(item.kind == "result" for item in request.items)
    return replace(looker(request), delay=60.0 if done else 0.0)


TASKS = (
    Task(
        "hello",
        "Create hello.txt with the text: Hello, world!",
        [Reply("", tool_calls=[Call("write", {"path": "hello.txt", "content": "Hello, world!\n"})]), Reply("Done.")],
        'test "$(cat hello.txt)" = "Hello, world!"',
    ),
    Task(
        "repair",
        "The discount in shop.py is taken off twice. Mend it, and run the check.",
        [
            Reply("I look.", thinking="First the code.", tool_calls=[Call("read", {"path": "shop.py"})]),
            Reply(
                "",
                tool_calls=[
                    Call(
                        "edit",
                        {
                            "path": "shop.py",
                            "old_string": "    return amount * (1 - discount) * (1 - discount)",
                            "new_string": "    return amount * (1 - discount)",
                        },
                    )
                ],
            ),
            Reply("", tool_calls=[bash("python3 check.py")]),
            Reply("Mended."),
        ],
        "python3 check.py",
        files={"shop.py": BROKEN, "check.py": "from shop import total\nassert total([50, 50], 0.5) == 50\n"},
    ),
    Task(
        "sums",
        "Add up the column `n` of data.csv and write the sum to sum.txt.",
        [
            Reply("", tool_calls=[bash("head -3 data.csv; wc -l < data.csv")]),
            Reply("", tool_calls=[bash("awk -F, 'NR > 1 {s += $2} END {print s}' data.csv > sum.txt && cat sum.txt")]),
            Reply("The sum is 499500."),
        ],
        'test "$(cat sum.txt)" = 499500',
        files={"data.csv": "name,n\n" + "".join(f"row{n},{n}\n" for n in range(1000))},
    ),
    Task(
        "rename",
        "Rename the function `old_name` to `new_name` everywhere.",
        [
            Reply("", tool_calls=[Call("grep", {"pattern": "old_name"})]),
            Reply("", tool_calls=[bash("grep -rl old_name . | xargs sed -i 's/old_name/new_name/g'")]),
            Reply("Renamed."),
        ],
        'test "$(grep -rc new_name a.py lib/b.py)" = "a.py:2\nlib/b.py:1" && ! grep -rq old_name .',
        files={"a.py": "def old_name(): ...\nold_name()\n", "lib/b.py": "from a import old_name\n"},
    ),
    Task(
        "line-ends",
        "In win.ini set width to 80. The file keeps its line ends.",
        [
            Reply("", tool_calls=[Call("read", {"path": "win.ini"})]),
            Reply(
                "",
                tool_calls=[
                    Call("edit", {"path": "win.ini", "old_string": "width=40\nh=1", "new_string": "width=80\nh=1"})
                ],
            ),
            Reply("", tool_calls=[bash("od -c win.ini | head -3")]),
            Reply("Done."),
        ],
        "printf '[a]\\r\\nwidth=80\\r\\nh=1\\r\\n' | cmp - win.ini",
        files={"win.ini": "[a]\r\nwidth=40\r\nh=1\r\n"},
    ),
    Task(
        "outside",
        "/app/link.conf has to point at /agent-home/etc/real.conf, which says on=1. Commit /app to git.",
        [
            Reply("", tool_calls=[Call("write", {"path": "/agent-home/etc/real.conf", "content": "on=1\n"})]),
            Reply("", tool_calls=[bash("ln -s /agent-home/etc/real.conf link.conf && git init -q . && git add -A")]),
            Reply("", tool_calls=[bash("git -c user.name=a -c user.email=a@b commit -qm all && git log --oneline")]),
            Reply("Committed."),
        ],
        "grep -qx on=1 link.conf && git log --oneline | grep -q all",
    ),
    Task(
        "sub-agent",
        "Ask a sub-agent where the secret is, and write it to answer.txt.",
        explorer,
        'test "$(cat answer.txt)" = 4711',
        files={"deep/down.txt": "secret 4711\n"},
    ),
    Task(
        "long-work",
        "Read part0.txt to part6.txt and write how many there are to count.txt.",
        reader(),
        'test "$(cat count.txt)" = 7',
        files={f"part{n}.txt": f"part {n} of a long story\n" * 700 for n in range(7)},
        window=16_000,
    ),
    Task(
        "not-done",
        "Write the answer to everything to answer.txt.",
        [Reply("", tool_calls=[Call("write", {"path": "answer.txt", "content": "41\n"})]), Reply("It is done.")],
        'test "$(cat answer.txt)" = 42',
        reward=0.0,
    ),
    Task(
        "limit",
        "Write a.txt, then look around for ever.",
        looker,
        "test -f a.txt",
        error="ApiUsageLimitError",
        kwargs={"max_turns": 4},
    ),
    Task("too-long", "Write a.txt, then think.", sleeper, "test -f a.txt", error="AgentTimeoutError", seconds=6.0),
)
