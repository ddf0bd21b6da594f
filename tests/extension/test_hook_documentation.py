"""`docs/hooks.md`: every example runs as it is printed, and every word of the format is named."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tenuto.config.project import HookFile
from tenuto.extension.hooks.answers import _Said, _Specific
from tenuto.extension.hooks.files import EVENTS, read_hook_file
from tenuto.extension.hooks.matching import THEIR_NAMES
from tenuto.protocol.event import ToolResultEvent
from tests.core.compacting import LONG_ANSWER, compactions, talk
from tests.core.harness import Agent, one_call_each, reopened
from tests.core.hooking import kept, notices, to_model
from tests.server import Call, Reply, ScriptedServer

DOCUMENT = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")


def part(heading: str) -> str:
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,3}} |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found, f"docs/hooks.md has no part “{heading}”"
    return found[1]


def install(tmp_path: Path, heading: str) -> None:
    """Write the examples under a heading where a user would put them."""
    text = part(heading)
    home = tmp_path / ".tenuto"
    (home / "hooks").mkdir(parents=True, exist_ok=True)
    example = re.search(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert example
    (home / "hooks.json").write_text(example[1])
    for name, script in re.findall(
        r"^```python\n# ~/\.tenuto/hooks/(\w+\.py)(.*?)^```", text, re.MULTILINE | re.DOTALL
    ):
        (home / "hooks" / name).write_text(f"#{script}")


@asynccontextmanager
async def user(tmp_path: Path, script, **changes) -> AsyncIterator[Agent]:
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
    async with (
        ScriptedServer(script, window=32_000) as server,
        reopened(tmp_path, server, home=tmp_path / ".tenuto", environ=environ, **changes) as running,
    ):
        yield running


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


async def test_the_first_one(tmp_path):
    install(tmp_path, "## A first one")
    async with user(tmp_path, one_call_each(bash("git push origin"), bash("touch made.txt"))) as running:
        await running.ask("go")
        pushed, touched = [event.message for event in running.of(ToolResultEvent)]
        assert pushed.denied and "I push myself." in str(pushed.parts) and not touched.denied


async def test_format_what_was_written(tmp_path):
    install(tmp_path, "### Format what was written")
    async with user(tmp_path, one_call_each(Call("write", {"path": "a.txt", "content": "one  \ntwo\n"}))) as running:
        await running.ask("go")
        assert (tmp_path / "work" / "a.txt").read_text() == "one\ntwo\n"
        assert "a.txt was tidied" in to_model(running)[0]


async def test_not_done_before_the_tests_pass(tmp_path):
    install(tmp_path, "### Not done before the tests pass")
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text("#!/bin/sh\ntest -e made.txt || { echo made.txt is missing; exit 1; }\n")
    make.chmod(0o755)
    script = [Reply("done"), Reply(tool_calls=[bash("touch made.txt")]), Reply("done")]
    async with user(tmp_path, lambda _request: script.pop(0)) as running:
        await running.ask("go")
        assert not script and any("made.txt is missing" in text for text in to_model(running))


async def test_what_is_open_in_the_project(tmp_path):
    install(tmp_path, "### Tell the model what is open")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "TASKS.txt").write_text("paint the door\n")
    async with user(tmp_path, one_call_each()) as running:
        await running.ask("go")
        assert any("Open tasks: paint the door" in item.text for item in running.server.requests[0].items)


async def test_approve_and_change(tmp_path):
    install(tmp_path, "### Approve what is harmless, change what is not")
    pip = tmp_path / "work" / ".venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\necho installed $2\n")
    pip.chmod(0o755)
    async with user(tmp_path, one_call_each(bash("pip install attrs")), mode="ask") as running:
        await running.ask("go")
        assert "installed attrs" in str(running.of(ToolResultEvent)[0].message.parts)
        assert len(kept(running)) == 2


async def test_compact_after_a_commit(tmp_path):
    install(tmp_path, "### Compact between two parts of the work")
    left: list[Reply] = []
    async with user(tmp_path, talk(lambda _request: left.pop() if left else Reply(LONG_ANSWER))) as running:
        for number in range(4):
            await running.ask(f"question {number} " + "word " * 700)
        left.append(Reply(tool_calls=[bash("true && git commit -m x || true")]))
        await running.ask("commit it")
        assert [entry.focus for entry in compactions(running)] == ["what is left to do after this commit"]
        assert any("asked for a compaction" in text for text in notices(running))


def test_every_example_is_a_file_without_faults(tmp_path):
    for number, example in enumerate(re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)):
        path = tmp_path / f"{number}.json"
        path.write_text(example)
        read = read_hook_file(HookFile(path))
        assert read.commands and not read.problems and json.loads(example)


def test_every_part_with_an_example_is_run():
    headings = re.findall(r"^#{2,3} .*$", DOCUMENT, re.MULTILINE)
    shown = {heading for heading in headings if "```json" in part(heading)}
    run = set(re.findall(r'install\(tmp_path, "(#[^"]*)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert shown and shown == run


def test_every_event_tool_and_key_is_named():
    events = re.findall(r"^\| `(\w+)` \|", part("## Events"), re.MULTILINE)
    assert events and set(events) == set(EVENTS)
    tools = part("## What stands in a file")
    assert all(f"`{name}`" in tools for pair in THEIR_NAMES.items() for name in pair)
    keys = [field.encode_name for kind in (_Said, _Specific) for field in msgspec.structs.fields(kind)]
    answers = part("## What a hook may answer")
    assert all(key in answers for key in keys if key not in ("hookEventName",))
