"""Compaction by the provider, client by client: what is asked and read, what later requests carry.

The official SDKs talk to the same scripted server, so that its wire form is theirs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenuto.config.settings import Settings
from tenuto.model.anthropic.encoder import MAX_INSTRUCTIONS
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage, UserMessage
from tenuto.protocol.model import (
    CompactedItems,
    Finished,
    ModelError,
    ModelFacts,
    ModelRequest,
    RemoteCompactor,
    ServerContext,
)
from tenuto.protocol.part import OpaquePart, TextPart, ToolCallPart
from tests.model.bodies import Recording
from tests.model.views import TOOLS, result, user
from tests.server import HttpError, Reply, Request, ScriptedServer
from tests.server.anthropic_compaction import COMPACTION_BETA, EDITING_BETA, cleared
from tests.server.openai_compaction import read_item
from tests.server.reply import AnyReply

WAYS = [("anthropic", "request"), ("openai", "request"), ("openai", "endpoint")]
FACTS = {"input_price": 1.0, "output_price": 10.0}


def view(provider: str) -> list[Message]:
    call = ToolCallPart(id="call_1", name="read", arguments='{"path":"a.py"}')
    return [
        SystemMessage(text="You are careful."),
        user("look at a.py"),
        AssistantMessage(parts=(TextPart(text="I read."), call), model=f"{provider}/test"),
        result("call_1", "text of a.py"),
        AssistantMessage(parts=(TextPart(text="It is fine."),), model=f"{provider}/test"),
    ]


def script(request: Request) -> AnyReply:
    return Reply("The summary.") if request.is_compaction else Reply("An answer.")


class Talk:
    """One real client on one scripted server."""

    def __init__(self, server: ScriptedServer, home: Path, provider: str) -> None:
        self.models = ModelRegistry(Settings(), home, server.environ())
        self.server, self.provider = server, provider
        self.facts = ModelFacts(provider=provider, name="test", context_window=200_000, **FACTS)  # pyright: ignore

    def request(self, messages: list[Message], **fields: Any) -> ModelRequest:
        return ModelRequest(model=self.facts, messages=tuple(messages), tools=TOOLS, cache_key="s", **fields)

    async def compact(self, way: str, messages: list[Message], *, instructions: str = "", focus: str = ""):
        client = self.models.client(self.provider)
        assert isinstance(client, RemoteCompactor)
        asked = self.request(messages, server=ServerContext(compaction=way))  # pyright: ignore
        return await client.compact(asked, instructions=instructions, focus=focus)

    async def ask(self, messages: list[Message], **fields: Any) -> Finished:
        async for part in self.models.client(self.provider).stream(self.request(messages, **fields)):
            if isinstance(part, Finished):
                return part
        raise AssertionError("no answer")


def after(provider: str, items: CompactedItems) -> list[Message]:
    """The view that a compaction leads to."""
    parts = tuple(OpaquePart(provider=provider, block=item) for item in items.items)
    kept = [UserMessage(parts=(TextPart(text="go on"),))]
    head = [SystemMessage(text="You are careful."), SystemMessage(text="<pins>\nnever touch legacy/\n</pins>")]
    return [*head, AssistantMessage(parts=parts, model=f"{provider}/test"), *kept]


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_what_comes_back_is_sent_first_and_unchanged(tmp_path: Path, provider: str, way: str):
    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, provider)
        compacted = await talk.compact(way, view(provider))
        assert compacted.usage is not None
        assert compacted.usage.sent > 0
        assert compacted.usage.cost
        assert compacted.text == ("The summary." if provider == "anthropic" else "")
        await talk.ask(after(provider, compacted))
        assert server.refusals == []
        body = server.requests[-1].body
        sent = [json.loads(bytes(item)) for item in compacted.items]
        if provider == "anthropic":
            assert body["messages"][0] == {"role": "assistant", "content": sent}
            assert [block["text"] for block in body["system"]][1:] == ["<pins>\nnever touch legacy/\n</pins>"]
            assert COMPACTION_BETA in server.requests[-1].headers["anthropic-beta"]
        else:
            assert body["input"][0]["role"] == "developer"
            assert body["input"][1 : 1 + len(sent)] == sent
            assert read_item(sent[-1]) == "The summary."
            assert len(sent) == (2 if way == "endpoint" else 1)
        await talk.models.close()


@pytest.mark.parametrize(("provider", "way"), WAYS)
async def test_r058_a_compaction_is_asked_for_with_the_same_prefix(tmp_path: Path, provider: str, way: str):
    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, provider)
        await talk.ask([*view(provider), user("go on")])
        await talk.compact(way, view(provider), instructions="Write notes.", focus="the port")
        normal, asked = server.requests
        own = asked.prefix_items[: len(normal.prefix_items) - 1]
        assert way == "endpoint" or own == normal.prefix_items[: len(own)]
        body = asked.body
        if provider == "anthropic":
            assert body["compaction"] == {
                "type": "summarize",
                "instructions": "Write notes.\n\nAdditional focus: the port",
            }
            assert body["messages"][-1]["role"] == "assistant", "nothing is put into the user's mouth"
            assert asked.headers["anthropic-beta"] == COMPACTION_BETA
            assert "anthropic-beta" not in normal.headers
        else:
            wish = body["input"][-2 if way == "request" else -1]
            assert (wish["role"], wish["content"][0]["text"]) == ("developer", "the port")
            assert asked.path == ("/responses" if way == "request" else "/responses/compact")
        await talk.models.close()


async def test_instructions_that_the_api_would_refuse_are_left_out(tmp_path: Path):
    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, "anthropic")
        await talk.compact("request", view("anthropic"), instructions="x" * (MAX_INSTRUCTIONS + 1))
        assert server.requests[-1].body["compaction"] == {"type": "summarize"}
        await talk.models.close()


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply("half", stop="max_tokens"), "cut off"),
        (Reply("", stop="window_exceeded"), "no room"),
        (Reply("", stop="refusal"), "declined"),
        (Reply("", stop="tool_use"), "called a tool"),
        (Reply(""), "no summary"),
    ],
)
async def test_an_answer_without_a_summary_says_why(tmp_path: Path, reply: Reply, words: str):
    async with ScriptedServer([reply]) as server:
        talk = Talk(server, tmp_path, "anthropic")
        with pytest.raises(ModelError, match=words):
            await talk.compact("request", view("anthropic"))
        await talk.models.close()


@pytest.mark.parametrize("way", ["request", "endpoint"])
async def test_an_answer_without_a_compaction_item_is_an_error(tmp_path: Path, way: str):
    async with ScriptedServer([Reply("")]) as server:
        talk = Talk(server, tmp_path, "openai")
        with pytest.raises(ModelError, match="no compaction"):
            await talk.compact(way, view("openai"))
        await talk.models.close()


async def test_a_busy_compaction_is_worth_another_try(tmp_path: Path):
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    body["error"]["details"] = {"error_code": "compaction_unavailable"}  # pyright: ignore
    async with ScriptedServer([HttpError(529, body)]) as server:
        talk = Talk(server, tmp_path, "anthropic")
        with pytest.raises(ModelError) as caught:
            await talk.compact("request", view("anthropic"))
        assert caught.value.kind == "overloaded"
        await talk.models.close()


async def test_a_server_that_has_only_the_endpoint_is_asked_there(tmp_path: Path):
    async with ScriptedServer(script, refuse=("compaction_trigger",)) as server:
        talk = Talk(server, tmp_path, "openai")
        for _ in range(2):
            assert len((await talk.compact("request", view("openai"))).items) == 2
        paths = [request.path for request in server.requests]
        assert paths == ["/responses", "/responses/compact", "/responses/compact"]
        await talk.models.close()


@pytest.mark.parametrize("other", ["openai-chat", "anthropic", "openai"])
async def test_another_provider_never_sees_the_items(tmp_path: Path, other: str):
    source = "openai" if other != "openai" else "anthropic"
    block = msgspec.Raw(b'{"type":"compaction","encrypted_content":"secret","content":"secret"}')
    parts = (OpaquePart(provider=source, block=block),)
    messages = [SystemMessage(text="s"), AssistantMessage(parts=parts, model=f"{source}/m"), user("go on")]
    recording = Recording(other)
    facts = ModelFacts(provider=other, name="m")
    raw = await recording.send(ModelRequest(model=facts, messages=tuple(messages)))
    assert b"secret" not in raw
    assert b"compaction" not in raw
    assert "anthropic-beta" not in recording.headers


async def test_a_beta_of_the_users_own_headers_stays(tmp_path: Path):
    del tmp_path
    recording = Recording("anthropic", headers={"Anthropic-Beta": "some-beta-2026-01-01"})
    facts = ModelFacts(provider="anthropic", name="m", context_window=200_000)
    server = ServerContext(clear_over=60_000, clear_at_least=12_500)
    body = await recording.body(ModelRequest(model=facts, messages=tuple(view("anthropic")), server=server))
    assert recording.headers["anthropic-beta"] == f"some-beta-2026-01-01,{EDITING_BETA}"
    assert "Anthropic-Beta" not in recording.headers
    (edit,) = body["context_management"]["edits"]
    assert edit["trigger"] == {"type": "input_tokens", "value": 60_000}
    assert edit["clear_at_least"] == {"type": "input_tokens", "value": 12_500}


async def test_what_the_server_does_by_itself_is_read(tmp_path: Path):
    long = [*view("openai"), user("word " * 4000)]
    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, "openai")
        end = await talk.ask(long, server=ServerContext(compact_over=2_000))
        assert server.requests[-1].body["context_management"] == [{"type": "compaction", "compact_threshold": 2_000}]
        assert end.compacted is not None
        assert len(end.compacted.items) == 1
        assert [type(part) for part in end.message.parts] == [TextPart], "the item is not in the message"
        small = await talk.ask(view("openai")[:2], server=ServerContext(compact_over=2_000))
        assert small.compacted is None
        await talk.models.close()


async def test_applied_edits_are_read(tmp_path: Path):
    messages = [SystemMessage(text="s"), user("look")]
    for number in range(12):
        call = ToolCallPart(id=f"call_{number}", name="read")
        messages += [AssistantMessage(parts=(call,), model="anthropic/test"), result(call.id, "word " * 4000)]
    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, "anthropic")
        end = await talk.ask(messages, server=ServerContext(clear_over=20_000, clear_at_least=1_000))
        assert end.edit is not None
        assert end.edit.cleared_results == 7
        assert end.edit.cleared_tokens == cleared(server.requests[-1].body)[1]["cleared_input_tokens"]  # pyright: ignore
        assert (await talk.ask(messages)).edit is None
        await talk.models.close()


async def test_a_server_that_does_not_know_the_field_is_asked_without_it(tmp_path: Path):
    for provider, server_context in (
        ("openai", ServerContext(compact_over=2_000)),
        ("anthropic", ServerContext(clear_over=60_000, clear_at_least=12_500)),
    ):
        async with ScriptedServer(script, refuse=("context_management",)) as server:
            talk = Talk(server, tmp_path / provider, provider)
            ends = [await talk.ask(view(provider)[:2], server=server_context) for _ in range(2)]
            assert [end.ignored for end in ends] == ["context_management"] * 2
            assert len(server.refusals) == 1
            assert "anthropic-beta" not in server.requests[-1].headers
            await talk.models.close()


# --- the SDKs on the same server ---


async def test_anthropics_sdk_reads_the_compaction_as_we_do(tmp_path: Path):
    import anthropic

    async with ScriptedServer(script) as server:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0)
        asked: dict[str, Any] = {"model": "test", "max_tokens": 5_000, "messages": [{"role": "user", "content": "x"}]}
        async with client.beta.messages.stream(
            **asked, compaction={"type": "summarize"}, betas=[COMPACTION_BETA]
        ) as stream:
            theirs = await stream.get_final_message()
        ours = await Talk(server, tmp_path, "anthropic").compact("request", [SystemMessage(text="s"), user("x")])
        assert theirs.stop_reason == "compaction"
        assert json.loads(bytes(ours.items[0])) == theirs.content[0].model_dump()
        (iteration,) = theirs.usage.iterations or []
        assert iteration.type == "compaction"
        assert theirs.usage.input_tokens == 0
        block = theirs.content[0].model_dump()
        messages: list[Any] = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
        again = await client.beta.messages.create(**asked, compaction={"type": "summarize"}, betas=[COMPACTION_BETA])
        assert (again.stop_reason, again.content[0].model_dump()) == ("compaction", block)
        answer = await client.beta.messages.create(
            model="test", max_tokens=100, messages=messages, betas=[COMPACTION_BETA]
        )
        assert answer.content[0].type == "text"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: [m[1], m[0], m[1]], "CompactionBlockMisplacedError"),
        (lambda m: [{**m[0], "content": m[0]["content"] * 2}, m[1]], "CompactionBlockAmbiguousError"),
        (lambda m: [_with(m[0], content="other"), m[1]], "CompactionContentMismatchError"),
        (lambda m: [_with(m[0], signature="forged"), m[1]], "CompactionSignatureInvalidError"),
        (lambda m: [_with(m[0], tool_changes=None), m[1]], "CompactionToolChangesMismatchError"),
    ],
)
async def test_the_server_refuses_a_changed_block_as_the_real_one_does(change: Any, error: str):
    import anthropic

    async with ScriptedServer(script) as server:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url, max_retries=0)
        asked = await client.beta.messages.create(
            model="test",
            max_tokens=5_000,
            messages=[{"role": "user", "content": "x"}],
            compaction={"type": "summarize"},
            betas=[COMPACTION_BETA],
            stream=True,
        )
        (start,) = [event async for event in asked if event.type == "content_block_start"]
        block = start.content_block.model_dump()
        messages: Any = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
        with pytest.raises(getattr(anthropic.types, error)):
            await client.beta.messages.create(
                model="test", max_tokens=100, messages=change(messages), betas=[COMPACTION_BETA]
            )
        with pytest.raises(anthropic.BadRequestError, match="Input tag 'compaction'"):
            await client.beta.messages.create(model="test", max_tokens=100, messages=messages)


def _with(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**message, "content": [{**message["content"][0], **fields}]}


async def test_openais_sdk_reads_the_compaction_as_we_do():
    import openai

    async with ScriptedServer(script) as server:
        client = openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, max_retries=0)
        items: list[Any] = [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]
        stream = await client.responses.create(model="test", input=items, stream=True, store=False)
        events = [event async for event in stream]
        assert "response.compaction.compacting" in [event.type for event in events]
        (item,) = events[-1].response.output  # pyright: ignore
        assert item.type == "compaction"
        assert read_item(item.model_dump()) == "The summary."
        compacted = await client.responses.compact(model="test", input="x")
        assert [one.type for one in compacted.output] == ["message", "compaction"]
        assert compacted.object == "response.compaction"
        again: list[Any] = [item.model_dump(exclude_none=True), {"role": "user", "content": "go on"}]
        answer = await client.responses.create(model="test", input=again, store=False)
        assert answer.output_text == "An answer."
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await client.responses.create(model="test-small", input=again, store=False)
        misplaced: list[Any] = [{"type": "compaction_trigger"}, {"role": "user", "content": "x"}]
        with pytest.raises(openai.BadRequestError, match="final input item"):
            await client.responses.create(model="test", input=misplaced, store=False)
