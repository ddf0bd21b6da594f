"""What a request looks like around a compaction, and what the user sees of it (R-048 to R-057)."""

from __future__ import annotations

import msgspec
import pytest

from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import TextPart, ThinkingPart
from tenuto.text.figures import format_seconds
from tenuto.tui.machine.step import step
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.effects import TranscriptReset
from tenuto.tui.state.item import AssistantItem, CompactionItem, UserItem
from tenuto.tui.state.state import UiState
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.examples import one_of
from tests.requirements.compaction.support import (
    FROM_A_TRANSCRIPT,
    LONG_ANSWER,
    SUMMARY,
    change_model,
    compact,
    compactions,
    ends,
    fill,
    step_requests,
    summary_requests,
    talk,
    write_big_file,
    write_settings,
)
from tests.server import Call, HttpError, Reply, Request, ScriptedServer

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 4_000

# --- R-048, R-049 ---


def check_pairs(request: Request) -> int:
    """Each answer's calls are followed by their results: once, all of them, before anything else comes."""
    waiting: list[str] = []
    pairs = 0
    for item in request.items:
        if item.kind == "call":
            waiting.append(item.call_id)
        elif item.kind == "result":
            assert item.call_id in waiting, "a result without its call, or twice"
            waiting.remove(item.call_id)
            pairs += 1
        elif item.kind != "thinking":
            assert not waiting, f"{item.kind} between a call and its result"
    assert not waiting
    return pairs


def parallel_reads(steps: int):
    """Three calls a step, of different sizes, so that the cut has every chance to fall between their results."""
    taken = 0

    def answer(_request: Request) -> Reply:
        nonlocal taken
        taken += 1
        if taken > steps:
            return Reply("done")
        sizes = (5, 60 + 13 * (taken % 7), 20)
        calls = [Call("read", {"path": "big.txt", "offset": taken + n, "limit": size}) for n, size in enumerate(sizes)]
        return Reply(f"step {taken}", tool_calls=calls)

    return answer


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_r048_r049_parallel_calls_stay_pairs_through_many_compactions(tmp_path, protocol):
    write_big_file(tmp_path)
    model = f"{protocol}/test"
    async with agent(tmp_path, talk(parallel_reads(40)), model=model, options={"window": 16_000}) as running:
        settled = await running.ask("read it in pieces", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(compactions(running)) >= 3
        assert sum(check_pairs(request) for request in step_requests(running)) > 100
        assert not running.server.refusals


# --- R-050, R-051 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r050_the_summary_request_carries_no_thinking_blocks(tmp_path, protocol):
    thought = Reply(LONG_ANSWER, thinking="Let me think about the parser. " * 40)
    write_settings(tmp_path, f'[models."{protocol}/test"]\nthinking = true\n')
    changes = {"model": f"{protocol}/test", "options": {"window": 32_000}, "environ": FROM_A_TRANSCRIPT}
    async with agent(tmp_path, talk(thought), **changes) as running:
        await fill(running)
        await compact(running)
        (request,) = summary_requests(running)
        assert not any(item.kind == "thinking" for item in request.items)
        for field in (b'"signature"', b'"encrypted_content":"', b"reasoning_content"):
            assert field not in request.raw
        assert compactions(running)[0].rung == "serialised"


async def test_r050_signatures_hold_through_compactions_in_mid_task(tmp_path):
    """The server holds every returned block against the exact prefix that it was made after."""
    write_big_file(tmp_path)
    plain = parallel_reads(30)

    def thinking(request: Request) -> Reply:
        reply = plain(request)
        reply.thinking = "Where was I? " * 20
        return reply

    write_settings(tmp_path, '[models."anthropic/test"]\nthinking = true\n')
    options = {"window": 16_000, "check_thinking": True}
    async with agent(tmp_path, talk(thinking), model="anthropic/test", options=options) as running:
        settled = await running.ask("read it", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(compactions(running)) >= 2
        assert not running.server.refusals
        assert any(item.kind == "thinking" for request in step_requests(running) for item in request.items)


async def test_r050_a_refused_signature_leads_to_one_retry_without_and_is_not_sent_again(tmp_path):
    """The provider no longer takes the first answer's thinking, whenever it comes."""
    write_big_file(tmp_path, 20)
    write_settings(tmp_path, '[models."anthropic/test"]\nthinking = true\n')
    refused = 0
    steps = 0

    def answer(request: Request):
        nonlocal refused, steps
        if any(item.kind == "thinking" and "first thought" in item.text for item in request.items):
            refused += 1
            return HttpError(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
        steps += 1
        if steps > 5:
            return Reply("done")
        thought = "the first thought" if steps == 1 else f"thought {steps}"
        return Reply("", thinking=thought, tool_calls=[Call("read", {"path": "big.txt", "offset": steps})])

    async with agent(tmp_path, talk(answer), model="anthropic/test") as running:
        settled = await running.ask("read it")
        assert settled.outcome == "completed", settled.error
        assert refused == 1
        assert not running.server.refusals
        stored = [entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]
        assert any(isinstance(part, ThinkingPart) for part in stored[0].parts), "the history keeps what was said"


async def test_r050_thinking_refused_twice_is_an_error(tmp_path):
    write_settings(tmp_path, '[models."anthropic/test"]\nthinking = true\n')
    first = Reply("", thinking="hm", tool_calls=[Call("glob", {"pattern": "*"})])
    refusal = HttpError(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
    async with agent(tmp_path, [first, refusal, refusal], model="anthropic/test") as running:
        assert (await running.ask("go")).outcome == "failed"
        assert len(running.server.requests) == 3


@pytest.mark.parametrize("other", ["openai/test-small", "anthropic/test", "openai-chat/test"])
async def test_r051_encrypted_reasoning_stays_with_its_model_and_the_text_goes_along(tmp_path, other):
    write_settings(tmp_path, '[models."openai/test"]\nthinking = true\n[models."openai/test-small"]\nthinking = true\n')
    thought = Reply("The parser is at fault.", thinking="secret reasoning " * 20)
    async with agent(tmp_path, talk(thought), model="openai/test") as running:
        await fill(running, 3, words=5)
        assert b"encrypted_content" in running.server.requests[-1].raw
        await change_model(running, other)
        settled = await running.ask("and you?")
        assert settled.outcome == "completed", settled.error
        switched = running.server.requests[-1]
        assert not any(item.kind == "thinking" for item in switched.items)
        assert b'"encrypted_content":"' not in switched.raw
        assert switched.raw.count(b"The parser is at fault.") == 3
        assert not running.server.refusals


# --- R-052 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r052_the_summary_request_carries_no_images(tmp_path, protocol):
    changes = {"model": f"{protocol}/test", "options": {"window": 64_000}, "environ": FROM_A_TRANSCRIPT}
    async with agent(tmp_path, talk(), **changes) as running:
        image = running.session.store.save_image(PNG, "image/png", name="shot.png")
        for number in range(4):
            await running.runtime.submit_prompt((TextPart(text=f"screenshot {number}"), image))
            await running.runtime.wait_settled()
        assert sum(item.images for item in step_requests(running)[-1].items) == 4
        await fill(running, 6)
        await compact(running)
        (request,) = summary_requests(running)
        assert sum(item.images for item in request.items) == 0
        assert len(request.raw) < 60_000
        assert "[image: shot.png]" in request.items[-1].text
        assert "screenshot 3" in request.items[-1].text


# --- what the user sees ---


class Screen:
    """The transcript as the machine and the renderer show it, live or replayed."""

    def __init__(self, running: Agent) -> None:
        self.state = UiState()
        self.cleared = False
        for number, event in enumerate(running.events):
            _, effects = step(self.state, event, 100.0 + number, 80)
            if self.state.transcript.items and not self.state.replaying:
                self.cleared |= any(isinstance(effect, TranscriptReset) for effect in effects)

    @property
    def items(self) -> list[object]:
        return list(self.state.transcript.items.values())

    def of(self, kind: type) -> list:
        return [item for item in self.items if isinstance(item, kind)]

    def text_of(self, item) -> str:
        lines = render_item(item, 100, RenderOptions(detail="expanded", now=1_000.0))
        return "\n".join("".join(text for text, _style in line.spans) for line in lines)


async def converse_and_compact(running: Agent) -> None:
    live = running.runtime.live
    live.model.facts = msgspec.structs.replace(live.facts, input_price=3.0, output_price=15.0)
    await fill(running)
    await compact(running, "the parser")


SUMMARY_SECONDS = 0.3


@pytest.mark.parametrize("resumed", [False, True])
async def test_r055_why_sizes_time_cost_and_summary_can_be_seen(tmp_path, resumed):
    async with ScriptedServer(talk(summary=Reply(SUMMARY, delay=SUMMARY_SECONDS)), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await converse_and_compact(running)
            (entry,) = compactions(running)
            (end,) = ends(running)
            assert (end.reason, end.tokens_before, end.tokens_after) == (
                "manual",
                entry.tokens_before,
                entry.tokens_after,
            )
            screen = Screen(running)
        if resumed:
            async with reopened(tmp_path, server, resume_latest=True) as again:
                screen = Screen(again)
    (item,) = screen.of(CompactionItem)
    shown = screen.text_of(item)
    head = shown.splitlines()[0]
    assert "manual" in head
    assert f"{entry.tokens_before / 1000:.0f}k" in head
    assert "→" in head
    assert entry.duration >= SUMMARY_SECONDS
    assert format_seconds(entry.duration) in head
    assert "$" in head
    assert entry.usage is not None
    assert entry.usage.cost
    for line in ("Keep the tests green", "small steps"):
        assert line in shown


async def test_r057_the_older_conversation_stays_on_the_screen(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await converse_and_compact(running)
            live = Screen(running)
        async with reopened(tmp_path, server, resume_latest=True) as again:
            resumed = Screen(again)
    assert not live.cleared
    for screen in (live, resumed):
        assert [item.text.split(" because")[0] for item in screen.of(UserItem)] == [f"question {n}" for n in range(6)]
        assert [item.text for item in screen.of(AssistantItem)] == [LONG_ANSWER] * 6
        assert isinstance(screen.items[-1], CompactionItem), "and the block stands below it"
