"""Gemini: requests that its rules take, signatures on their parts, levels, the list, counts, keys."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.settings import ModelSettings, Settings
from tenuto.model.gemini.encoder import NO_SIGNATURE, GeminiEncoder, join_contents
from tenuto.model.gemini.stream import GeminiDecoder
from tenuto.model.registry import ModelRegistry
from tenuto.model.wire.stream import ServerEvent
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart, text_of
from tests.model.views import IMAGE, TOOLS, load_blob, result, user
from tests.server import Call, HttpError, Reply, ScriptedServer
from tests.server.gemini_rules import check
from tests.server.item import Refusal
from tests.server.options import Options

SIGNING, OLDER = "gemini-3.8-flash", "gemini-2.5-flash"


class Talk:
    def __init__(self, server: ScriptedServer, home: Path, name: str, settings: Settings | None = None) -> None:
        self.server = server
        self.models = ModelRegistry(settings or Settings(), home, server.environ())
        self.name = name
        self.view: list[Message] = [SystemMessage(text="You are careful."), user("start")]

    async def ask(self, **fields: object) -> AssistantMessage:
        facts = await self.models.refresh(f"gemini/{self.name}")
        asked = ModelRequest(model=facts, messages=tuple(self.view), tools=TOOLS, cache_key="s", **fields)  # pyright: ignore
        async for part in self.models.client("gemini").stream(asked):
            if isinstance(part, Finished):
                self.view.append(part.message)
                calls = part.message.tool_calls
                self.view += [result(call.id, "output") for call in calls] or [user("go on")]
                return part.message
        raise AssertionError("no answer")


@pytest.mark.parametrize("name", [SIGNING, OLDER])
async def test_a_session_that_the_rules_take_with_signatures_on_their_parts(tmp_path: Path, name: str):
    steps = [
        Reply("", thinking="t1", tool_calls=[Call("read", {"path": "a"}), Call("read", {"path": "b"})]),
        Reply("One moment.", thinking="t2", tool_calls=[Call("read", {"path": "c"})]),
        Reply("Done.", thinking="t3"),
        Reply("Again."),
    ]
    async with ScriptedServer(steps) as server:
        talk = Talk(server, tmp_path, name)
        answers = [await talk.ask() for _ in steps]
        assert server.refusals == []
        assert [text_of(answer.parts) for answer in answers] == [step.text for step in steps]
        assert all(answer.usage and answer.usage.cache_read for answer in answers[1:])
        parts = [part for content in server.requests[-1].body["contents"] for part in content["parts"]]
        signed = [part for part in parts if "thoughtSignature" in part]
        assert [bool(part.get("functionCall")) for part in signed] == [True, True, False]
        assert server.prefix_breaks() == []
        await talk.models.close()


async def test_a_call_whose_thought_is_not_there_says_so_to_models_that_want_one(tmp_path: Path):
    """Of another model, or behind a compaction: Google documents a word for that."""
    foreign = AssistantMessage(parts=(ToolCallPart(id="toolu_1", name="read"),), model="anthropic/x")
    for name, wanted in ((SIGNING, [NO_SIGNATURE]), (OLDER, [])):
        async with ScriptedServer([Reply("Fine.")]) as server:
            talk = Talk(server, tmp_path, name)
            talk.view += [foreign, result("toolu_1", "output")]
            await talk.ask()
            assert server.refusals == []
            parts = [part for content in server.requests[-1].body["contents"] for part in content["parts"]]
            assert [part["thoughtSignature"] for part in parts if "thoughtSignature" in part] == wanted
            await talk.models.close()


@pytest.mark.parametrize(
    ("name", "effort", "wanted"),
    [
        (SIGNING, "", {"includeThoughts": True}),
        (SIGNING, "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (OLDER, "none", {"thinkingBudget": 0}),
        (OLDER, "low", {"includeThoughts": True, "thinkingBudget": 4_096}),
        ("gemini-2.5-pro", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.0-flash", "", None),
    ],
)
async def test_an_effort_is_a_level_or_tokens(tmp_path: Path, name: str, effort: str, wanted: object):
    async with ScriptedServer([Reply("Fine.")]) as server:
        talk = Talk(server, tmp_path, name)
        await talk.ask(effort=effort, max_output_tokens=99)
        config = server.requests[-1].body["generationConfig"]
        assert (config.get("thinkingConfig"), config["maxOutputTokens"]) == (wanted, 99)
        await talk.models.close()


async def test_a_model_that_knows_no_thinking_is_asked_without_from_then_on(tmp_path: Path):
    async with ScriptedServer([Reply("Fine."), Reply("Again.")], refuse=("thinkingConfig",)) as server:
        talk = Talk(server, tmp_path, "gemini-x")
        await talk.ask(effort="high")
        await talk.ask(effort="high")
        assert [bool(request.refused) for request in server.requests] == [True, False, False]
        await talk.models.close()


async def test_the_list_has_windows_and_no_embeddings_and_the_server_counts(tmp_path: Path):
    async with ScriptedServer([], models=("gemini-3.8-flash", "x"), window=77_000) as server:
        models = ModelRegistry(Settings(), tmp_path, server.environ())
        found = [one for one in await models.available() if one.provider == "gemini"]
        assert [(one.name, one.context_window, one.source) for one in found] == [
            ("gemini-3.8-flash", 77_000, "provider"),
            ("x", 77_000, "provider"),
        ]
        request = ModelRequest(model=found[0], messages=(user("How long is this?"),), tools=TOOLS)
        assert await models.client("gemini").count(request)
        assert server.refusals == []
        await models.close()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(400, "The input token count (99) exceeds the maximum number of tokens allowed (77)."), "overflow"),
        (HttpError(503, "The model is overloaded. Please try again later."), "overloaded"),
        (HttpError(429, "You exceeded your current quota, please check your plan and billing details."), "quota"),
        (HttpError(404, "models/x is not found for API version v1beta"), "not_found"),
        (HttpError(500, "An internal error has occurred."), "server"),
    ],
)
async def test_refusals_are_understood(tmp_path: Path, reply: HttpError, kind: str):
    async with ScriptedServer([reply]) as server:
        talk = Talk(server, tmp_path, SIGNING)
        with pytest.raises(ModelError) as caught:
            await talk.ask()
        assert caught.value.kind == kind
        await talk.models.close()


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_a_wrong_key_is_an_error_of_the_key_and_both_variables_are_read(tmp_path: Path, variable: str):
    async with ScriptedServer([Reply("Fine.")], api_key="right-key-1234") as server:
        for key, works in (("wrong-key-1234", False), ("right-key-1234", True)):
            environ = {**server.environ(), "GEMINI_API_KEY": "", variable: key}
            models = ModelRegistry(Settings(), tmp_path, environ)
            request = ModelRequest(model=models.facts(f"gemini/{SIGNING}"), messages=(user("hi"),))
            try:
                assert [part async for part in models.client("gemini").stream(request)] and works
            except ModelError as error:
                assert (error.kind, works) == ("auth", False)
                assert variable in str(error)
            await models.close()


async def test_choosing_of_words_goes_into_the_config(tmp_path: Path):
    own = ModelSettings(temperature=0.5, top_p=0.25, parallel_tools=False, body={"labels": {"team": "x"}})
    async with ScriptedServer([Reply("Fine.")]) as server:
        talk = Talk(server, tmp_path, SIGNING, Settings(models={f"gemini/{SIGNING}": own}))
        await talk.ask()
        body = server.requests[-1].body
        assert (body["generationConfig"]["temperature"], body["generationConfig"]["topP"]) == (0.5, 0.25)
        assert body["labels"] == {"team": "x"}
        assert server.refusals == []
        await talk.models.close()


def event(*parts: dict[str, object], reason: str = "") -> ServerEvent:
    candidate = {"content": {"parts": list(parts), "role": "model"}, **({"finishReason": reason} if reason else {})}
    return ServerEvent("", msgspec.json.encode({"candidates": [candidate]}))


def test_a_signed_text_stays_a_part_of_its_own():
    decoder = GeminiDecoder("gemini", set())
    for one in (event({"text": "It "}), event({"text": "is."}), event({"text": "So.", "thoughtSignature": "abc"})):
        decoder.feed(one)
    decoder.feed(event(reason="STOP"))
    first, thought, last = decoder.finish().parts
    assert isinstance(first, TextPart) and isinstance(thought, ThinkingPart) and isinstance(last, TextPart)
    message = AssistantMessage(parts=(first, thought, last), model="gemini/x")
    sent = [
        msgspec.json.decode(part) for part in GeminiEncoder("gemini", signs=True).encode_answer(message, thinking=True)
    ]
    assert sent == [{"text": "It is."}, {"text": "So.", "thoughtSignature": "abc"}]


def test_a_blocked_prompt_is_a_refusal():
    decoder = GeminiDecoder("gemini", set())
    decoder.feed(ServerEvent("", b'{"promptFeedback":{"blockReason":"SAFETY"}}'))
    assert decoder.complete
    assert decoder.finish().stop_reason == "refusal"


async def test_a_picture_that_gemini_does_not_read_is_told_in_words(tmp_path: Path):
    gif = ImagePart(sha256=IMAGE.sha256, media_type="image/gif", size=IMAGE.size, name="moving.gif")
    async with ScriptedServer([Reply("Fine.")]) as server:
        talk = Talk(server, tmp_path, SIGNING)
        talk.models.load_blob = load_blob
        talk.view[-1] = UserMessage(parts=(TextPart(text="Look"), gif, IMAGE))
        await talk.ask()
        assert server.refusals == []
        parts = server.requests[-1].body["contents"][0]["parts"]
        assert [next(iter(part)) for part in parts] == ["text", "text", "inlineData"]
        assert "moving.gif" in parts[1]["text"]
        await talk.models.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}, "Duplicate function"),
        ({"tools": [{"functionDeclarations": [{"name": "1 f"}]}]}, "Invalid function name"),
        ({"tools": [{"functionDeclarations": [{"name": "f", "strict": True}]}]}, "Unknown name"),
        ({"systemInstruction": {"parts": []}}, "must not be empty"),
        ({"systemInstruction": {"parts": [{"inlineData": {}}]}}, "only contain text"),
        ({"generationConfig": {"temperature": 3}}, "temperature"),
        ({"generationConfig": {"maxOutputTokens": 101}}, "maxOutputTokens"),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "EXTREME"}}}, "thinking_level"),
        ({"generationConfig": {"thinkingConfig": {"effort": "low"}}}, "Unknown name"),
        ({"messages": []}, "Unknown name"),
    ],
)
def test_the_scripted_server_refuses_fields_as_the_real_one_does(body: dict[str, object], said: str):
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    with pytest.raises(Refusal, match=said):
        check({"model": SIGNING, "contents": contents, **body}, {}, Options(max_output=100), 1, counting=False)


@pytest.mark.parametrize(("name", "budget"), [("gemini-2.5-pro", 0), ("gemini-2.5-pro", 40_000), (OLDER, 30_000)])
def test_the_scripted_server_knows_how_much_a_model_may_think(name: str, budget: int):
    body = {"model": name, "contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    config = {"thinkingConfig": {"thinkingBudget": budget}}
    with pytest.raises(Refusal, match=r"[Bb]udget"):
        check({**body, "generationConfig": config}, {}, Options(), 1, counting=False)


async def test_the_server_s_limit_of_an_answer_is_understood(tmp_path: Path):
    async with ScriptedServer([Reply("x")], max_output=1_000) as server:
        talk = Talk(server, tmp_path, SIGNING)
        with pytest.raises(ModelError) as caught:
            await talk.ask(max_output_tokens=1_900)
        assert (caught.value.kind, caught.value.limit) == ("output_budget", 1_000)
        await talk.models.close()


RUNS = st.lists(st.tuples(st.booleans(), st.sampled_from([b"", b'{"text":"a"}', b'{"text":"b"},{"text":"c"}'])))


@given(RUNS)
def test_contents_take_turns_begin_and_end_with_the_user_and_lose_nothing(runs: list[tuple[bool, bytes]]):
    contents = msgspec.json.decode(b"".join(join_contents(runs)), type=list[dict[str, object]])
    roles = [content["role"] for content in contents]
    assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
    sent = [(content["role"] == "model", part) for content in contents for part in content["parts"]]  # pyright: ignore
    wanted = [(is_answer, part) for is_answer, body in runs for part in msgspec.json.decode(b"[" + body + b"]")]
    assert [one for one in sent if one in wanted or not one[1]["text"].startswith("(")] == wanted  # pyright: ignore
    check({"model": SIGNING, "contents": contents}, {}, Options(), 1, counting=False)


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ([], "not specified"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "valid role"),
        ([{"role": "user", "parts": []}], "must not be empty"),
        ([{"role": "user", "parts": [{"text": "x", "inlineData": {}}]}], "oneof"),
        ([{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}], "after a function call"),
        ([{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": "y"}]}], "end with a user"),
        ([{"role": "user", "parts": [{"text": "x"}], "name": "n"}], "Unknown name"),
        ([{"role": "user", "parts": [{"functionCall": {"name": "f", "args": {}}}]}], "role model"),
        ([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/gif", "data": "eA=="}}]}], "MIME type"),
        ([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "?"}}]}], "Base64"),
        ([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "file": "x"}}]}], "Unknown name"),
    ],
)
def test_the_scripted_server_refuses_what_the_real_one_does(contents: list[object], said: str):
    with pytest.raises(Refusal, match=said):
        check({"model": SIGNING, "contents": contents}, {}, Options(), 1, counting=False)
