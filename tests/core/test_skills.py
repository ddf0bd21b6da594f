"""Skills: listed in the system prompt, loaded by the tool or the user, and word for word in every request then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.consent import Consent
from tenuto.config.skills import Skill
from tenuto.core.state.skills import list_skills
from tenuto.core.state.trust import look_at_project
from tenuto.guard.subject import Allow, ApprovalSubject, Ask
from tenuto.protocol.entry import SkillEntry
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.text.estimate import estimate_text
from tests.core.compacting import compact, compactions, fill, is_summary_request, talk
from tests.core.harness import PROTOCOLS, agent, one_call_each, reopened
from tests.core.hooking import notices
from tests.examples import one_of
from tests.server import Call, HttpError, Reply, Request, ScriptedServer

BODY = """\
# Release notes

1. Run `scripts/collect.sh`, then read references/style.md.
2.  Two spaces stay two; “quotes” stay quotes.

    indented code stays indented
- [ ] never mention internal names"""


def write_skill(folder: Path, name: str = "release-notes", body: str = BODY, **head: str) -> Path:
    """Put a skill into a folder of skills."""
    values = {"name": name, "description": f"How {name} are written. Use when asked for {name}.", **head}
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    lines = "\n".join(f"{key}: {value}" for key, value in values.items())
    path.write_text(f"---\n{lines}\n---\n{body}\n")
    return path


def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir(exist_ok=True)
    return tmp_path / "work"


def trust(tmp_path: Path) -> list[str]:
    """Trust all that the project brings; return what that is."""
    look = look_at_project(work(tmp_path), tmp_path / "home")
    Consent(look.project.home).decide(look.project, look.open_items, trusted=True)
    return [item.label for item in look.open_items]


def sent(request: Request) -> str:
    return "\n".join(item.text for item in request.items)


def tools_of(request: Request) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in request.body.get("tools", [])]


def loads(name: str = "release-notes"):
    """Load a skill in the first step, then talk."""
    done = False

    def answer(_request: Request):
        nonlocal done
        if not done:
            done = True
            return Reply(tool_calls=[Call("skill", {"name": name})])
        return Reply("fine " * 600)

    return talk(answer)


def steps(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if request.kind == "model" and not is_summary_request(request)]


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_j2_a_skill_is_listed_loaded_by_the_tool_and_told_behind_the_result(tmp_path, protocol):
    path = write_skill(work(tmp_path) / ".claude" / "skills")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "collect.sh").write_text("git log\n")
    trust(tmp_path)
    async with agent(tmp_path, loads(), model=f"{protocol}/test") as running:
        await running.ask("write the notes")
        first, second = steps(running.server)
        assert "- release-notes: How release-notes are written. Use when asked for release-notes." in sent(first)
        assert "skill" in tools_of(first)
        assert BODY not in sent(first)
        assert sent(second).count(BODY) == 1
        assert f"Its folder is {path.parent}: scripts/collect.sh" in sent(second)
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        (result,) = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        assert "follows in a note" in text_of(result.parts)
        assert not running.server.faults


async def test_without_skills_there_is_neither_list_nor_tool(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        await running.ask("hello")
        (request,) = steps(running.server)
        assert "# Skills" not in sent(request)
        assert "skill" not in tools_of(request)


WAYS = "tenuto.compaction.ways.strategies:"


@pytest.mark.parametrize(
    "strategy",
    [
        "",
        f"{WAYS}LLMSummaryCompaction",
        f"{WAYS}DigestCompaction",
        f"{WAYS}HidingThenSummaryCompaction",
        f"{WAYS}RemoteCompaction",
        f"{WAYS}ToolResultHidingCompaction",
    ],
)
async def test_j2_a_loaded_skill_stands_word_for_word_after_eleven_rounds_and_a_restart(tmp_path, strategy):
    write_skill(work(tmp_path) / ".agents" / "skills")
    environ = {"TENUTO_COMPACTION__STRATEGY": strategy} if strategy else {}
    hides = "ToolResultHiding" in strategy  # it leaves this conversation as it is: so it has to fit
    async with ScriptedServer(loads(), window=200_000 if hides else 32_000) as server:
        async with reopened(tmp_path, server, environ=dict(environ)) as running:
            await running.ask("write the notes")
            for number in range(11):
                await fill(running, 4)
                await compact(running)
                if not hides:
                    assert len(compactions(running)) == number + 1
            await running.ask("and now?")
        async with reopened(tmp_path, server, resume_latest=True, environ=dict(environ)) as running:
            await running.ask("after a restart")
        counts = [sent(request).count(BODY) for request in steps(server)[1:]]
        assert set(counts) == {1}, counts
        assert not server.faults


async def test_j2_a_loaded_skill_stands_word_for_word_where_no_model_writes_notes(tmp_path):
    write_skill(work(tmp_path) / ".agents" / "skills")
    script = talk(lambda _request: Reply("fine " * 600), summary=lambda _request: HttpError(400, "no notes here"))
    async with ScriptedServer(script, window=32_000) as server, reopened(tmp_path, server) as running:
        await running.runtime.run_command("/release-notes")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        for _ in range(11):
            await fill(running, 4)
            await compact(running)
        await running.ask("and now?")
        assert {entry.rung for entry in compactions(running)} == {"digest"}
        assert {sent(request).count(BODY) for request in steps(server)} == {1}


async def test_the_newest_skills_stay_where_not_all_have_room_and_the_others_are_named(tmp_path):
    folder = work(tmp_path) / ".claude" / "skills"
    for number in range(4):
        write_skill(folder, f"long-{number}", f"BODY-{number} " + "word and " * 1_000)
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        for number in range(4):
            await running.runtime.run_command(f"/long-{number}")
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
        await fill(running, 4)
        await compact(running)
        await running.ask("and now?")
        text = sent(steps(running.server)[-1])
        assert [number for number in range(4) if f"BODY-{number}" in text] == [2, 3]
        assert "load again what is of use: long-0, long-1" in text
        assert not running.server.faults


async def test_j2_an_unloaded_skill_holds_no_longer_and_the_next_compaction_leaves_it_out(tmp_path):
    write_skill(work(tmp_path) / ".claude" / "skills")
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server, mode="ask") as running:
            assert "none is loaded" in (await running.runtime.run_command("/skills unload release-notes"))[0].text
            await running.runtime.run_command("/release-notes")
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
            (listed,) = await running.runtime.run_command("/skills")
            assert "loaded skills have about" in listed.title
            assert "loaded" in listed.choices[0].detail
            first = steps(server)[-1]
            assert (
                "Unloaded release-notes" in (await running.runtime.run_command("/skills unload release-notes"))[0].text
            )
            await running.ask("and now?")
            assert steps(server)[-1].continues(first), "nothing that was sent changes"
            assert sent(steps(server)[-1]).count("has unloaded the skill release-notes") == 1
            await running.ask("and now?")
            assert sent(steps(server)[-1]).count("has unloaded the skill release-notes") == 1, "told once"
            assert running.session.state.skills == ()
            await fill(running, 4)
            await compact(running)
            await running.ask("and now?")
            assert BODY not in sent(steps(server)[-1])
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert running.session.state.skills == ()
            await running.runtime.run_command("/release-notes")
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
            assert sent(steps(server)[-1]).count(BODY) == 1, "loaded again"
            assert [entry.name for entry in running.session.state.skills] == ["release-notes"]
            await fill(running, 4)
            await compact(running)
            await running.runtime.run_command("/skills unload release-notes")
            for _ in range(2):
                await running.ask("and now?")
                assert sent(steps(server)[-1]).count("has unloaded the skill release-notes") == 1, (
                    "a compaction kept it"
                )
            await fill(running, 4)
            await compact(running)
            await running.ask("and now?")
            assert BODY not in sent(steps(server)[-1])
            assert "has unloaded" not in sent(steps(server)[-1])
        assert not server.faults


async def test_j2_a_skill_that_leaves_others_without_room_says_so(tmp_path):
    folder = work(tmp_path) / ".claude" / "skills"
    for number in range(3):
        write_skill(folder, f"long-{number}", f"BODY-{number} " + "word and " * 1_000)
    async with agent(tmp_path, talk("fine"), options={"window": 32_000}) as running:
        for number in range(3):
            await running.runtime.run_command(f"/long-{number}")
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
        said = [text for text in notices(running) if "no room for long-0" in text]
        assert len(said) == 1
        assert "/skills unload NAME" in said[0]


async def test_a_skill_is_gone_where_the_conversation_goes_back_to_before_it(tmp_path):
    write_skill(work(tmp_path) / ".claude" / "skills")
    async with agent(tmp_path, talk("fine")) as running:
        await running.ask("before")
        await running.runtime.run_command("/release-notes")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [entry.name for entry in running.session.state.skills] == ["release-notes"]
        loaded = next(entry.seq for entry in running.session.path() if isinstance(entry, SkillEntry))
        await running.runtime.run_command(f"/tree {loaded - 1}")
        assert running.session.state.skills == ()
        await running.ask("after")
        assert BODY not in sent(steps(running.server)[-1])
        await running.runtime.run_command("/new")
        await running.ask("afresh")
        assert BODY not in sent(steps(running.server)[-1])


async def test_the_list_joins_at_a_reload_and_nothing_sent_changes_before(tmp_path):
    root = work(tmp_path)
    async with agent(tmp_path, talk("fine")) as running:
        await running.ask("one")
        write_skill(root / ".claude" / "skills")
        await running.ask("two")
        first, second = steps(running.server)
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        assert tools_of(second) == tools_of(first)
        await running.runtime.run_command("/reload")
        await running.ask("three")
        assert "- release-notes:" in sent(steps(running.server)[-1])
        assert "skill" in tools_of(steps(running.server)[-1])


async def test_files_of_a_loaded_skill_can_be_read_wherever_it_lies_and_no_others(tmp_path):
    user = tmp_path / "user"
    path = write_skill(user / ".claude" / "skills")
    (path.parent / "style.md").write_text("STYLE-TEXT")
    (user / "key").write_text("KEY-4711")
    (path.parent / "link.md").symlink_to(user / "key")
    calls = [
        Call("skill", {"name": "release-notes"}),
        Call("read", {"path": str(path.parent / "style.md")}),
        Call("read", {"path": str(path.parent / "link.md")}),
        Call("read", {"path": str(user / "key")}),
    ]
    script = one_call_each(*calls)
    async with agent(tmp_path, script, mode="ask", interactive=False, environ={"HOME": str(user)}) as running:
        await running.ask("write the notes")
        text = sent(steps(running.server)[-1])
        assert "STYLE-TEXT" in text
        assert "KEY-4711" not in text


@pytest.mark.parametrize("name", ["realease-notes", "nothing", "private"])
async def test_what_cannot_be_loaded_is_said_with_what_there_is(tmp_path, name):
    folder = work(tmp_path) / ".claude" / "skills"
    write_skill(folder)
    write_skill(folder, "private", **{"disable-model-invocation": "true"})
    async with agent(tmp_path, loads(name)) as running:
        await running.ask("write the notes")
        (result,) = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        assert result.is_error
        assert "release-notes" in text_of(result.parts)
        assert "private" not in sent(steps(running.server)[0])


async def test_a_skill_of_a_nested_folder_counts_when_something_there_was_touched(tmp_path):
    root = work(tmp_path)
    write_skill(root / "pkg" / ".claude" / "skills", "nested")
    (root / "pkg" / "a.py").write_text("x = 1\n")
    (root / ".git").mkdir()
    async with agent(tmp_path, one_call_each(Call("read", {"path": "pkg/a.py"}))) as running:
        assert not running.runtime.live.skills().usable
        await running.ask("look")
        assert [skill.name for skill in running.runtime.live.skills().usable] == ["nested"]


@given(st.text(max_size=3_000), st.integers(1, 40))
def test_the_list_has_room_for_each_and_for_all(description, count):
    skills = [
        Skill(name=f"skill-{number}", description=description, path="p", folder="f", origin="user")
        for number in range(count)
    ]
    text, left_out = list_skills(skills, 32_000)
    lines = [line for line in text.split("\n") if line.startswith("- skill-")]
    assert len(lines) + len(left_out) == count
    assert all(estimate_text(line) <= 100 for line in lines)
    assert sum(map(estimate_text, lines)) <= 32_000 // 20


def as_script(folder: Path) -> Path:
    (folder / "scripts").mkdir()
    (folder / "scripts" / "anything").write_text("text\n")
    return folder / "scripts" / "anything"


def by_ending(folder: Path) -> Path:
    (folder / "collect.PY").write_text("print()\n")
    return folder / "collect.PY"


def by_mode(folder: Path) -> Path:
    (folder / ".hidden").write_text("text\n")
    (folder / ".hidden").chmod(0o755)
    return folder / ".hidden"


def by_first_line(folder: Path) -> Path:
    (folder / "collect").write_text("#!/bin/sh\n")
    return folder / "collect"


@pytest.mark.parametrize("program", [as_script, by_ending, by_mode, by_first_line])
async def test_s1_a_projects_skill_that_can_run_something_waits_for_trust_in_what_it_is_now(tmp_path, program):
    path = write_skill(work(tmp_path) / ".agents" / "skills")
    write_skill(work(tmp_path) / ".agents" / "skills", "plain")
    file = program(path.parent)
    async with agent(tmp_path, talk("fine")) as running:
        names = [skill.name for skill in running.runtime.live.skills().listed]
        assert names == ["plain"]
        (said,) = await running.runtime.run_command("/release-notes")
        assert "do not trust yet" in said.text
        assert trust(tmp_path) == ["skill release-notes"]
        assert [skill.name for skill in running.runtime.live.skills().listed] == ["plain", "release-notes"]
        file.write_text("#! something else\n")
        assert [skill.name for skill in running.runtime.live.skills().listed] == ["plain"]


async def test_s1_an_untrusted_skill_of_a_project_does_not_stand_before_the_users_own(tmp_path):
    by_mode(write_skill(work(tmp_path) / ".claude" / "skills").parent)
    own = write_skill(tmp_path / "home" / "skills")
    by_mode(own.parent)
    async with agent(tmp_path, talk("fine")) as running:
        assert [skill.path for skill in running.runtime.live.skills().usable] == [str(own)]


async def test_s1_files_of_a_loaded_skill_are_read_unasked_and_others_beside_it_are_not(tmp_path):
    path = write_skill(tmp_path / "home" / "skills")
    (path.parent / "style.md").write_text("short")
    async with agent(tmp_path, talk("fine"), mode="ask") as running:
        await running.runtime.run_command("/release-notes")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        live = running.runtime.live
        verdicts = [
            live.judge(ApprovalSubject(kind="read", tool="read", summary="", paths=(str(file),)))
            for file in (path.parent / "style.md", path.parent.parent / "other.md")
        ]
        assert [type(verdict) for verdict in verdicts] == [Allow, Ask]


async def test_s1_what_waits_in_a_folder_that_was_touched_stands_in_the_dialog(tmp_path):
    root = work(tmp_path)
    (root / ".git").mkdir()
    by_mode(write_skill(root / "packages" / "shop" / ".claude" / "skills").parent)
    (root / "packages" / "shop" / "code.py").write_text("x = 1\n")
    read = Reply(tool_calls=[Call("read", {"path": "packages/shop/code.py"})])
    async with agent(tmp_path, [read, Reply("fine")]) as running:
        await running.ask("look")
        assert not running.runtime.live.skills().listed
        (dialog,) = await running.runtime.run_command("/trust")
        assert "skill release-notes" in str(dialog)
        await running.runtime.run_command("/trust allow")
        assert [skill.name for skill in running.runtime.live.skills().listed] == ["release-notes"]
