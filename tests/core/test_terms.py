"""What command files and skills ask for their turn: approvals, a model, an effort; given back when it is over."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.programs import describe_wishes
from tenuto.core.state.terms import read_allowed
from tenuto.core.state.trust import look_at_project
from tenuto.guard.rules import read_rule
from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent
from tenuto.protocol.message import NoticeEntry, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, ChangeModelOperation, InterruptOperation
from tests.core.compacting import talk
from tests.core.harness import agent, one_call_each, reopened
from tests.core.hooking import group, notices, own, says, to_model
from tests.core.test_command_files import last_user, run, write
from tests.core.test_skills import steps, trust, work, write_skill
from tests.server import Call, HttpError, Reply, ScriptedServer

ADD = Call("bash", {"command": "touch made.txt"})


@asynccontextmanager
async def asking(tmp_path, script, **changes):
    """An agent in mode ask, with a user who says no to every question."""
    async with agent(tmp_path, script, mode="ask", **changes) as running:
        asked: list[str] = []

        def refuse(event):
            if isinstance(event, ApprovalRequestedEvent):
                asked.append(event.detail)
                answer = AnswerApprovalOperation(
                    session_id=running.runtime.session_id, request_id=event.request_id, decision="deny"
                )
                answers.append(asyncio.ensure_future(running.runtime.submit(answer)))

        answers: list[asyncio.Future[str]] = []
        running.runtime.subscribe(refuse)
        yield running, asked


def results(running) -> list[ToolResultMessage]:
    return [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]


def models(running) -> list[str]:
    return [request.body["model"] for request in steps(running.server)]


HEAD = "---\nallowed-tools: Bash(touch:*), Read, TodoWrite, Launch(rockets)\n---\n"


async def test_j3_what_the_users_command_allows_runs_unasked_for_its_turn_alone(tmp_path):
    write(tmp_path / "home", "commands/add.md", f"{HEAD}Add it")
    async with asking(tmp_path, one_call_each(ADD, None, ADD)) as (running, asked):
        await run(running, "/add")
        assert not asked
        assert not results(running)[0].is_error
        await running.ask("again")
        assert asked == ["touch made.txt"]
        said = notices(running)
        assert "/add allows for this turn: bash(touch *)" in said
        assert sum("Launch(rockets)" in text for text in said) == 1
        await run(running, "/add")
        assert sum("Launch(rockets)" in text for text in notices(running)) == 1, "named once"


async def test_j3_a_denial_a_rule_that_asks_and_mode_plan_hold_above_what_a_command_allows(tmp_path):
    write(tmp_path / "home", "commands/add.md", f"{HEAD}Add it: !`touch before.txt`")
    (tmp_path / "home" / "settings.toml").write_text('[approvals]\ndeny = ["bash(touch *)"]\n')
    async with asking(tmp_path, one_call_each(ADD)) as (running, asked):
        await run(running, "/add")
        assert not asked
        assert not steps(running.server), "the command in the file was denied: nothing is sent"
    (tmp_path / "home" / "settings.toml").write_text('[approvals]\nask = ["bash(touch *)"]\n')
    async with asking(tmp_path, one_call_each(ADD)) as (running, asked):
        await run(running, "/add")
        assert asked == ["touch before.txt"]
    (tmp_path / "home" / "settings.toml").write_text("")
    async with agent(tmp_path, one_call_each(ADD), mode="plan") as running:
        await run(running, "/add")
        assert results(running)[0].denied
    assert not list(work(tmp_path).iterdir())


async def test_j3_commands_in_a_file_are_covered_by_what_it_allows(tmp_path):
    write(tmp_path / "home", "commands/add.md", f"{HEAD}Add it: !`touch made.txt`!")
    async with asking(tmp_path, talk("fine")) as (running, asked):
        await run(running, "/add")
        assert not asked
        assert (work(tmp_path) / "made.txt").exists()
        assert not running.runtime.live.lent


async def test_s1_a_projects_command_asks_in_vain_until_it_is_trusted_as_it_is(tmp_path):
    file = write(work(tmp_path), ".claude/commands/add.md", f"{HEAD}Add it")
    async with asking(tmp_path, one_call_each(ADD, None, ADD, None, ADD)) as (running, asked):
        await run(running, "/add")
        assert asked == ["touch made.txt"]
        (item,) = look_at_project(work(tmp_path), tmp_path / "home").open_items
        assert "Bash(touch:*)" in item.does
        assert item.label == "command add"
        assert trust(tmp_path) == ["command add"]
        await run(running, "/add")
        assert len(asked) == 1
        file.write_text(file.read_text().replace("touch:*", "touch:*), Bash(rm:*"))
        await run(running, "/add")
        assert len(asked) == 2
        assert "/add asks for more" in " ".join(notices(running))


async def test_s1_a_projects_text_skill_is_used_and_what_it_allows_waits_for_trust(tmp_path):
    write_skill(work(tmp_path) / ".claude" / "skills", **{"allowed-tools": "Bash(touch:*)"})
    load = Call("skill", {"name": "release-notes"})
    async with asking(tmp_path, one_call_each(load, ADD, None, ADD)) as (running, asked):
        await running.ask("write the notes")
        assert asked == ["touch made.txt"]
    assert trust(tmp_path) == ["skill release-notes"]
    async with asking(tmp_path, one_call_each(load, ADD, None, ADD)) as (running, asked):
        await running.ask("write the notes")
        assert not asked, "the model loaded it: what it allows holds for the rest of the turn"
        await running.ask("go on")
        assert asked == ["touch made.txt"]


async def test_j3_a_queued_command_brings_its_terms_with_its_turn_and_not_before(tmp_path):
    write(tmp_path / "home", "commands/add.md", "---\nallowed-tools: Bash(touch:*)\nmodel: openai-chat/large\n---\nAdd")
    go_on = asyncio.Event()
    calls = one_call_each(ADD, None, ADD)

    async def script(request):
        await go_on.wait()
        return calls(request)

    async with asking(tmp_path, script) as (running, asked):
        await running.send("begin")
        while not running.server.requests:
            await asyncio.sleep(0.01)
        await running.runtime.run_command("/add")
        go_on.set()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert asked == ["touch made.txt"], "the turn that ran already had nothing of it"
        assert models(running) == ["test", "test", "large", "large"]


@pytest.mark.parametrize("how", ["answered", "interrupted", "failed"])
async def test_j3_the_model_of_a_command_answers_its_turn_and_the_sessions_own_the_next(tmp_path, how):
    write(tmp_path / "home", "commands/think.md", "---\nmodel: openai-chat/large\neffort: high\n---\nThink")
    replies = {"answered": Reply("ok"), "interrupted": Reply("ok", delay=60), "failed": HttpError(400, "no")}

    def script(request):
        return replies[how] if request.body["model"] == "large" else Reply("fine")

    async with agent(tmp_path, script) as running:
        await running.runtime.run_command("/think")
        if how == "interrupted":
            while not running.server.requests:
                await asyncio.sleep(0.01)
            await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert steps(running.server)[0].body["reasoning_effort"] == "high"
        await running.ask("next")
        assert [models(running)[0], models(running)[-1]] == ["large", "test"]
        assert "reasoning_effort" not in steps(running.server)[-1].body
        assert notices(running).index("/think: openai-chat/large with effort high answers this turn.") < notices(
            running
        ).index("openai-chat/test answers again.")


async def test_j3_a_model_chosen_by_the_user_in_the_turn_stays(tmp_path):
    write(tmp_path / "home", "commands/think.md", "---\nmodel: openai-chat/large\n---\nThink")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def script(_request):
        begun.set()
        await go_on.wait()
        return Reply("fine")

    async with agent(tmp_path, script) as running:
        await running.runtime.run_command("/think")
        await asyncio.wait_for(begun.wait(), 60)
        change = ChangeModelOperation(session_id=running.runtime.session_id, model="openai-chat/large")
        await running.runtime.submit(change)
        go_on.set()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        await running.ask("next")
        assert models(running) == ["large", "large"]


async def test_j3_after_a_crash_in_the_turn_the_sessions_own_model_answers(tmp_path):
    async with ScriptedServer(talk("fine")) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("begin")
            running.session.append(ModelEntry(model="openai-chat/large", effort="high", for_turn=True))
        async with reopened(tmp_path, server, resume_latest=True, model="") as running:
            await running.ask("next")
            assert models(running)[-1] == "test"
            assert running.session.state.own_model is None


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("model: sonnet", "no model “sonnet”"),
        ("model: nowhere/at-all", "nowhere"),
        ("effort: gigantic", "no effort “gigantic”"),
        ("model: [a, b]", "no model “[a, b]”"),
    ],
)
async def test_j3_what_cannot_be_had_is_one_line_and_the_present_model_answers(tmp_path, head, why):
    write(tmp_path / "home", "commands/think.md", f"---\n{head}\n---\nThink")
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/think")
        assert models(running) == ["test"]
        said = [event.text for event in running.of(NoticeEvent) if why in event.text]
        assert len(said) == 1, notices(running)
        assert "openai-chat/test answers" in said[0]


async def test_j3_a_word_for_a_model_stands_for_what_the_settings_say(tmp_path):
    write(tmp_path / "home", "commands/think.md", "---\nmodel: opus\n---\nThink")
    (tmp_path / "home" / "settings.toml").write_text('[agents.models]\nopus = "openai-chat/large"\n')
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/think")
        assert models(running) == ["large"]


async def test_j2_a_skill_that_the_user_loads_brings_its_model(tmp_path):
    write_skill(tmp_path / "home" / "skills", model="openai-chat/large")
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/release-notes")
        await running.ask("next")
        assert models(running) == ["large", "test"]
        kept = [entry.text for entry in running.session.entries() if isinstance(entry, NoticeEntry)]
        assert "openai-chat/test answers again." in kept


async def test_j4_what_hooks_say_of_a_files_commands_goes_along_with_its_prompt(tmp_path):
    before = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "BEFORE-CONTEXT"}}
    after = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "AFTER-CONTEXT"}}
    own(
        tmp_path,
        PreToolUse=[group(says(tmp_path, before, "before"), matcher="Bash")],
        PostToolUse=[group(says(tmp_path, after, "after"), matcher="Bash")],
    )
    write(tmp_path / "home", "commands/look.md", "Here: !`echo OUTPUT`")
    async with agent(tmp_path, talk("fine")) as running:
        await run(running, "/look")
        (request,) = steps(running.server)
        text = json.dumps(request.body)
        assert [text.count(word) for word in ("BEFORE-CONTEXT", "AFTER-CONTEXT")] == [1, 1]
        assert len(to_model(running)) == 2
        assert "Here: OUTPUT" in str(last_user(running).parts)
        assert not running.server.faults


WORDS = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}({})".format,
        st.sampled_from(["Bash", "Read", "Edit", "Write", "WebFetch", "Task", "mcp__a__b", "Nothing"]),
        st.one_of(
            st.text(max_size=20), st.sampled_from(["outside: rm *", "/etc/**", "~/x", "../x", "a/../../b", "git:*"])
        ),
    ),
)


@given(st.lists(WORDS, max_size=60), st.sampled_from(["user", "project"]))
def test_s1_no_word_leaves_the_sandbox_and_none_of_a_projects_the_project(words, origin):
    allows, left_out = read_allowed(words, origin)
    assert set(left_out) <= set(words)
    for text in allows:
        rule = read_rule(text)
        assert rule.effect == "allow"
        assert not rule.is_outside
        if origin == "project" and rule.tool in {"edit", "read"}:
            assert not Path(rule.pattern).is_absolute()
            assert not rule.pattern.startswith("~")
            assert ".." not in Path(rule.pattern).parts
    for word in words:
        assert describe_wishes((word,), "", "") or word.casefold() not in {text.casefold() for text in allows}
