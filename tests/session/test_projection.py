"""What the model is sent (DESIGN section 3, "Projection")."""

from __future__ import annotations

import random

import msgspec
import pytest

from tenuto.protocol.entry import (
    BranchSummaryEntry,
    ExtensionEntry,
    QueuedEntry,
    ShellEntry,
    UndoEntry,
    ViewEdit,
    ViewEditEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    ProviderItems,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, TextPart, ToolCallPart, text_of
from tenuto.session.view.projection import project, read_path
from tests.session.build import RandomHistory, answer, check_pairs, result, text, user


def numbered(*entries: HistoryEvent) -> list[HistoryEvent]:
    return [msgspec.structs.replace(entry, seq=seq) for seq, entry in enumerate(entries, 1)]


def shown(messages) -> list[str]:
    """Each message as one short text."""
    lines = []
    for message in messages:
        if isinstance(message, (SystemMessage, DeveloperMessage)):
            lines.append(f"{message.__struct_config__.tag}: {message.text}")
        else:
            lines.append(f"{message.__struct_config__.tag}: {text_of(message.parts)}")
    return lines


def test_state_entries_are_not_in_the_view_and_messages_are_themselves():
    path = numbered(SystemMessage(text="prompt"), QueuedEntry(parts=text("q")), user("q", from_queued=2), answer("a"))
    assert project(path) == [path[0], path[2], path[3]]


def test_results_follow_their_calls_in_call_order_whatever_came_first():
    path = numbered(
        user("go"),
        answer("two calls", ("a", "b")),
        result("b", "of b"),
        DeveloperMessage(text="note"),
        ShellEntry(command="ls", output="x", exit_code=0),
        result("a", "of a"),
        user("next"),
    )
    lines = shown(project(path))
    assert lines[:4] == ["user: go", "assistant: two calls", "tool_result: of a", "tool_result: of b"]
    assert lines[4] == "developer: note"
    assert lines[5].startswith("user: The user ran a command")
    assert lines[6] == "user: next"


def test_r068_a_call_without_result_has_one_that_says_so():
    path = numbered(user("go"), answer("calls", ("a", "b")), result("a", "of a"), user("and?"))
    missing = project(path)[3]
    assert isinstance(missing, ToolResultMessage)
    assert (missing.call_id, missing.interrupted, missing.is_error) == ("b", True, True)
    assert "may have taken effect" in text_of(missing.parts)


def test_orphans_and_second_results_are_left_out():
    path = numbered(result("a", "orphan"), answer("call", ("a",)), result("a", "first"), result("a", "second"))
    assert shown(project(path)) == ["assistant: call", "tool_result: first"]


def test_equal_ids_in_two_answers_belong_to_their_own():
    path = numbered(answer("1", ("call_0",)), result("call_0", "r1"), answer("2", ("call_0",)), result("call_0", "r2"))
    assert shown(project(path)) == ["assistant: 1", "tool_result: r1", "assistant: 2", "tool_result: r2"]


def test_r048_pairs_hold_in_thousands_of_random_histories():
    for seed in range(2_000):
        makes = RandomHistory(random.Random(seed))
        path: list[HistoryEvent] = []
        for seq in range(1, 40):
            path.append(msgspec.structs.replace(makes.next(path), seq=seq))
        check_pairs(project(path, "a/one"))


COMPACTED = numbered(
    SystemMessage(text="prompt"),
    user("old"),
    answer("old answer", ("a",)),
    result("a", "old result"),
    user("kept"),
    answer("kept answer"),
)


def compact(path, **more):
    given = {"summary": "sum", "first_kept_index": 5, "replacement": (SystemMessage(text="framed sum"),)} | more
    return [*path, msgspec.structs.replace(CompactionEntry(**given), seq=path[-1].seq + 1)]


def test_a_compaction_stands_for_what_was_before_the_kept_tail():
    path = compact(COMPACTED)
    assert shown(project(path)) == ["system: prompt", "system: framed sum", "user: kept", "assistant: kept answer"]


def test_the_newest_compaction_counts_and_older_ones_are_not_in_the_tail():
    path = compact(compact(COMPACTED), summary="second", replacement=(SystemMessage(text="second"),))
    assert shown(project(path)) == ["system: prompt", "system: second", "user: kept", "assistant: kept answer"]


def test_r049_an_older_compaction_is_not_shown_between_a_call_and_its_result():
    path = numbered(user("go"), answer("call", ("a",)))
    path = [*compact(path, first_kept_index=1), msgspec.structs.replace(result("a", "r"), seq=4)]
    path = compact(path, first_kept_index=2, replacement=(SystemMessage(text="new"),))
    assert shown(project(path)) == ["system: new", "assistant: call", "tool_result: r"]


def test_a_cut_inside_a_step_leaves_no_orphan():
    assert shown(project(compact(COMPACTED, first_kept_index=4)))[2] == "user: kept"


def test_r056_an_undone_compaction_gives_back_the_view_and_redo_takes_it_again():
    before = project(COMPACTED)
    path = compact(COMPACTED, edits=(ViewEdit(target=5, kind="hidden", text="(gone)"),))
    compacted = project(path)
    path = [*path, UndoEntry(seq=8, target=7)]
    assert project(path) == before
    path = [*path, UndoEntry(seq=9, target=8)]
    assert project(path) == compacted
    assert project([*path, UndoEntry(seq=10, target=9)]) == before


def test_a_system_prompt_comes_with_its_compaction_and_goes_with_it():
    path = [*COMPACTED, SystemMessage(seq=7, text="prompt 2")]
    path = compact(path, system_seq=7)
    assert shown(project(path))[0] == "system: prompt 2"
    undone = [*path, UndoEntry(seq=9, target=8)]
    assert shown(project(undone))[0] == "system: prompt"
    reloaded = [*path, SystemMessage(seq=9, text="prompt 3")]
    assert shown(project(reloaded))[:2] == ["system: prompt 3", "system: framed sum"]


def test_r102_a_compaction_without_replacement_shows_its_summary():
    path = compact(COMPACTED, replacement=())
    assert shown(project(path))[:3] == ["system: prompt", "system: sum", "user: kept"]


def test_r102_a_compaction_that_lost_its_cut_hides_nothing():
    older = compact(COMPACTED)
    assert project(compact(older, first_kept_index=0)) == project(older)


def test_items_that_the_model_cannot_read_are_passed_over():
    path = compact(COMPACTED, provider_items=ProviderItems(provider="openai", model="big", items=()))
    assert shown(project(path, "openai/big"))[1] == "system: framed sum"
    assert project(path, "openai/small") == project(COMPACTED)
    assert read_path(path, "openai/small").compaction is None


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"kind": "hidden", "text": "(hidden: recall 4)"}, "tool_result: (hidden: recall 4)"),
        ({"kind": "truncated", "text": "…", "keep_head": 3, "keep_tail": 4}, "tool_result: old…sult"),
        ({"kind": "truncated", "text": "…", "keep_head": 3}, "tool_result: old…"),
        ({"kind": "truncated", "text": "…", "keep_head": 30, "keep_tail": 4}, "tool_result: old result"),
        ({"kind": "omitted"}, "tool_result: (left out of the context)"),
    ],
)
def test_edits_change_how_a_result_looks_until_they_are_undone(edit, expected):
    path = [*COMPACTED, ViewEditEntry(seq=7, edits=(ViewEdit(target=4, **edit),))]
    changed = project(path)[3]
    assert shown([changed]) == [expected]
    assert isinstance(changed, ToolResultMessage)
    assert changed.call_id == "a"
    assert project([*path, UndoEntry(seq=8, target=7)]) == project(COMPACTED)


def test_a_later_edit_of_the_same_result_wins_and_images_survive_truncation():
    image = ImagePart(sha256="0" * 64, media_type="image/png")
    path = numbered(answer("", ("a",)), ToolResultMessage(call_id="a", name="read", parts=(*text("long text"), image)))
    path.append(ViewEditEntry(seq=3, edits=(ViewEdit(target=2, kind="truncated", text="~", keep_head=4),)))
    cut = project(path)[1]
    assert isinstance(cut, ToolResultMessage)
    assert cut.parts == (TextPart(text="long~"), image)
    path.append(ViewEditEntry(seq=4, edits=(ViewEdit(target=2, kind="hidden", text="(hidden)"),)))
    assert shown(project(path))[1] == "tool_result: (hidden)"


def test_an_omitted_answer_takes_its_results_along():
    path = [*COMPACTED, ViewEditEntry(seq=7, edits=(ViewEdit(target=3, kind="omitted"),))]
    assert shown(project(path)) == ["system: prompt", "user: old", "user: kept", "assistant: kept answer"]


def test_what_a_user_and_extensions_did_is_told_in_frames():
    path = numbered(
        ShellEntry(command="make", output="done\n", exit_code=2, truncated=True, output_path="/o/1"),
        ShellEntry(command="secret", output="x", excluded=True),
        BranchSummaryEntry(summary="tried the other way", from_seq=9),
        ExtensionEntry(extension="x", in_view=True, parts=text("from x")),
        ExtensionEntry(extension="x", parts=text("state only")),
    )
    view = project(path)
    assert all(isinstance(message, UserMessage) for message in view)
    assert len(view) == 3
    shell = shown(view)[0]
    for piece in ("make", "done", "exit code 2", "/o/1"):
        assert piece in shell
    assert "tried the other way" in shown(view)[1]
    assert shown(view)[2] == "user: from x"
    assert [message.seq for message in view] == [1, 3, 4]


def test_a_replacement_that_ends_in_a_call_is_paired_too():
    call = AssistantMessage(parts=(ToolCallPart(id="z", name="read"),))
    check_pairs(project(compact(COMPACTED, replacement=(SystemMessage(text="s"), call))))
