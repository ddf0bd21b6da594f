"""Hook commands in a session: what they are told, what they may do, and what is shown of it."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    HooksRunningEvent,
    NoticeEvent,
    PromptReturnedEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import LONG_ANSWER, compact, compactions, talk
from tests.core.harness import PROTOCOLS, agent, one_call_each, reopened
from tests.core.hooking import (
    about_hooks,
    events_told,
    group,
    hook,
    is_dead,
    kept,
    notes,
    notices,
    own,
    python,
    says,
    to_model,
    told,
    write_hooks,
)
from tests.core.test_approvals import answer
from tests.core.test_asked_compaction import WINDOW, talk_a_while, works
from tests.core.test_plans import HAND_OVER
from tests.extension.extending import extend
from tests.server import Call, Reply, ScriptedServer

MAKE = Call("bash", {"command": "echo one > made.txt"})
WRITE = Call("write", {"path": "made.txt", "content": "one\n"})


def made(tmp_path) -> str:
    path = tmp_path / "work" / "made.txt"
    return path.read_text() if path.exists() else ""


def specific(event: str, **values) -> dict:
    return {"hookSpecificOutput": {"hookEventName": event, **values}}


def decides(decision: str, reason: str = "because", **values) -> dict:
    return specific("PreToolUse", permissionDecision=decision, permissionDecisionReason=reason, **values)


def last_result(running) -> ToolResultMessage:
    return running.of(ToolResultEvent)[-1].message


# --- sub-agents ---


async def test_hooks_guard_a_sub_agents_calls_and_hear_of_its_end(tmp_path):
    guarded = [group(notes(tmp_path)), group(says(tmp_path, decides("deny", "not here"), "guard"), matcher="Bash")]
    every = {event: [group(notes(tmp_path))] for event in ("UserPromptSubmit", "Stop", "SessionStart")}
    own(tmp_path, PreToolUse=guarded, SubagentStop=[group(notes(tmp_path), matcher="general")], **every)
    task = Call("agent", {"prompt": "Do it", "agent": "general"})
    left = {True: [Reply(tool_calls=[MAKE]), Reply("I could not.")], False: [Reply(tool_calls=[task])]}

    def script(request):
        replies = left[not any("PARENT" in item.text for item in request.items if item.kind == "user")]
        return replies.pop(0) if replies else Reply("Done.")

    async with agent(tmp_path, script) as running:
        await running.ask("PARENT go")
        (result,) = running.of(ToolResultEvent)
        assert made(tmp_path) == "", "the guard holds for a sub-agent"
        while "SubagentStop" not in events_told(tmp_path):
            await asyncio.sleep(0.01)
        (ended,) = [one for one in told(tmp_path) if one["hook_event_name"] == "SubagentStop"]
        assert ended["session_id"] == running.session.id
        assert ended["agent_type"] == "general" and ended["last_assistant_message"] == "I could not."
        assert ended["agent_id"] == result.message.ui[0].session
        assert ended["agent_transcript_path"].endswith(f"{ended['agent_id']}/events.jsonl")
        for event in every:
            assert events_told(tmp_path).count(event) == 1, "a sub-agent's task and answer are not the user's"


def goes_on_once(tmp_path, reason: str) -> str:
    """A command that blocks with exit code 2 until it was obeyed, and notes what it is told."""
    program = tmp_path / "goes_on.py"
    program.write_text(
        "import json, sys\n"
        "told = json.load(sys.stdin)\n"
        f"with open({str(tmp_path / 'asked.txt')!r}, 'a') as file:\n"
        "    print(told['agent_type'], told['stop_hook_active'], told['last_assistant_message'], file=file)\n"
        "if not told['stop_hook_active']:\n"
        f"    print({reason!r}, file=sys.stderr)\n"
        "    sys.exit(2)\n"
    )
    return f"{sys.executable} {program}"


async def test_j4_a_subagent_stop_hook_has_a_sub_agent_go_on_with_its_reason(tmp_path):
    own(tmp_path, SubagentStop=[group(goes_on_once(tmp_path, "name the file"), matcher="general")])
    task = Call("agent", {"prompt": "Look", "agent": "general"})
    left = {True: [Reply("It is there."), Reply("It is a.txt.")], False: [Reply(tool_calls=[task])]}

    def script(request):
        replies = left[not any("PARENT" in item.text for item in request.items if item.kind == "user")]
        return replies.pop(0) if replies else Reply("Done.")

    async with agent(tmp_path, script) as running:
        await running.ask("PARENT go")
        (result,) = running.of(ToolResultEvent)
        assert text_of(result.message.parts).startswith("It is a.txt.")
        asked = (tmp_path / "asked.txt").read_text().splitlines()
        assert asked == ["general False It is there.", "general True It is a.txt."]
        second = [request for request in running.server.requests if "name the file" in request.raw.decode()]
        assert len(second) == 1, "the child is told why, its parent is not"
        assert "name the file" in "".join(event.text for event in running.of(ToolOutputEvent))


async def test_j4_a_hook_has_a_sub_agent_of_a_sub_agent_go_on_too(tmp_path):
    own(tmp_path, SubagentStop=[group(goes_on_once(tmp_path, "look again"))])
    inner = Call("agent", {"prompt": "INNER", "agent": "explore"})
    outer = Call("agent", {"prompt": "OUTER", "agent": "general"})
    left = {
        "PARENT": [Reply(tool_calls=[outer])],
        "OUTER": [Reply(tool_calls=[inner]), Reply("outer 1"), Reply("outer 2")],
        "INNER": [Reply("inner 1"), Reply("inner 2")],
    }

    def script(request):
        who = next(word for item in request.items if item.kind == "user" for word in left if word in item.text)
        return left[who].pop(0) if left[who] else Reply("Done.")

    async with agent(tmp_path, script, environ={"TENUTO_AGENTS__DEPTH": "2"}) as running:
        await running.ask("PARENT go")
        (result,) = running.of(ToolResultEvent)
        assert text_of(result.message.parts).startswith("outer 2")
        asked = (tmp_path / "asked.txt").read_text().splitlines()
        assert [line.split(" ", 2)[::2] for line in asked] == [
            ["explore", "inner 1"],
            ["explore", "inner 2"],
            ["general", "outer 1"],
            ["general", "outer 2"],
        ]


async def test_j4_a_hook_that_never_lets_a_sub_agent_end_is_obeyed_five_times(tmp_path):
    own(tmp_path, SubagentStop=[group("echo more >&2; exit 2")])
    task = Call("agent", {"prompt": "Look"})

    def script(request):
        if any("PARENT" in item.text for item in request.items if item.kind == "user"):
            return Reply("Done.") if any(item.kind == "result" for item in request.items) else Reply(tool_calls=[task])
        return Reply("An answer.")

    async with agent(tmp_path, script) as running:
        assert (await running.ask("PARENT go")).outcome == "completed"
        (result,) = running.of(ToolResultEvent)
        assert text_of(result.message.parts).startswith("An answer.") and not result.message.is_error
        assert result.message.ui[0].steps == 6


# --- every event ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_event_is_told_once_and_in_order(tmp_path, protocol):
    every = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Notification")
    every += ("PreCompact", "PostCompact", "SessionEnd", "SubagentStop")
    own(tmp_path, **{event: [group(notes(tmp_path))] for event in every})

    first = [Reply(tool_calls=[MAKE])]
    async with ScriptedServer(
        talk(lambda _request: first.pop() if first else Reply(LONG_ANSWER)), window=WINDOW
    ) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="ask") as running:
            await running.send("work now")
            await running.until(ApprovalRequestedEvent)
            while "Notification" not in events_told(tmp_path):
                await asyncio.sleep(0.01)
            await answer(running, "once")
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
            at_first = events_told(tmp_path)
            await talk_a_while(running)
            before = len(events_told(tmp_path))
            await compact(running)
            await running.ask("and now?")
            after = events_told(tmp_path)[before:]
        ended = events_told(tmp_path)[before + len(after) :]
        assert at_first == ["SessionStart", "UserPromptSubmit", "PreToolUse", "Notification", "PostToolUse", "Stop"]
        assert after == ["PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "Stop"]
        assert ended == ["SessionEnd"]
        assert not any(request.refused for request in server.requests) and not server.faults
        assert not about_hooks(running)


async def test_a_hook_is_told_what_scripts_for_other_agents_read(tmp_path):
    own(tmp_path, PreToolUse=[group(notes(tmp_path))], PostToolUse=[group(notes(tmp_path))])
    async with agent(tmp_path, one_call_each(WRITE, MAKE)) as running:
        await running.ask("go")
        session = running.session
        before, after, command, ran = told(tmp_path)
        assert before["session_id"] == session.id and before["cwd"] == str(session.cwd)
        assert before["transcript_path"] == str(session.directory / "events.jsonl")
        assert (before["permission_mode"], before["model"]) == ("bypassPermissions", "openai-chat/test")
        assert before["tool_name"] == "Write" and before["tool_input"]["content"] == "one\n"
        assert before["tool_input"]["file_path"] == str(session.cwd / "made.txt") == after["tool_response"]["filePath"]
        assert before["tool_use_id"] == after["tool_use_id"] and after["tool_response"]["success"] is True
        assert command["tool_name"] == "Bash" and command["tool_input"]["command"] == "echo one > made.txt"
        assert "exit code 0" in ran["tool_response"]["stdout"] or ran["tool_response"]["success"]


@pytest.mark.parametrize(
    ("matcher", "is_told"),
    [("Bash", True), ("bash", True), ("Edit|Bash", True), ("Ba.*", True), ("*", True), ("", True), ("Edit", False)],
)
async def test_a_matcher_takes_their_names_and_ours(tmp_path, matcher, is_told):
    own(tmp_path, PreToolUse=[group(notes(tmp_path), matcher=matcher)])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
    assert bool(told(tmp_path)) == is_told


# --- before a call ---


@pytest.mark.parametrize("way", ["exit 2", "json", "decision"])
async def test_a_call_is_blocked_and_the_model_reads_why(tmp_path, way):
    commands = {
        "exit 2": "echo use the makefile >&2; exit 2",
        "json": says(tmp_path, decides("deny", "use the makefile")),
        "decision": says(tmp_path, {"decision": "block", "reason": "use the makefile"}),
    }
    own(tmp_path, PreToolUse=[group(commands[way], matcher="Bash")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        assert (await running.ask("go")).outcome == "completed"
        result = last_result(running)
        assert result.denied and text_of(result.parts).endswith("it was not run: use the makefile")
        assert not made(tmp_path)
        assert len(kept(running)) == 1 and "blocked bash: use the makefile" in kept(running)[0]


async def test_one_of_several_that_denies_is_enough(tmp_path):
    allow = says(tmp_path, decides("allow"), "allow")
    deny = says(tmp_path, decides("deny", "no"), "deny")
    own(tmp_path, PreToolUse=[group(allow, deny), group(allow, matcher="Bash")])
    async with agent(tmp_path, one_call_each(MAKE), mode="ask") as running:
        await running.ask("go")
        assert not made(tmp_path) and not running.of(ApprovalRequestedEvent)
        assert len(told(tmp_path)) == 3, "all of them run"


async def test_an_approval_of_the_users_hook_counts_as_the_users(tmp_path):
    own(tmp_path, PreToolUse=[group(says(tmp_path, decides("allow", "it is harmless")))])
    async with agent(tmp_path, one_call_each(MAKE), mode="ask") as running:
        await running.ask("go")
        assert made(tmp_path) == "one\n" and not running.of(ApprovalRequestedEvent)
        assert any("allowed bash: it is harmless" in text for text in kept(running))


async def test_no_approval_goes_beyond_what_the_mode_refuses(tmp_path):
    own(tmp_path, PreToolUse=[group(says(tmp_path, decides("allow")))])
    async with agent(tmp_path, one_call_each(MAKE), mode="plan") as running:
        await running.ask("go")
        assert last_result(running).denied and not made(tmp_path)


@pytest.mark.parametrize("interactive", [True, False])
async def test_a_hook_may_ask_for_an_approval_that_the_mode_does_not_want(tmp_path, interactive):
    own(tmp_path, PreToolUse=[group(says(tmp_path, decides("ask", "it is Friday")))])
    async with agent(tmp_path, one_call_each(MAKE), mode="auto", interactive=interactive) as running:
        await running.send("go")
        if interactive:
            assert "it is Friday" in (await running.until(ApprovalRequestedEvent)).reason
            await answer(running, "deny")
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert last_result(running).denied and not made(tmp_path)
        assert settled.refused == (0 if interactive else 1)


async def test_changed_input_is_what_runs_what_is_judged_and_what_is_shown(tmp_path):
    changed = decides("allow", "", updatedInput={"command": "echo two > made.txt"})
    own(tmp_path, PreToolUse=[group(says(tmp_path, changed), matcher="Bash")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert made(tmp_path) == "two\n"
        assert any("changed the input of bash" in text and "echo two" in text for text in kept(running))


async def test_changed_input_without_an_approval_is_asked_about_as_changed(tmp_path):
    changed = specific("PreToolUse", updatedInput={"command": "echo two > made.txt"})
    own(tmp_path, PreToolUse=[group(says(tmp_path, changed))])
    async with agent(tmp_path, one_call_each(MAKE), mode="ask") as running:
        await running.send("go")
        assert (await running.until(ApprovalRequestedEvent)).detail == "echo two > made.txt"
        await answer(running, "once")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert made(tmp_path) == "two\n"


async def test_a_changed_path_may_have_their_name(tmp_path):
    code = (
        'import json,sys; given=json.load(sys.stdin)["tool_input"]; given["file_path"]+=".new"; '
        'print(json.dumps({"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":given}}))'
    )
    own(tmp_path, PreToolUse=[group(python(code), matcher="Write")])
    async with agent(tmp_path, one_call_each(WRITE)) as running:
        await running.ask("go")
        assert (tmp_path / "work" / "made.txt.new").read_text() == "one\n" and not made(tmp_path)


async def test_an_if_narrows_a_hook_to_some_calls(tmp_path):
    narrowed = hook(notes(tmp_path), **{"if": "Bash(git push *)"})
    own(tmp_path, PreToolUse=[group(narrowed, matcher="Bash")])
    calls = [Call("bash", {"command": command}) for command in ("ls", "cd . && git push origin", "git status")]
    async with agent(tmp_path, one_call_each(*calls)) as running:
        await running.ask("go")
    assert [one["tool_input"]["command"] for one in told(tmp_path)] == ["cd . && git push origin"]


async def test_a_hook_that_ends_the_turn_ends_it(tmp_path):
    own(tmp_path, PreToolUse=[group(says(tmp_path, {"continue": False, "stopReason": "the office is closed"}))])
    async with agent(tmp_path, one_call_each(MAKE, MAKE)) as running:
        settled = await running.ask("go")
        assert settled.outcome == "declined" and "the office is closed" in settled.error
        assert len(running.of(ToolResultEvent)) == 1 and not made(tmp_path)
        assert (await running.ask("again")).outcome == "declined", "the session goes on"


# --- behind a call, at a prompt, at the end ---


async def test_context_behind_a_call_reaches_the_model_behind_all_results_of_the_step(tmp_path):
    context = specific("PostToolUse", additionalContext="remember the formatter")
    own(tmp_path, PostToolUse=[group(says(tmp_path, context), matcher="Write")])
    script = [Reply(tool_calls=[WRITE, MAKE]), Reply("done")]
    async with agent(tmp_path, lambda _request: script.pop(0)) as running:
        await running.ask("go")
        first, second = running.server.requests
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        texts = [item.text for item in second.items]
        assert "remember the formatter" in texts[-1]
        assert len(to_model(running)) == 1 and len(kept(running)) == 1


async def test_a_hook_may_object_to_a_result(tmp_path):
    own(tmp_path, PostToolUse=[group("echo two lines are missing >&2; exit 2")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        assert made(tmp_path) and not last_result(running).is_error
        assert any("two lines are missing" in text for text in to_model(running))


async def test_a_prompt_gets_context_and_plain_text_is_some(tmp_path):
    own(tmp_path, UserPromptSubmit=[group("echo the build is red")])
    async with agent(tmp_path, one_call_each()) as running:
        await running.ask("go")
        user, context = [item.text for item in running.server.requests[0].items[-2:]]
        assert user == "go" or "go" in user
        assert "the build is red" in context


async def test_a_blocked_prompt_goes_back_into_the_editor_and_nothing_is_sent(tmp_path):
    own(tmp_path, UserPromptSubmit=[group(f"{notes(tmp_path)}; echo it has a key >&2; exit 2")])
    async with agent(tmp_path, one_call_each()) as running:
        await running.ask("my key is 1234")
        assert not running.server.requests and not running.of(UserMessageEvent)
        assert text_of(running.of(PromptReturnedEvent)[0].parts) == "my key is 1234"
        assert any("it has a key" in text for text in kept(running))
        assert not running.session.state.queue
        assert [one["prompt"] for one in told(tmp_path)] == ["my key is 1234"]


async def test_a_blocked_prompt_of_a_run_without_a_user_is_its_failure(tmp_path):
    own(tmp_path, UserPromptSubmit=[group("echo it has a key >&2; exit 2")])
    async with agent(tmp_path, one_call_each(), interactive=False) as running:
        settled = await running.ask("go")
        assert (settled.outcome, settled.error) == ("failed", "A hook blocked the prompt: it has a key")


@pytest.mark.matrix
async def test_the_start_of_a_session_gives_context_before_the_first_request(tmp_path, task_start):
    own(tmp_path, SessionStart=[group("sleep 0.3; echo the sprint ends on Friday", matcher="startup")])
    async with ScriptedServer(one_call_each()) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("go")
            assert any("the sprint ends on Friday" in item.text for item in server.requests[0].items)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("on")
            assert sum("the sprint ends on Friday" in item.text for item in server.requests[-1].items) == 1


async def test_the_end_of_a_turn_is_put_off_five_times_at_most(tmp_path):
    own(tmp_path, Stop=[group(f"{notes(tmp_path)}; echo the tests fail >&2; exit 2")])
    async with agent(tmp_path, one_call_each()) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert len(running.server.requests) == 6
        assert [one["stop_hook_active"] for one in told(tmp_path)] == [False, *[True] * 5]
        assert told(tmp_path)[0]["last_assistant_message"] == "Done."
        assert any("it ends now" in text for text in kept(running))
        for earlier, later in zip(running.server.requests, running.server.requests[1:], strict=False):
            assert later.prefix_items[: len(earlier.prefix_items)] == earlier.prefix_items


async def test_the_agent_goes_on_until_the_hook_is_content(tmp_path):
    own(tmp_path, Stop=[group("test -e made.txt || { echo made.txt is missing >&2; exit 2; }")])
    script = [Reply("done"), Reply(tool_calls=[MAKE]), Reply("done")]
    async with agent(tmp_path, lambda _request: script.pop(0)) as running:
        await running.ask("go")
        assert made(tmp_path) and not script
        assert any("made.txt is missing" in item.text for item in running.server.requests[1].items)


# --- compaction ---


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "UserPromptSubmit"])
async def test_a_hook_asks_for_a_compaction_with_a_focus(tmp_path, event, interactive):
    wish = says(tmp_path, {"compact": {"focus": "the colour of the door"}})
    wants = f"if grep -q 'work now' || test {event} != UserPromptSubmit; then {wish}; fi"
    async with ScriptedServer(works([MAKE]), window=WINDOW) as server:
        async with reopened(tmp_path, server) as running:
            await talk_a_while(running)
        own(tmp_path, **{event: [group(wants)]})
        async with reopened(tmp_path, server, resume_latest=True, interactive=interactive) as running:
            assert (await running.ask("work now")).outcome == "completed"
            (entry,) = compactions(running)
            assert (entry.reason, entry.focus) == ("agent", "the colour of the door")
            assert any("asked for a compaction" in text for text in notices(running))
            assert not any(request.refused for request in server.requests)


async def test_where_there_is_nothing_to_compact_it_is_said_once(tmp_path):
    own(tmp_path, PostToolUse=[group(says(tmp_path, {"compact": True}))])
    async with agent(tmp_path, one_call_each(MAKE, WRITE, MAKE)) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert not compactions(running) and len(about_hooks(running)) == 1


async def test_a_hook_adds_a_focus_to_a_compaction_or_stops_it(tmp_path):
    own(tmp_path, PreCompact=[group(says(tmp_path, specific("PreCompact", additionalContext="the blue door")))])
    async with ScriptedServer(talk(), window=WINDOW) as server:
        async with reopened(tmp_path, server) as running:
            await talk_a_while(running)
            await compact(running)
            assert len(compactions(running)) == 1
            assert any("the blue door" in item.text for request in server.requests for item in request.items)
            assert told(tmp_path)[0]["trigger"] == "manual"
        own(tmp_path, PreCompact=[group("echo a test runs >&2; exit 2", matcher="manual")])
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await talk_a_while(running, 2)
            await compact(running)
            assert len(compactions(running)) == 1
            assert "cancelled the compaction: a test runs" in str(running.events)


# --- places ---


@pytest.mark.parametrize("name", [".claude/settings.json", ".codex/hooks.json"])
@pytest.mark.parametrize("shared", [True, False])
async def test_the_users_hooks_of_other_agents_run_unless_switched_off(tmp_path, name, shared):
    write_hooks(tmp_path / "user" / name, PreToolUse=[group(notes(tmp_path))])
    environ = {"HOME": str(tmp_path / "user"), "TENUTO_HOOKS__SHARED": str(shared).lower()}
    async with agent(tmp_path, one_call_each(MAKE), environ={**environ, "PATH": "/usr/bin:/bin"}) as running:
        await running.ask("go")
    assert bool(told(tmp_path)) == shared


async def test_switched_off_none_run(tmp_path):
    own(tmp_path, PreToolUse=[group("exit 2")])
    async with agent(tmp_path, one_call_each(MAKE), environ={"TENUTO_HOOKS__ENABLED": "false"}) as running:
        await running.ask("go")
        assert made(tmp_path)


# --- what a resumed session shows ---


def shown(events: list[AnyEvent]) -> list[object]:
    found: list[object] = []
    for event in events:
        match event:
            case NoticeEvent(kind="hook"):
                found.append(event.text)
            case ToolStartedEvent():
                found.append(("start", event.call_id))
            case ToolResultEvent():
                found.append(("result", event.message.call_id))
            case UserMessageEvent():
                found.append("user")
            case _:
                pass
    return found


async def test_live_and_resumed_show_the_same(tmp_path):
    context = specific("PostToolUse", additionalContext="remember the formatter")
    changed = decides("allow", "fine", updatedInput={"command": "echo two > made.txt"})
    own(
        tmp_path,
        PreToolUse=[group(says(tmp_path, changed, "changed"), matcher="Bash"), group("exit 2", matcher="Read")],
        PostToolUse=[group(says(tmp_path, context, "context"))],
        UserPromptSubmit=[group("echo the build is red")],
    )
    read = Call("read", {"path": "made.txt"})
    script = [Reply(tool_calls=[MAKE]), Reply(tool_calls=[read]), Reply("done")]
    async with ScriptedServer(lambda _request: script.pop(0)) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("go")
            live = shown(running.events)
        (tmp_path / "home" / "hooks.json").unlink()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert shown(running.events) == live
    assert sum(isinstance(one, str) and one != "user" for one in live) == 5
    assert json.dumps(live)


async def test_an_interrupt_ends_a_hook_and_everything_that_it_started(tmp_path):
    own(
        tmp_path,
        PreToolUse=[group(f"(sleep 600; echo late > {tmp_path / 'late'}) & echo $! > {tmp_path / 'pid'}; wait")],
    )
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.send("go")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        await running.runtime.executor.stop(running.runtime.live)
        assert (await asyncio.wait_for(running.runtime.wait_settled(), 60)).outcome == "interrupted"
        assert is_dead(int((tmp_path / "pid").read_text()))
        assert not made(tmp_path)


async def test_a_result_stays_although_its_hook_is_interrupted(tmp_path):
    own(tmp_path, PostToolUse=[group(f"touch {tmp_path / 'begun'}; sleep 600")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.send("go")
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        await running.runtime.executor.stop(running.runtime.live)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert not last_result(running).is_error and not last_result(running).interrupted


async def test_the_command_names_source_and_last_outcome(tmp_path):
    path = own(tmp_path, PreToolUse=[group("exit 2", matcher="Bash"), group("exit 1")], Stop=[group("true")])
    write_hooks(tmp_path / "work" / ".codex" / "hooks.json", Stop=[group("true")])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        (before,) = await running.runtime.run_command("/hooks")
        assert before.text.count("not asked yet") == 3 and "not run: not trusted yet" in before.text
        await running.ask("go")
        (after,) = await running.runtime.run_command("/hooks")
        assert str(path) in after.text
        for words in ("PreToolUse Bash: exit 2", "blocked, ", "it ended with exit code 1", "nothing to say"):
            assert words in after.text


async def test_reload_reads_the_files_again(tmp_path):
    own(tmp_path, PreToolUse=[group("exit 2")])
    async with agent(tmp_path, one_call_each(MAKE, MAKE)) as running:
        own(tmp_path, Stop=[group(notes(tmp_path))])
        outcomes = await running.runtime.run_command("/reload")
        assert "Hooks: 1." in str(outcomes)
        await running.ask("go")
        assert made(tmp_path) and events_told(tmp_path) == ["Stop"]


async def test_files_that_come_later_are_named_by_reload(tmp_path):
    async with agent(tmp_path, one_call_each()) as running:
        own(tmp_path, Stop=[group("true")])
        assert "hold in the next session" in str(await running.runtime.run_command("/reload"))


async def test_a_change_that_cannot_run_is_the_hooks_fault(tmp_path):
    changed = decides("allow", "", updatedInput={"no such": 5})
    own(tmp_path, PreToolUse=[group(says(tmp_path, changed))])
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert "A hook changed this bash call" in text_of(last_result(running).parts) and not made(tmp_path)


async def test_a_session_in_which_nothing_was_said_leaves_nothing_behind(tmp_path):
    own(tmp_path, SessionStart=[group("echo hello")], SessionEnd=[group(notes(tmp_path))])
    async with agent(tmp_path, one_call_each()) as running:
        directory = running.session.directory
    assert events_told(tmp_path) == ["SessionEnd"] and not directory.exists()


async def test_an_extension_asks_for_a_compaction(tmp_path):
    extend(
        tmp_path,
        "def setup(tenuto):\n    tenuto.on('session_compact', lambda event: None)\n"
        "    tenuto.request_compaction('the colour of the door')\n",
    )
    async with ScriptedServer(works([MAKE]), window=WINDOW) as server:
        async with reopened(tmp_path, server, environ={"TENUTO_EXTENSIONS__ENABLED": "false"}) as running:
            await talk_a_while(running)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.runtime.live.extensions.host()
            await running.ask("work now")
            assert [entry.focus for entry in compactions(running)] == ["the colour of the door"]
            assert any("The extension mine asked for a compaction" in text for text in notices(running))


# --- what waits ---


async def test_a_stop_hook_hears_of_a_plan_that_nobody_can_be_asked_about(tmp_path):
    own(
        tmp_path,
        Stop=[group(f"{notes(tmp_path)}; test -e again || {{ touch again; echo shorter, please >&2; exit 2; }}")],
    )
    replies = [HAND_OVER, HAND_OVER]
    options = {"mode": "plan", "interactive": False}
    async with agent(tmp_path, lambda _request: replies.pop(0), **options) as running:
        assert (await running.ask("plan it")).outcome == "completed"
        assert not replies and events_told(tmp_path) == ["Stop", "Stop"]
        assert any("shorter, please" in item.text for item in running.server.requests[1].items)
        assert "<proposed_plan>" in told(tmp_path)[0]["last_assistant_message"]


@pytest.mark.parametrize("interactive", [True, False])
async def test_a_hook_hears_that_the_user_is_waited_for(tmp_path, monkeypatch, interactive):
    monkeypatch.setattr("tenuto.core.hooks.life.IDLE_SECONDS", 0.05)
    own(tmp_path, Notification=[group(notes(tmp_path), matcher="idle_prompt")], Stop=[group("sleep 0.3")])
    async with agent(tmp_path, one_call_each(), interactive=interactive) as running:
        await running.ask("go")
        assert not told(tmp_path)  # a turn that still ends is no waiting
        for _ in range(300 if interactive else 40):
            if told(tmp_path):
                break
            await asyncio.sleep(0.01)
    notified = [(one["notification_type"], one["message"]) for one in told(tmp_path)]
    assert notified == ([("idle_prompt", "Tenuto is waiting for your input")] if interactive else [])


async def test_a_hook_that_takes_long_is_named_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.core.hooks.life.MOMENT", 0.4)
    own(
        tmp_path,
        PreToolUse=[group("true", "sleep 1.5", "sleep 1.2; exit 1")],
        Notification=[group("sleep 0.5")],
        Stop=[group("true")],
    )
    async with agent(tmp_path, one_call_each(MAKE)) as running:
        await running.ask("go")
        shown = [event.names for event in running.of(HooksRunningEvent)]
        assert max(map(len, shown)) == 2 and shown[-1] == ()
        assert {name for names in shown for name in names} == {
            "PreToolUse hook “sleep 1.5”",
            "PreToolUse hook “sleep 1.2; exit 1”",
        }


# --- words of other agents ---


async def test_crushs_words_are_understood(tmp_path):
    answer = {"version": 1, "context": ["one", "two"], "updated_input": {"command": "echo three >> made.txt"}}
    own(tmp_path, PreToolUse=[group(says(tmp_path, answer))])
    async with agent(tmp_path, one_call_each(Call("bash", {"command": "false", "timeout": 9}))) as running:
        await running.ask("go")
        assert made(tmp_path) == "three\n" and "one\ntwo" in to_model(running)[0]


@pytest.mark.parametrize("way", ["echo enough >&2; exit 49", """echo '{"halt": true, "reason": "enough"}'"""])
async def test_crushs_halt_ends_the_turn(tmp_path, way):
    own(tmp_path, PreToolUse=[group(way)])
    async with agent(tmp_path, one_call_each(MAKE, MAKE)) as running:
        assert (await running.ask("go")).outcome == "declined"
        assert not made(tmp_path) and any("ended the turn: enough" in text for text in notices(running))
