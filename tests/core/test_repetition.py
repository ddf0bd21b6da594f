"""A model that goes round in circles is stopped: the same failure, or after a compaction the same result."""

from __future__ import annotations

from tenuto.core.repetition import RepeatedCalls
from tenuto.protocol.event import TaskFinishedEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tests.core.compacting import SUMMARY, is_summary_request, words
from tests.core.harness import agent
from tests.server import Call, Reply, Request


def call(name: str = "read", arguments: str = "{}") -> ToolCallPart:
    return ToolCallPart(id="1", name=name, arguments=arguments)


def result(text: str = "same", **more) -> ToolResultMessage:
    return ToolResultMessage(call_id="1", name="read", parts=(TextPart(text=text),), **more)


def test_the_same_call_with_the_same_result_stops_only_after_a_compaction():
    calls = RepeatedCalls()
    assert not any(calls.find(call(), result(), 0) for _ in range(10))
    told = [bool(calls.find(call(), result(), 1)) for _ in range(3)]
    assert told == [False, False, True]


def test_other_calls_other_results_and_waiting_are_no_repetition():
    calls = RepeatedCalls()
    assert not any(calls.find(call(arguments=str(number)), result(), 1) for number in range(9))
    assert not any(calls.find(call(), result(str(number)), 1) for number in range(9))
    assert not any(calls.find(call("bash"), result(duration=6.0), 1) for _ in range(9))


def test_calls_in_between_do_not_hide_a_circle():
    calls = RepeatedCalls()
    found = [calls.find(call(arguments=name), result(name), 1) for _ in range(3) for name in ("a", "b")]
    assert [bool(reason) for reason in found] == [False] * 4 + [True, True]


def test_a_new_compaction_and_a_new_message_begin_anew():
    calls = RepeatedCalls()
    assert not any(calls.find(call(), result(), number) for number in (1, 1, 2, 2, 3, 3))
    calls.clear()
    assert not calls.find(call(), result(), 3)


def test_r096_the_same_failure_three_times_in_a_row():
    calls = RepeatedCalls()
    bad = result("no", is_error=True)
    assert not calls.find(call(), bad, 0)
    assert not calls.find(call(), bad, 0)
    assert not calls.find(call(), result(), 0)
    assert [bool(calls.find(call(), bad, 0)) for _ in range(3)] == [False, False, True]


async def test_a_model_that_reads_the_same_again_and_again_after_a_compaction_is_stopped(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(words(900))

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return Reply("Once more.", tool_calls=[Call("read", {"path": "a.txt"})])

    async with agent(tmp_path, script, options={"window": 16_000}) as running:
        settled = await running.ask("read it", timeout=60)
        assert settled.outcome == "failed"
        finished = running.of(TaskFinishedEvent)[-1]
        assert "since the last compaction" in finished.error
        assert "a.txt" in finished.error
        before = len(running.server.requests)
        assert before < 30
        await running.ask("go on", timeout=60)
        assert len(running.server.requests) > before, "the session can be used"
