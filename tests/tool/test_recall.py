"""The `recall` tool over real sessions."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry, NoticeEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tenuto.tool.search import line_matcher
from tests.tool.support import Bench, make_bench


def user(bench: Bench, text: str) -> int:
    return bench.session.append(UserMessage(parts=(TextPart(text=text),))).seq


def answer(bench: Bench, *parts) -> int:
    return bench.session.append(AssistantMessage(parts=parts)).seq


def result(bench: Bench, text: str, **more) -> int:
    return bench.session.append(ToolResultMessage(call_id="c1", name="bash", parts=(TextPart(text=text),), **more)).seq


async def test_words_are_found_wherever_they_were_said_with_seq_and_kind(bench: Bench) -> None:
    first = user(bench, "The staging port is 8443,\nnever the ZEBRA one")
    call = ToolCallPart(id="c1", name="bash", arguments='{"command": "curl \\"https://zebra:8443\\""}')
    second = answer(bench, ThinkingPart(text="zebra is on port 8443, I think"), TextPart(text="Looking."), call)
    third = result(bench, "zebra answered on port 8443")
    user(bench, "zebra without the number")
    text = await bench.text("recall", query="zebra 8443")
    assert (
        text.index(f"#{first} user") < text.index(f"#{second} assistant thinking") < text.index(f"#{third} result of")
    )
    assert f"#{second} call of bash" in text
    assert 'command: curl "https://zebra:8443"' in text
    assert "2: never the ZEBRA one" in text
    assert "without the number" not in text


async def test_it_finds_what_only_a_summary_stands_for_and_the_summaries_themselves(bench: Bench) -> None:
    seq = user(bench, "the secret ingredient is cardamom")
    answer(bench, TextPart(text="noted"))
    kept = user(bench, "go on")
    bench.session.append(SystemMessage(text="prompt"))
    bench.session.append(
        CompactionEntry(
            summary="## Goal\nthe old goal of cake", first_kept_index=kept, replacement=(SystemMessage(text="cake"),)
        )
    )
    assert not any("cardamom" in str(message) for message in bench.session.get_llm_history())
    assert f"#{seq} user" in await bench.text("recall", query="cardamom")
    assert f"summary of the entries before {kept}" in await bench.text("recall", query="old goal")


async def test_a_range_is_shown_word_for_word_and_says_how_to_go_on(bench: Bench) -> None:
    seqs = [user(bench, f"message {number}\n" + "long words " * 500) for number in range(6)]
    text = await bench.text("recall", seq=f"{seqs[1]}-{seqs[4]}")
    assert "message 1\n" + "long words " * 500 in text
    assert "message 0" not in text
    assert "message 5" not in text
    assert f"#{seqs[3]} user" not in text
    rest = await bench.text("recall", seq=text.rsplit("ask for seq ", 1)[1].removesuffix(".]"))
    assert [f"message {number}" in rest for number in range(6)] == [False, False, False, True, True, False]
    assert "There is more" not in rest
    assert (await bench.text("recall", seq=seqs[2])).count("message") == 1


async def test_the_answer_is_bounded_and_the_older_rest_can_be_had(bench: Bench) -> None:
    seqs = [user(bench, f"needle {number} " + "x" * 5000) for number in range(200)]
    text = await bench.text("recall", query="needle", limit=100)
    assert len(text) < 17_000
    assert f"#{seqs[-1]} user" in text
    assert f"#{seqs[1]} user" not in text
    older = text.split("ask again with seq ")[1].split(".")[0]
    again = await bench.text("recall", query="needle", seq=older)
    assert f"#{older.split('-')[1]} user" in again
    assert f"#{seqs[-1]} user" not in again


async def test_full_outputs_are_searched_where_the_result_shows_only_their_ends(bench: Bench) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    lines[12_345] = "the decisive Traceback is here"
    path = bench.session.store.save_output("c1", "\n".join(lines))
    seq = result(bench, "line 0\n…\nline 19999", truncated=True, output_path=str(path))
    text = await bench.text("recall", query="decisive traceback")
    assert f"#{seq} result of bash" in text
    assert str(path) in text
    assert "12346: the decisive Traceback is here" in text
    assert str(path) in await bench.text("recall", seq=seq)
    os.unlink(path)
    assert "Nothing found" in await bench.text("recall", query="decisive traceback")
    assert "19999" in await bench.text("recall", query="19999")


async def test_the_log_of_a_background_job_is_searched(bench: Bench) -> None:
    started = await bench.call("bash", command="echo server-is-listening; sleep 30", background=True)
    bench.session.append(started)
    async with asyncio.timeout(10):
        while "listening" not in await bench.text("recall", query="server-is-listening"):
            await asyncio.sleep(0.05)


async def test_other_branches_only_when_asked(bench: Bench) -> None:
    start = user(bench, "start")
    left = user(bench, "the left way with mango")
    bench.session.append(BranchEntry(parent=start))
    bench.session.append(BranchSummaryEntry(summary="tried fruit", from_seq=left))
    assert "Nothing found" in await bench.text("recall", query="mango")
    assert f"#{left} user" in await bench.text("recall", query="mango", branches=True)
    bench.session.append(bench.session.header)
    assert f"#{left} user" in await bench.text("recall", query="mango", branches=True)
    assert "branch that was left" in await bench.text("recall", query="fruit")


async def test_what_the_user_keeps_from_the_model_stays_kept(bench: Bench) -> None:
    path = bench.session.store.save_output("call", "hidden-token in full\n")
    excluded = bench.session.append(
        ShellEntry(command="env", output="hidden-token", exit_code=0, excluded=True, output_path=str(path))
    )
    bench.session.append(NoticeEntry(text="hidden-token was told"))
    assert "Nothing found" in await bench.text("recall", query="hidden-token")
    assert "hidden-token" not in await bench.text("recall", seq=f"{excluded.seq}-")


async def test_earlier_recalls_are_no_answers(bench: Bench) -> None:
    user(bench, "papaya")
    call = ToolCallPart(id="r1", name="recall", arguments='{"query": "papaya"}')
    answer(bench, call)
    bench.session.append(ToolResultMessage(call_id="r1", name="recall", parts=(TextPart(text="papaya papaya"),)))
    assert "[1 match," in await bench.text("recall", query="papaya")


async def test_a_regular_expression_is_matched_line_by_line(bench: Bench) -> None:
    seq = user(bench, "first\nport = 9001\nport = x")
    text = await bench.text("recall", query=r"^PORT = \d+$", regex=True)
    assert f"#{seq} user" in text
    assert "2: port = 9001" in text
    assert "port = x" not in text
    assert "not a regular expression" in await bench.error("recall", query="(", regex=True)


async def test_a_regular_expression_that_never_ends_is_stopped_by_a_cancel(bench: Bench) -> None:
    user(bench, "a" * 60 + "!")
    task = asyncio.create_task(bench.call("recall", query="(a+)+$", regex=True))
    await asyncio.sleep(0.3)
    task.cancel()
    async with asyncio.timeout(60):  # the expression itself would take years
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_matching_program_that_ends_is_an_error_and_not_an_empty_answer(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(bench, "apple")
    monkeypatch.setattr(line_matcher, "__file__", str(tmp_path / "missing.py"))
    assert "The search failed" in await bench.error("recall", query="appl.", regex=True)


async def test_words_that_never_stand_together_are_counted(bench: Bench) -> None:
    user(bench, "apple")
    user(bench, "apple pie")
    text = await bench.text("recall", query="apple plum")
    assert "“apple” in 2" in text
    assert "“plum” in 0" in text
    assert "apple pie" in await bench.text("recall", query='"apple pie"')
    assert "Nothing found" in await bench.text("recall", query='"pie apple"')


@pytest.mark.parametrize(
    ("arguments", "part"),
    [({}, "Say what to look for"), ({"seq": "abc"}, "not a range"), ({"seq": "9-3"}, "ends before it begins")],
)
async def test_what_cannot_be_asked_is_said(bench: Bench, arguments, part) -> None:
    assert part in await bench.error("recall", **arguments)


async def test_a_file_without_line_ends_and_damaged_bytes_do_no_harm(bench: Bench, tmp_path: Path) -> None:
    path = bench.session.store.save_output("c1", b"\xff\x00" + b"z" * 300_000 + b" kiwi " + b"y" * 300_000)
    result(bench, "cut", truncated=True, output_path=str(path))
    text = await bench.text("recall", query="kiwi")
    assert "kiwi" in text
    assert len(text) < 2_000


def compaction(bench: Bench, summary: str) -> int:
    bench.session.append(SystemMessage(text="prompt"))
    first_kept = bench.session.path()[-1].seq
    return bench.session.append(
        CompactionEntry(summary=summary, first_kept_index=first_kept, replacement=(SystemMessage(text=summary),))
    ).seq


def headings(text: str) -> list[int]:
    """Return the seqs of what was found, in the order shown."""
    return [int(seq) for seq in re.findall(r"^#(\d+) ", text, re.MULTILINE)]


CHECKSUM = "checksum of alpha_wheel = 9f3c1e77ab20"


@pytest.mark.parametrize("rounds", [23, 30])
async def test_t7_the_record_is_found_first_whatever_the_summaries_repeat(bench: Bench, rounds: int) -> None:
    user(bench, "what is in out.txt?")
    seq = result(bench, f"start\n{CHECKSUM}\nend")
    for number in range(rounds):
        user(bench, f"go on with part {number}")
        answer(bench, TextPart(text="done"))
        compaction(bench, f"## Critical Context\n- {CHECKSUM}")
    for query, regex in (("checksum alpha_wheel", False), (r"alpha_wheel = \w+", True)):
        text = await bench.text("recall", query=query, regex=regex)
        assert headings(text) == [seq]
        assert re.search(rf"^#{seq} result of bash · \d{{4}}-\d\d-\d\d \d\d:\d\d\n  2: {CHECKSUM}$", text, re.MULTILINE)
        assert "paraphrase" not in text
        assert "older" not in text


@pytest.mark.parametrize("rounds", [23, 30])
async def test_t7_what_answers_repeat_does_not_hide_the_original(bench: Bench, rounds: int) -> None:
    seq = result(bench, CHECKSUM)
    copies = [answer(bench, TextPart(text=f"again: {CHECKSUM}")) for _ in range(rounds)]
    text = await bench.text("recall", query="checksum alpha_wheel")
    assert headings(text) == [seq, *copies[-20:]]
    assert "The first one is the oldest of all" in text
    assert f"ask again with seq 1-{copies[-21]}." in text


async def test_t7_of_summaries_only_the_newest_is_found_and_only_alone(bench: Bench) -> None:
    user(bench, "the plan says teal")
    for number in range(5):
        user(bench, f"part {number}")
        newest = compaction(bench, f"the turquoise plan of round {number}")
    text = await bench.text("recall", query="turquoise plan")
    assert headings(text) == [newest]
    assert "a paraphrase, not the record" in text
    assert "of round 4" in text
    assert "paraphrase" in await bench.text("recall", seq=newest)


@given(st.lists(st.sampled_from(["user", "answer", "result", "summary", "other"]), max_size=40), st.integers(1, 6))
def test_t7_a_page_has_the_oldest_and_the_newest_of_the_record(kinds: list[str], limit: int) -> None:
    """Whatever the history: no summary beside the record, the oldest match first, then the newest, in order."""
    with tempfile.TemporaryDirectory() as root:
        bench = make_bench(Path(root))
        append = {
            "user": lambda: user(bench, f"the {CHECKSUM}"),
            "answer": lambda: answer(bench, TextPart(text=CHECKSUM)),
            "result": lambda: result(bench, f"x\n{CHECKSUM}"),
            "summary": lambda: compaction(bench, CHECKSUM),
            "other": lambda: user(bench, "alpha"),
        }
        seqs = [(kind, append[kind]()) for kind in kinds]
        text = asyncio.run(bench.text("recall", query="checksum alpha_wheel", limit=limit))
    record = [seq for kind, seq in seqs if kind not in {"summary", "other"}]
    summaries = [seq for kind, seq in seqs if kind == "summary"]
    older = record[:1] if len(record) > limit else []
    assert headings(text) == ([*older, *record[-limit:]] or summaries[-1:])
    assert ("There are older ones" in text) == (len(record) > limit)
    assert ("not the record" in text) == (bool(summaries) and not record)


TOLD = "legal wants olive_basket gone by the 21st of May"


@given(st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_t7_words_that_are_everywhere_do_not_hide_where_all_of_them_stand(
    before: int, behind: int, in_one_line: bool
) -> None:
    """Of a long text the lines with most of the words are shown, and of a long line the part with most of them."""
    filler = [f"number {n} of the parts, by the book" for n in range(before + behind)]
    blank = ". " if in_one_line else "\n"
    text = blank.join((*filler[:before], TOLD, *filler[before:]))
    with tempfile.TemporaryDirectory() as folder:
        bench = make_bench(Path(folder))
        user(bench, text)
        found = asyncio.run(bench.text("recall", query="olive_basket 21st of May by the"))
    assert TOLD in found
