"""Sessions with many images, and requests with too many bytes (R-052 to R-054, T-13, T-14)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.images import drop_oldest_images, encoded_size, image_bytes
from tenuto.core.compacting.undo import undo_compaction
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.message import CompactionEntry, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import ImagePart, TextPart, text_of
from tenuto.session.view.projection import edit_message
from tests.core.compacting import compact, is_summary_request, seeded_session, step_requests, talk, user
from tests.core.harness import PROTOCOLS, Agent, reopened
from tests.core.test_compaction_shapes import answer, png, step
from tests.examples import one_of
from tests.server import HttpError, Reply, Request, ScriptedServer
from tests.session.build import check_pairs

BYTE_LIMIT = 20_000_000
WINDOW = 1_000_000
SHOT = 800_000
"""Bytes of one screenshot."""


def screenshots(tmp_path, model: str, count: int, size: int = SHOT, results: bool = False) -> None:
    """Write a session whose user (or whose tools) showed so many pictures, one a turn."""
    source = random.Random(7)
    session = seeded_session(tmp_path, model)
    for number in range(count):
        data = png(8, 8) + source.randbytes(size)
        image = session.store.save_image(data, "image/png", name=f"shot-{number}.png")
        if results:
            call, result = step(number, f"picture {number}")
            session.append(user(f"take {number}"))
            session.append(call)
            parts = (*result.parts, image)
            session.append(ToolResultMessage(call_id=result.call_id, name="read", parts=parts))
        else:
            session.append(UserMessage(parts=(TextPart(text=f"look at {number}"), image)))
        session.append(answer("seen " * 300))
    session.close()


def image_edits(running: Agent) -> list[ViewEditEntry]:
    return [one for one in running.session.path() if isinstance(one, ViewEditEntry) and one.rung == "images"]


def shown_images(request: Request) -> int:
    return sum(item.images for item in request.items)


@pytest.mark.parametrize("results", [False, True], ids=["pasted", "from tools"])
@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_t13_r053_42_images_of_800_kb_stay_under_the_byte_limit_whatever_the_tokens_say(
    tmp_path, protocol, results
):
    screenshots(tmp_path, protocol, 42, results=results)
    async with ScriptedServer(talk("fine"), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            live = running.runtime.live
            assert live.measure().tokens < 0.1 * WINDOW, "tokens say nothing of it"
            assert image_bytes(running.session.get_llm_history()) > 2 * BYTE_LIMIT
            settled = await running.ask("what do you see?")
            assert settled.outcome == "completed", settled.error
            (request,) = server.requests
            assert request.raw_size <= BYTE_LIMIT
            assert 8 <= shown_images(request) < 42, "the newest stay"
            body = request.raw.decode()
            assert "An image was left out here" in body
            assert all(f"{'picture' if results else 'look at'} {number}" in body for number in range(42)), "texts stay"
            (entry,) = image_edits(running)
            assert len(entry.edits) == 42 - shown_images(request)
            assert [event.reason for event in running.of(CompactionStartEvent)] == ["overflow"]
            (end,) = running.of(CompactionEndEvent)
            assert end.entry is not None
            assert "images" in end.entry.summary
            assert end.error is None
            check_pairs(running.session.get_llm_history())

            assert (await running.ask("and now?")).outcome == "completed"
            assert len(image_edits(running)) == 1, "there is room for the next ones"
            assert server.prefix_breaks() == [], "R-059"

            assert (await compact(running)).outcome == "completed"
            summary = [one for one in server.requests if is_summary_request(one)]
            assert summary
            serialised = [one for one in summary if not one.body.get("tools")]
            assert all(shown_images(one) == 0 for one in serialised), (
                "R-052; one that repeats the prefix has what it has"
            )
            assert any(isinstance(one, CompactionEntry) for one in running.session.path())
            assert (await running.ask("after it")).outcome == "completed"
            assert max(one.raw_size for one in server.requests) <= BYTE_LIMIT
            assert not server.refusals


async def test_r053_what_was_left_out_is_the_same_after_a_restart_and_comes_back_by_undo(tmp_path):
    screenshots(tmp_path, "openai-chat", 30)
    async with ScriptedServer(talk("fine"), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            whole = running.session.get_llm_history()
            await running.ask("look")
            shown = running.session.get_llm_history()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert running.session.get_llm_history() == shown
            await running.ask("again")
            assert server.prefix_breaks() == []
            undo_compaction(running.runtime.live)
            assert running.session.get_llm_history()[: len(whole)] == whole
            assert (await running.ask("and again")).outcome == "completed", "and leave again where they must"
            assert max(request.raw_size for request in server.requests) <= BYTE_LIMIT


async def test_r053_images_of_one_message_go_one_by_one_the_newest_stay(tmp_path):
    session = seeded_session(tmp_path, "openai-chat")
    source = random.Random(3)
    images = [
        session.store.save_image(png(8, 8) + source.randbytes(SHOT), "image/png", name=f"{n}.png") for n in range(30)
    ]
    session.append(UserMessage(parts=(TextPart(text="all of them"), *images)))
    session.append(answer("seen"))
    session.close()
    async with ScriptedServer(talk("fine"), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert (await running.ask("what now?")).outcome == "completed"
            (message,) = [one for one in running.session.get_llm_history() if "all of them" in str(one)]
            kept = [part for part in message.parts if isinstance(part, ImagePart)]
            assert kept == images[-len(kept) :]
            assert len(kept) == shown_images(server.requests[0]) >= 8
            assert f"{30 - len(kept)} images were left out" in text_of(message.parts)


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
@pytest.mark.parametrize("body", [None, "Request exceeds the maximum size", "Payload Too Large"])
async def test_t14_r054_after_a_413_the_images_go_the_request_is_repeated_and_the_turn_goes_on(
    tmp_path, protocol, body
):
    screenshots(tmp_path, protocol, 6)
    count = 0

    def script(_request: Request):
        nonlocal count
        count += 1
        return HttpError(413, body) if count == 1 else Reply("fine")

    async with ScriptedServer(script, listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            window = running.runtime.live.facts.context_window
            settled = await running.ask("what do you see?")
            assert settled.outcome == "completed", settled.error
            refused, repeated = server.requests
            assert repeated.raw_size < refused.raw_size
            assert shown_images(repeated) < shown_images(refused) == 6
            assert len(image_edits(running)) == 1
            assert not any(isinstance(one, CompactionEntry) for one in running.session.path()), "no summary"
            assert running.runtime.live.facts.context_window == window, "bytes are no tokens"


async def test_r054_a_second_413_takes_all_images_and_a_third_compacts(tmp_path):
    screenshots(tmp_path, "openai-chat", 12)
    refuse = {0, 1, 2}

    def answer_step(request: Request):
        return HttpError(413, "Payload Too Large") if request.index in refuse else Reply("fine")

    async with ScriptedServer(talk(answer_step), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            settled = await running.ask("what do you see?")
            assert settled.outcome == "completed", settled.error
            sizes = [request.raw_size for request in step_requests(server)]
            assert sizes == sorted(set(sizes), reverse=True), "nothing is sent twice"
            assert [shown_images(request) for request in step_requests(server)] == [12, 6, 0, 0]
            assert len(image_edits(running)) == 2
            assert any(isinstance(one, CompactionEntry) for one in running.session.path())


async def test_r054_too_many_bytes_without_images_is_treated_as_an_overflow(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("[request]\nmax_request_bytes = 60000\n")
    turns = [entry for n in range(16) for entry in (user(f"q{n} " + "because " * 500), answer("so " * 400))]
    seeded_session(tmp_path, "openai-chat", *turns).close()
    async with ScriptedServer(talk("fine"), listed_window=200_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            settled = await running.ask("and now?")
            assert settled.outcome == "completed", settled.error
            assert max(request.raw_size for request in server.requests) <= 60_000
            assert any(isinstance(one, CompactionEntry) for one in running.session.path())
            assert not server.refusals


async def test_r053_images_go_even_where_compaction_is_switched_off(tmp_path):
    """It is a bound on what is sent, like that of a result; nothing is summarised."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("[compaction]\nenabled = false\n")
    screenshots(tmp_path, "openai-chat", 30)
    async with ScriptedServer(talk("fine"), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert (await running.ask("look")).outcome == "completed"
            assert server.requests[0].raw_size <= BYTE_LIMIT


def test_r053_the_oldest_images_go_first_and_only_as_many_as_must():
    images = [ImagePart(sha256=str(n) * 64, media_type="image/png", size=3_000) for n in range(6)]
    view = [
        SystemMessage(seq=1, text="s"),
        UserMessage(seq=2, parts=(TextPart(text="a"), *images[:2])),
        ToolResultMessage(seq=4, call_id="c", name="read", parts=(images[2],)),
        UserMessage(seq=5, parts=(TextPart(text="b"), *images[3:])),
    ]
    assert encoded_size(images[0]) == 4_000
    assert drop_oldest_images(view, 24_000) == ()
    edits = {edit.target: edit for edit in drop_oldest_images(view, 9_000)}
    assert {seq: edit.keep_images for seq, edit in edits.items()} == {2: 0, 4: 0, 5: 2}
    left = [edit_message(message, edits[message.seq]) if message.seq in edits else message for message in view]
    assert image_bytes(left) == 8_000
    assert [part for part in left[3].parts if isinstance(part, ImagePart)] == images[4:]
    assert text_of(left[1].parts).startswith("a")
    assert left[2].parts, "a result is never empty"
    again = drop_oldest_images(left, 0, original=lambda seq: next(m for m in view if m.seq == seq), in_effect=edits)
    assert {edit.target: edit.keep_images for edit in again} == {5: 0}
    assert "3 images" in again[0].image_text


BAD_IMAGES = {
    "anthropic": "messages.13.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
    "openai": "Invalid image data. Ensure that the image is in a supported format.",
    "openai-chat": "Could not process image",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_image_that_the_provider_cannot_take_leaves_the_view_and_the_others_stay(tmp_path, protocol):
    """It would be in every later request, and each would be refused: the session would be lost."""
    screenshots(tmp_path, protocol, 6, size=10_000)

    def answer_step(request: Request):
        return HttpError(400, BAD_IMAGES[protocol]) if shown_images(request) == 7 else Reply("fine")

    async with ScriptedServer(talk(answer_step), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            bad = running.session.store.save_image(b"\x89PNG\r\n\x1a\n no picture", "image/png", name="bad.png")
            await running.runtime.submit_prompt((TextPart(text="and this one?"), bad))
            settled = await running.runtime.wait_settled()
            assert settled.outcome == "completed", settled.error
            assert [shown_images(request) for request in server.requests] == [7, 6]
            (entry,) = image_edits(running)
            assert len(entry.edits) == 1
            assert (await running.ask("go on")).outcome == "completed"
            assert len(server.requests) == 3


async def test_too_many_images_lose_the_older_half_then_all(tmp_path):
    screenshots(tmp_path, "openai-chat", 8, size=10_000)

    def answer_step(request: Request):
        return HttpError(400, "Too many images in request: at most 2") if shown_images(request) > 2 else Reply("fine")

    async with ScriptedServer(talk(answer_step), listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            settled = await running.ask("look")
            assert settled.outcome == "completed", settled.error
            assert [shown_images(request) for request in server.requests] == [8, 4, 0]


async def test_an_error_that_has_nothing_to_do_with_images_changes_nothing(tmp_path):
    screenshots(tmp_path, "openai-chat", 3, size=10_000)
    async with ScriptedServer([HttpError(400, "messages: roles must alternate")], listed_window=WINDOW) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            settled = await running.ask("look")
            assert settled.outcome == "failed"
            assert "alternate" in settled.error
            assert not image_edits(running)
            assert len(server.requests) == 1


@given(st.lists(st.lists(st.integers(1, 2_000_000), max_size=4), min_size=1, max_size=12), st.integers(0, 8_000_000))
def test_r053_whatever_the_sizes_are_the_images_fit_and_no_newer_one_left_before_an_older(sizes, most):
    view = [
        UserMessage(
            seq=number + 1,
            parts=(
                TextPart(text=f"text {number}"),
                *(ImagePart(sha256=f"{number}-{n}", media_type="image/png", size=size) for n, size in enumerate(row)),
            ),
        )
        for number, row in enumerate(sizes)
    ]
    edits = {edit.target: edit for edit in drop_oldest_images(view, most)}
    left = [edit_message(message, edits[message.seq]) if message.seq in edits else message for message in view]
    assert image_bytes(left) <= most
    kept = [part for message in left for part in message.parts if isinstance(part, ImagePart)]
    every = [part for message in view for part in message.parts if isinstance(part, ImagePart)]
    assert kept == every[len(every) - len(kept) :]
    if len(kept) < len(every):
        assert image_bytes(left) + encoded_size(every[-len(kept) - 1]) > most, "no more than must"
    assert [text_of(message.parts).startswith(f"text {n}") for n, message in enumerate(left)] == [True] * len(left)
