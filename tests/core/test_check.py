"""What new notes leave out of the earlier ones, over real HTTP: asked about once, in the provider's cache."""

from __future__ import annotations

import pytest

from tenuto.compaction.summary.prompts import CHECK, OVER
from tests.core.compacting import FROM_A_TRANSCRIPT, SUMMARY, compact, compactions, fill, summary_requests, talk
from tests.core.harness import PROTOCOLS, agent
from tests.server import Call, HttpError, Reply, Request
from tests.server.reply import AnyReply

QUEUE, WORKERS = "- **Queue**: Redis streams, as `orders.py` needs replays.", "- Four workers for the nightly import."
NOTES = SUMMARY.replace("- **small steps**: easier to check", f"{QUEUE}\n{WORKERS}")
WINDOW = {"window": 32_000, "listed_window": 32_000}


def is_check(request: Request) -> bool:
    return CHECK.splitlines()[0] in request.items[-1].text


def forgetting(check: AnyReply):
    """Return a script whose first notes have two decisions, and all later ones none of them."""
    written = 0

    def summary(request: Request) -> AnyReply:
        nonlocal written
        if is_check(request):
            return check
        written += 1
        return Reply(NOTES if written == 1 else SUMMARY)

    return talk(summary=summary)


async def compacted_twice(tmp_path, check: AnyReply, **more):
    async with agent(tmp_path, forgetting(check), options=WINDOW, **more) as running:
        for _ in range(2):
            await fill(running, 5)
            await compact(running)
        assert len(compactions(running)) == 2
        assert not running.server.faults
        return compactions(running)[-1], summary_requests(running.server)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_still_holds_stays_and_nearly_all_of_the_question_is_in_the_cache(tmp_path, protocol):
    entry, requests = await compacted_twice(tmp_path, Reply(f"## {OVER}\n2"), model=f"{protocol}/test")
    assert QUEUE in entry.summary
    assert WORKERS not in entry.summary
    assert [is_check(request) for request in requests] == [False, False, True]
    assert entry.usage is not None
    assert entry.usage.cache_read > 0.8 * sum(request.tokens for request in requests[-2:])


async def test_it_is_asked_behind_a_transcript_too(tmp_path):
    entry, requests = await compacted_twice(tmp_path, Reply(f"## {OVER}\n2"), environ=FROM_A_TRANSCRIPT)
    assert QUEUE in entry.summary
    assert WORKERS not in entry.summary
    assert [is_check(request) for request in requests] == [False, False, True]


@pytest.mark.parametrize(
    "check",
    [
        HttpError(400, "no"),
        HttpError(401, "no"),
        Reply("I go on."),
        Reply("", tool_calls=[Call("glob", {"pattern": "*"})]),
    ],
    ids=["refused", "no key", "no answer", "a call"],
)
async def test_without_an_answer_the_notes_and_the_decisions_stay(tmp_path, check):
    entry, requests = await compacted_twice(tmp_path, check)
    assert QUEUE in entry.summary
    assert WORKERS in entry.summary
    assert "looked around" in entry.summary
    assert len(requests) == 3


async def test_it_can_be_switched_off(tmp_path):
    environ = {"TENUTO_COMPACTION__CHECK": "false"}
    entry, requests = await compacted_twice(tmp_path, Reply(f"## {OVER}\n2"), environ=environ)
    assert QUEUE not in entry.summary
    assert len(requests) == 2
