"""What a refusal means for the session that got it (T-16 to T-18, R-020, R-021, R-023), on every protocol."""

from __future__ import annotations

import math

import pytest

from tests.core.harness import PROTOCOLS, agent
from tests.examples import one_of
from tests.requirements.compaction.support import SUMMARY, ends, starts
from tests.requirements.recovery.ladder import (
    SUMMARISED,
    answering,
    check_all_providers,
    made_smaller,
    step_requests,
    words,
)
from tests.server import HttpError, Reply, Request, Tokens
from tests.server.reply import AnyReply

WINDOW = 200_000
OUTPUT_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def refusing_at(place: int, refusal: HttpError, used: int = 0):
    """Refuse step request number `place` once; the one before it is said to have used so many tokens."""
    asked = 0

    def step(request: Request) -> AnyReply:
        nonlocal asked
        asked += 1
        usage = Tokens(input=used, output=10) if used and asked == place - 1 else None
        return refusal if asked == place else Reply(f"ANSWERED {request.index}", usage=usage)

    return answering(step, Reply(SUMMARY))


def output_of(request: Request) -> float:
    return next((request.body[name] for name in OUTPUT_FIELDS if name in request.body), math.inf)


def without_output(request: Request) -> dict:
    return {key: value for key, value in request.body.items() if key not in OUTPUT_FIELDS}


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize(
    ("size", "used", "is_overflow"), [(1_500, 4_000, False), (43_000, 0, True)], ids=["2 percent", "88 percent"]
)
async def test_t16_r020_a_refusal_without_a_body_is_judged_by_how_full_the_window_is(
    tmp_path, protocol, status, size, used, is_overflow
):
    """At 88 % the window is full enough for an overflow, and not yet so full that a compaction is due by itself."""
    script = refusing_at(5, HttpError(status), used)
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"listed_window": WINDOW}) as running:
        for number in range(4):
            await running.ask(f"question {number} {words(size)}")
        assert not starts(running)
        if is_overflow:
            assert 0.85 * WINDOW < running.runtime.live.measure().tokens < running.runtime.live.budget().trigger
        running.events.clear()
        settled = await running.ask("and now?")
        if not is_overflow:
            assert settled.outcome == "failed"
            assert str(status) in settled.error
            assert not starts(running)
            assert len(step_requests(running.server)) == 5, "and not sent again"
            return
        assert settled.outcome == "completed", settled.error
        assert [(end.reason, end.error) for end in ends(running) if end.entry] == [("overflow", None)]
        assert {entry.rung for entry in made_smaller(running)} <= SUMMARISED
        await check_all_providers(running)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t17_r021_a_million_of_output_asked_for_beside_135_tokens_lowers_the_output_alone(tmp_path, protocol):
    text = (
        "This endpoint's maximum context length is 1000000 tokens. However, you requested about 1000135 tokens "
        "(135 of text input, 1000000 in the output). Please reduce the length of either one."
    )
    script = refusing_at(1, HttpError(400, {"error": {"message": text, "code": 400}}))
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"listed_window": 1_000_000}) as running:
        settled = await running.ask("hello")
        assert settled.outcome == "completed", settled.error
        refused, repeated = running.server.requests
        assert output_of(repeated) < output_of(refused)
        assert without_output(repeated) == without_output(refused)
        assert not starts(running)
        assert not made_smaller(running)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t18_r023_a_stray_number_is_an_overflow_and_no_window(tmp_path, protocol):
    script = refusing_at(5, HttpError(400, "invalid params, context window exceeds limit (2013)"))
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"listed_window": WINDOW}) as running:
        for number in range(4):
            await running.ask(f"question {number} {words(4_000)}")
        settled = await running.ask("and now?")
        assert settled.outcome == "completed", settled.error
        assert [end.reason for end in ends(running)] == ["overflow"]
        models = running.runtime.live.models
        assert not models.is_named(f"{protocol}/test")
        assert models.learned_at(f"{protocol}/test") is None, "nothing is remembered"
        assert 10_000 < running.runtime.live.budget().window < WINDOW, "this session stays under what was refused"
