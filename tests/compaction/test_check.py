"""A model is asked about what its notes leave out, on both rungs, and whatever it answers, the notes stay."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.prompts import CHECK, OVER, Prompts
from tenuto.compaction.summary.summarise import CHECK_STAGE, Summariser, SummaryContext
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelError, ModelRequest
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.estimate import estimate_text
from tests.compaction.build import FACTS, SUMMARY, ScriptedClient, budget, prompt_of, reply
from tests.compaction.test_same_prefix import context, conversation, counted, run

WINDOW = 32_000
QUEUE = "- **Queue**: Redis streams, as `orders.py` needs replays."
WORKERS = "- Four workers for the nightly import."
LEXER = "1. Move the tokens into `lexer.py`."
HOST = "- The staging host is `db-7.internal`."
EARLIER = f"""## Goal
Mend the parser.

## Key Decisions
{QUEUE}
{WORKERS}

## Next Steps
{LEXER}

## Critical Context
{HOST}"""


async def no_wait(_seconds: float) -> None:
    pass


def plan(earlier: str = EARLIER) -> CompactionPlan:
    return msgspec.structs.replace(counted(conversation().planned()), turn_prefix=(), previous_summary=earlier)


async def serialised(client: ScriptedClient, earlier: str = EARLIER, window: int = WINDOW, **more: object) -> str:
    facts = msgspec.structs.replace(FACTS, context_window=window)
    more.setdefault("progress", lambda *_told: None)
    progress = more.pop("progress")
    maker = Summariser(client, SummaryContext(facts=facts, budget=budget(window), **more), progress, sleep=no_wait)
    return await maker.summarise(plan(earlier))


async def in_place(client: ScriptedClient, earlier: str = EARLIER, **more: object) -> str:
    ctx = context(client, plan(earlier), **more)
    outcome = await run(ctx, plan(earlier))
    assert outcome is not None
    return outcome.summary


def checked(over: str = "none", more: str = "") -> AssistantMessage:
    return reply(f"## {OVER}\n{over}\n{more}")


BOTH = pytest.mark.parametrize("summarise", [serialised, in_place])


@BOTH
async def test_what_is_not_named_as_over_stays_word_for_word(summarise):
    client = ScriptedClient(reply(SUMMARY), checked("2, 3", "## Critical Context\n- The lock is `/run/import.pid`."))
    summary = await summarise(client)
    assert QUEUE in summary
    assert HOST in summary
    assert "- The lock is `/run/import.pid`." in summary
    assert WORKERS not in summary
    assert LEXER not in summary
    assert all(line in summary for line in SUMMARY.splitlines() if line)


@BOTH
async def test_the_question_stands_behind_the_notes_so_that_all_before_it_is_in_the_prefix_cache(summarise):
    client = ScriptedClient(reply(SUMMARY), checked())
    await summarise(client)
    first, second = client.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert all(one is other for one, other in zip(second.messages[:-2], first.messages[:-1], strict=False))
    written, asked = second.messages[len(first.messages) :]
    assert isinstance(written, AssistantMessage)
    assert text_of(written.parts) == SUMMARY
    lines = ["Redis streams", "Four workers", "`lexer.py`", "`db-7.internal`"]
    listed = prompt_of(msgspec.structs.replace(second, messages=(asked,))).splitlines()[-4:]
    assert [line.startswith(f"{number}. ") for number, line in enumerate(listed, 1)] == [True] * 4
    assert [name in line for name, line in zip(lines, listed, strict=True)] == [True] * 4
    assert prompt_of(second).startswith(CHECK)
    same = msgspec.structs.replace(second, messages=first.messages, max_output_tokens=first.max_output_tokens)
    assert same == first, "nothing else differs"


@BOTH
async def test_nothing_is_asked_where_nothing_is_left_out(summarise):
    client = ScriptedClient(reply(SUMMARY))
    assert SUMMARY in await summarise(client, SUMMARY)
    client = ScriptedClient(reply(SUMMARY))
    assert SUMMARY in await summarise(client, "")


@BOTH
async def test_nothing_is_asked_where_it_is_switched_off(summarise):
    client = ScriptedClient(reply(SUMMARY))
    summary = await summarise(client, prompts=Prompts(check=""))
    assert QUEUE not in summary
    assert len(client.requests) == 1


def failures() -> list[object]:
    call = ToolCallPart(id="c1", name="read", arguments="{}")
    return [
        *(ModelError(kind, "no") for kind in ("auth", "invalid", "refused", "overflow", "unreachable", "server")),
        reply("", stop_reason="refusal"),
        reply(f"## {OVER}\n1, 2, 3, 4", stop_reason="max_tokens"),
        msgspec.structs.replace(reply(""), parts=(call,)),
        reply("I will now open the next file."),
        reply(""),
    ]


@BOTH
@pytest.mark.parametrize("number", range(len(failures())))
async def test_whatever_goes_wrong_the_notes_stay_and_what_does_not_get_old_with_them(summarise, number):
    failure = failures()[number]
    client = ScriptedClient(reply(SUMMARY), *[failure] * 3)
    summary = await summarise(client)
    assert all(line in summary for line in SUMMARY.splitlines() if line)
    assert all(line in summary for line in (QUEUE, WORKERS, HOST))
    assert LEXER not in summary, "a next step is done sooner or later"


@BOTH
async def test_r046_cancelling_the_question_cancels_the_compaction(summarise):
    client = ScriptedClient(reply(SUMMARY), asyncio.Event())
    task = asyncio.create_task(summarise(client))
    while len(client.requests) < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.closed == 2


@BOTH
async def test_notes_do_not_grow_over_their_length(summarise):
    lines = [f"- The limit `limit_{number}` is {number} MB, as `module_{number}.py` needs it." for number in range(40)]
    earlier = "## Critical Context\n" + "\n".join(lines)
    client = ScriptedClient(reply(SUMMARY), checked(more="## Key Decisions\n- " + "a long decision " * 4_000))
    summary = await summarise(client, earlier)
    assert estimate_text(summary) <= budget(WINDOW).max_summary
    assert "a long decision" not in summary
    assert lines[-1] in summary


async def test_without_room_in_the_window_nothing_is_asked_and_the_lines_stay():
    """The conversation is folded so that each part takes what the window has; the check has what is left."""
    client = ScriptedClient(lambda _request: reply(SUMMARY))
    summary = await serialised(client, window=6_000)
    assert QUEUE in summary
    for request in client.requests:
        size = sum(map(estimate_message, request.messages))
        assert size + (request.max_output_tokens or 0) <= 6_000


async def test_each_part_of_a_folded_history_is_checked_against_the_notes_before_it():
    """What the first part's notes have, the second part's may not lose either."""
    history = conversation(40)
    folded = msgspec.structs.replace(counted(history.planned(keep_tokens=2_000)), turn_prefix=())
    parts = 0

    def answer(request: ModelRequest) -> AssistantMessage:
        nonlocal parts
        if prompt_of(request).startswith(CHECK):
            return checked()
        parts += 1
        return reply(f"{SUMMARY}\n- The port of part{parts}_server is {8_000 + parts}.")

    client = ScriptedClient(answer)
    facts = msgspec.structs.replace(FACTS, context_window=16_000)
    context_ = SummaryContext(facts=facts, budget=budget(16_000))
    summary = await Summariser(client, context_, lambda *_told: None, sleep=no_wait).summarise(folded)
    assert parts > 2
    assert all(f"part{number}_server" in summary for number in range(1, parts + 1))


async def test_a_decision_that_an_answer_took_back_does_not_stand_alone():
    history = conversation()
    history.answer("The Redis streams are taken back: a table in the database is enough.")
    for turn in range(6):
        history.user(f"more {turn}")
        history.step("output " * 2_000)
        history.answer("Done.")
    with_it = msgspec.structs.replace(counted(history.planned()), turn_prefix=(), previous_summary=EARLIER)
    client = ScriptedClient(reply(SUMMARY), checked())
    facts = msgspec.structs.replace(FACTS, context_window=WINDOW)
    maker = Summariser(client, SummaryContext(facts=facts, budget=budget(WINDOW)), lambda *_told: None, sleep=no_wait)
    summary = await maker.summarise(with_it)
    assert "needs replays. (later, #" in summary
    assert "taken back: a table in the database is enough.)" in summary


@BOTH
async def test_the_question_can_be_replaced(summarise):
    client = ScriptedClient(reply(SUMMARY), checked())
    await summarise(client, prompts=Prompts(check="PRÜFEN"))
    assert prompt_of(client.requests[1]).startswith("PRÜFEN")


async def test_the_user_sees_what_is_done():
    stages: list[str] = []
    client = ScriptedClient(reply(SUMMARY), checked())
    await serialised(client, progress=lambda stage, *_told: stages.append(stage))
    assert CHECK_STAGE in stages


@given(st.lists(st.sampled_from(["a1.py", "b2.py", "c3.py", "d4.py"]), unique=True, max_size=4))
def test_the_lines_of_the_question_are_those_that_the_notes_do_not_have(told: list[str]):
    names = ["a1.py", "b2.py", "c3.py", "d4.py"]
    earlier = "## Critical Context\n" + "\n".join(f"- The slow module is `{name}`." for name in names)
    new = SUMMARY + "".join(f"\n- `{name}` is the slow module." for name in told)
    client = ScriptedClient(reply(new), checked())
    summary = asyncio.run(serialised(client, earlier))
    missing = [name for name in names if name not in told]
    assert len(client.requests) == (2 if missing else 1)
    if missing:
        asked = prompt_of(client.requests[1])
        assert [name for name in names if f"`{name}`" in asked] == missing
    assert all(f"`{name}`" in summary for name in names)
