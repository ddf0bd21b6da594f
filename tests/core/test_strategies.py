"""Strategies at work: of the settings, of the Python API, somebody else's, and ones that misbehave (seed 004)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import tenuto
from tenuto.compaction.strategy import (
    CompactionContext,
    DigestCompaction,
    HidingThenSummaryCompaction,
    LLMSummaryCompaction,
    Message,
    ToolResultHidingCompaction,
)
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, NoticeEvent
from tenuto.protocol.message import CompactionEntry, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import ModelRequest
from tenuto.protocol.part import TextPart, text_of
from tests.core.compacting import SUMMARY, is_summary_request, words
from tests.core.harness import agent, reopened
from tests.server import Call, Reply, Request, ScriptedServer
from tests.session.build import check_pairs

ROOMY = {"window": 100_000}
SEED_TEXT = """
from collections.abc import Sequence
from tenuto.compaction.strategy import CompactionContext, CompactionOutput, Message, system


class ToolResultHiding:
    preserve_recent_n = 5

    async def compact(self, ctx: CompactionContext) -> CompactionOutput:
        groups = [{tc.id for tc in msg.tool_calls} for msg in ctx.history if msg.role == "assistant" and msg.tool_calls]
        old = set().union(*groups[: -self.preserve_recent_n])
        changed = False
        messages = []
        for msg in ctx.history:
            if msg.role == "tool" and msg.tool_call_id in old:
                msg = Message(role="tool", tool_call_id=msg.tool_call_id, content=[system("历史 tool_call已隐藏")])
                changed = True
            messages.append(msg)
        return messages if changed else None
"""


def reads(count: int, tokens: int = 500):
    """Read one file `count` times, then answer; summaries on demand."""

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        done = sum(item.kind == "result" for item in request.turn)
        asked = [item.text for item in request.items if item.kind == "user"][-1]
        if "STEPS" in asked and done < count:
            return Reply(f"Reading, {done}.", tool_calls=[Call("read", {"path": "big.txt"})])
        return Reply("done " + words(20))

    return script, tokens


def write_file(tmp_path: Path, tokens: int) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "big.txt").write_text("\n".join([words(50)] * (tokens // 50)))


def entries(running, kind):
    return [entry for entry in running.session.path() if isinstance(entry, kind)]


async def compacted(running, focus: str = "") -> CompactionEndEvent:
    before = len(running.of(CompactionEndEvent))
    await running.runtime.run_command(f"/compact {focus}".strip())
    return await running.until(CompactionEndEvent, before + 1)


async def test_the_seeds_own_class_runs_unchanged(tmp_path, monkeypatch):
    (tmp_path / "seed_strategy.py").write_text(SEED_TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    script, tokens = reads(9)
    write_file(tmp_path, tokens)
    environ = {"TENUTO_COMPACTION__STRATEGY": "seed_strategy:ToolResultHiding"}
    async with agent(tmp_path, script, options={"window": 100_000}, environ=environ) as running:
        await running.ask("STEPS please")
        view = running.session.get_llm_history()
        end = await compacted(running)
        assert end.error is None
        after = running.session.get_llm_history()
        check_pairs(after)
        assert len(after) == len(view)
        hidden = [m for m in after if isinstance(m, ToolResultMessage) and "已隐藏" in text_of(m.parts)]
        assert len(hidden) == 4
        (entry,) = entries(running, CompactionEntry)
        assert entry.rung == "ToolResultHiding"
        assert (await running.ask("go on")).outcome == "completed"
        assert "已隐藏" in running.server.requests[-1].raw.decode()
        again = await compacted(running)
        assert again.entry is None, "nothing is left to hide: no change"
        await running.runtime.close()
        async with reopened(tmp_path, running.server, resume_latest=True) as later:
            assert later.session.get_llm_history()[: len(after)] == after


async def test_hiding_is_a_view_edit_that_survives_a_restart_and_can_be_undone(tmp_path):
    script, tokens = reads(9)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 100_000}, compaction=ToolResultHidingCompaction()) as running:
        await running.ask("STEPS please")
        before = list(running.session.get_llm_history())
        end = await compacted(running)
        assert end.entry is not None
        assert (end.entry.rung, end.error) == ("hide", None)
        assert end.tokens_after < end.tokens_before
        (edit,) = entries(running, ViewEditEntry)
        assert not entries(running, CompactionEntry)
        assert len(edit.edits) == 4
        hidden = list(running.session.get_llm_history())
        assert hidden != before
        await running.runtime.close()
        async with reopened(tmp_path, running.server, resume_latest=True) as later:
            assert list(later.session.get_llm_history()) == hidden
            shown = later.of(CompactionEndEvent)
            assert [event.entry.rung for event in shown if event.entry] == ["hide"], "the resumed transcript shows it"
            await later.runtime.run_command("/compact undo")
            assert list(later.session.get_llm_history()) == before
            await later.runtime.run_command("/compact redo")
            assert list(later.session.get_llm_history()) == hidden


async def test_r001_where_a_strategy_leaves_a_full_window_as_it_is_the_ladder_stands_in(tmp_path):
    """Hiding alone has nothing to hide in a talk without calls; the prompt was given back, or sent and refused."""
    script = [Reply("fine " * 250)] * 40

    def answer(request: Request) -> Reply:
        return Reply(SUMMARY) if is_summary_request(request) else script.pop()

    options = {"window": 10_000, "listed_window": 10_000}
    async with agent(tmp_path, answer, options=options, compaction=ToolResultHidingCompaction()) as running:
        for number in range(30):
            settled = await running.ask(f"question {number} " + "because " * 60)
            assert settled.outcome == "completed", settled.error
        assert not running.server.refusals
        assert {entry.rung for entry in entries(running, CompactionEntry)} <= {"same prefix", "serialised", "digest"}
        assert entries(running, CompactionEntry)


async def test_hiding_first_and_a_summary_when_nothing_is_left_to_hide(tmp_path):
    script, tokens = reads(9, 2_000)
    write_file(tmp_path, tokens)
    async with agent(
        tmp_path, script, options={"window": 100_000}, compaction=HidingThenSummaryCompaction()
    ) as running:
        await running.ask("STEPS please")
        assert (await compacted(running)).entry.rung == "hide"
        assert not [request for request in running.server.requests if is_summary_request(request)]
        assert (await compacted(running)).entry.rung == "serialised"


async def test_the_ladder_hides_when_the_cache_is_cold(tmp_path):
    """Warm: a summary, because a changed prefix costs more than it saves. Cold: the placeholders are for nothing."""
    now = [1_000_000.0]
    script, tokens = reads(9, 1_200)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 21_334}, clock=lambda: now[0]) as running:
        await running.ask("STEPS please")
        assert not running.of(CompactionEndEvent), "under the trigger still"
        await running.ask("more " + words(1_000))
        now[0] += 3_600
        rungs = []
        for number in range(6):
            await running.ask(f"question {number} " + words(900))
            now[0] += 3_600
            rungs = [event.entry.rung for event in running.of(CompactionEndEvent) if event.entry]
            if rungs:
                break
        assert rungs == ["hide"]
        assert not [request for request in running.server.requests if is_summary_request(request)]


async def test_a_digest_strategy_asks_no_model(tmp_path):
    script, tokens = reads(12)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 21_334}, compaction=DigestCompaction()) as running:
        await running.ask("STEPS please")
        assert (await compacted(running)).entry.rung == "digest"
        assert not [request for request in running.server.requests if is_summary_request(request)]


class Own:
    """A strategy of somebody else: returns, raises or does what it is told."""

    def __init__(self, action) -> None:
        self.action = action
        self.contexts: list[CompactionContext] = []

    async def compact(self, ctx: CompactionContext):
        self.contexts.append(ctx)
        result = self.action(ctx)
        return await result if asyncio.iscoroutine(result) else result


def boom(_ctx):
    raise ValueError("a fault in my strategy")


def orphan(ctx):
    result = next(message for message in ctx.history if message.role == "tool")
    return [ctx.history[0], result, *ctx.history[-2:]]


def longer(ctx):
    return [*ctx.history, Message(role="user", content="more " * 500)]


@pytest.mark.parametrize(
    ("action", "words_told"),
    [
        (boom, "a fault in my strategy"),
        (orphan, "without its call"),
        (longer, "smaller"),
        (lambda _ctx: "a text", "returned str"),
        (lambda _ctx: [1, 2], "returns messages"),
        (lambda ctx: [*ctx.history[-2:], *ctx.history[1:3]], "order"),
    ],
)
async def test_a_strategy_that_misbehaves_is_named_and_the_ladder_goes_on(tmp_path, action, words_told):
    script, tokens = reads(12)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 21_334}, compaction=Own(action)) as running:
        await running.ask("STEPS please")
        end = await compacted(running)
        assert end.entry is not None
        assert end.entry.rung in {"serialised", "same prefix"}
        told = [event.text for event in running.of(NoticeEvent) if "Own" in event.text]
        assert len(told) == 1
        assert words_told in told[0]
        assert (await running.ask("go on")).outcome == "completed"


async def test_a_strategy_gets_the_seeds_fields_and_may_ask_the_model_itself(tmp_path):
    async def ask(ctx: CompactionContext):
        request = ModelRequest(
            model=ctx.llm.facts,
            messages=(SystemMessage(text="s"), UserMessage(parts=(TextPart(text="MY-OWN-REQUEST"),))),
        )
        async for _part in ctx.llm.client.stream(request):
            pass
        return [ctx.history[0], Message(role="user", content="my own notes"), *ctx.history[-1:]]

    own = Own(ask)
    script, tokens = reads(12)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 21_334}, compaction=own) as running:
        await running.ask("STEPS please")
        size = running.runtime.live.measure().tokens
        end = await compacted(running, "keep the names")
        (ctx,) = own.contexts
        assert (ctx.token_count, ctx.max_context_size, ctx.focus, ctx.reason) == (
            size,
            21_334,
            "keep the names",
            "manual",
        )
        assert ctx.reserved_context_size == 21_334 - running.runtime.live.budget().trigger
        assert ctx.cache.is_warm
        assert not ctx.cancel.is_set()
        assert "MY-OWN-REQUEST" in running.server.requests[-1].raw.decode()
        assert end.entry.usage is not None, "what a strategy asks the model costs, and is counted"
        view = running.session.get_llm_history()
        assert [message.role for message in view] == ["system", "user", "assistant"]


async def test_another_strategy_is_asked_once_more_when_it_was_not_enough(tmp_path):
    own = Own(lambda ctx: [ctx.history[0], *ctx.history[3:]] if len(ctx.history) > 6 else None)
    async with agent(
        tmp_path,
        lambda r: Reply(SUMMARY) if is_summary_request(r) else Reply(words(700)),
        options={"window": 10_667},
        compaction=own,
    ) as running:
        for number in range(14):
            assert (await running.ask(f"question {number}")).outcome == "completed"
            if running.of(CompactionStartEvent):
                break
        assert 1 <= len(own.contexts) <= 2


async def test_a_cancelled_strategy_is_told_and_leaves_nothing(tmp_path):
    own = Own(lambda _ctx: asyncio.sleep(600))
    script, tokens = reads(6)
    write_file(tmp_path, tokens)
    async with agent(tmp_path, script, options={"window": 21_334}, compaction=own) as running:
        await running.ask("STEPS please")
        before = len(list(running.session.path()))
        work = asyncio.ensure_future(running.runtime.run_command("/compact"))
        await running.until(CompactionStartEvent)
        await asyncio.sleep(0.1)
        from tenuto.protocol.operation import InterruptOperation

        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        end = await running.until(CompactionEndEvent)
        await work
        assert end.aborted
        assert own.contexts[0].cancel.is_set()
        assert len(list(running.session.path())) == before


@pytest.mark.parametrize("name", ["nowhere:Mine", "tenuto.compaction.strategy:Nothing", "just-a-word"])
async def test_a_bad_name_is_told_once_and_the_ladder_is_used_meanwhile(tmp_path, name):
    script, tokens = reads(12)
    write_file(tmp_path, tokens)
    environ = {"TENUTO_COMPACTION__STRATEGY": name}
    async with agent(tmp_path, script, options={"window": 21_334}, environ=environ) as running:
        await running.ask("STEPS please")
        for _round in range(2):
            await compacted(running)
        told = [event for event in running.of(NoticeEvent) if "compaction.strategy" in event.text]
        assert len(told) == 1
        assert told[0].level == "error"
        assert entries(running, CompactionEntry)


async def test_an_argument_of_the_python_api_wins(tmp_path):
    own = Own(lambda ctx: LLMSummaryCompaction().compact(ctx))
    (tmp_path / "work").mkdir()
    script, tokens = reads(12)
    write_file(tmp_path, tokens)
    async with ScriptedServer(script, window=21_334) as server:
        environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.base_url}/v1", "HOME": str(tmp_path)}
        async with tenuto.Agent(
            tmp_path / "work", model="openai-chat/test", home=tmp_path / "home", environ=environ, compaction=own
        ) as running:
            await running.run("STEPS please")
            entry = await running.compact()
        assert len(own.contexts) == 1
        assert entry is not None
        assert entry.rung == "serialised"
        assert "## " in entry.summary


DOCUMENT = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text(encoding="utf-8")
CHAPTER = DOCUMENT.partition("## Compaction strategies")[2]


def example(kind: str) -> str:
    return CHAPTER.partition(f"```{kind}\n")[2].partition("```")[0]


async def test_the_example_of_the_document_works_as_it_is_printed(tmp_path):
    home = tmp_path / "home"
    (home / "strategies").mkdir(parents=True)
    (home / "strategies" / "mine.py").write_text(example("python"), encoding="utf-8")
    (home / "settings.toml").write_text(example("toml"), encoding="utf-8")
    (tmp_path / "work").mkdir()

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        done = sum(item.kind == "result" for item in request.items)
        if done < 5:
            return Reply("Counting.", tool_calls=[Call("bash", {"command": f"seq {done}00 {done}99999 | head -900"})])
        return Reply("done " + words(20))

    async with agent(tmp_path, script, options=ROOMY) as running:
        assert (await running.ask("count")).outcome == "completed"
        end = await compacted(running)
        assert end.entry is not None, end.error
        assert end.entry.rung == "HideOldOutputs"
        shown = [m for m in running.session.get_llm_history() if isinstance(m, ToolResultMessage)]
        assert ["An old output" in text_of(m.parts) for m in shown] == [True] * 3 + [False] * 2
        assert (await running.ask("go on")).outcome == "completed"
        assert (await compacted(running)).entry.rung != "HideOldOutputs"


def test_the_document_names_every_built_in_strategy_and_every_field():
    import dataclasses

    import tenuto.compaction.strategy as public
    from tenuto.protocol.compaction import CompactionOutcome

    for name in public.__all__:
        if name.endswith("Compaction"):
            assert f"`{name}`" in CHAPTER
    for field in dataclasses.fields(CompactionContext):
        assert f"`{field.name}`" in CHAPTER, field.name
    for name in CompactionOutcome.__struct_fields__:
        assert f"`{name}`" in CHAPTER or name in {"provider_items", "from_extension"}, name
