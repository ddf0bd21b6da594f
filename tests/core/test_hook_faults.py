"""Hooks that are dead, hang, are slow, flood, crash or lie: no turn is lost, and each is told in one clear line."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.protocol.event import ApprovalRequestedEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tests.core.harness import agent, one_call_each
from tests.core.hooking import about_hooks, group, hook, is_dead, kept, own, says
from tests.core.test_hooks import MAKE, made
from tests.examples import few_examples, in_turn
from tests.extension.test_hook_files import run_program, tenuto
from tests.server import Reply

FAULTS = {
    "dead": (hook("/no/such/program"), "exit code 127"),
    "hanging": (hook("sleep 600", timeout=0.4), "no answer within 0.4 seconds"),
    "hanging on a signal": (hook("trap '' TERM; sleep 600 & wait; sleep 600", timeout=0.4), "no answer within 0.4 s"),
    "flooding": (hook("head -c 100000000 /dev/zero"), "wrote more than 400 KB"),
    "flooding errors": (hook("yes >&2"), "wrote more than 400 KB"),
    "crashing": (hook("kill -SEGV $$"), "exit code 139"),
    "killed": (hook("kill -KILL $$"), "exit code 137"),
    "failing": (hook("echo Traceback >&2; echo ValueError: no >&2; exit 1"), "exit code 1: ValueError: no"),
    "failing otherwise each time": (hook("date +%N >&2; exit 1"), "exit code 1: "),
    "lying": (hook("echo '{\"decision\": 5}'"), "$.decision"),
    "lying with a decision that is none": (hook('echo \'{"decision": "perhaps"}\''), "perhaps"),
    "lying with a permission that is none": (
        hook('echo \'{"hookSpecificOutput": {"permissionDecision": "maybe"}}\''),
        "maybe",
    ),
    "lying in its tongue": (hook("echo '{broken'"), "its answer cannot be read"),
    "lying with a list": (hook("echo '{\"hookSpecificOutput\": []}'"), "its answer cannot be read"),
    "lying with bytes": (hook(r"printf '{\"reason\": \"\377\"}'"), "its answer cannot be read"),
    "lying too deep": (hook("printf '{\"a\":'; head -c 100000 /dev/zero | tr '\\0' '['"), "its answer cannot be read"),
}


EVENTS = ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart"]


@pytest.mark.parametrize(("fault", "event"), in_turn(FAULTS, EVENTS))
async def test_no_turn_is_lost_and_one_line_says_why(tmp_path, fault, event):
    command, words = FAULTS[fault]
    own(tmp_path, **{event: [group(command)]})
    async with agent(tmp_path, one_call_each(MAKE, MAKE)) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert (await running.ask("again")).outcome == "completed"
        assert made(tmp_path) == "one\n" and not any(one.message.is_error for one in running.of(ToolResultEvent))
        (line,) = about_hooks(running)
        assert words in line and event in line and "\n" not in line


async def test_a_slow_hook_is_waited_for_and_others_run_beside_it(tmp_path):
    slow = f"until test -e {tmp_path / 'quick'}; do sleep 0.01; done; echo both >&2; exit 2"
    own(tmp_path, PreToolUse=[group(slow, f"touch {tmp_path / 'quick'}")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert any("blocked bash: both" in text for text in kept(running))


async def test_a_hook_that_reads_nothing_and_one_that_gets_much_are_no_trouble(tmp_path):
    content = "x" * 1_000_000
    code = "test $(wc -c) -gt 1000000 && echo whole >&2; exit 2"
    own(tmp_path, PreToolUse=[group("true", code, matcher="Write")])
    script = [Reply(tool_calls=[type(MAKE)("write", {"path": "big.txt", "content": content})]), Reply("done")]
    async with agent(tmp_path, lambda _request: script.pop(0)) as running:
        await running.ask("go")
        assert any("whole" in text for text in kept(running))


async def test_a_guard_may_rather_block_than_fail(tmp_path):
    own(tmp_path, PreToolUse=[group(hook("/no/such/program", onFailure="block"))])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert not made(tmp_path) and running.of(ToolResultEvent)[0].message.denied


async def test_what_a_hook_leaves_behind_ends_with_it(tmp_path):
    pid = tmp_path / "pid"
    own(tmp_path, PreToolUse=[group(f"sleep 600 & echo $! > {pid}")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert made(tmp_path) and is_dead(int(pid.read_text()))


async def test_nobody_waits_for_a_hook_that_is_async(tmp_path):
    own(tmp_path, PreToolUse=[group(hook("sleep 600; exit 2", **{"async": True}))])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert made(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": 1, "Stop": [{}]}}', "\xff"])
async def test_a_broken_file_is_named_and_the_session_goes_on(tmp_path, text):
    path = own(tmp_path)
    path.write_bytes(text.encode("latin-1"))
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert made(tmp_path)
        assert about_hooks(running) and all(str(path) in text for text in about_hooks(running))


answers = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["block", "approve", None, 3, ""]),
        "reason": st.text(max_size=20) | st.none(),
        "continue": st.booleans() | st.none(),
        "systemMessage": st.text(max_size=20),
        "suppressOutput": st.booleans(),
        "compact": st.sampled_from([True, False, {"focus": "x"}, {}, 1]),
        "hookSpecificOutput": st.fixed_dictionaries(
            {},
            optional={
                "permissionDecision": st.sampled_from(["allow", "deny", "ask", "maybe"]),
                "updatedInput": st.sampled_from([{"command": "true"}, {}, {"command": 5}, None]),
                "additionalContext": st.text(max_size=40),
            },
        ),
        "unknown": st.integers(),
    },
)


async def allow_all(running) -> None:
    """Answer every question that comes, as a user who allows it once."""
    for number in itertools.count(1):
        request = await running.until(ApprovalRequestedEvent, number, timeout=60)
        await running.runtime.submit(
            AnswerApprovalOperation(
                session_id=running.runtime.session_id, request_id=request.request_id, decision="once"
            )
        )


@given(said=st.lists(answers, min_size=1, max_size=2), event=st.sampled_from(["PreToolUse", "PostToolUse", "Stop"]))
@settings(parent=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_whatever_hooks_say_no_turn_is_lost_and_what_was_sent_stays(tmp_path_factory, said, event):
    tmp_path = tmp_path_factory.mktemp("said")
    commands = [says(tmp_path, json.dumps(one), f"answer{number}") for number, one in enumerate(said)]
    own(tmp_path, **{event: [group(*commands)]})
    async with agent(tmp_path, one_call_each(MAKE, MAKE)) as running:
        answering = asyncio.create_task(allow_all(running))  # a hook may have the user asked
        assert (await running.ask("go")).outcome in {"completed", "declined"}
        assert (await running.ask("again")).outcome in {"completed", "declined"}
        answering.cancel()
        requests = running.server.requests
        assert not any(request.refused for request in requests) and not running.server.faults
        for before, after in itertools.pairwise(requests):
            assert after.prefix_items[: len(before.prefix_items)] == before.prefix_items


HEADLESS = ("dead", "hanging", "flooding", "crashing", "lying", "lying with a decision that is none")


@pytest.mark.parametrize("fault", HEADLESS)
def test_a_run_without_a_screen_answers_and_says_why_in_one_line(tmp_path, fault):
    command, words = FAULTS[fault]
    own(tmp_path, UserPromptSubmit=[group(command)], SessionStart=[group(command)], Stop=[group(command)])
    done = tenuto(tmp_path, "-p", "list", "--model", "offline/tenuto")
    assert done.returncode == 0 and done.stdout.strip()
    lines = [line for line in done.stderr.splitlines() if "hook" in line]
    assert len(lines) == 3 and all(words in line for line in lines), done.stderr
    assert {event for event in ("UserPromptSubmit", "SessionStart", "Stop") for line in lines if event in line} == {
        "UserPromptSubmit",
        "SessionStart",
        "Stop",
    }


def test_a_flood_takes_no_memory(tmp_path):
    def most(command: str) -> int:
        """KiB that a run needs at most."""
        own(tmp_path, UserPromptSubmit=[group(command)])
        code = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True, check=True); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        words = (sys.executable, "-m", "tenuto", "-p", "list", "--model", "offline/tenuto")
        return int(run_program(tmp_path, sys.executable, "-c", code, *words).stdout)

    assert most("head -c 100000000 /dev/zero") < most("true") + 40_000
