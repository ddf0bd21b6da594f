"""What was said in other sessions of the project, and the index that grows while nothing runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.core import indexing
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.message import ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, text_of
from tenuto.session.log import history as history_module
from tenuto.session.search import index as index_module
from tenuto.session.search.index import SEARCH_NAME
from tenuto.session.session import Session
from tests.core.harness import agent, one_call_each
from tests.server import Call, Reply

DECIDED = "We decided on zebra stripes, three weeks ago"


def earlier(tmp_path: Path, work: Path) -> str:
    work.mkdir(exist_ok=True)
    session = Session.create(tmp_path / "home", work)
    session.append(UserMessage(parts=(TextPart(text="hello"),)))
    session.append(UserMessage(parts=(TextPart(text=DECIDED),)))
    session.append(ShellEntry(command="zebra --secret", output="", excluded=True))
    session.close()
    return session.id[:8]


def results(running) -> list[str]:
    return [text_of(entry.parts) for entry in running.session.path() if isinstance(entry, ToolResultMessage)]


async def test_s8_recall_finds_what_another_session_of_the_project_has_and_shows_it(tmp_path):
    name = earlier(tmp_path, tmp_path / "work")
    other = earlier(tmp_path, tmp_path / "another project")
    calls = (
        Call("recall", {"query": "zebra", "scope": "project"}),
        Call("recall", {"query": "", "seq": f"{name}/2", "scope": "project"}),
        Call("recall", {"query": "", "seq": f"{other}/2", "scope": "project"}),
        Call("recall", {"query": "stripes zebra weeks"}),
    )
    async with agent(tmp_path, one_call_each(*calls)) as running:
        await running.ask("what did we decide?")
        found, shown, refused, own = results(running)
    assert f"In session {name}:" in found
    assert DECIDED in found
    assert "--secret" not in found, "what the user kept from the model stays so"
    assert "1 match in 1 other session" in found, "neither the other project nor this session"
    assert DECIDED in shown
    assert "no session" in refused
    assert own.startswith("Nothing found"), "nothing of it without being asked for, and no echo"


@pytest.mark.parametrize(
    ("interactive", "wanted", "allowed"),
    [(True, "auto", True), (False, "auto", False), (False, "true", True), (True, "false", False)],
)
async def test_s8_headless_runs_look_into_other_sessions_only_when_told_so(tmp_path, interactive, wanted, allowed):
    earlier(tmp_path, tmp_path / "work")
    script = one_call_each(Call("recall", {"query": "zebra", "scope": "project"}))
    environ = {"TENUTO_SESSION__RECALL_PROJECT": wanted}
    async with agent(tmp_path, script, interactive=interactive, environ=environ) as running:
        await running.ask("what did we decide?")
        assert (DECIDED in results(running)[0]) is allowed
        assert ("session.recall_project" in results(running)[0]) is not allowed


@pytest.mark.parametrize("interactive", [True, False])
async def test_s8_the_index_grows_when_a_task_has_settled(tmp_path, monkeypatch, interactive):
    monkeypatch.setattr(history_module, "BLOCK_ENTRIES", 2)
    monkeypatch.setattr(index_module, "WORTH_BYTES", 0)
    monkeypatch.setattr(indexing, "QUIET", 0.0)
    async with agent(tmp_path, lambda _: Reply("fine"), interactive=interactive) as running:
        for _ in range(3):
            await running.ask("go on")
        session = running.session
        whole = session.path().history.blocks[-1].position_after
        async with asyncio.timeout(60):
            while interactive and index_module.search_index_lags(session.path().history):
                await asyncio.sleep(0.01)
        index = index_module.open_search(session.path().history)
        if interactive:
            assert index is not None
            assert index.position >= whole
            index.close()
        assert (session.directory / SEARCH_NAME).exists() is interactive
        directory = session.directory
    assert not list(directory.glob(f"{SEARCH_NAME}-*")), "nothing is left half-done"
