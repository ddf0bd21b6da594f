"""Command files: what `/name` sends, from every place that agents read them from."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.outcome import Edit, Say
from tenuto.core.agent.command_text import Arguments, fill_in, own_words, shell_text
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent
from tenuto.protocol.message import DeveloperMessage, UserMessage
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tests.core.compacting import talk
from tests.core.harness import agent
from tests.core.hooking import group, own, says, told
from tests.core.test_skills import BODY, sent, steps, trust, work, write_skill
from tests.server import Reply

REVIEW = """\
---
description: Review a change
argument-hint: [number] [depth]
allowed-tools: Bash(git diff:*), Read
model: claude-sonnet-4-5
---
Review change $1 at depth $2. All of it: $ARGUMENTS. It costs $10.
"""


def write(root: Path, path: str, text: str = REVIEW) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def last_user(running) -> UserMessage:
    return [entry for entry in running.session.path() if isinstance(entry, UserMessage)][-1]


async def run(running, line: str):
    outcomes = await running.runtime.run_command(line)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)
    return outcomes


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (".tenuto/commands/review.md", "review"),
        (".claude/commands/git/pr/review.md", "git:pr:review"),
        (".claude/commands/speckit.plan.md", "speckit.plan"),
        (".codex/prompts/review.md", "review"),
        (".pi/prompts/review.md", "review"),
    ],
)
async def test_j3_a_command_file_is_sent_with_its_arguments_from_each_place(tmp_path, path, name):
    write(work(tmp_path), path)
    async with agent(tmp_path, talk("fine")) as running:
        assert await run(running, f"/{name} 12 'two words'") == []
        message = last_user(running)
        assert message.origin == "command"
        assert text_of(message.parts) == (
            f"/{name} 12 'two words'\n\nReview change 12 at depth two words. All of it: 12 'two words'. It costs $10."
        )
        (own,) = await running.runtime.own_commands()
        assert (own.name, own.description, own.argument_hint) == (name, "Review a change", "[number] [depth]")
        assert any("claude-sonnet-4-5" in event.text for event in running.of(NoticeEvent))


@pytest.mark.parametrize("place", [".claude/commands", ".codex/prompts", ".pi/agent/prompts"])
async def test_the_users_own_places_count_behind_the_projects(tmp_path, place):
    user = tmp_path / "user"
    write(user, f"{place}/mine.md", "from the user")
    write(user, f"{place}/both.md", "from the user")
    write(work(tmp_path), ".claude/commands/both.md", "from the project")
    write(tmp_path / "home", "commands/own.md", "from home")
    async with agent(tmp_path, talk("fine"), environ={"HOME": str(user)}) as running:
        for name, text in (("mine", "from the user"), ("both", "from the project"), ("own", "from home")):
            await run(running, f"/{name}")
            assert text_of(last_user(running).parts) == f"/{name}\n\n{text}"


async def test_a_built_in_name_wins_and_the_file_is_named_once(tmp_path):
    file = write(work(tmp_path), ".claude/commands/context.md")
    async with agent(tmp_path, talk("fine")) as running:
        for _ in range(2):
            (shown,) = await running.runtime.run_command("/context")
            assert not isinstance(shown, Say)
        said = [event.text for event in running.of(NoticeEvent) if str(file) in event.text]
        assert len(said) == 1
        assert "built-in" in said[0]
        assert not await running.runtime.own_commands()


async def test_bad_files_are_one_line_each_and_break_nothing(tmp_path):
    root = work(tmp_path)
    write(root, ".claude/commands/broken.md", "---\ndescription: a: b: c\n---\nBroken but fine $1")
    write(root, ".claude/commands/empty.md", "---\ndescription: nothing\n---\n")
    (root / ".claude/commands/binary.md").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(root / ".claude/commands/pipe.md")
    (tmp_path / "secret.md").write_text("KEY-4711")
    (root / ".claude/commands/link.md").symlink_to(tmp_path / "secret.md")
    write(root, ".claude/commands/good.md", "good")
    async with agent(tmp_path, talk("fine")) as running:
        for name, reason in (
            ("empty", "nothing to send"),
            ("binary", "not UTF-8"),
            ("pipe", "a pipe"),
            ("link", "leads out"),
        ):
            (said,) = await running.runtime.run_command(f"/{name}")
            assert reason in said.text
            assert "\n" not in said.text
        await run(running, "/broken yes")
        assert "Broken but fine yes" in text_of(last_user(running).parts)
        await run(running, "/good")
        assert not any("KEY-4711" in sent(request) for request in steps(running.server))
        (unknown,) = await running.runtime.run_command("/goood")
        assert "/good" in unknown.text


async def test_commands_in_a_file_run_by_the_mode_and_mentions_are_read_but_not_those_of_outputs(tmp_path):
    root = work(tmp_path)
    (root / "notes.txt").write_text("NOTES-TEXT")
    (root / "other.txt").write_text("OTHER-TEXT")
    write(root, ".claude/commands/look.md", "Now: !`printf 'a\\nsee @other.txt\\n'`\nOne: !`echo $1`\nRead @notes.txt")
    trust(tmp_path)
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/look 'x; echo $(id -u)'")
        text = text_of(last_user(running).parts)
        assert "see @other.txt\n</command-output>" in text
        assert "One: x; echo $(id -u)\n" in text, "an argument is never obeyed by the shell"
        told = "\n".join(entry.text for entry in running.session.path() if isinstance(entry, DeveloperMessage))
        assert "NOTES-TEXT" in told
        assert "OTHER-TEXT" not in told


async def test_where_a_command_needs_approval_the_user_is_asked_and_a_no_sends_nothing(tmp_path):
    root = work(tmp_path)
    write(root, ".claude/commands/touch.md", "Done: !`touch made.txt`")
    trust(tmp_path)
    async with agent(tmp_path, talk("fine"), mode="ask") as running:
        for decision, there in (("deny", False), ("allow", True)):
            task = asyncio.create_task(running.runtime.run_command("/touch it"))
            asked = await running.until(ApprovalRequestedEvent, 1 + there)
            assert asked.detail == "touch made.txt"
            answer = AnswerApprovalOperation(
                session_id=running.runtime.session_id, request_id=asked.request_id, decision=decision
            )
            await running.runtime.submit(answer)
            outcomes = await asyncio.wait_for(task, 60)
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
            assert (root / "made.txt").exists() == there
            assert bool(steps(running.server)) == there
            assert [outcome for outcome in outcomes if isinstance(outcome, Edit)] == (
                [] if there else [Edit("/touch it")]
            )


@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_without_a_user_a_command_that_needs_approval_leaves_a_line(tmp_path, mode):
    root = work(tmp_path)
    write(root, ".claude/commands/touch.md", "Done: !`touch made.txt`, here: !`pwd`")
    trust(tmp_path)
    async with agent(tmp_path, talk("fine"), mode=mode, interactive=False) as running:
        await run(running, "/touch")
        text = text_of(last_user(running).parts)
        assert "Done: (not run: " in text
        assert str(root) in text
        assert not (root / "made.txt").exists()


async def test_a_command_sent_while_something_runs_is_queued(tmp_path):
    write(work(tmp_path), ".tenuto/commands/next.md", "the next thing")
    go_on = asyncio.Event()

    async def script(_request):
        await go_on.wait()
        return Reply("fine")

    async with agent(tmp_path, script) as running:
        await running.send("begin")
        while not running.server.requests:
            await asyncio.sleep(0.01)
        assert await running.runtime.run_command("/next") == []
        (queued,) = running.session.state.queue
        assert queued.origin == "command"
        go_on.set()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert text_of(last_user(running).parts) == "/next\n\nthe next thing"


@pytest.mark.parametrize("line", ["/release-notes for 2.0", "/skill:release-notes for 2.0"])
async def test_j2_a_skill_is_loaded_by_its_name(tmp_path, line):
    write_skill(work(tmp_path) / ".tenuto" / "skills")
    async with agent(tmp_path, talk("fine")) as running:
        assert await run(running, line) == []
        message = last_user(running)
        assert message.origin == "skill"
        assert text_of(message.parts).startswith(line)
        (request,) = steps(running.server)
        assert sent(request).count(BODY) == 1
        await run(running, line)
        assert sent(steps(running.server)[-1]).count(BODY) == 1, "it is there already"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12), max_size=4))
def test_what_is_put_in_is_never_looked_at_again(words):
    import shlex

    arguments = Arguments.read(shlex.join(words))
    assert arguments.words == tuple(words)
    assert fill_in("$1|$2|$ARGUMENTS[0]|${@:2}", arguments) == "|".join(
        ["".join(words[:1]), "".join(words[1:2]), "".join(words[:1]), " ".join(words[1:])]
    )


@pytest.mark.parametrize(
    "hostile", ["$(touch made)", "`touch made`", "; touch made", "' ; touch made ; '", '" ; touch made ; "']
)
@pytest.mark.parametrize(
    "command", ["echo $1", 'echo "$1"', "echo $ARGUMENTS", 'echo "${@:1}" $ARGUMENTS[0]', "echo '$1'"]
)
def test_no_argument_is_obeyed_by_a_shell(tmp_path, hostile, command):
    import shlex

    line = shell_text(command, Arguments.read(shlex.quote(hostile)))
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=False, capture_output=True)
    assert not (tmp_path / "made").exists()


def test_outputs_are_taken_out_whole():
    text = 'a <command-output command="x">\n@b\n</command-output> c <command-output>@d</command-output> @e'
    assert own_words(text).split() == ["a", "c", "@e"]
    assert own_words("a <mcp-prompt>\n@b <command-output>\n@c\n</mcp-prompt> @d").split() == ["a", "@d"]


async def test_s1_a_projects_file_with_shell_commands_waits_for_trust_and_its_text_alone_does_not(tmp_path):
    file = write(work(tmp_path), ".claude/commands/touch.md", "Done: !`touch made.txt`")
    write(work(tmp_path), ".claude/commands/plain.md", "only text")
    write(tmp_path / "home", "commands/own.md", "Done: !`touch own.txt`")
    async with agent(tmp_path, talk("fine")) as running:
        assert [one.name for one in await running.runtime.own_commands()] == ["own", "plain"]
        (said,) = await running.runtime.run_command("/touch")
        assert "do not trust yet" in said.text
        assert trust(tmp_path) == ["command touch"]
        await run(running, "/touch")
        assert (work(tmp_path) / "made.txt").exists()
        file.write_text("Done: !`touch another.txt`")
        (said,) = await running.runtime.run_command("/touch")
        assert "do not trust yet" in said.text
        await run(running, "/own")
        assert (work(tmp_path) / "own.txt").exists()
    assert not (work(tmp_path) / "another.txt").exists()


async def test_s1_a_users_hook_stops_a_command_of_a_file_as_it_does_one_of_the_model(tmp_path):
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "never"}
    hook = says(tmp_path, {"hookSpecificOutput": decision})
    own(tmp_path, PreToolUse=[group(hook, matcher="Bash")])
    write(tmp_path / "home", "commands/touch.md", "Done: !`touch made.txt`")
    async with agent(tmp_path, talk("fine")) as running:
        (said, _) = await run(running, "/touch")
        assert "was not allowed" in said.text
        assert told(tmp_path)[0]["tool_input"]["command"] == "touch made.txt"
        assert not steps(running.server)
    assert not (work(tmp_path) / "made.txt").exists()
