"""`apply_patch` for OpenAI's models over real HTTP: as a text where the server knows such tools, else as a function."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tenuto.protocol.event import ApprovalRequestedEvent, CallRefusedEvent, NoticeEvent
from tenuto.protocol.message import AssistantMessage, SystemMessage, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, ChangeModelOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, one_call_each, reopened
from tests.server import Call, Reply, Request, ScriptedServer

PATCH = """*** Begin Patch
*** Update File: a.py
@@
-eins = "ü"\t
+one = "ü"
*** Add File: new.py
+x = '\\'
*** Update File: b.py
*** Move to: lib/b.py
*** Delete File: old.py
*** End Patch
"""
AFTER = {"a.py": 'one = "ü"\n', "new.py": "x = '\\'\n", "lib/b.py": "b\n"}
BEFORE = {"a.py": 'eins = "ü"\t\n', "b.py": "b\n", "old.py": "o\n"}
EDITING = {"edit", "write"}


def fill(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    for name, text in BEFORE.items():
        (work / name).write_text(text)
    return work


def tree(work: Path) -> dict[str, str]:
    return {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}


def call(text: str = PATCH) -> Call:
    return Call("apply_patch", {"input": text})


def tool(request: Request) -> dict:
    named = [item.get("function", item) | {"type": item.get("type", "")} for item in request.body["tools"]]
    assert EDITING.isdisjoint(item["name"] for item in named)
    return next(item for item in named if item["name"] == "apply_patch")


def results(running) -> list[ToolResultMessage]:
    return [entry for entry in running.session.entries() if isinstance(entry, ToolResultMessage)]


async def test_b10_responses_sends_a_text_with_a_grammar_and_gets_it_back_byte_for_byte(tmp_path):
    work = fill(tmp_path)
    async with ScriptedServer(one_call_each(call())) as server:
        async with reopened(tmp_path, server, model="openai/gpt-test") as running:
            await running.ask("go")
            assert tree(work) == AFTER
            first, second = running.server.requests
            assert not running.server.faults
            sent = tool(first)
            assert (sent["type"], sent["format"]["syntax"]) == ("custom", "lark")
            assert "parameters" not in sent
            asked, answered = second.body["input"][-2:]
            assert (asked["type"], asked["name"], asked["input"]) == ("custom_tool_call", "apply_patch", PATCH)
            assert (answered["type"], answered["call_id"]) == ("custom_tool_call_output", asked["call_id"])
            assert answered["output"].startswith("The patch was applied to 4 files:")
            assert second.continues(first)
            (result,) = results(running)
            assert {(Path(use.path).name, use.op) for use in result.files} == {
              ("a.py", "edit"), ("new.py", "write"), ("b.py", "edit"), ("b.py", "delete"), ("old.py", "delete"),
          }  # fmt: skip
            await running.runtime.run_command("/undo")
            assert tree(work) == BEFORE
        async with reopened(tmp_path, server, model="openai/gpt-test", resume_latest=True) as again:
            await again.ask("and?")
            body = again.server.requests[-1].body
            assert [item["input"] for item in body["input"] if item.get("type") == "custom_tool_call"] == [PATCH]


async def test_b10_a_server_that_refuses_such_tools_gets_functions_from_then_on(tmp_path):
    work = fill(tmp_path)
    script, options = (
        one_call_each(call(), None, call("*** Begin Patch\n*** Delete File: a.py\n*** End Patch")),
        {"refuse": ("custom",)},
    )
    async with agent(tmp_path, script, model="openai/gpt-test", options=options) as running:
        await running.ask("go")
        await running.ask("more")
        assert tree(work) == {name: text for name, text in AFTER.items() if name != "a.py"}
        refused, *rest = running.server.requests
        assert refused.refused
        assert not any(request.refused for request in rest)
        assert tool(rest[0])["type"] == "function"
        assert list(tool(rest[0])["parameters"]["properties"]) == ["input"]
        asked, answered = rest[1].body["input"][-2:]
        assert (asked["type"], json.loads(asked["arguments"])) == ("function_call", {"input": PATCH})
        assert answered["type"] == "function_call_output"
        assert not [event.text for event in running.of(NoticeEvent) if "does not take" in event.text]


async def test_b10_a_refusal_in_the_middle_of_a_session_sends_earlier_texts_as_functions(tmp_path):
    fill(tmp_path)
    async with ScriptedServer(one_call_each(call())) as server:
        async with reopened(tmp_path, server, model="openai/gpt-test") as running:
            await running.ask("go")
    async with ScriptedServer([Reply("hello")], refuse=("custom",)) as server:
        async with reopened(tmp_path, server, model="openai/gpt-test", resume_latest=True) as running:
            await running.ask("again")
            kinds = [item.get("type") for item in server.requests[-1].body["input"]]
            assert "function_call" in kinds
            assert "custom_tool_call" not in kinds


@pytest.mark.parametrize("model", ["openai-chat/gpt-test", "anthropic/gpt-test"])
async def test_b10_other_protocols_have_it_as_a_function_with_one_text(tmp_path, model):
    work = fill(tmp_path)
    async with agent(tmp_path, one_call_each(call()), model=model) as running:
        await running.ask("go")
        assert tree(work) == AFTER
        sent = tool(running.server.requests[0])
        assert (sent.get("parameters") or sent["input_schema"])["required"] == ["input"]


@pytest.mark.parametrize(
    "model", ["anthropic/claude-test", "openai-chat/claude-test", "openai/test", "openai-chat/test"]
)
async def test_b10_every_other_family_keeps_edit_and_write(tmp_path, model):
    async with agent(tmp_path, [Reply("hi")], model=model) as running:
        await running.ask("go")
        names = set(running.server.requests[0].tool_names)
        assert names >= EDITING
        assert "apply_patch" not in names


@pytest.mark.parametrize("other", ["anthropic/claude-test", "openai-chat/claude-test", "openai/test"])
async def test_b10_a_change_of_the_family_changes_the_tools_and_keeps_the_calls(tmp_path, other):
    work = fill(tmp_path)
    edit = Call("edit", {"path": "a.py", "old_string": "one", "new_string": "uno"})
    again = call('*** Begin Patch\n*** Update File: a.py\n@@\n-uno = "ü"\n+due = 2\n*** End Patch\n')
    async with agent(tmp_path, one_call_each(call(), edit, None, again), model="openai/gpt-test") as running:
        await running.ask("go")  # a model of the GPT family that calls edit
        assert tree(work)["a.py"] == 'uno = "ü"\n'
        operation = ChangeModelOperation(session_id=running.runtime.session_id, model=other)
        await asyncio.wait_for(running.runtime.wait_for(await running.runtime.submit(operation)), 60)
        await running.ask("on")  # another that calls apply_patch
        assert tree(work)["a.py"] == "due = 2\n"
        assert not running.server.faults
        request = running.server.requests[-1]
        assert set(request.tool_names) >= EDITING
        assert "apply_patch" not in request.tool_names
        (*_, last) = [item for item in request.items if item.kind == "call"]
        assert json.loads(last.arguments) == again.args
        systems = [entry for entry in running.session.entries() if isinstance(entry, SystemMessage)]
        assert ["apply_patch" in entry.tools for entry in systems] == [True, False]
        assert ["apply_patch" in entry.text for entry in systems] == [True, False]


async def test_b10_one_answer_covers_all_tools_that_change_files_and_shows_every_file(tmp_path):
    work = fill(tmp_path)
    write = Call("write", {"path": "w.py", "content": "w"})
    more = call("*** Begin Patch\n*** Add File: z.py\n+z\n*** End Patch")
    async with agent(tmp_path, one_call_each(call(), write, more), model="openai/gpt-test", mode="ask") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        assert tree(work) == BEFORE
        assert [Path(diff.path).name for diff in request.diffs] == ["a.py", "new.py", "b.py", "old.py"]
        assert request.summary == "5 files: a.py, new.py, b.py, lib/b.py, old.py"
        answer = AnswerApprovalOperation(
            session_id=running.runtime.session_id, request_id=request.request_id, decision="session"
        )
        await running.runtime.submit(answer)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert tree(work) == AFTER | {"w.py": "w", "z.py": "z\n"}
        assert len(running.of(ApprovalRequestedEvent)) == 1


@pytest.mark.parametrize(("mode", "name"), [("plan", "a.py"), ("edits", "../outside.py"), ("ask", "a.py")])
async def test_b10_modes_hold_for_it_and_nothing_is_read_before(tmp_path, mode, name):
    work = fill(tmp_path)
    (tmp_path / "outside.py").write_text('eins = "ü"\t\n')
    text = f"*** Begin Patch\n*** Update File: {name}\n@@\n-guess\n+x\n*** End Patch"
    async with agent(
        tmp_path, one_call_each(call(text)), model="openai/gpt-test", mode=mode, interactive=False
    ) as running:
        await running.ask("go")
        (result,) = results(running)
        assert result.denied
        assert "eins" not in text_of(result.parts)
        assert len(running.of(CallRefusedEvent)) == 1
        assert tree(work) == BEFORE


@pytest.mark.parametrize("share", [0, 3, 5, 8, 9])
async def test_b10_a_patch_cut_by_the_output_limit_is_told_as_cut(tmp_path, share):
    work = fill(tmp_path)
    written = PATCH[: len(PATCH) * share // 10]
    replies = [Reply(tool_calls=[Call("apply_patch", written)], stop="max_tokens"), Reply("I see.")]
    async with agent(tmp_path, replies, model="openai/gpt-test") as running:
        await running.ask("go")
        (result,) = results(running)
        assert "was cut off at its output limit" in text_of(result.parts)
        assert "add its first part" in text_of(result.parts)
        assert tree(work) == BEFORE
        back = [
            item["input"] for item in running.server.requests[1].body["input"] if item.get("type") == "custom_tool_call"
        ]
        assert back == [written]


async def test_b10_a_patch_that_ends_where_the_limit_is_runs(tmp_path):
    work = fill(tmp_path)
    replies = [Reply(tool_calls=[Call("apply_patch", PATCH)], stop="max_tokens"), Reply("I see.")]
    async with agent(tmp_path, replies, model="openai/gpt-test") as running:
        await running.ask("go")
        assert tree(work) == AFTER
        (answer, _) = [entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]
        assert answer.tool_calls[0].freeform
