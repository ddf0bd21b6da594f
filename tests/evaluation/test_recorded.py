"""Recorded sessions: their facts come from data, and nothing of them is lost on the way (issue 20, item 3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.evaluation.driving import Case, measure
from tenuto.evaluation.recorded import RecordedError, read_recorded, said_facts, split
from tenuto.protocol.entry import TodoEntry
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.protocol.usage import Usage

FOLDER = Path(__file__).parents[1] / "fixtures" / "recorded"
FILES = sorted(FOLDER.glob("*.jsonl"))


def said(text):
    return UserMessage(parts=(TextPart(text=text),), origin="typed")


def called(name, arguments, call_id="a"):
    call = ToolCallPart(id=call_id, name=name, arguments=json.dumps(arguments))
    return AssistantMessage(parts=(call,), stop_reason="tool_use")


def result(text, call_id="a", **more):
    return ToolResultMessage(call_id=call_id, name="bash", parts=(TextPart(text=text),), **more)


def facts_of(*entries):
    return {(fact.kind, fact.text) for part in split(entries, 1) for fact in part.facts}


def test_s20_there_are_at_least_four_recorded_sessions():
    assert len(FILES) >= 4


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_s20_a_recorded_session_is_split_without_loss_and_every_fact_stands_in_it(file):
    entries = read_recorded(file)
    parts = split(entries, 11)
    assert len(parts) == 11
    assert [entry for part in parts for entry in part.entries if not isinstance(entry, TodoEntry)] == list(entries)
    text = " ".join(" ".join(map(text_in, entries)).split())
    facts = [fact for part in parts for fact in part.facts]
    assert facts
    paths = {use.path for one in entries if isinstance(one, ToolResultMessage) for use in one.files}
    assert [
        fact
        for fact in facts
        if fact.text not in text and not any(path.endswith(fact.text) for path in paths) and fact.kind != "todo"
    ] == []


def text_in(entry) -> str:
    texts = [part.text if isinstance(part, TextPart) else part.arguments for part in entry.parts]
    return "\n".join(texts)


@given(st.lists(st.sampled_from(["user", "step", "failure"]), max_size=40), st.integers(1, 12))
def test_s20_property_a_call_and_its_result_stay_in_one_part(kinds, rounds):
    entries = []
    for number, kind in enumerate(kinds):
        if kind == "user":
            entries.append(said(f"look at part {number} again"))
        else:
            entries += [called("bash", {"command": "ls"}, f"c{number}"), result("x " * number, f"c{number}")]
    parts = split(entries, rounds)
    assert len(parts) == rounds
    assert [entry for part in parts for entry in part.entries] == entries
    for part in parts:
        asked = {call.id for one in part.entries if isinstance(one, AssistantMessage) for call in one.tool_calls}
        assert asked == {one.call_id for one in part.entries if isinstance(one, ToolResultMessage)}


def test_s20_names_count_that_the_agent_used_again():
    entries = (
        called("bash", {"command": "run"}),
        result("spare_name and used_name and 7f3a9c1 stand here"),
        called("bash", {"command": "grep used_name 7f3a9c1"}, "b"),
        result("ok", "b"),
    )
    assert facts_of(*entries) == {("identifier", "used_name"), ("identifier", "7f3a9c1")}


def test_s20_the_last_line_of_a_failure_is_an_error_and_a_todo_list_is_the_sessions_own():
    entries = (
        called("TodoWrite", {"todos": [{"content": "write the parser", "status": "completed"}]}),
        result("Traceback\nKeyError: no such part", is_error=True),
        called("TodoWrite", {"todos": [{"content": "test the parser", "status": "in_progress"}]}, "b"),
        result("ok", "b"),
    )
    [part] = split(entries, 1)
    assert {(fact.kind, fact.text) for fact in part.facts} == {
        ("error", "KeyError: no such part"),
        ("todo", "test the parser"),
    }
    assert [one.items[0].text for one in part.entries if isinstance(one, TodoEntry)] == [
        "write the parser",
        "test the parser",
    ]


def test_s20_of_a_long_text_its_first_and_last_sentence_count_and_no_tags():
    text = "<issue>\nThe parser fails on tabs.\n" + "It reads a line and goes on to the next one. " * 30
    text += "\nPlease do not touch the lexer.\n</issue>"
    found = [(fact.kind, fact.text) for fact in said_facts(text)]
    assert found == [("user head", "The parser fails on tabs."), ("user end", "Please do not touch the lexer.")]
    assert [fact.kind for fact in said_facts("take port 9083")] == ["number"]


def test_s20_what_only_its_time_had_is_left_out(tmp_path):
    line = {"type": "message", "timestamp": "2025-10-09T08:00:00.000Z"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "usage": {"input": 5}}
    user = {"role": "user", "content": [{"type": "text", "text": "hi there"}]}
    lines = [{"type": "session", "id": "x", "timestamp": line["timestamp"], "cwd": "/srv"}]
    lines += [{**line, "message": user}, {**line, "message": answer}]
    file = tmp_path / "one.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    entries = read_recorded(file)
    assert [type(entry) for entry in entries] == [UserMessage, AssistantMessage]
    assert entries[1].usage in {None, Usage()}


@pytest.mark.parametrize("text", ["", "not a session\n", '{"type": "unknown"}\n', "\x00\x01\x02"])
def test_s20_a_broken_file_is_named(tmp_path, text):
    file = tmp_path / "broken.jsonl"
    file.write_text(text)
    with pytest.raises(RecordedError, match=r"broken\.jsonl"):
        read_recorded(file)
    with pytest.raises(RecordedError, match="missing"):
        read_recorded(tmp_path / "missing.jsonl")


async def test_s20_a_recorded_session_keeps_the_users_words_and_files():
    case = Case(seed=0, window=16_384, rounds=3, recorded=str(FOLDER / "pi-refactor.jsonl"))
    figures = await measure(case)
    last = [sight for sight in figures.sights if sight.round == 3]
    wanted = {"user short", "user head", "user end", "read", "modified", "number"}
    assert {sight.kind for sight in last} >= {"user short", "user head", "read", "identifier"}
    assert [sight for sight in last if sight.kind in wanted and not sight.in_view] == []
    assert [fact for fact in figures.recalled if not fact.found] == []
    assert not figures.over
