"""A model that goes round in circles is told, then stopped; a loop of edits and checks is work.

seeds-001-002-004.md F1, reliability.md A6.
"""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.agent.endings import TOLD_AT, RepeatedCalls, Repetition
from tenuto.model.wire.conversation import check_arguments
from tenuto.protocol.event import NoticeEvent, TaskFinishedEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tests.core.compacting import SUMMARY, is_summary_request, words
from tests.core.harness import agent
from tests.server import Call, Reply, Request

Step = tuple[tuple[str, str, bool], ...]
"""The calls of an answer: name, text of the result, whether it failed."""


def take(calls: RepeatedCalls, step: Step, compactions: int = 1, duration: float = 0.0) -> Repetition | None:
    asked = [ToolCallPart(id=str(place), name=name) for place, (name, _, _) in enumerate(step)]
    results = [
        ToolResultMessage(
            call_id=str(place), name=name, parts=(TextPart(text=text),), is_error=failed, duration=duration
        )
        for place, (name, text, failed) in enumerate(step)
    ]
    return calls.find(asked, results, compactions)


SAME: Step = (("read", "same", False),)
BAD: Step = (("read", "no", True),)
CALL = st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y"]), st.booleans())
STEPS = st.lists(st.lists(CALL, min_size=1, max_size=3).map(tuple), max_size=40)


def essence(step: Step) -> frozenset[tuple[str, str, bool]]:
    """What counts of an answer: equal calls once, and of a failure not its words."""
    return frozenset((name, "" if failed else text, failed) for name, text, failed in step)


@given(STEPS)
def test_f1_only_equal_answers_in_a_row_are_a_circle_and_the_model_is_told_first(steps: list[Step]) -> None:
    calls = RepeatedCalls()
    found = [take(calls, step) for step in steps]
    expected: list[int] = []
    for _, group in groupby(steps, essence):
        expected += range(1, len(list(group)) + 1)
    for repetition, times in zip(found, expected, strict=True):
        assert (repetition is not None) == (times >= TOLD_AT)
        if repetition is not None:
            assert repetition.times == times
            assert repetition.is_last == (times > TOLD_AT)


@given(STEPS)
def test_f1_an_answer_with_something_else_in_between_never_counts(steps: list[Step]) -> None:
    calls = RepeatedCalls()
    for number, step in enumerate(steps):
        assert take(calls, step) is None
        assert take(calls, (("edit", f"changed {number}", False),)) is None


@given(STEPS, st.integers(1, 4))
def test_a6_equal_calls_of_one_answer_count_once(steps: list[Step], times: int) -> None:
    once, often = RepeatedCalls(), RepeatedCalls()
    for step in steps:
        assert bool(take(once, step)) == bool(take(often, step * times))


@given(st.lists(st.sampled_from(["{", "", "null", "[1", '{"a": ', "not json", '{"command": "ls"']), max_size=30))
def test_a6_broken_arguments_of_different_text_are_not_the_same_call(texts: list[str]) -> None:
    calls = RepeatedCalls()
    normal = [text if text not in ("", "null") else "{}" for text in texts]
    for number, text in enumerate(texts):
        arguments, fault = check_arguments(text)
        call = ToolCallPart(id="1", name="bash", arguments=arguments, fault=fault)
        result = ToolResultMessage(call_id="1", name="bash", parts=(TextPart(text="no"),), is_error=True)
        if calls.find([call], [result], 0) is not None:
            assert len(set(normal[number - TOLD_AT + 1 : number + 1])) == 1


def test_the_same_call_with_the_same_result_counts_only_after_a_compaction():
    calls = RepeatedCalls()
    assert not any(take(calls, SAME, 0) for _ in range(10))
    assert [bool(take(calls, SAME)) for _ in range(4)] == [False, False, True, True]


def test_other_results_and_waiting_are_no_repetition():
    calls = RepeatedCalls()
    assert not any(take(calls, (("read", str(number), False),)) for number in range(9))
    assert not any(take(calls, SAME, duration=6.0) for _ in range(9))


def test_a_new_compaction_and_a_new_message_begin_anew():
    calls = RepeatedCalls()
    assert not any(take(calls, SAME, number) for number in (1, 1, 2, 2, 3, 3))
    calls.clear()
    assert not take(calls, SAME, 3)


def test_r096_the_same_failure_three_times_in_a_row_is_told_and_the_fourth_ends_it():
    calls = RepeatedCalls()
    found = [take(calls, step, 0) for step in (BAD, BAD, SAME, BAD, BAD, BAD, BAD)]
    assert [bool(one) for one in found] == [False] * 5 + [True, True]
    assert [one.is_last for one in found if one] == [False, True]


async def test_f1_a_loop_of_edits_and_checks_after_a_compaction_is_work(tmp_path):
    """Steps of the report: a long output, an edit, a check that passes, again and again."""
    steps = [
        reply
        for number in range(12)
        for reply in (
            Call("bash", {"command": f"seq {number} 900"}),
            Call("bash", {"command": f"echo edit {number} >> notes.txt"}),
            Call("bash", {"command": "echo All checks passed!"}),
        )
    ]

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return Reply(tool_calls=[steps.pop(0)]) if steps else Reply("done")

    async with agent(tmp_path, script, options={"window": 16_000}) as running:
        settled = await running.ask("go on until it is done", timeout=120)
        assert (settled.outcome, settled.error) == ("completed", "")
        assert running.runtime.live.compaction.automatic.done >= 1, "or this would show nothing"
        assert not steps


@pytest.mark.parametrize("passes", [True, False])
async def test_f1_the_model_is_told_first_and_a_passing_check_is_no_failure(tmp_path, passes):
    """The same call for ever, with a compaction before it where it passes."""
    command = "echo All checks passed!" if passes else "echo no; exit 3"

    def script(request: Request) -> Reply:
        return Reply(tool_calls=[Call("bash", {"command": command})])

    async with agent(tmp_path, script) as running:
        running.runtime.live.compaction.automatic.done = 1
        settled = await running.ask("check it", timeout=60)
        assert len(running.server.requests) == TOLD_AT + 1
        told = ["You have made the same call" in str(request.body) for request in running.server.requests]
        assert told == [False] * TOLD_AT + [True]
        if passes:
            assert settled.outcome == "completed"
            assert any("the same call with the same result" in event.text for event in running.of(NoticeEvent))
        else:
            assert settled.outcome == "failed"
            assert "the same failing call" in settled.error


async def test_a6_equal_failing_calls_of_one_answer_are_answered(tmp_path):
    bad = [Call("bash", {"command": "exit 3"})] * 5
    async with agent(tmp_path, [Reply(tool_calls=bad), Reply("I see.")]) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert len(running.server.requests) == 2


async def test_a_model_that_reads_the_same_again_and_again_after_a_compaction_is_stopped(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(words(900))

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return Reply("Once more.", tool_calls=[Call("read", {"path": "a.txt"})])

    async with agent(tmp_path, script, options={"window": 16_000}) as running:
        settled = await running.ask("read it", timeout=60)
        assert settled.outcome == "completed", "what it looked at was there"
        assert running.of(TaskFinishedEvent)[-1].outcome == "completed"
        stopped = [event.text for event in running.of(NoticeEvent) if "the same call" in event.text]
        assert len(stopped) == 1
        assert "a.txt" in stopped[0]
        before = len(running.server.requests)
        assert before < 30
        await running.ask("go on", timeout=60)
        assert len(running.server.requests) > before, "the session can be used"
