"""The provider's own web search, over real HTTP on both protocols that have one (B15)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenuto.command.compaction_commands import report_context
from tenuto.command.model_commands import run_cost
from tenuto.command.outcome import Say
from tenuto.compaction.summary.digest import digest_entries
from tenuto.compaction.summary.serialize import serialize
from tenuto.compaction.summary.view import SessionData
from tenuto.config.settings import Settings, ToolSettings
from tenuto.core.transcript import replay
from tenuto.model.endpoint import Endpoint
from tenuto.model.registry import ModelRegistry
from tenuto.model.wire.stream import priced
from tenuto.protocol.event import AssistantMessageEvent, NoticeEvent, WebSearchEvent
from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage, UserMessage
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import ChangeModeOperation, InterruptOperation
from tenuto.protocol.part import OpaquePart, TextPart, ToolCallPart, WebSearch, WebSource, cited_in, searches_in
from tenuto.protocol.usage import Usage
from tenuto.session.view.pairing import Memo, PairedMessages
from tests.core.harness import Agent, agent, reopened
from tests.server import Call, Hang, Reply, Request, ScriptedServer, Search, Tokens

WANTED = {"TENUTO_TOOLS__WEB_SEARCH": "true"}
PAGES = (("What is new in 3.15", "https://docs.example.org/3.15"), ("Notes", "https://notes.example.org/a?b=1"))
SEARCHED = Reply("It came out in October.", searches=[Search("python 3.15 release", PAGES)])
HAVING = ("anthropic/test", "openai/test")


def tool_of(request: Request) -> dict[str, Any] | None:
    """The web search among a request's tools."""
    found = [tool for tool in request.body.get("tools", []) if str(tool.get("type", "")).startswith("web_search")]
    return found[0] if found else None


def may_search(request: Request) -> bool:
    """Whether the model can search now."""
    if tool_of(request) is None:
        return False
    choice = request.body.get("tool_choice")
    return choice is None or any(tool["type"].startswith("web_search") for tool in choice["tools"])


async def switch(running: Agent, mode: Any) -> None:
    await running.runtime.submit(ChangeModeOperation(session_id=running.session.id, mode=mode))


def search_blocks(request: Request) -> list[str]:
    """The blocks of searches that a request carries back, as they stand in it."""
    if request.protocol == "anthropic":
        blocks = [
            block
            for message in request.body["messages"]
            if message["role"] == "assistant"
            for block in message["content"]
            if block["type"] in ("server_tool_use", "web_search_tool_result") or block.get("citations")
        ]
    else:
        blocks = [item for item in request.body["input"] if item.get("type") == "web_search_call"]
    return [json.dumps(block) for block in blocks]


@pytest.mark.parametrize("model", HAVING)
async def test_b15_a_search_is_told_stored_cited_and_sent_back_byte_for_byte(tmp_path: Path, model: str):
    async with agent(tmp_path, [SEARCHED, Reply("More.")], model=model, environ=WANTED) as running:
        await running.ask("when?")
        answer = running.of(AssistantMessageEvent)[0].message
        search = searches_in(answer.parts)[0]
        assert search.query == "python 3.15 release"
        assert [source.url for source in search.sources] == [url for _title, url in PAGES]
        assert cited_in(answer.parts) == tuple(WebSource(url, title) for title, url in PAGES)
        live = [event.search for event in running.of(WebSearchEvent)]
        assert [one.done for one in live] == [False, True]
        assert live[1] == search
        assert answer.usage is not None
        assert answer.usage.searches == 1
        blocks = [json.loads(bytes(part.block)) for part in answer.parts if isinstance(part, OpaquePart)]
        cited = [json.loads(bytes(part.block)) for part in answer.parts if isinstance(part, TextPart) and part.provider]
        assert bool(cited) is model.startswith("anthropic"), "Anthropic wants its citations back"
        await running.ask("and then?")
        assert running.server.refusals == []
        sent = search_blocks(running.server.requests[-1])
        assert sent == [json.dumps(block) for block in [*blocks, *cited]]
        assert running.server.requests[-1].continues(running.server.requests[0])


@pytest.mark.parametrize("model", HAVING)
async def test_b15_a_resumed_session_sends_and_shows_the_same(tmp_path: Path, model: str):
    async with ScriptedServer([SEARCHED, Reply("More.")]) as server:
        async with reopened(tmp_path, server, model=model, environ=WANTED) as running:
            await running.ask("when?")
            session, shown = running.session.id, running.of(AssistantMessageEvent)
        async with reopened(tmp_path, server, model=model, environ=WANTED, resume=session) as running:
            again = replay(session, running.session.path())
            messages = [event.message for event in again if isinstance(event, AssistantMessageEvent)]
            assert messages == [event.message for event in shown]
            await running.ask("and then?")
        assert server.refusals == []
        assert server.requests[1].continues(server.requests[0])


@pytest.mark.parametrize("model", [*HAVING, "openai-chat/test"])
@pytest.mark.parametrize(("setting", "has_it"), [("auto", False), ("false", False), ("true", True)])
async def test_b15_elsewhere_than_at_the_vendor_only_the_setting_asks_for_it(
    tmp_path: Path, model: str, setting: str, has_it: bool
):
    environ = {"TENUTO_TOOLS__WEB_SEARCH": setting}
    async with agent(tmp_path, [Reply("Hi.")], model=model, environ=environ) as running:
        await running.ask("hi")
        assert (tool_of(running.server.requests[0]) is not None) is (has_it and not model.startswith("openai-chat"))
        assert running.server.refusals == []


@pytest.mark.parametrize("model", HAVING)
async def test_b15_mode_plan_switches_it_off_by_rule(tmp_path: Path, model: str):
    async with agent(tmp_path, lambda _: Reply("Yes."), model=model, environ=WANTED) as running:
        for mode in ("auto", "plan", "auto"):
            await switch(running, mode)
            await running.ask(f"in {mode}")
        first, planned, last = running.server.requests
        assert [may_search(request) for request in (first, planned, last)] == [True, False, True]
        assert running.server.refusals == []
        if model.startswith("openai"):
            assert planned.continues(first)
            assert last.continues(planned)


async def test_b15_where_a_choice_of_tools_is_refused_plan_leaves_the_search_out(tmp_path: Path):
    options = {"refuse": ("tool_choice",)}
    async with agent(
        tmp_path, lambda _: Reply("Yes."), model="openai/test", environ=WANTED, options=options
    ) as running:
        await switch(running, "plan")
        await running.ask("hi")
        assert not may_search(running.server.requests[-1])
        await switch(running, "auto")
        await running.ask("hi")
        assert may_search(running.server.requests[-1])


@pytest.mark.parametrize("model", HAVING)
async def test_b15_a_server_that_refuses_the_tool_is_told_once_and_asked_no_more(tmp_path: Path, model: str):
    options = {"refuse": ("web_search",)}
    async with agent(tmp_path, lambda _: Reply("Yes."), model=model, environ=WANTED, options=options) as running:
        await running.ask("one")
        await running.ask("two")
        assert [tool_of(request) is not None for request in running.server.requests] == [True, False, False]
        told = [event.text for event in running.of(NoticeEvent) if "web search" in event.text]
        assert len(told) == 1
        assert dict(report_context(running.runtime.live).facts)["web search"].startswith("refused")


async def test_b15_a_paused_search_goes_on_by_itself_and_gets_its_result_in_the_next_answer(tmp_path: Path):
    begun = Search("slow question", part="begun", id="srvtoolu_1")
    found = Search("slow question", PAGES, part="found", id="srvtoolu_1")
    script = [Reply("I look.", searches=[begun], stop="pause"), Reply("There it is.", searches=[found]), Reply("Bye.")]
    async with agent(tmp_path, script, model="anthropic/test", environ=WANTED) as running:
        assert (await running.ask("look")).outcome == "completed"
        await running.ask("thanks")
        assert running.server.refusals == []
        second = running.server.requests[1].body["messages"]
        assert second[-1]["role"] == "assistant", "nothing is put into the user's mouth"
        last = running.of(AssistantMessageEvent)[1].message
        assert searches_in(last.parts)[0].query == "slow question"


async def test_b15_a_search_beside_a_call_of_ours_is_run_with_its_result(tmp_path: Path):
    begun = Search("beside", part="begun", id="srvtoolu_1")
    found = Search("beside", PAGES, part="found", id="srvtoolu_1")
    script = [
        Reply("Both.", searches=[begun], tool_calls=[Call("bash", {"command": "true"})]),
        Reply("There.", searches=[found]),
        Reply("Bye."),
    ]
    async with agent(tmp_path, script, model="anthropic/test", environ=WANTED) as running:
        await running.ask("look")
        await running.ask("thanks")
        assert running.server.refusals == []
        assert [search.query for search in searches_in(running.of(AssistantMessageEvent)[1].message.parts)] == [
            "beside"
        ]


async def test_b15_a_search_that_was_cut_off_is_not_sent_back(tmp_path: Path):
    cut = Reply("I look.", searches=[Search("never", part="begun")], stop="max_tokens")
    async with agent(tmp_path, [cut, Reply("On."), Reply("Bye.")], model="anthropic/test", environ=WANTED) as running:
        await running.ask("look")
        await running.ask("thanks")
        assert running.server.refusals == []
        assert search_blocks(running.server.requests[-1]) == []


@pytest.mark.parametrize("model", HAVING)
async def test_b15_another_provider_gets_the_words_and_not_the_blocks(tmp_path: Path, model: str):
    other = next(name for name in HAVING if name != model)
    async with ScriptedServer([SEARCHED, Reply("More.")]) as server:
        async with reopened(tmp_path, server, model=model, environ=WANTED) as running:
            await running.ask("when?")
            session = running.session.id
        async with reopened(tmp_path, server, model=other, environ=WANTED, resume=session) as running:
            from tenuto.core.state.windows import change_model, find_model

            change_model(running.runtime.live, await find_model(running.runtime.live, other))
            await running.ask("and then?")
        assert server.refusals == []
        assert b"October" in server.requests[-1].raw
        assert b"EqgfCio" not in server.requests[-1].raw
        assert b"web_search_call" not in server.requests[-1].raw.replace(b"web_search_call.action.sources", b"")


async def test_b15_encrypted_pages_count_in_the_meter_as_they_are_sent(tmp_path: Path):
    plain = Reply(SEARCHED.text, usage=Tokens(input=10, output=5))
    sizes: list[int] = []
    for number, reply in enumerate((plain, SEARCHED)):
        home = tmp_path / str(number)
        home.mkdir()
        async with agent(home, [reply], model="anthropic/test", environ=WANTED) as running:
            await running.ask("when?")
            answer = running.of(AssistantMessageEvent)[0].message
            from tenuto.compaction.measure.weight import estimate_message

            sizes.append(estimate_message(answer))
    blocks = sum(len(bytes(part.block)) for part in answer.parts if isinstance(part, OpaquePart))
    assert sizes[1] - sizes[0] >= blocks // 5


@pytest.mark.parametrize("model", HAVING)
async def test_b15_compaction_and_recall_know_what_was_searched(tmp_path: Path, model: str):
    recall = Reply(tool_calls=[Call("recall", {"query": "3.15 release"})])
    async with agent(tmp_path, [SEARCHED, recall, Reply("Yes.")], model=model, environ=WANTED) as running:
        await running.ask("when?")
        answers = [entry for entry in running.session.path() if isinstance(entry, AssistantMessage)]
        text = serialize(answers)
        assert "[Searched]: python 3.15 release → " in text
        assert PAGES[0][1] in text
        await running.ask("what did you search for?")
        result = running.server.requests[-1].items[-1].text
        assert "python 3.15 release" in result
        assert PAGES[0][1] in result


async def test_b15_a_failed_search_says_why(tmp_path: Path):
    failed = Reply("No luck.", searches=[Search("too much", error="max_uses_exceeded")])
    async with agent(tmp_path, [failed], model="anthropic/test", environ=WANTED) as running:
        await running.ask("look")
        search = searches_in(running.of(AssistantMessageEvent)[0].message.parts)[0]
        assert (search.error, search.sources, search.done) == ("max_uses_exceeded", (), True)


@pytest.mark.parametrize("model", HAVING)
async def test_b15_the_user_is_told_where_searches_stand(tmp_path: Path, model: str):
    async with agent(tmp_path, [Reply("Hi.")], model=model, environ=WANTED) as running:
        facts = dict(report_context(running.runtime.live).facts)
        assert facts["web search"] == "on: the provider's own tool; nobody is asked before a search"
        await switch(running, "plan")
        assert dict(report_context(running.runtime.live).facts)["web search"] == "off in mode plan"


BEGUN = Search("half", part="begun", id="srvtoolu_1")


async def test_b15_a_search_that_waits_is_left_out_once_the_user_says_something_else(tmp_path: Path):
    script = [Reply("I look.", searches=[BEGUN], stop="pause"), Hang(), Reply("As you say.")]
    async with agent(tmp_path, script, model="anthropic/test", environ=WANTED) as running:
        await running.send("look")
        await running.until(AssistantMessageEvent)
        while len(running.server.requests) < 2:
            await asyncio.sleep(0.01)
        await running.runtime.submit(InterruptOperation(session_id=running.session.id))
        await running.runtime.wait_settled()
        await running.ask("never mind")
        assert running.server.refusals == []
        assert search_blocks(running.server.requests[-1]) == []
        assert b"I look." in running.server.requests[-1].raw


def half(part: str) -> OpaquePart:
    block = msgspec.Raw(json.dumps({"type": part}).encode())
    done = part == "found"
    return OpaquePart(provider="p", block=block, search=WebSearch(id="s1", query="half", done=done, carried=done))


def kept_in(*messages: Message) -> list[str]:
    """The blocks of searches that a view keeps, in order."""
    paired = PairedMessages(Memo())
    for message in messages:
        paired.add(message)
    parts = [part for message in paired.messages if isinstance(message, AssistantMessage) for part in message.parts]
    assert not any(isinstance(part, TextPart) and part.provider for part in parts) or half("found") in parts
    return [json.loads(bytes(part.block))["type"] for part in parts if isinstance(part, OpaquePart)]


def test_b15_no_view_has_half_a_search():
    asks = AssistantMessage(parts=(TextPart(text="a"), half("begun"), ToolCallPart(id="c1", name="bash")))
    waits = AssistantMessage(parts=(TextPart(text="a"), half("begun")), stop_reason="pause")
    cites = TextPart(text="b", provider="p", block=msgspec.Raw(b"{}"))
    ends = AssistantMessage(parts=(half("found"), cites))
    result = ToolResultMessage(call_id="c1", name="bash", parts=(TextPart(text="ok"),))
    other = AssistantMessage(parts=(TextPart(text="c"),))
    said = UserMessage(parts=(TextPart(text="no"),))
    assert kept_in(asks, result, ends) == ["begun", "found"]
    assert kept_in(waits, ends) == ["begun", "found"]
    assert kept_in(asks, result) == ["begun"], "the provider runs it when it has the result"
    assert kept_in(waits) == ["begun"]
    assert kept_in(ends) == kept_in(said, ends) == [], "a compaction took what it began with"
    assert kept_in(asks, result, other, ends) == []
    assert kept_in(waits, said) == kept_in(waits, said, ends) == []


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_b15_by_itself_only_the_vendors_own_address_has_it(tmp_path: Path, provider: str):
    keys = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x"}
    elsewhere = {**keys, f"{provider.upper()}_BASE_URL": "https://gateway.example/v1"}
    assert ModelRegistry(Settings(), tmp_path, keys).has_web_search(f"{provider}/newest")
    assert not ModelRegistry(Settings(), tmp_path, elsewhere).has_web_search(f"{provider}/newest")
    wanted = Settings(tools=ToolSettings(web_search=True))
    assert ModelRegistry(wanted, tmp_path, elsewhere).has_web_search(f"{provider}/newest")
    never = Settings(tools=ToolSettings(web_search=False))
    assert not ModelRegistry(never, tmp_path, keys).has_web_search(f"{provider}/newest")
    for name in ("claude-3-haiku-20240307", "gpt-4.1-nano", "gpt-4"):
        assert not ModelRegistry(Settings(), tmp_path, keys).has_web_search(f"{provider}/{name}")
    assert not ModelRegistry(wanted, tmp_path, keys).has_web_search("openai-chat/newest")
    assert not ModelRegistry(wanted, tmp_path, keys).has_web_search("offline/tenuto")


def test_b15_a_search_has_its_price_at_the_vendor_and_none_elsewhere():
    facts = ModelFacts(provider="p", name="m", input_price=1.0, output_price=2.0)
    usage = Usage(input=1_000_000, output=500_000, searches=3)
    vendor = Endpoint(provider="p", kind="anthropic", base_url="https://api.anthropic.com")
    other = Endpoint(provider="p", kind="anthropic", base_url="https://gateway.example")
    assert priced(usage, facts, vendor.search_price).cost == pytest.approx(2.03)
    assert priced(usage, facts, vendor.search_price).search_cost == pytest.approx(0.03)
    assert (priced(usage, facts, other.search_price).cost, other.search_price) == (pytest.approx(2.0), None)
    both = priced(usage, facts, 0.01) + priced(usage, facts, 0.01)
    assert (both.searches, both.search_cost) == (6, pytest.approx(0.06))
    assert (both - priced(usage, facts, 0.01)).searches == 3


async def test_b15_cost_counts_searches_and_says_what_is_known_of_their_price(tmp_path: Path):
    async with agent(tmp_path, [SEARCHED], model="openai/test", environ=WANTED) as running:
        await running.ask("when?")
        [said] = await run_cost(running.runtime, "")
        assert isinstance(said, Say)
        assert "web searches 1 (their price is not known)" in said.text


def test_b15_a_digest_without_a_model_has_what_was_searched():
    found = WebSearch(id="s", query="clock drift", sources=(WebSource("https://a.example/x", "On clocks"),), done=True)
    part = OpaquePart(provider="p", block=msgspec.Raw(b"{}"), search=found)
    asked = UserMessage(seq=1, parts=(TextPart(text="Why does the clock drift away?"),))
    answer = AssistantMessage(seq=2, parts=(part, TextPart(text="It is the crystal.")))
    shown = digest_entries([asked, answer], SessionData(), "", 2_000)
    assert "- Call: [Searched]: clock drift → On clocks <https://a.example/x>" in shown
