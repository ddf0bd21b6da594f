"""What real logs of other agents showed (review `foreign.md`): many compactions, prompts in a turn, late results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, NoticeEntry, QueuedEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.importers.builder import Piece
from tenuto.session.importers.import_session import in_step_order
from tests.session.importers import sources
from tests.session.importers.reading import bring, check_view, of, view_words
from tests.session.importers.sources import Claude, Line, call, item, rollout, said

# --- finding 1: every compaction stands for what came before it ---


def claude_rounds(rounds: int) -> list[Line]:
    """Bookkeeping lines without a name stand between the others, as in every real file."""
    made = Claude()
    for number in range(rounds):
        made.bare(type="file-history-snapshot", messageId=f"u{number}", snapshot={}, isSnapshotUpdate=False)
        made.user(f"u{number}", f"prompt {number}")
        made.answer(f"a{number}", f"m{number}", said(f"answer {number}"))
        made.bare(type="summary", summary="Counting", leafUuid=f"a{number}")
        metadata = {"trigger": "auto", "preTokens": 150_000}
        boundary = {"subtype": "compact_boundary", "logicalParentUuid": f"a{number}", "compactMetadata": metadata}
        made.add("system", f"b{number}", None, content="Conversation compacted", **boundary)
        made.user(f"c{number}", f"summary {number}", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made.user("last", "prompt last")
    return made.lines


def codex_rounds(rounds: int) -> list[Line]:
    lines = sources.codex_head()
    for number in range(rounds):
        lines += [sources.codex_user(3, f"prompt {number}"), sources.codex_answer(4, f"answer {number}")]
        lines.append(rollout("compacted", 5, message=f"summary {number}", replacement_history=[]))
    return [*lines, sources.codex_user(6, "prompt last")]


def pi_rounds(rounds: int) -> list[Line]:
    lines, last = [sources.PI_HEAD], None
    for number in range(rounds):
        names = [f"u{number}", f"a{number}", f"c{number}"]
        lines.append(sources.pi_message(names[0], last, number, role="user", content=f"prompt {number}"))
        lines.append(sources.pi_answer(names[1], names[0], number, said(f"answer {number}")))
        kept = {"firstKeptEntryId": names[2], "tokensBefore": 180_000, "details": {}}
        lines.append(sources.pi_line(names[2], names[1], "compaction", number, summary=f"summary {number}", **kept))
        last = names[2]
    return [*lines, sources.pi_message("last", last, 99, role="user", content="prompt last")]


def kimi_code_rounds(rounds: int) -> list[Line]:
    lines = list(sources.KIMI_HEAD)
    for number in range(rounds):
        lines.append(sources.kimi_user(number, f"prompt {number}"))
        lines += sources.kimi_step(number, f"s{number}", said(f"answer {number}"))
        counts = {"compactedCount": 2 if number == 0 else 3, "keptUserMessageCount": 0}
        lines.append(sources.record("context.apply_compaction", number, summary=f"summary {number}", **counts))
    return [*lines, sources.kimi_user(99, "prompt last")]


def klaude_rounds(rounds: int) -> list[Line]:
    lines: list[Line] = []
    for number in range(rounds):
        lines += [
            sources.klaude_user(number, f"prompt {number}"),
            sources.klaude_answer(number, said(f"answer {number}")),
        ]
        kept = {"first_kept_index": len(lines), "tokens_before": 180_000}
        lines.append(sources.klaude("CompactionEntry", number, summary=f"summary {number}", **kept))
    return [*lines, sources.klaude_user(99, "prompt last")]


ROUNDS = {
    "claude-code": claude_rounds,
    "codex": codex_rounds,
    "kimi-code": kimi_code_rounds,
    "klaude-code": klaude_rounds,
    "pi": pi_rounds,
}


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("name", ROUNDS)
def test_foreign_1_only_the_newest_summary_and_what_followed_are_in_view(tmp_path, name, rounds):
    session, made = bring(tmp_path, ROUNDS[name](rounds))
    assert made.source.format.name == name
    view = session.get_llm_history()
    check_view(view)
    words = "\n".join(view_words(session))
    newest = rounds - 1
    assert f"summary {newest}" in words
    assert "prompt last" in words
    assert not [old for old in range(newest) if f"summary {old}" in words or f"answer {old}" in words]
    assert words.count("is summarised above") <= 1
    assert all(f"answer {number}" in str(list(session.entries())) for number in range(rounds))
    cuts = [entry.first_kept_index for entry in of(session, CompactionEntry)]
    assert len(cuts) == rounds
    assert cuts == sorted(set(cuts))


# --- finding 2: what was typed while the other agent worked ---


def queue(made: Claude, operation: str, content: str | None = None) -> None:
    more = {} if content is None else {"content": content}
    made.bare(type="queue-operation", operation=operation, timestamp=sources.stamp(50), sessionId="5f0c", **more)


def working() -> Claude:
    made = Claude()
    made.user("u1", "Count to ten.", None)
    made.answer("a1", "m1", call("t1", "Bash", command="seq 10"))
    return made


def finish(made: Claude, parent: str = "r1") -> list[Line]:
    made.answer("a2", "m2", call("t2", "Bash", command="true"), parent)
    made.result("r2", "t2", "", "a2")
    made.answer("a3", "m3", said("Done."))
    return made.lines


def test_foreign_2_prompts_that_went_into_a_turn_stand_where_the_model_got_them(tmp_path):
    made = working()
    queue(made, "enqueue", "Only the odd ones.")
    queue(made, "enqueue", "And hurry.")
    made.result("r1", "t1", "1 … 10", "a1")
    made.add("system", "h1", subtype="stop_hook_summary")
    queue(made, "remove")
    queue(made, "remove")
    session, _ = bring(tmp_path, finish(made, "h1"))
    assert view_words(session) == [
        "user: Count to ten.",
        "model:  Bash()",
        "Bash: 1 … 10",
        "user: Only the odd ones.",
        "user: And hurry.",
        "model:  Bash()",
        "Bash: ",
        "model: Done.",
    ]
    assert [entry.origin for entry in of(session, UserMessage)] == ["typed"] * 3
    assert not of(session, BranchEntry)
    check_view(session.get_llm_history())


def test_foreign_2_a_queued_prompt_that_has_a_line_of_its_own_stands_once(tmp_path):
    made = working()
    queue(made, "enqueue", "As an attachment.")
    queue(made, "enqueue", "As the next prompt.")
    made.result("r1", "t1", "1 … 10", "a1")
    queue(made, "remove")
    made.add("attachment", "at1", attachment={"type": "queued_command", "prompt": "As an attachment."})
    finish(made, "at1")
    queue(made, "dequeue")
    made.user("u2", "As the next prompt.", "a3")
    made.answer("a4", "m4", said("Yes."))
    session, _ = bring(tmp_path, made.lines)
    assert [words for words in view_words(session) if words.startswith("user: ")] == [
        "user: Count to ten.",
        "user: As an attachment.",
        "user: As the next prompt.",
    ]


def test_foreign_2_what_was_taken_back_is_out_and_what_still_waits_is_queued(tmp_path):
    made = working()
    queue(made, "enqueue", "Taken back.")
    queue(made, "popAll", "Taken back.")
    queue(made, "enqueue", "Still waiting.")
    made.result("r1", "t1", "1 … 10", "a1")
    session, _ = bring(tmp_path, finish(made))
    assert "Taken back." not in str(list(session.entries()))
    assert [entry.parts for entry in of(session, QueuedEntry)] == [(TextPart(text="Still waiting."),)]


@pytest.mark.parametrize("travels", ["line", "queue"])
@pytest.mark.parametrize("tag", ["task-notification", "bash-notification"])
def test_foreign_5_the_end_of_a_background_command_reaches_the_model(tmp_path, travels, tag):
    told = f"<{tag}>\n<task-id>b1</task-id>\n<status>completed</status>\n</{tag}>"
    made = working()
    made.result("r1", "t1", "running in the background", "a1")
    if travels == "line":
        made.user("n1", told, "r1")
    else:
        queue(made, "enqueue", told)
        queue(made, "remove")
    session, _ = bring(tmp_path, finish(made, "n1" if travels == "line" else "r1"))
    assert f"user: {told}" in view_words(session)
    assert [entry.origin for entry in of(session, UserMessage)] == ["typed", "extension"]


# --- finding 3: results that arrive while their answer streams ---


def test_foreign_3_results_that_come_before_their_answer_is_complete_are_its_results(tmp_path):
    made = Claude()
    made.user("u1", "Comment on all three.", None)
    made.answer("a1", "m1", call("t1", "A"))
    made.answer("a2", "m1", call("t2", "B"), "a1")
    made.result("r1", "t1", "done A", "a1")
    made.answer("a3", "m1", call("t3", "C"), "r1")
    made.result("r2", "t2", "done B", "a2")
    made.result("r3", "t3", "done C", "a3")
    made.answer("a4", "m2", said("All done."))
    session, made_of = bring(tmp_path, made.lines)
    assert view_words(session) == [
        "user: Comment on all three.",
        "model:  A() B() C()",
        "A: done A",
        "B: done B",
        "C: done C",
        "model: All done.",
    ]
    assert not made_of.report.counts


@pytest.mark.parametrize("between", ["search", "message", "aborted", "error"])
def test_foreign_3_codex_finds_the_call_of_a_late_result(tmp_path, between):
    told = {
        "search": item(5, "web_search_call", status="completed", action={"type": "search", "query": "clocks"}),
        "message": sources.codex_answer(5, "Meanwhile …"),
        "aborted": rollout("event_msg", 5, type="turn_aborted"),
        "error": rollout("event_msg", 5, type="error", message="stream lost"),
    }[between]
    lines = [
        *sources.codex_head(),
        sources.codex_user(3, "Why?"),
        item(4, "custom_tool_call", status="completed", call_id="call_1", name="apply_patch", input="patch"),
        rollout("event_msg", 4, type="turn_aborted"),
        told,
        rollout("event_msg", 5, type="turn_aborted"),
        item(6, "custom_tool_call_output", call_id="call_1", output="Success"),
        sources.codex_answer(7, "Because."),
    ]
    session, made = bring(tmp_path, lines)
    result = of(session, ToolResultMessage)[0]
    assert (result.interrupted, result.parts) == (False, (TextPart(text="Success"),))
    calls = [call for answer in of(session, AssistantMessage) for call in answer.tool_calls]
    assert [(call.freeform, call.arguments) for call in calls] == [(True, '{"input":"patch"}')]
    assert made.report.counts.get("orphan", 0) == 0
    check_view(session.get_llm_history())


@st.composite
def streamed(draw):
    """Answers in blocks, each call's result somewhere behind its block, notices in between."""
    answers = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    blocks = [(answer, f"call_{answer}_{number}") for answer, count in enumerate(answers) for number in range(count)]
    results = [call_id for _, call_id in blocks if draw(st.integers(0, 9))]
    order: list[tuple[str, object]] = [("block", block) for block in blocks]
    for call_id in results:
        behind = next(i for i, (kind, what) in enumerate(order) if kind == "block" and what[1] == call_id)
        order.insert(draw(st.integers(behind + 1, len(order))), ("result", call_id))
    for number in range(draw(st.integers(0, 3))):
        order.insert(draw(st.integers(0, len(order))), ("notice", str(number)))
    pieces = []
    for kind, what in order:
        if kind == "block":
            answer, call_id = what
            parts = (ToolCallPart(id=call_id, name="bash", arguments="{}"),)
            pieces.append(Piece(entry=AssistantMessage(parts=parts), names=(call_id,), group=f"m{answer}"))
        elif kind == "result":
            pieces.append(Piece(entry=ToolResultMessage(call_id=what, name="bash", parts=(TextPart(text=what),))))
        else:
            pieces.append(Piece(entry=NoticeEntry(text=what)))
    return pieces


@given(streamed(), st.integers(0, 5))
def test_foreign_3_every_result_stands_behind_its_answer_and_nothing_is_lost(pieces, prompt_at):
    pieces.insert(min(prompt_at, len(pieces)), Piece(entry=UserMessage(parts=(TextPart(text="go on"),))))
    found = list(in_step_order(pieces))
    prompt = next(i for i, piece in enumerate(pieces) if isinstance(piece.entry, UserMessage))
    called = {name for piece in pieces[:prompt] for name in piece.names}
    late = {p.entry.call_id for p in pieces[prompt:] if isinstance(p.entry, ToolResultMessage)} & called
    calls = [part.id for p in found if isinstance(p.entry, AssistantMessage) for part in p.entry.parts]
    assert sorted(calls) == sorted(name for piece in pieces for name in piece.names)
    assert sorted(name for piece in found for name in piece.names) == sorted(calls)
    kinds = (ToolResultMessage, NoticeEntry, UserMessage)
    assert sorted(str(p.entry) for p in found if isinstance(p.entry, kinds)) == sorted(
        str(p.entry) for p in pieces if isinstance(p.entry, kinds)
    )
    open_calls: set[str] = set()
    for piece in found:
        if isinstance(piece.entry, AssistantMessage):
            open_calls = {part.id for part in piece.entry.parts if isinstance(part, ToolCallPart)}
        elif isinstance(piece.entry, ToolResultMessage) and piece.entry.call_id not in late:
            assert piece.entry.call_id in open_calls
