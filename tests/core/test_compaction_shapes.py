"""Histories of odd shapes, resumed into a small window: compacted and gone on with, and no request is refused."""

from __future__ import annotations

import json
import struct
import zlib

import msgspec
import pytest

from tenuto.compaction.measure.meter import Meter
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, PromptReturnedEvent
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart, text_of
from tests.core.compacting import (
    FROM_A_TRANSCRIPT,
    LONG_ANSWER,
    SUMMARY,
    check_requests,
    compact,
    compactions,
    is_summary_request,
    seeded_session,
    step_requests,
    summary_requests,
    talk,
    user,
    words,
)
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Reply, Request, ScriptedServer
from tests.session.build import check_pairs

WINDOW = 16_384
CJK = "压缩的时候不能丢掉用户说过的话，也不能把工具的结果和调用分开。"


def answer(text: str = "done") -> AssistantMessage:
    return AssistantMessage(parts=(TextPart(text=text),), model="openai-chat/test")


def step(number: int, *results: str, name: str = "read", arguments: str = '{"path": "a.py"}', thinking: str = ""):
    """An answer with as many calls as there are results, and the results."""
    ids = [f"call_{number}_{place}" for place in range(len(results))]
    calls = tuple(ToolCallPart(id=one, name=name, arguments=arguments) for one in ids)
    thought = (ThinkingPart(text=thinking),) if thinking else ()
    return [
        AssistantMessage(parts=(*thought, *calls), model="openai-chat/test", stop_reason="tool_use"),
        *(
            ToolResultMessage(call_id=one, name=name, parts=(TextPart(text=text),))
            for one, text in zip(ids, results, strict=True)
        ),
    ]


def one_huge_last_result() -> list[HistoryEvent]:
    small = [entry for number in range(4) for entry in (user(f"question {number}"), answer(words(300)))]
    huge = "FIRST LINE\n" + words(60_000) + "\nLAST LINE: Error: disk full"
    return [*small, user("read the big one"), *step(0, huge)]


def a_single_huge_user_message() -> list[HistoryEvent]:
    return [user("HUGE-NONCE " + words(40_000) + " HUGE-END"), answer("I have read it.")]


def a_huge_user_message_in_the_middle() -> list[HistoryEvent]:
    return [user("start"), answer("ok"), user(words(30_000)), answer("read"), user("and"), *step(0, words(900))]


def wide_characters() -> list[HistoryEvent]:
    turns = [(user(f"问题 {n}: {CJK * 8}"), *step(n, CJK * 40), answer(CJK * 12)) for n in range(12)]
    return [entry for turn in turns for entry in turn]


def a_giant_write_argument() -> list[HistoryEvent]:
    arguments = json.dumps({"path": "big.py", "content": "x = 'some line of code'\n" * 9_000})
    return [user("write it"), *step(0, "wrote big.py", name="write", arguments=arguments), answer("written")]


def much_thinking() -> list[HistoryEvent]:
    return [
        user("think hard"),
        *(e for n in range(60) for e in step(n, words(200), thinking=words(2_500))),
        answer("thought"),
    ]


def only_thinking() -> list[HistoryEvent]:
    """The thinking has no block of a provider's, so that none of it is ever sent back."""
    return [
        user("think hard"),
        *(e for n in range(40) for e in step(n, "ok", thinking=words(2_500))),
        answer("thought"),
    ]


def parallel_calls() -> list[HistoryEvent]:
    steps = [entry for n in range(10) for entry in step(n, *[f"R{n}.{place} {words(250)}" for place in range(6)])]
    return [user("read everything"), *steps, answer("all read")]


def many_small_turns() -> list[HistoryEvent]:
    return [entry for n in range(300) for entry in (user(f"q{n} {words(60)}"), answer(f"a{n} {words(40)}"))]


def dense_text() -> list[HistoryEvent]:
    digits = "".join(str(n * 7919 % 100_000) for n in range(9_000))
    return [user("numbers"), *(entry for n in range(5) for entry in step(n, digits[n * 1_000 :][:9_000])), answer("ok")]


def a_huge_last_answer() -> list[HistoryEvent]:
    return [user("write a book"), answer("BOOK " + words(40_000))]


def a_huge_last_call() -> list[HistoryEvent]:
    arguments = json.dumps({"path": "big.py", "content": "x = 'some line of code'\n" * 9_000})
    return [user("write it"), *step(0, "wrote big.py", name="write", arguments=arguments)]


def a_huge_message_without_answer() -> list[HistoryEvent]:
    return [user("HUGE-NONCE " + words(40_000) + " HUGE-END")]


SHAPES = [
    one_huge_last_result,
    a_single_huge_user_message,
    a_huge_user_message_in_the_middle,
    wide_characters,
    a_giant_write_argument,
    much_thinking,
    parallel_calls,
    many_small_turns,
    dense_text,
    a_huge_last_answer,
    a_huge_last_call,
    a_huge_message_without_answer,
]


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_session_of_this_shape_is_compacted_and_goes_on_in_a_small_window(tmp_path, shape, protocol):
    """Far over the window when it is resumed; the next prompt compacts and is answered."""
    seeded_session(tmp_path, protocol, *shape()).close()
    async with ScriptedServer(talk("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            budget = running.runtime.live.budget()
            settled = await running.ask("NEXT-NONCE what now?")
            assert settled.outcome == "completed", settled.error
            assert running.of(CompactionEndEvent)[0].error is None
            check_requests(server, WINDOW)
            check_pairs(running.session.get_llm_history())
            assert running.runtime.live.measure().tokens < budget.trigger
            assert len(summary_requests(server)) <= 14
            (request,) = step_requests(server)
            assert request.raw.count(b"NEXT-NONCE") == 1
            assert (await running.ask("and now?")).outcome == "completed"
            assert len(running.of(CompactionStartEvent)) == 1, "once is enough"


async def resumed_request(
    tmp_path, *entries: HistoryEvent, environ: dict[str, str] | None = None
) -> tuple[Request, list[Request]]:
    """Resume into the small window, ask, and return the request and the summary requests before it."""
    seeded_session(tmp_path, "openai-chat", *entries).close()
    async with ScriptedServer(talk("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True, environ=environ or {}) as running:
            await running.ask("what now?")
        return step_requests(server)[0], summary_requests(server)


async def test_one_huge_last_result_keeps_its_head_and_its_tail(tmp_path):
    request, _ = await resumed_request(tmp_path, *one_huge_last_result())
    (result,) = [item.text for item in request.items if item.kind == "result"]
    assert result.startswith("FIRST LINE")
    assert result.endswith("LAST LINE: Error: disk full")
    assert "left out to save room" in result


async def test_a_huge_user_message_keeps_its_beginning_and_its_end_word_for_word(tmp_path):
    request, _ = await resumed_request(tmp_path, *a_single_huge_user_message())
    text = request.raw.decode()
    assert "HUGE-NONCE" in text
    assert "HUGE-END" in text


async def test_a_giant_argument_is_bounded_in_the_summary_request_and_gone_from_the_next_one(tmp_path):
    request, (asked, *_) = await resumed_request(
        tmp_path, *a_giant_write_argument(), user("next"), answer(words(3_000))
    )
    assert asked.raw.count(b"some line of code") < 120
    assert 'write(path="big.py", content=' in asked.items[-1].text
    assert b"some line of code" not in request.raw


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_thinking_that_is_not_sent_back_is_not_compacted(tmp_path, protocol):
    """seeds-000-003.md 3: 100,000 tokens of thinking, and none of them is in the request."""
    seeded_session(tmp_path, protocol, *only_thinking()).close()
    async with ScriptedServer(talk("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert (await running.ask("what now?")).outcome == "completed"
            assert not running.of(CompactionStartEvent)
            check_requests(server, WINDOW)
            (request,) = server.requests
            assert words(2_500).encode() not in request.raw


async def test_thinking_heavy_history_is_bounded_in_the_summary_request(tmp_path):
    request, asked = await resumed_request(tmp_path, *much_thinking(), environ=FROM_A_TRANSCRIPT)
    text = "".join(request.items[-1].text for request in asked)
    kept = sum(item.kind == "call" for item in request.items)
    assert kept < 20
    assert text.count("[Assistant thinking]: ") == 60 - kept
    thoughts = [piece.partition("\n\n[")[0] for piece in text.split("[Assistant thinking]: ")[1:]]
    assert max(map(len, thoughts)) < 2_000


@pytest.mark.parametrize("keep", [300, 1_700, 1_800, 3_000, 4_000])
async def test_parallel_calls_around_the_cut_stay_together(tmp_path, keep):
    """Wherever the cut would fall by size, a step's calls and results are on one side of it."""
    seeded_session(tmp_path, "openai-chat", *parallel_calls()).close()
    environ = FROM_A_TRANSCRIPT | {
        "TENUTO_COMPACTION__KEEP_RECENT_TOKENS": str(keep * 4)
    }  # by hand, a quarter of it is kept
    async with ScriptedServer(talk("fine"), window=200_000) as server:
        async with reopened(tmp_path, server, resume_latest=True, environ=environ) as running:
            await compact(running)
            (entry,) = compactions(running)
            path = list(running.session.path())
            first = next(one for one in path if one.seq == entry.first_kept_index)
            assert isinstance(first, AssistantMessage)
            kept = [one for one in path if one.seq >= first.seq]
            calls = {
                part.id
                for one in kept
                if isinstance(one, AssistantMessage)
                for part in one.parts[-6:]
                if isinstance(part, ToolCallPart)
            }
            assert {one.call_id for one in kept if isinstance(one, ToolResultMessage)} == calls
            (asked,) = summary_requests(server)
            body = asked.items[-1].text
            summarised = [n for n in range(10) if f"R{n}.0 " in body]
            assert all(f"R{n}.5 " in body for n in summarised)
            await running.ask("go on")
            request = step_requests(server)[0].raw.decode()
            for number in range(10):
                in_request = [f"R{number}.{place} " in request for place in range(6)]
                assert all(in_request) != (number in summarised)
                assert len(set(in_request)) == 1


def png(width: int, height: int) -> bytes:
    """A real picture, black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\0" * 3 * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_images_count_are_named_to_the_summariser_and_leave_with_what_is_summarised(tmp_path, protocol):
    session = seeded_session(tmp_path, protocol)
    for number in range(14):
        image = session.store.save_image(png(40 + number, 30), "image/png", name=f"shot-{number}.png")
        session.append(UserMessage(parts=(TextPart(text=f"look at {number}"), image)))
        session.append(answer("seen"))
    tokens = Meter().measure(session, f"{protocol}/test").tokens
    assert tokens > 14 * 1_200
    session.close()
    async with ScriptedServer(talk("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            settled = await running.ask("what now?")
            assert settled.outcome == "completed", settled.error
            check_requests(server, WINDOW)
            asked, request = server.requests
            assert "[image: shot-0.png]" in asked.items[-1].text
            assert not any(item.images for item in asked.items)
            view = [one for one in running.session.get_llm_history() if isinstance(one, UserMessage)]
            images = sum(isinstance(part, ImagePart) for one in view for part in one.parts)
            assert 0 < images == sum(item.images for item in request.items) < 14


async def test_images_in_results_are_counted_and_leave_as_well(tmp_path):
    session = seeded_session(tmp_path, "anthropic", user("take pictures " + words(2_000)))
    for number in range(14):
        image = session.store.save_image(png(40 + number, 30), "image/png", name=f"shot-{number}.png")
        call, result = step(number, f"picture {number}")
        session.append(call)
        session.append(msgspec.structs.replace(result, parts=(*result.parts, image)))
    session.close()
    async with ScriptedServer(talk("fine"), window=WINDOW) as server:
        async with reopened(tmp_path, server, model="anthropic/test", resume_latest=True) as running:
            assert (await running.ask("what now?")).outcome == "completed"
            check_requests(server, WINDOW)
            assert "[image: shot-0.png]" in summary_requests(server)[0].items[-1].text
            assert 0 < sum(item.images for item in step_requests(server)[0].items) < 14


async def test_a_prompt_that_does_not_fit_the_window_comes_back_with_the_sizes(tmp_path):
    """DESIGN section 5: it is not sent; nothing of it is in the history, and the session goes on."""
    async with agent(tmp_path, talk(LONG_ANSWER), options={"window": WINDOW}) as running:
        await running.ask("hello")
        before = len(list(running.session.path()))
        await running.ask("HUGE " + words(20_000))
        (returned,) = running.of(PromptReturnedEvent)
        assert text_of(returned.parts).startswith("HUGE")
        assert "16,384" in returned.reason
        assert not any(isinstance(entry, UserMessage) for entry in list(running.session.path())[before:])
        assert (await running.ask("smaller")).outcome == "completed"
        check_requests(running.server, WINDOW)


async def test_wide_characters_are_cut_between_characters_and_not_underestimated(tmp_path):
    seeded_session(tmp_path, "openai-chat", *wide_characters()).close()

    def script(request: Request):
        return Reply(SUMMARY.replace("Keep the tests green.", CJK)) if is_summary_request(request) else Reply("好")

    async with ScriptedServer(script, window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert running.runtime.live.measure().tokens > 12 * len(CJK) * 50
            await running.ask("现在呢？")
            (entry,) = compactions(running)
            assert CJK in entry.summary
            for request in server.requests:
                text = request.raw.decode("utf-8")
                assert "\\ud" not in text
                assert "�" not in text
