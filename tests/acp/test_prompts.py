"""Prompts, permissions, cancelling and slash commands, as a client sees them: the real program, a scripted model."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from pathlib import Path

import pytest
from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextResourceContents,
)

from tests.acp.client import Recorder, editor
from tests.server import Call, Hang, HttpError, Reply
from tests.tool.mcp.servers import as_json

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
WRITE = Call("write", {"path": "a.txt", "content": "one\ntwo\n"})
SLEEP = Call("bash", {"command": "sleep 600"})


def option(kind: str, part: str = ""):
    """Choose the first option of a kind whose name has a part."""

    def choose(question):
        return next(one["optionId"] for one in question["options"] if one["kind"] == kind and part in one["name"])

    return choose


@pytest.mark.matrix
async def test_a_prompt_is_streamed_asked_about_and_ends(tmp_path):
    script = [Reply("Let me see.", thinking="Hm.", tool_calls=[WRITE]), Reply("Done.")]
    async with editor(tmp_path, script) as running:
        session = await running.new()
        answer = await running.ask(session, "make a.txt")
        client = running.client
        assert answer.stop_reason == "end_turn" and answer.usage.output_tokens > 0
        assert client.text() == "Let me see.Done." and client.text("agent_thought_chunk") == "Hm."
        (question,) = [one for one in client.messages if one.get("method") == "session/request_permission"]
        assert question["params"]["toolCall"]["content"][0] == {
            "type": "diff",
            "path": str(running.work / "a.txt"),
            "oldText": None,  # the word is there, for clients that look for it
            "newText": "one\ntwo\n",
        }
        statuses = [one.get("status") for one in client.updates() if one.get("toolCallId")]
        assert statuses == ["pending", "in_progress", "completed"]
        assert (running.work / "a.txt").read_text() == "one\ntwo\n"
        # The answer to the prompt comes behind everything that was told of it.
        kinds = [message.get("method") or message["id"] for message in client.messages]
        assert kinds.index(2) > max(place for place, kind in enumerate(kinds) if kind == "session/request_permission")
        assert client.updates("usage_update")[-1]["size"] == 200_000


async def test_a_small_file_is_shown_whole_in_the_question_and_in_the_result(tmp_path):
    edit = Call("edit", {"path": "a.txt", "old_string": "line 20\n", "new_string": "twenty\n"})
    script = [Reply(tool_calls=[Call("read", {"path": "a.txt"})]), Reply(tool_calls=[edit]), Reply("Done.")]
    async with editor(tmp_path, script) as running:
        before = "".join(f"line {number}\n" for number in range(40))
        (running.work / "a.txt").write_text(before)
        await running.ask(await running.new(), "change it")
        diff = {
            "type": "diff",
            "path": str(running.work / "a.txt"),
            "oldText": before,
            "newText": before.replace("line 20\n", "twenty\n"),
        }
        (question,) = running.client.questions
        assert question["call"]["content"][0] == diff
        (done,) = [one for one in running.client.updates("tool_call_update") if "locations" in one]
        assert (done["content"], done["locations"]) == ([diff], [{"path": diff["path"], "line": 21}])


async def test_this_once_is_asked_again_and_for_the_session_is_not(tmp_path):
    calls = [Call("write", {"path": f"{name}.txt", "content": name}) for name in "abcd"]
    script = [*(Reply(tool_calls=[call]) for call in calls), Reply("Done.")]
    answers = iter([option("allow_once"), option("allow_always", "this session: edits below")])

    def choose(question):
        return next(answers)(question)

    async with editor(tmp_path, script, client=Recorder(choose=choose)) as running:
        await running.ask(await running.new(), "write them")
        assert len(running.client.questions) == 2
        assert sorted(path.name for path in running.work.iterdir()) == ["a.txt", "b.txt", "c.txt", "d.txt"]


async def test_for_this_project_holds_in_the_next_session(tmp_path):
    script = [Reply(tool_calls=[WRITE]), Reply("Done."), Reply(tool_calls=[WRITE]), Reply("Done.")]
    chosen = Recorder(choose=option("allow_always", "in this project: edits below"))
    async with editor(tmp_path, script, client=chosen) as running:
        for _ in range(2):
            await running.ask(await running.new(), "write it")
        assert len(running.client.questions) == 1


async def test_no_says_so_and_nothing_is_done(tmp_path):
    script = [Reply(tool_calls=[WRITE]), Reply("As you wish.")]
    async with editor(tmp_path, script, client=Recorder(choose=option("reject_once", "No"))) as running:
        await running.ask(await running.new(), "write it")
        assert not (running.work / "a.txt").exists()
        assert "did not allow" in running.server.requests[-1].items[-1].text
        assert running.client.updates("tool_call_update")[-1]["status"] == "failed"


async def test_a_no_with_a_reason_reaches_the_model_where_the_client_has_forms(tmp_path):
    client = Recorder(choose=option("reject_once", "tell the model"), reason="use b.txt instead")
    script = [Reply(tool_calls=[WRITE]), Reply("As you wish.")]
    async with editor(tmp_path, script, client=client, forms=True) as running:
        answer = await running.ask(await running.new(), "write it")
        assert answer.stop_reason == "end_turn"
        assert "use b.txt instead" in running.server.requests[-1].items[-1].text


async def test_without_forms_that_no_stops_the_turn(tmp_path):
    client = Recorder(choose=option("reject_once", "stop here"))
    async with editor(tmp_path, [Reply(tool_calls=[WRITE]), Reply("Well?")], client=client) as running:
        session = await running.new()
        assert (await running.ask(session, "write it")).stop_reason == "cancelled"
        assert (await running.ask(session, "write b.txt instead")).stop_reason == "end_turn"
        assert len(running.server.requests) == 2


async def test_cancelling_ends_a_command_and_the_turn(tmp_path):
    async with editor(tmp_path, [Reply(tool_calls=[SLEEP]), Reply("On.")], "--mode", "auto", "--no-sandbox") as running:
        session = await running.new()
        prompt = asyncio.create_task(running.ask(session, "sleep"))
        await running.until(lambda: [one for one in running.client.updates() if one.get("status") == "in_progress"])
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        assert (await running.ask(session, "and now?")).stop_reason == "end_turn"


@pytest.mark.matrix
async def test_cancelling_withdraws_the_question_that_is_open(tmp_path):
    never = asyncio.Event()

    async def wait(_question) -> str:
        await never.wait()
        return ""

    async with editor(tmp_path, [Reply(tool_calls=[WRITE]), Reply("On.")], client=Recorder(choose=wait)) as running:
        session = await running.new()
        prompt = asyncio.create_task(running.ask(session, "write it"))
        await running.until(lambda: running.client.questions)
        await running.connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        never.set()
        assert not (running.work / "a.txt").exists()
        assert (await running.ask(session, "and now?")).stop_reason == "end_turn"


async def test_cancelling_takes_back_what_waits_as_well(tmp_path):
    async with editor(tmp_path, [Hang(), Reply("Later.")]) as running:
        session = await running.new()
        prompts = [asyncio.create_task(running.ask(session, text)) for text in ("first", "second")]
        await running.until(lambda: running.server.requests)
        await asyncio.sleep(0.2)
        await running.connection.cancel(session_id=session)
        assert [(await prompt).stop_reason for prompt in prompts] == ["cancelled", "cancelled"]
        await running.ask(session, "third")
        assert "second" not in str([item.text for item in running.server.requests[-1].items])


async def test_images_files_and_what_is_embedded_reach_the_model(tmp_path):
    async with editor(tmp_path, [Reply("I see.")]) as running:
        (running.work / "notes.md").write_text("remember the milk\n")
        (tmp_path / "secret.txt").write_text("outside\n")
        blocks = (
            "Compare ",
            ResourceContentBlock(type="resource_link", name="notes.md", uri=f"file://{running.work}/notes.md"),
            " with ",
            ResourceContentBlock(type="resource_link", name="secret.txt", uri=f"file://{tmp_path}/secret.txt"),
            EmbeddedResourceContentBlock(
                type="resource",
                resource=TextResourceContents(uri=f"file://{running.work}/open.py", text="unsaved = True\n"),
            ),
            ImageContentBlock(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png"),
        )
        await running.ask(await running.new(), *blocks)
        items = running.server.requests[0].items
        text = "\n".join(item.text for item in items)
        assert "Compare @notes.md with" in text and "remember the milk" in text
        assert '<resource name="open.py">\nunsaved = True\n</resource>' in text
        assert "outside\n" not in text  # a link is judged like a mention: what would be asked for stays a name
        assert any(item.images for item in items)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (ImageContentBlock(type="image", data="AAAA", mime_type="image/png"), "is no PNG"),
        (ImageContentBlock(type="image", data="no base64!", mime_type="image/png"), "is not base64"),
        ("   ", "is empty"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_a_reason(tmp_path, block, reason):
    async with editor(tmp_path, [Reply("Hello.")]) as running:
        session = await running.new()
        with pytest.raises(Exception, match=reason):
            await running.ask(session, block)
        assert not running.server.requests
        assert (await running.ask(session, "hi")).stop_reason == "end_turn"


async def test_modes_models_and_effort_are_options(tmp_path):
    async with editor(tmp_path, [Reply("Hello.")], options={"models": ["test", "other"]}) as running:
        session = await running.new()
        result = await running.call(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "plan"}
        )
        values = {one["id"]: one["currentValue"] for one in result["configOptions"]}
        assert values["mode"] == "plan" and values["model"] == "openai-chat/test"
        assert running.client.updates("current_mode_update")[-1]["currentModeId"] == "plan"
        await running.call("session/set_mode", {"sessionId": session, "modeId": "edits"})
        result = await running.call(
            "session/set_config_option", {"sessionId": session, "configId": "model", "value": "openai-chat/other"}
        )
        values = {one["id"]: one["currentValue"] for one in result["configOptions"]}
        assert values["mode"] == "edits" and values["model"] == "openai-chat/other"
        await running.ask(session, "hi")
        assert running.server.requests[0].body["model"] == "other"


@pytest.mark.parametrize(
    ("option_id", "value", "reason"),
    [
        ("model", "openai-chat/nobody", "nobody"),
        ("model", "no/such", "there is no provider “no”"),
        ("mode", "yolo", "there is no mode “yolo”: there are ask, edits, auto, plan"),
        ("effort", "infinite", "infinite"),
        ("modle", "x", r"there is no option “modle”; did you mean mode\?"),
    ],
)
async def test_an_unknown_choice_is_refused_and_nothing_changes(tmp_path, option_id, value, reason):
    async with editor(tmp_path, [Reply("Hello.")], options={"models": ["test"]}) as running:
        session = await running.new()
        with pytest.raises(Exception, match=reason):
            await running.call(
                "session/set_config_option", {"sessionId": session, "configId": option_id, "value": value}
            )
        await running.ask(session, "hi")
        assert running.server.requests[0].body["model"] == "test"


async def test_slash_commands_are_offered_and_run_without_the_model(tmp_path):
    async with editor(tmp_path, []) as running:
        session = await running.new()
        (offered,) = await running.until(lambda: running.client.updates("available_commands_update"))
        names = {one["name"] for one in offered["availableCommands"]}
        assert {"compact", "context", "mcp", "undo", "rewind", "pin"} <= names
        assert not names & {"new", "resume", "exit", "theme", "keys"}
        assert (await running.ask(session, "/status")).stop_reason == "end_turn"
        assert f"session      {session}" in running.client.text()
        await running.ask(session, "/mode")
        assert "- `/mode plan` plan only look and plan, change nothing" in running.client.text()
        await running.ask(session, "/resume")
        assert "your editor has its own way" in running.client.text()
        await running.ask(session, "/theme dark")
        assert "tenuto --resume" in running.client.text()


async def test_a_prompt_of_a_server_is_offered_and_sent(tmp_path):
    """The servers have not answered when the session is new: what they have is told behind it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mcp.json").write_text(json.dumps(as_json(good="good", mute="mute")))
    async with editor(tmp_path, [Reply("Dear Ada.")]) as running:
        session = await running.new()

        def hints() -> list[str]:
            told = running.client.updates("available_commands_update")
            offered = told[-1]["availableCommands"] if told else []
            return [one["input"]["hint"] for one in offered if one["name"] == "mcp__good__greet"]

        assert await running.until(hints) == ["<who> [how]"]
        assert (await running.ask(session, "/mcp__good__greet")).stop_reason == "end_turn"
        assert "needs who" in running.client.text() and not running.server.requests
        assert (await running.ask(session, "/mcp__good__greet Ada")).stop_reason == "end_turn"
        assert running.client.text().endswith("Dear Ada.")
        assert "Greet Ada" in running.server.requests[0].last_user
        fetching = asyncio.create_task(running.ask(session, "/mcp__mute__greet Ada"))
        logs = tmp_path / "home"
        await running.until(lambda: any("says nothing" in log.read_text() for log in logs.rglob("mute.log")))
        await running.connection.cancel(session_id=session)
        assert (await fetching).stop_reason == "cancelled"


async def test_a_path_is_no_command(tmp_path):
    async with editor(tmp_path, [Reply("A folder.")]) as running:
        await running.ask(await running.new(), "/etc is what?")
        assert running.client.text() == "A folder."


async def test_a_plan_is_shown_and_a_todo_list_is_the_clients_plan(tmp_path):
    items = [{"text": "look", "status": "in_progress"}, {"text": "write", "status": "pending"}]
    async with editor(tmp_path, [Reply(tool_calls=[Call("todo", {"items": items})]), Reply("Begun.")]) as running:
        await running.ask(await running.new(), "plan it")
        plan = running.client.updates("plan")[-1]
        assert [(one["content"], one["status"]) for one in plan["entries"]] == [
            ("look", "in_progress"),
            ("write", "pending"),
        ]


@pytest.mark.parametrize("failure", [HttpError(401, "bad key"), HttpError(400, "nonsense")])
async def test_a_turn_that_fails_is_an_error_with_the_reason(tmp_path, failure):
    async with editor(tmp_path, [failure, Reply("Better.")]) as running:
        session = await running.new()
        with pytest.raises(Exception, match=failure.body):
            await running.ask(session, "hi")
        assert (await running.ask(session, "again")).stop_reason == "end_turn"


@pytest.mark.parametrize(("stop", "reason"), [("refusal", "refusal"), ("max_tokens", "max_tokens")])
async def test_how_a_turn_ended_is_told(tmp_path, stop, reason):
    script = lambda _request: Reply("So", stop=stop)  # noqa: E731
    async with editor(tmp_path, script) as running:
        assert (await running.ask(await running.new(), "hi")).stop_reason == reason


async def test_a_file_that_is_no_text_is_kept_and_the_model_told_where(tmp_path):
    data = b"PK\x03\x04 not for reading"
    async with editor(tmp_path, [Reply("I see.")]) as running:
        blob = BlobResourceContents(uri=f"file://{running.work}/some thing.zip", blob=base64.b64encode(data).decode())
        await running.ask(
            await running.new(), "What is it?", EmbeddedResourceContentBlock(type="resource", resource=blob)
        )
        text = "\n".join(item.text for item in running.server.requests[0].items)
        kept = re.search(r'<resource name="some thing.zip">\n.*`read` shows (\S+)\n</resource>', text)
        assert kept and Path(kept[1]).read_bytes() == data


async def test_an_effort_is_chosen_and_reaches_the_model(tmp_path):
    async with editor(tmp_path, [Reply("Hello."), Reply("Hello.")]) as running:
        session = await running.new()
        chosen = {"sessionId": session, "configId": "effort"}
        answer = await running.call("session/set_config_option", {**chosen, "value": "high"})
        assert {one["id"]: one["currentValue"] for one in answer["configOptions"]}["effort"] == "high"
        await running.ask(session, "hi")
        await running.call("session/set_config_option", {**chosen, "value": "default"})
        await running.ask(session, "hi again")
        first, second = (request.body for request in running.server.requests)
        assert first["reasoning_effort"] == "high" and "reasoning_effort" not in second


async def test_usage_and_cost_of_a_priced_model_are_told(tmp_path):
    prices = {"prompt": "0.001", "completion": "0.001"}
    listed = {"id": "test", "type": "model", "display_name": "Test", "max_input_tokens": 50_000, "pricing": prices}
    script, options = [Reply("Hello."), Reply("Hello.")], {"listing": [listed], "models": ["test"]}
    async with editor(tmp_path, script, environ={"TENUTO_MODEL": "anthropic/test"}, options=options) as running:
        session = await running.new()
        amounts = []
        for text in ("hi", "hi again"):
            answer = await running.ask(session, text)
            told = running.client.updates("usage_update")[-1]
            assert told["size"] == 50_000 and 0 < told["used"] < 50_000 and told["cost"]["currency"] == "USD"
            assert answer.usage.total_tokens >= answer.usage.input_tokens + answer.usage.output_tokens > 0
            amounts.append(told["cost"]["amount"])
        assert 0 < amounts[0] < amounts[1]  # of the whole session
