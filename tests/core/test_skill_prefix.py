"""Skills come, change and go on disk: what was sent never changes but at a compaction or /reload.

`SKILL_STEPS` and `skill_step` are a rule set of their own, for a property with other things that come and go.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.core.compacting import talk
from tests.core.harness import Agent, reopened
from tests.core.test_skills import BODY, sent, steps, write_skill
from tests.examples import few_examples
from tests.server import Reply, Request, ScriptedServer

NAMES = ("alpha", "beta", "gamma")
SKILL_STEPS = ("add", "add", "change", "remove", "hide", "break", "load", "unload")
SESSION_STEPS = ("ask", "ask", "ask", "compact", "reload", "restart")
REBUILD = ("compact", "reload")
ROUND = st.tuples(
    st.tuples(st.sampled_from(SKILL_STEPS), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(SESSION_STEPS), st.just("")),
)
ROUNDS = st.lists(ROUND, min_size=5, max_size=9)


def skill_step(folder: Path, what: str, name: str) -> str:
    """Change a skill on disk; return the command that is to be run, empty for none."""
    path = folder / name / "SKILL.md"
    match what:
        case "add" if not path.exists():
            write_skill(folder, name, f"{BODY}\n{name}")
        case "change" if path.exists():
            path.write_bytes(path.read_bytes() + b"\nOne more line.")
        case "hide" if path.exists():
            path.write_bytes(path.read_bytes().replace(b"name:", b"disable-model-invocation: true\nname:", 1))
        case "break" if path.exists():
            path.write_bytes(b"\xff\xfe")
        case "remove":
            shutil.rmtree(path.parent, ignore_errors=True)
        case "load" if path.exists():
            return f"/{name}"
        case "unload":
            return f"/skills unload {name}"
        case _:
            pass
    return ""


def listing(request: Request) -> tuple[list[str], list[str]]:
    """What a request says of skills before the conversation: their lines in the system prompt, and the tools."""
    lines = [line for line in sent(request).split("\n") if line.startswith(tuple(f"- {name}: " for name in NAMES))]
    return lines, request.tool_names


async def take(running: Agent, folder: Path, what: str, name: str) -> None:
    """Do one step; a loaded skill stands in what is asked then."""
    command = f"/{what}" if what in REBUILD else skill_step(folder, what, name)
    if what == "ask":
        await running.ask("go on")
        assert all(entry.text in sent(steps(running.server)[-1]) for entry in running.session.state.skills)
    elif command:
        await running.runtime.run_command(command)
        await asyncio.wait_for(running.runtime.wait_settled(), 30)


async def check(root: Path, taken: list[tuple[str, str]]) -> None:
    """Take all steps; each request begins with the one before, unless the view was made anew between them."""
    folder = root / "work" / ".claude" / "skills"
    folder.mkdir(parents=True)
    left = list(taken)
    before: Request | None = None
    async with ScriptedServer(talk(lambda _request: Reply("answer " * 300)), window=200_000) as server:
        while left:
            async with reopened(root, server, resume_latest=bool(server.requests)) as running:
                while left and (step := left.pop(0))[0] != "restart":
                    asked = len(server.requests)
                    await take(running, folder, *step)
                    if step[0] in REBUILD:
                        before = None
                    elif len(server.requests) > asked:
                        present = steps(server)[-1]
                        if before is not None:
                            assert present.continues(before), step
                            assert listing(present) == listing(before)
                        before = present
        assert not server.faults


@few_examples()
@given(ROUNDS)
def test_j_what_was_sent_never_changes_while_skills_come_and_go(rounds):
    taken = [("ask", ""), ("add", NAMES[0]), ("ask", ""), *(step for pair in rounds for step in pair)]
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(check(Path(place), taken))
