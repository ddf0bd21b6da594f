"""The offline model drives the real tools on real files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.offline import FACTS, HELP, OfflineClient, answer, parse
from tenuto.protocol.message import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest, StreamPart, TextDelta
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.session.session import Session
from tenuto.tool.run.context import ToolContext
from tenuto.tool.run.registry import ToolRegistry
from tenuto.tool.run.runner import prepare, run_call
from tests.program import TENUTO
from tests.terminal.screen import source_path


class Talk:
    """Ask, and let the tools run until the model has nothing more to call; without the core."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.client = OfflineClient()
        self.facts = FACTS
        self.registry = ToolRegistry()
        self.context = ToolContext(session=Session.create(home, cwd))
        self.messages: list[Message] = [SystemMessage(text="You are an agent.", seq=1)]
        self.deltas: list[StreamPart] = []

    async def ask(self, text: str) -> str:
        self.say(text)
        for _ in range(20):
            message = await self.step()
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            if not calls:
                return text_of(message.parts)
            for call in calls:
                self.add(await self.run(call))
        raise AssertionError("the model does not come to an end")

    def say(self, text: str) -> None:
        self.add(UserMessage(parts=(TextPart(text=text),)))

    def add(self, message: Message) -> None:
        self.messages.append(msgspec.structs.replace(message, seq=self.messages[-1].seq + 1))

    @property
    def request(self) -> ModelRequest:
        return ModelRequest(model=self.facts, messages=tuple(self.messages), tools=self.registry.schemas())

    async def step(self) -> AssistantMessage:
        self.deltas = [part async for part in self.client.stream(self.request)]
        finished = self.deltas.pop()
        assert isinstance(finished, Finished)
        streamed = "".join(part.text for part in self.deltas if isinstance(part, TextDelta))
        assert streamed == text_of(finished.message.parts)
        self.add(finished.message)
        return finished.message

    async def run(self, call: ToolCallPart) -> ToolResultMessage:
        prepared = await prepare(call, self.registry, self.context)
        if isinstance(prepared, ToolResultMessage):
            return prepared
        return await run_call(prepared, self.context, emit=lambda _: None)

    @property
    def calls(self) -> list[ToolCallPart]:
        answers = [message for message in self.messages if isinstance(message, AssistantMessage)]
        return [part for said in answers for part in said.parts if isinstance(part, ToolCallPart)]


@pytest.fixture
def talk(tmp_path: Path, sample_repo: Path) -> Talk:
    return Talk(tmp_path / "home", sample_repo)


@pytest.mark.parametrize(
    "text", ["hello", "refactor this, with taste", "make it", "write a poem: of bees", "read", "写"]
)
async def test_everything_else_gets_the_help_and_touches_nothing(talk: Talk, text: str) -> None:
    said = await talk.ask(text)
    for expected in ("not a language model", "`read FILE`", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "/model"):
        assert expected in said
    assert talk.calls == []
    assert sum(isinstance(part, TextDelta) for part in talk.deltas) > 5


@pytest.mark.parametrize(
    ("text", "tools", "words"),
    [
        ("list", ["glob"], ["README.md", "shop/price.py"]),
        ("List shop", ["glob"], ["price.py"]),
        ("list nowhere", ["glob"], ["failed", "nowhere"]),
        ("read shop/price.py", ["read"], ["What an order costs.", "first 12 of"]),
        ("read `shop/price.py`", ["read"], ["What an order costs."]),
        ("read shop/price.py:9-10", ["read"], ["def total"]),
        ("read nothing.txt", ["read"], ["failed", "nothing.txt does not exist"]),
        ("search discount in shop", ["grep"], ["shop/price.py"]),
        ("search the discount", ["grep"], ["`the discount`"]),
        ("search dis.ount", ["grep"], ["No match"]),
        ("run echo one two", ["bash"], ["one two"]),
        ("run `ls; echo missing >&2; exit 7`", ["bash"], ["missing", "Exit code 7"]),
        ("run seq 100", ["bash"], ["last 12 of 101", "\n100\n"]),
    ],
)
async def test_a_verb_makes_its_call_and_shows_the_result(
    talk: Talk, text: str, tools: list[str], words: list[str]
) -> None:
    said = await talk.ask(text)
    assert [call.name for call in talk.calls] == tools
    for word in words:
        assert word in said, said


async def test_it_replaces_a_text_in_a_file_that_it_reads_first(talk: Talk, sample_repo: Path) -> None:
    said = await talk.ask("replace `(1 - discount) * (1 - discount)` by `(1 - discount)` in shop/price.py")
    assert [call.name for call in talk.calls] == ["read", "edit"]
    assert "Done" in said
    assert "return round(amount * (1 - discount), 2)" in (sample_repo / "shop/price.py").read_text()


async def test_an_ambiguous_replacement_is_refused_with_the_tools_reason(talk: Talk, sample_repo: Path) -> None:
    before = (sample_repo / "shop/price.py").read_text()
    assert "That failed" in await talk.ask("replace discount by rebate in shop/price.py")
    assert (sample_repo / "shop/price.py").read_text() == before


@pytest.mark.parametrize(
    "text", ["write notes/today.md: # Today\n\n- `ticks`", "write notes/today.md:\n# Today\n\n- `ticks`"]
)
async def test_it_writes_a_file(talk: Talk, sample_repo: Path, text: str) -> None:
    assert "Done" in await talk.ask(text)
    assert (sample_repo / "notes/today.md").read_text() == "# Today\n\n- `ticks`\n"


async def test_a_denied_call_is_taken_for_an_answer(talk: Talk) -> None:
    talk.say("replace a by b in README.md")
    (call,) = [part for part in (await talk.step()).parts if isinstance(part, ToolCallPart)]
    refusal = TextPart(text="Denied by the user: not now.")
    talk.add(ToolResultMessage(call_id=call.id, name="read", parts=(refusal,), is_error=True, denied=True))
    ending = await talk.step()
    assert ending.stop_reason == "end_turn"
    assert "not now" in text_of(ending.parts)


async def test_after_a_compaction_it_goes_on_with_the_same_prompt(talk: Talk) -> None:
    talk.say("read README.md")
    talk.add(UserMessage(parts=(TextPart(text="Continue."),), origin="continuation"))
    assert (await talk.step()).stop_reason == "tool_use"


async def test_the_same_conversation_gets_the_same_answer_and_ids_are_unique(talk: Talk) -> None:
    await talk.ask("replace Layout by Plan in README.md")
    await talk.ask("run echo hi")
    ids = [call.id for call in talk.calls]
    assert len(set(ids)) == len(ids) == 3
    talk.messages.pop()
    assert answer(talk.request) == answer(talk.request)


async def test_a_tool_that_is_not_there_is_named(talk: Talk) -> None:
    talk.say("run ls")
    request = msgspec.structs.replace(talk.request, tools=())
    finished = [part async for part in talk.client.stream(request)][-1]
    assert isinstance(finished, Finished)
    assert finished.message.stop_reason == "end_turn"
    assert "bash tool" in text_of(finished.message.parts)


async def test_a_request_over_the_window_is_an_overflow_with_both_numbers(talk: Talk) -> None:
    talk.facts = msgspec.structs.replace(FACTS, context_window=4_000)
    await talk.ask("hello")
    with pytest.raises(ModelError) as caught:
        await talk.ask("word " * 8_000)
    assert caught.value.kind == "overflow"
    assert caught.value.limit == 4_000
    assert caught.value.observed is not None
    assert caught.value.observed > 8_000


async def test_usage_is_what_count_says_and_facts_say_it_cannot_summarise(talk: Talk) -> None:
    talk.say("help")
    counted = await talk.client.count(talk.request)
    message = await talk.step()
    assert message.usage is not None
    assert message.usage.input == counted
    assert message.usage.output > 200
    assert message.usage.cost == 0
    (facts,) = await talk.client.models()
    assert (facts.id, facts.can_summarise) == ("offline/tenuto", False)
    await talk.client.close()


@given(st.text(max_size=300))
def test_any_text_is_understood_or_not(text: str) -> None:
    assert len(parse(text)) <= 2
    for verb in ("list ", "read ", "search ", "run ", "write ", "replace "):
        parse(verb + text)


@pytest.mark.parametrize(
    "text", ["replace " + "x by y " * 20_000, "search a" + " " * 90_000 + "b", "read " + ":1" * 50_000 + "x", HELP * 90]
)
def test_a_long_text_does_not_hang_the_parser(text: str) -> None:
    assert len(parse(text)) <= 1


@pytest.mark.parametrize(("word", "results"), [("@a.py", 0), ("@a.py:2-3", 0), ("a.py", 1)])
def test_a_file_that_went_along_with_the_prompt_is_not_read_a_second_time(
    tmp_path: Path, word: str, results: int
) -> None:
    (tmp_path / "a.py").write_text("def first(): ...\ndef second(): ...\ndef third(): ...\n")
    command = (*TENUTO, "--model", "offline/tenuto", "-p", f"read {word}")
    environ = {
        "TENUTO_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        **source_path(),
    }
    said = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True).stdout
    (log,) = tmp_path.glob("home/sessions/*/*/events.jsonl")
    entries = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    assert "second" in said
    assert ("first" in said) == (":" not in word)
    assert sum(entry.get("type") == "tool_result" for entry in entries) == results
