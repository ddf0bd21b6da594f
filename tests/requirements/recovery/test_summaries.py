"""How a summary is asked for: in place with the bytes of the request before, folded, by another model (T-20, R-058)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import CompactionEntry, NameAudit
from tenuto.session.session import Session
from tests.core.compacting import (
    FROM_A_TRANSCRIPT,
    SUMMARY,
    compact,
    compactions,
    is_in_place,
    is_summary_request,
    summary_requests,
    talk,
)
from tests.core.harness import PROTOCOLS, agent
from tests.examples import one_of
from tests.requirements.compaction.support import write_settings
from tests.requirements.recovery.ladder import Answering, with_history, words
from tests.requirements.recovery.test_prefix import ASIDE, text_before_the_end
from tests.server import Call, HttpError, Reply, Request


def without_marks(request: Request) -> bytes:
    return ASIDE.sub(b"", request.raw)


def steps(count: int, width: int, lines: Callable[[int], int]) -> Answering:
    """Work for `count` steps with `width` calls each, the results so many lines long; then only talk."""
    taken = 0

    def answer(_request: Request) -> Reply:
        nonlocal taken
        taken += 1
        if taken > count:
            return Reply("done")
        calls = [
            Call("bash", {"command": f"echo CALL-{taken * width + place}; seq 1 {lines(place)}"})
            for place in range(width)
        ]
        return Reply(f"step {taken}", tool_calls=calls)

    return answer


# --- T-20, R-058, R-050 ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t20_r058_at_140k_the_summary_request_begins_with_the_bytes_of_the_request_before(tmp_path, protocol):
    """Thinking goes along as it was: the server holds each signature against what stands before it (R-050)."""
    answer = Reply(words(600), thinking="It is the parser. " * 10, chunk_size=4_000)
    write_settings(tmp_path, f'[models."{protocol}/test"]\nthinking = true\n')
    options = {"window": 200_000, "check_thinking": True}
    async with agent(tmp_path, talk(answer), model=f"{protocol}/test", options=options) as running:
        for number in range(14):
            assert (await running.ask(f"question {number} {words(9_300)}")).outcome == "completed"
        before = running.server.requests[-1]
        assert before.tokens > 135_000
        await compact(running, "the API names")
        (asked,) = summary_requests(running.server)
        assert without_marks(asked).startswith(text_before_the_end(before))
        assert asked.prefix_items[: len(before.prefix_items)] == before.prefix_items
        assert asked.body.get("tools") == before.body["tools"]
        assert asked.items[-1].kind == "user"
        assert "Additional focus: the API names" in asked.items[-1].text
        thoughts = [item for item in asked.items if item.kind == "thinking"]
        assert len(thoughts) == (0 if protocol == "openai-chat" else 14), (
            "this wire gives thoughts back with calls only"
        )
        (entry,) = compactions(running)
        assert entry.rung == "same prefix"
        assert entry.usage.cache_read > 0.9 * entry.usage.sent, "what is paid for"
        assert not running.server.refusals


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_r058_between_two_steps_too(tmp_path, protocol):
    """The view ends with results then; they and the request for notes are one message where a wire wants that."""

    answer = steps(10, 2, lambda _place: 2_500)
    options = {"window": 21_334, "check_thinking": True}
    async with agent(tmp_path, talk(answer), model=f"{protocol}/test", options=options) as running:
        settled = await running.ask("work", timeout=60)
        assert settled.outcome == "completed", settled.error
        made = compactions(running)
        assert made
        assert {entry.rung for entry in made} == {"same prefix"}
        asked = [place for place, request in enumerate(running.server.requests) if is_summary_request(request)]
        for place in asked:
            before, summary = running.server.requests[place - 1 : place + 1]
            assert summary.prefix_items[: len(before.prefix_items)] == before.prefix_items
        assert not running.server.refusals


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r008_the_output_limit_in_place_is_that_of_the_next_step(tmp_path, protocol):
    async with agent(
        tmp_path, talk(Reply(words(900))), model=f"{protocol}/test", options={"window": 64_000}
    ) as running:
        for number in range(6):
            await running.ask(f"question {number} {words(400)}")
        before = running.server.requests[-1]
        await compact(running)
        (asked,) = summary_requests(running.server)
        limits = [
            next((value for name, value in body.items() if name.startswith("max_")), None)
            for body in (before.body, asked.body)
        ]
        assert limits[0] == limits[1]


# --- in parts ---

CALLS = re.compile(r"command=\"echo (CALL-\d+)")
RESULTS = re.compile(r"\[Tool result\]: (CALL-\d+)")


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_r001_a_small_summariser_folds_the_history_and_no_part_divides_a_step(tmp_path, protocol):
    """Each part is within its window, begins with the notes of the one before, and has whole steps."""
    write_settings(
        tmp_path,
        f'[compaction]\nmodel = "{protocol}/test-small"\n'
        f'[models."{protocol}/test-small"]\ncontext_window = 8000\nmax_output_tokens = 1000\n',
    )

    answer = steps(10, 3, lambda place: 300 + 90 * place)
    options = {"listed_window": 200_000}
    async with agent(tmp_path, talk(answer), model=f"{protocol}/test", options=options) as running:
        await running.ask("work", timeout=60)
        await running.ask(f"thank you {words(6_000)}")
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "serialised"
        parts = summary_requests(running.server)
        assert len(parts) > 2
        assert {part.body["model"] for part in parts} == {"test-small"}
        assert all(part.tokens + 1_000 <= 8_000 for part in parts)
        texts = [part.items[-1].text for part in parts]
        assert "Keep the tests green" not in texts[0]
        assert all("Keep the tests green" in text for text in texts[1:])
        for text in texts:
            calls = set(CALLS.findall(text))
            assert calls == set(RESULTS.findall(text)), "a call stands with its result"
        assert len({name for text in texts for name in RESULTS.findall(text)}) >= 24
        assert not running.server.refusals


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r002_a_refused_request_in_place_is_not_made_again_but_asked_for_with_less(tmp_path, protocol):
    def summary(request: Request):
        if is_in_place(request):
            return HttpError(400, "prompt is too long: 40000 tokens > 30000 maximum")
        return Reply(SUMMARY)

    async with agent(tmp_path, talk(summary=summary), model=f"{protocol}/test", options={"window": 64_000}) as running:
        for number in range(6):
            await running.ask(f"question {number} {words(600)}")
        await compact(running)
        asked = [is_in_place(request) for request in summary_requests(running.server)]
        assert asked == [True, False]
        assert compactions(running)[0].rung == "serialised"


# --- R-042 ---


async def test_r042_a_summariser_without_its_key_is_named_and_the_main_model_summarises_in_place(tmp_path):
    write_settings(
        tmp_path,
        '[compaction]\nmodel = "elsewhere/small"\n[providers.elsewhere]\n'
        'base_url = "https://models.example/v1"\napi_key_env = "ELSEWHERE_KEY"\n',
    )
    async with with_history(tmp_path, talk("fine"), 12, options={"window": 21_334}) as running:
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "same prefix"
        told = [event.text for event in running.of(NoticeEvent) if "elsewhere/small" in event.text]
        assert len(told) == 1
        assert "ELSEWHERE_KEY" in told[0]
        assert "openai-chat/test" in told[0]


async def test_r042_a_summariser_whose_window_is_far_too_small_is_named_with_both_sizes(tmp_path):
    write_settings(
        tmp_path,
        '[compaction]\nmodel = "openai-chat/test-small"\n[models."openai-chat/test-small"]\ncontext_window = 2000\n',
    )
    async with with_history(tmp_path, talk("fine"), 30, options={"window": 64_000}) as running:
        await compact(running)
        assert {request.body["model"] for request in summary_requests(running.server)} == {"test"}
        (told,) = [event.text for event in running.of(NoticeEvent) if "test-small" in event.text]
        assert "2,000" in told
        assert "openai-chat/test summarises" in told


async def test_r042_a_summariser_that_fails_is_named_and_the_main_model_takes_over(tmp_path):
    write_settings(tmp_path, '[compaction]\nmodel = "openai-chat/test-small"\n')

    def summary(request: Request):
        return HttpError(404, "no such model") if request.body["model"] == "test-small" else Reply(SUMMARY)

    async with with_history(tmp_path, talk("fine", summary), 12, options={"window": 21_334}) as running:
        await compact(running)
        assert [request.body["model"] for request in summary_requests(running.server)] == ["test-small", "test"]
        assert compactions(running)[0].rung == "serialised"
        assert [event.text for event in running.of(NoticeEvent) if "test-small could not" in event.text]


# --- R-010 in place, and the audit ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r010_a_call_in_place_of_notes_runs_nothing_and_is_asked_for_once_more(tmp_path, protocol):
    answers = [Reply("", tool_calls=[Call("bash", {"command": "touch ran"})]), Reply(SUMMARY)]

    def summary(_request: Request):
        return answers.pop(0)

    async with agent(tmp_path, talk(summary=summary), model=f"{protocol}/test", options={"window": 21_334}) as running:
        for number in range(6):
            await running.ask(f"question {number} {words(600)}")
        await compact(running)
        first, second = summary_requests(running.server)
        assert is_in_place(second)
        assert "it called a tool" in second.items[-1].text
        assert second.prefix_items[: len(first.prefix_items) - 1] == first.prefix_items[:-1]
        assert compactions(running)[0].rung == "same prefix"
        assert not (running.session.cwd / "ran").exists()
        assert not running.server.refusals


async def test_names_of_the_last_part_are_counted_added_and_stored(tmp_path):
    told = "The fault is in src/core/deep.py, commit 3f2a9bc1; the server on localhost:8443 answers ECONNREFUSED."
    kept = f"{SUMMARY}\n- src/core/deep.py is at fault"
    for name, environ in (("in place", {}), ("from a transcript", FROM_A_TRANSCRIPT)):
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        script = talk(lambda request: Reply(told if "question 5" in request.last_user else words(700)), Reply(kept))
        async with agent(folder, script, options={"window": 33_000}, environ=environ) as running:
            for number in range(7):
                await running.ask(f"question {number} {words(1_500)}")
            await compact(running)
            (entry,) = compactions(running)
            assert entry.rung == ("serialised" if environ else "same prefix")
            assert entry.details.names == NameAudit(found=4, kept=1, added=3)
            assert all(name in entry.replacement[0].text for name in ("3f2a9bc1", "localhost:8443", "ECONNREFUSED"))
            stored = Session.open(running.session.directory, read_only=True).path()
            assert [one.details.names for one in stored if isinstance(one, CompactionEntry)] == [entry.details.names]
