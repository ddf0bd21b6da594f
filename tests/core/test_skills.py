"""Skills: listed in the system prompt, loaded by the tool or the user, and word for word in every request then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import compact, compactions, fill, is_summary_request, talk
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Call, Reply, Request, ScriptedServer

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


@pytest.mark.parametrize("strategy", ["", "summary", "digest"])
async def test_j2_a_loaded_skill_stands_word_for_word_after_eleven_rounds_and_a_restart(tmp_path, strategy):
    write_skill(work(tmp_path) / ".agents" / "skills")
    environ = {"TENUTO_COMPACTION__BACKGROUND": "false"}
    async with ScriptedServer(loads(), window=32_000) as server:
        async with reopened(tmp_path, server, environ=environ) as running:
            await running.ask("write the notes")
            for number in range(11):
                await fill(running, 4)
                await compact(running)
                assert len(compactions(running)) == number + 1
            await running.ask("and now?")
        async with reopened(tmp_path, server, resume_latest=True, environ=environ) as running:
            await running.ask("after a restart")
            assert BODY in compactions(running)[-1].replacement[0].text
        counts = [sent(request).count(BODY) for request in steps(server)[1:]]
        assert set(counts) == {1}, counts
        assert not server.faults
