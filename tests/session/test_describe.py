"""Every type of entry is described once, and whoever shows entries agrees with that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from tenuto.core.transcript import replay
from tenuto.protocol.entry import (
    ApprovalEntry,
    DequeuedEntry,
    DirectoryEntry,
    MovedEntry,
    PlanEntry,
    QueueEditEntry,
    SkillEntry,
    TodoEntry,
    TodoItem,
    ViewEditEntry,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, FilesEntry, HistoryEvent
from tenuto.protocol.part import ToolCallPart
from tenuto.session.describe import Place, is_shown, kind_of, line_of, pieces_of
from tenuto.session.exporters.source import arrange
from tests.session.exporters.samples import everything, number

OTHERS = (
    FilesEntry(target=1, files=()),
    TodoEntry(items=(TodoItem(text="word"),)),
    PlanEntry(text="word"),
    SkillEntry(name="word", text="word"),
    DequeuedEntry(target=1),
    QueueEditEntry(target=1),
    MovedEntry(cwd="/word"),
    DirectoryEntry(path="/word"),
    ApprovalEntry(tool="bash", pattern="word", form="rule", effect="deny", withdrawn=True),
    ViewEditEntry(edits=(), rung="hide"),
)
ENTRIES = number([*everything(), *OTHERS])


def test_no_type_of_entry_is_forgotten() -> None:
    assert {type(entry) for entry in ENTRIES} == set(get_args(HistoryEvent))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry.__struct_config__.tag))
def test_an_entry_is_shown_where_its_description_says(entry: HistoryEvent) -> None:
    kind = kind_of(entry)
    pieces = list(pieces_of(entry, Path("/outputs")))
    assert is_shown(entry, Place.RECALL) == bool(pieces)
    assert is_shown(entry, Place.SCREEN) == bool(list(replay("s", [entry])))
    assert is_shown(entry, Place.EXPORT) == bool(arrange([entry]))
    assert bool(kind.places) == bool(line_of(entry)) == bool(kind.who), "what is shown has a line and an author"
    assert "\n" not in line_of(entry) and kind.name


EDITS = [{"old_string": 'say "a"\nb', "new_string": "c"}, {"old_string": "d", "new_string": "e", "replace_all": True}]
CALL = ToolCallPart(id="c1", name="edit", arguments=json.dumps({"path": "a.py", "edits": EDITS}))


def test_b10_a_call_with_several_edits_is_told_with_their_number_and_searched_as_they_are() -> None:
    answer = AssistantMessage(parts=(CALL,), model="m")
    assert line_of(answer).endswith("edit a.py (2 edits)")
    (piece,) = pieces_of(answer, Path("/outputs"))
    assert 'old_string: say "a"\nb\nnew_string: c\nold_string: d' in piece.text
    assert "replace_all: true" in piece.text


def test_a_compaction_has_the_same_line_whether_it_summarises_or_edits_the_view() -> None:
    sizes = {"tokens_before": 90_000, "tokens_after": 40_000, "rung": "hide"}
    for entry in (CompactionEntry(**sizes), ViewEditEntry(edits=(), **sizes)):
        assert line_of(entry) == "Compaction: 90k → ~40k tokens, old results hidden"
    assert line_of(CompactionEntry(rung="digest")) == "Compaction: condensed without a model"
