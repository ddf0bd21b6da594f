"""Overflow in the middle of a task: the step is given up, compacted, and repeated (seed 000, phase 5; seed 001)."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import (
    AssistantWithdrawnEvent,
    CompactionEndEvent,
    CompactionStartEvent,
    NoticeEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AssistantMessage
from tests.core.compacting import (
    LONG_ANSWER,
    SUMMARY,
    compactions,
    fill,
    is_summary_request,
    reads,
    step_requests,
    summary_requests,
    talk,
    words,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, agent
from tests.examples import in_turn
from tests.server import Call, HttpError, Reply, Request, StreamError, Tokens
from tests.session.build import check_pairs

REQUEST = "MEND-IT-NONCE"
TOUCH = Call("bash", {"command": "touch ran-too-early"})
TOO_LONG = {
    "anthropic": "prompt is too long: 250000 tokens > 200000 maximum",
    "openai": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai-chat": "This model's maximum context length is 200000 tokens. However, your messages resulted in 250000 "
    "tokens. Please reduce the length of the messages.",
}


def http_error(protocol: str):
    return HttpError(400, TOO_LONG[protocol])


def error_in_the_stream(protocol: str):
    error = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": TOO_LONG[protocol]}
    return StreamError(after_events=6, error=error, reply=Reply("I begin with", tool_calls=[TOUCH]))


def stop_reason(protocol: str):
    """An answer without a word whose request filled the window (R-022)."""
    if protocol == "anthropic":
        return Reply("", stop="window_exceeded")
    return Reply("", stop="max_tokens", usage=Tokens(input=199_990, output=10))


def error_without_words(_protocol: str):
    """Only the size tells: the request before had four fifths of the window."""
    return HttpError(413)


FORMS = [http_error, error_in_the_stream, stop_reason, error_without_words]


def once(failure, before: Reply, *, at: int):
    """Answer; fail at the step request number `at`, after one with what `before` is."""
    count = 0

    def answer(_request: Request):
        nonlocal count
        count += 1
        if count == at:
            return failure
        return before if count == at - 1 else Reply(LONG_ANSWER)

    return talk(answer)


@pytest.mark.parametrize(("form", "protocol"), in_turn(FORMS, PROTOCOLS))
async def test_task_executor_overflow_compact_retry_in_every_form(tmp_path, protocol, form):
    write_big_file(tmp_path)
    wordless = form is error_without_words
    window, size, used = (100_000, 6_300, Tokens(input=81_500, output=5)) if wordless else (200_000, 300, None)
    before = Reply("look", tool_calls=[Call("read", {"path": "big.txt", "limit": 20})], usage=used)
    script = once(form(protocol), before, at=8)
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"listed_window": window}) as running:
        await fill(running, 6, size)
        settled = await running.ask(REQUEST)
        assert settled.outcome == "completed", settled.error

        (start,), (end,) = running.of(CompactionStartEvent), running.of(CompactionEndEvent)
        assert (start.reason, end.reason, end.will_retry, end.aborted, end.error) == (
            "overflow",
            "overflow",
            True,
            False,
            None,
        )
        assert start.submission_id == end.submission_id == running.of(TaskFinishedEvent)[-1].submission_id
        refused, repeated = step_requests(running.server)[-2:]
        assert repeated.tokens < refused.tokens
        assert repeated.raw.count(REQUEST.encode()) == 1
        assert repeated.raw.count(b"some words in a line") == refused.raw.count(b"some words in a line")
        assert not running.server.refusals

        assert not (tmp_path / "work" / "ran-too-early").exists(), "no tool of the failed attempt runs"
        assert len(running.of(UserMessageEvent)) == 7, "the user's message is submitted once"
        steps = [event.step for event in running.of(StepStartedEvent) if event.submission_id == start.submission_id]
        assert steps == [1, 2], "the same step is repeated, not a new one begun"
        check_pairs(running.session.get_llm_history())
        assert "I begin with" not in str(list(running.session.path()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_task_executor_overflow_compact_retry(tmp_path, protocol):
    """The window is smaller than it is said to be: a real refusal; the task finishes by itself, nothing is asked."""
    write_big_file(tmp_path)
    options = {"window": 20_000, "listed_window": 200_000}
    async with agent(tmp_path, reads(40), model=f"{protocol}/test", options=options) as running:
        settled = await running.ask(REQUEST, timeout=60)
        assert settled.outcome == "completed", settled.error
        starts = running.of(CompactionStartEvent)
        assert len(running.server.refusals) == 1, "nothing is refused twice"
        assert len(step_requests(running.server)) == 42
        if protocol != "anthropic":  # that one refuses the output that is asked for first, and so names its window
            assert starts[0].reason == "overflow"
            assert running.of(CompactionEndEvent)[0].will_retry
        else:
            assert running.runtime.live.facts.context_window == 20_000
            assert {start.reason for start in starts} == {"threshold"}
        assert all(request.raw.count(REQUEST.encode()) == 1 for request in step_requests(running.server))


async def test_text_that_was_shown_of_the_failed_attempt_is_withdrawn_and_leaves_a_notice(tmp_path):
    script = once(error_in_the_stream("openai-chat"), Reply("x"), at=7)
    async with agent(tmp_path, script, options={"listed_window": 200_000}) as running:
        await fill(running, 6)
        await running.ask(REQUEST)
        assert len(running.of(AssistantWithdrawnEvent)) == 1
        (notice,) = [event.text for event in running.of(NoticeEvent) if "Discarded" in event.text]
        assert "characters" in notice
        kinds = [type(event) for event in running.events]
        assert kinds.index(AssistantWithdrawnEvent) < kinds.index(CompactionStartEvent)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("calls", [(), (Call("read", {"path": "big.txt"}),)], ids=["last answer", "with a call"])
async def test_a_finished_answer_over_the_window_is_kept_and_not_repeated(tmp_path, protocol, calls):
    """R-022: what was generated is paid for; the next request is the one that has to be smaller."""
    write_big_file(tmp_path)
    over = Reply("KEPT-NONCE", tool_calls=calls, usage=Tokens(input=31_900, output=200))
    count = 0

    def answer(_request: Request):
        nonlocal count
        count += 1
        return over if count == 7 else Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(answer), model=f"{protocol}/test", options={"listed_window": 32_000}) as running:
        await fill(running, 6)
        assert (await running.ask(REQUEST)).outcome == "completed"
        assert (await running.ask("and now?")).outcome == "completed"
        assert len(step_requests(running.server)) == (9 if calls else 8), "no request was made twice"
        assert {event.reason for event in running.of(CompactionStartEvent)} == {"threshold"}
        assert len(compactions(running)) == 1
        answers = [entry for entry in running.session.path() if isinstance(entry, AssistantMessage)]
        assert sum("KEPT-NONCE" in str(entry.parts) for entry in answers) == 1
        check_pairs(running.session.get_llm_history())


async def test_each_attempt_is_smaller_and_the_last_error_names_the_sizes_and_what_to_do(tmp_path):
    """A provider that refuses whatever it is sent: a bounded number of tries, then an error, and a usable session."""
    refusing = True

    def script(request: Request):
        if is_summary_request(request):
            return Reply(SUMMARY)
        return HttpError(400, TOO_LONG["openai"]) if refusing else Reply(LONG_ANSWER)

    async with agent(tmp_path, script, model="openai/test", options={"listed_window": 200_000}) as running:
        refusing = False
        await fill(running, 12)
        refusing = True
        settled = await running.ask(REQUEST)
        assert settled.outcome == "failed"
        sizes = [request.tokens for request in step_requests(running.server)[12:]]
        assert 2 <= len(sizes) <= 4
        assert sizes == sorted(set(sizes), reverse=True), "never the same size twice"
        for part in ("tokens", "system prompt", "conversation", "/model"):
            assert part in settled.error
        check_pairs(running.session.get_llm_history())
        refusing = False
        assert (await running.ask("go on")).outcome == "completed"
        assert step_requests(running.server)[-1].raw.count(REQUEST.encode()) == 1


@pytest.mark.parametrize("bad", [HttpError(400, "something is wrong"), Reply(""), HttpError(400, TOO_LONG["openai"])])
async def test_without_a_usable_summary_the_step_is_repeated_all_the_same(tmp_path, bad):
    """R-003: the digest needs no model."""
    count = 0

    def answer(_request: Request):
        nonlocal count
        count += 1
        return http_error("openai") if count == 7 else Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(answer, bad), model="openai/test", options={"listed_window": 64_000}) as running:
        await fill(running, 6)
        settled = await running.ask(REQUEST)
        assert settled.outcome == "completed", settled.error
        assert [entry.rung for entry in compactions(running)] == ["digest"]
        assert len(summary_requests(running.server)) <= 8
        assert running.of(CompactionEndEvent)[0].will_retry


async def test_a_provider_that_counts_far_more_than_we_estimate_is_believed(tmp_path):
    """What stays is a part of what can be seen of the conversation, not of a count that nothing here explains."""
    write_big_file(tmp_path)
    before = Reply("look", tool_calls=[Call("read", {"path": "big.txt"})], usage=Tokens(input=170_000, output=5))
    script = once(error_without_words("openai"), before, at=8)
    async with agent(tmp_path, script, model="openai/test", options={"listed_window": 200_000}) as running:
        await fill(running, 6)
        settled = await running.ask(REQUEST)
        assert settled.outcome == "completed", settled.error
        assert [event.reason for event in running.of(CompactionStartEvent)] == ["overflow"]
        refused, repeated = step_requests(running.server)[-2:]
        assert repeated.tokens < 0.8 * refused.tokens


async def test_an_overflow_inside_one_long_turn_keeps_its_message_word_for_word(tmp_path):
    """The whole context is one turn: its message stays in the request that is repeated."""
    write_big_file(tmp_path)
    options = {"window": 12_000, "listed_window": 200_000}
    async with agent(tmp_path, reads(30, width=2), model="openai/test", options=options) as running:
        settled = await running.ask(f"{REQUEST} {words(300)}", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(running.server.refusals) == 1
        assert all(request.raw.count(REQUEST.encode()) == 1 for request in step_requests(running.server))
        accepted = [request for request in running.server.requests if not request.refused]
        assert max(request.tokens for request in accepted) <= 12_000
        check_pairs(running.session.get_llm_history())
