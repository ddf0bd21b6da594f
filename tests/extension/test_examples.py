"""The examples in `docs/examples/`, each as it stands: in a session, and under `tenuto extensions check`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tenuto
from tenuto.command.outcome import Say
from tenuto.protocol.event import AssistantMessageEvent, ExtensionStatusEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.message import OwnView
from tests.core.compacting import compact, compactions, fill, talk, until
from tests.core.harness import agent
from tests.program import TENUTO
from tests.server import Call, Reply, ScriptedServer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAMES = ("decisions", "house_models", "line_counts")


def install(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "home" / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / f"{name}.py", folder)


def test_every_example_is_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(NAMES)


async def test_a_tool_with_a_look_of_its_own_and_a_status(tmp_path):
    install(tmp_path, "line_counts")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("1\n2\n3\n")
    (tmp_path / "work" / "b.md").write_text("one\n")
    script = [
        Reply(tool_calls=[Call("line_counts", {})]),
        Reply(tool_calls=[Call("write", {"path": "c.py", "content": "4\n"})]),
        Reply("done"),
    ]
    async with agent(tmp_path, script, options={"window": 64_000}, mode="edits") as running:
        assert (await running.ask("count")).outcome == "completed"
        assert "line_counts" in running.server.requests[0].tool_names
        result = running.of(ToolResultEvent)[0].message
        assert result.parts[0].text == ".py: 3\n.md: 1"
        (view,) = (one for one in result.ui if isinstance(one, OwnView))
        assert json.loads(bytes(view.details)) == {".py": 3, ".md": 1}
        assert view.lines[0] == ((".py         ", "path"), ("█" * 20, "accent"), (" 3", "dim"))
        await until(lambda: [one.text for one in running.of(ExtensionStatusEvent)][-1:] == ["5 lines"])


async def test_a_provider_of_ones_own_by_address_and_by_function_and_a_command(tmp_path, monkeypatch):
    install(tmp_path, "house_models")
    async with ScriptedServer([Reply("from the house"), Reply("Guten Tag")], window=32_000) as server:
        monkeypatch.setenv("HOUSE_MODELS_URL", server.openai_url)
        environ = {"HOUSE_MODELS_KEY": "key"}
        async with agent(tmp_path, [], model="house/small", environ=environ) as running:
            await running.ask("who is there?")
            assert running.of(AssistantMessageEvent)[-1].message.model == "house/small"
            (said,) = await running.runtime.run_command("/translate")
            assert isinstance(said, Say)
            assert said.text.startswith("Into which language?")
            choices = await running.runtime.complete_argument("translate", "d")
            assert [choice.value for choice in choices] == ["Danish", "Dutch"]
            assert "translate" in [command.name for command in await running.runtime.own_commands()]
            await running.runtime.run_command("/translate German")
            await running.runtime.wait_settled()
            assert "in German" in server.requests[-1].items[-1].text
            assert running.runtime.live.facts.context_window == 32_000
            await running.runtime.run_command("/model shout/loud")
            await running.ask("be loud now")
            assert running.of(AssistantMessageEvent)[-1].message.parts[0].text == "BE LOUD NOW "
            assert {"house/large", "shout/loud"} <= {one.id for one in await running.runtime.live.models.available()}


async def test_decisions_stand_word_for_word_in_every_view(tmp_path):
    install(tmp_path, "decisions")

    otherwise = talk()

    def script(request):
        if request.items[-1].text.startswith("List the decisions"):
            return Reply("DECIDED-NONCE: tabs, because the user said so")
        return otherwise(request)

    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        for number in range(3):
            await fill(running)
            await compact(running)
            assert len(compactions(running)) == number + 1
            await running.ask("and now?")
            assert b"Decisions so far:\\nDECIDED-NONCE" in running.server.requests[-1].raw
        costs = [entry for entry in running.session.everything() if type(entry).__name__ == "UsageEntry"]
        assert {entry.purpose for entry in costs} == {"extension decisions"}
        assert any(text.startswith("Extension decisions: Decisions so far") for text in notices(running))
        await running.runtime.run_command("/decided about tabs")
        await until(lambda: running.runtime.live.compaction.wishes)


def notices(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


@pytest.mark.parametrize("name", NAMES)
def test_check_says_what_an_example_registers(tmp_path, name):
    environ = {"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*TENUTO, "extensions", "check", str(EXAMPLES / f"{name}.py"), "--json"],
        capture_output=True,
        text=True,
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (checked,) = json.loads(done.stdout)["extensions"]
    assert checked["faults"] == []
    assert (
        checked["registers"]
        == {
            "line_counts": {
                "tools": ["line_counts"],
                "renderers": ["line_counts"],
                "events": ["session_opened", "tool_result"],
            },
            "house_models": {"commands": ["translate"], "providers": ["house", "shout"]},
            "decisions": {"commands": ["decided"], "hooks": ["session_before_compact", "session_compact"]},
        }[name]
    )


async def test_the_python_api_has_the_tools_of_extensions_too(tmp_path):
    install(tmp_path, "line_counts")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("1\n")
    async with ScriptedServer([Reply(tool_calls=[Call("line_counts", {})]), Reply("one line")]) as server:
        options = {"cwd": tmp_path / "work", "home": tmp_path / "home", "environ": server.environ()}
        async with tenuto.Agent(**options, model="openai-chat/test", mode="plan") as running:
            assert (await running.run("count")).text == "one line"
            assert server.requests[-1].items[-1].text == ".py: 1"
