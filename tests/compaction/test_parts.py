"""The window by part: the parts are the meter's number, whatever is in the view."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.context_rows import MAX_WIDTH, PICTURE_ROWS, context_rows
from tenuto.compaction.measure.meter import Meter, divide, sizes_over_time
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.summary.view import SessionData, session_blocks
from tenuto.protocol.entry import BranchSummaryEntry, QueuedEntry, TodoItem, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import ContextPart, ContextReport, SizePoint, Usage
from tenuto.session.view.projection import show_entry

words = st.text(alphabet="ab <>/\n界1", max_size=60)
texts = st.builds(lambda text: (TextPart(text=text),), words)
SUMMARY = st.builds(
    lambda summary, pins, todo: SystemMessage(
        text="\n\n".join(
            [
                "frame",
                f"<summary>\n{summary}\n</summary>",
                *session_blocks(SessionData(pins=tuple(pins), todo=tuple(TodoItem(text=one) for one in todo))),
            ]
        )
    ),
    words,
    st.lists(words, max_size=3),
    st.lists(words, max_size=3),
)
messages = st.one_of(
    SUMMARY,
    st.builds(lambda text: SystemMessage(text=text), words),
    st.builds(lambda text, kind: DeveloperMessage(text=text, kind=kind), words, st.sampled_from(["", "mode", "pin:3"])),
    st.builds(lambda parts: UserMessage(parts=parts), texts),
    st.just(UserMessage(parts=(ImagePart(media_type="image/png", sha256="0" * 64),))),
    st.builds(lambda parts: ToolResultMessage(call_id="c", name="read", parts=parts), texts),
    st.builds(
        lambda text, thought, arguments: AssistantMessage(
            parts=(
                TextPart(text=text),
                ThinkingPart(text=thought),
                ToolCallPart(id="c", name="read", arguments=arguments),
            )
        ),
        words,
        words,
        words,
    ),
)


@given(
    st.lists(messages, max_size=8),
    st.integers(0, 3_000),
    st.integers(0, 500),
    st.lists(words, max_size=2),
    st.integers(0, 200_000),
)
def test_the_parts_add_up_to_the_meters_number(view, tools, instructions, queued, counted):
    view = [SystemMessage(seq=1, text="You are an agent. " * 20), *view]
    path = [AssistantMessage(seq=2, parts=(), model="a/b", usage=Usage(input=counted), estimate=counted // 2)]
    queue = [QueuedEntry(parts=(TextPart(text=text),)) for text in queued]
    size = Meter().measure_view(view, path, model_id="a/b", tools_tokens=tools, queue=queue)
    parts = divide(view, size, tools=tools, instructions=instructions)
    assert sum(part.tokens for part in parts) == size.tokens
    assert all(part.tokens > 0 for part in parts)
    assert len({part.name for part in parts}) == len(parts)


def test_every_kind_is_found_where_it_is():
    notes = show_entry(BranchSummaryEntry(seq=9, summary="left " * 50, from_seq=4))
    assert notes is not None
    view = [
        SystemMessage(seq=1, text="prompt " * 100),
        SystemMessage(text="frame\n\n<summary>\nsum\n</summary>\n\n<pins>\n" + "pin " * 100 + "\n</pins>"),
        UserMessage(seq=3, parts=(TextPart(text="said " * 100),)),
        AssistantMessage(
            seq=4,
            model="a/b",
            parts=(
                TextPart(text="answer " * 100),
                ThinkingPart(text="thought " * 100, provider="a", block=msgspec.Raw(b"{}")),
                ToolCallPart(id="c", name="bash", arguments='{"command": "' + "x " * 100 + '"}'),
            ),
        ),
        ToolResultMessage(seq=5, call_id="c", name="bash", parts=(TextPart(text="result " * 100),)),
        DeveloperMessage(seq=6, text="note " * 100),
        notes,
    ]
    size = Meter().measure_view(view, (), model_id="a/b", tools_tokens=300)
    parts = {part.name: part.tokens for part in divide(view, size, tools=300, instructions=60)}
    assert set(parts) == {
        *("system", "instructions", "tools", "summary", "pins", "user"),
        *("answers", "thinking", "calls", "results", "notes"),
    }
    assert parts["instructions"] == 60
    assert parts["tools"] == 300
    assert parts["results"] == estimate_message(view[4])
    assert parts["notes"] == estimate_message(view[5])
    assert parts["pins"] > 90


def test_the_curve_has_every_answer_and_both_sides_of_a_compaction():
    path = [
        AssistantMessage(seq=1, parts=(), usage=Usage(input=100, output=5)),
        AssistantMessage(seq=2, parts=(), usage=Usage(input=900)),
        CompactionEntry(seq=3, tokens_before=900, tokens_after=200),
        ViewEditEntry(seq=4, edits=()),
        ViewEditEntry(seq=5, edits=(), rung="hide", tokens_before=300, tokens_after=150),
        AssistantMessage(seq=6, parts=()),
    ]
    assert [(point.tokens, point.compacted) for point in sizes_over_time(path)] == [
        (105, False),
        (900, False),
        (900, False),
        (200, True),
        (300, False),
        (150, True),
    ]


@given(
    st.integers(10, 120),
    st.lists(st.integers(1, 90_000), min_size=1, max_size=8),
    st.integers(1_000, 100_000),
    st.lists(st.tuples(st.integers(0, 90_000), st.booleans()), max_size=200),
)
def test_the_picture_is_as_wide_as_it_may_be_and_marks_the_trigger_and_each_compaction(width, sizes, window, history):
    names = ("system", "tools", "summary", "user", "answers", "calls", "results", "notes")
    tokens = sum(sizes)
    report = ContextReport(
        parts=tuple(ContextPart(name=name, tokens=size) for name, size in zip(names, sizes, strict=False)),
        tokens=tokens,
        estimated=True,
        window=window,
        known=True,
        trigger=window * 3 // 4,
        free=max(0, window * 3 // 4 - tokens),
        reserve=max(0, window - max(tokens, window * 3 // 4)),
        history=tuple(SizePoint(seq=1, tokens=size, compacted=done) for size, done in history),
    )
    rows = ["".join(text for text, _ in row) for row in context_rows(report, width)]
    picture = rows[2 : 2 + PICTURE_ROWS]
    cells = min(width, MAX_WIDTH)
    assert {len(row) for row in picture} == {cells}
    assert "".join(picture).count("▲") == 1
    chart = [row for row in rows if row.startswith("The context over the session")]
    assert bool(chart) == (len(history) >= 2)
    if chart and any(done for _, done in history):
        assert "▲" in rows[rows.index(chart[0]) + 1]
        assert all(len(row) <= cells for row in rows[rows.index(chart[0]) + 1 :])
