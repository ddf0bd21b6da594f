import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact
from tenuto.protocol.entry import LabelEntry, ModelEntry, QueuedEntry, ShellEntry, UndoEntry, UsageEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.protocol.usage import Usage
from tests.compaction.build import History, budget, text, words


def long_history(turns: int = 12, size: int = 1_500) -> History:
    history = History()
    for turn in range(turns):
        history.user(f"request {turn}")
        history.step(words(size))
        history.answer(f"answer {turn}")
    return history


def test_the_cut_is_the_first_valid_point_where_the_kept_tail_is_reached():
    history = long_history()
    plan = history.planned()
    assert isinstance(plan.kept[0], UserMessage | AssistantMessage)
    sizes = [Meter().estimate(entry) for entry in plan.kept]
    assert sum(sizes) <= plan.allowance.tail_ceiling
    assert sum(sizes) >= plan.allowance.tail - 1_600, "no more than one entry under what is to be kept"
    assert [entry.seq for entry in (*plan.history, *plan.turn_prefix, *plan.kept)] == [
        entry.seq for entry in history.path[1:]
    ]


@pytest.mark.parametrize("keep", range(200, 9_000, 700))
def test_the_cut_never_falls_on_a_tool_result(keep):
    plan = long_history().planned(keep_tokens=keep)
    assert not isinstance(plan.kept[0], ToolResultMessage)


def test_parallel_calls_are_never_divided():
    history = History()
    history.user("read everything")
    for _ in range(6):
        history.step(*[words(700) for _ in range(4)])
    for keep in range(300, 8_000, 300):
        plan = history.planned(keep_tokens=keep)
        asked = {call.id for entry in plan.kept if isinstance(entry, AssistantMessage) for call in entry.tool_calls}
        answered = {entry.call_id for entry in plan.kept if isinstance(entry, ToolResultMessage)}
        assert answered == asked


def test_providers_that_number_calls_alike_in_every_answer_do_not_block_the_cut():
    history = History()
    history.user("go")
    for _ in range(20):
        history.add(AssistantMessage(parts=(ToolCallPart(id="call_0", name="read"),)))
        history.add(ToolResultMessage(call_id="call_0", name="read", parts=text(words(900))))
    assert 3 < len(history.planned().kept) < 20


def test_a_developer_message_at_the_cut_moves_it_back_to_what_it_belongs_to():
    history = History()
    history.user("first")
    history.step(words(3_000))
    history.answer("x")
    request = history.user("second")
    developer = history.developer(words(1_000))
    history.step(words(400))
    plan = history.planned(keep_tokens=1_300)
    assert plan.cut == request.seq
    assert developer in plan.kept


def test_one_huge_last_result_does_not_defeat_compaction():
    history = long_history(turns=8)
    history.user("read the big file")
    history.step("line one\n" + words(60_000) + "\nlast line: Error: disk full")
    plan = history.planned(size=history.size())
    assert plan.kept_tokens <= plan.allowance.tail_ceiling
    [edit] = plan.edits
    assert (edit.target, edit.kind) == (history.path[-1].seq, "truncated")
    history.add(
        CompactionEntry(
            summary="s",
            first_kept_index=plan.cut,
            edits=plan.edits,
            replacement=(SystemMessage(text="summary"),),
        )
    )
    result = history.view()[-1]
    assert isinstance(result, ToolResultMessage)
    assert result.parts[0].text.startswith("line one")
    assert result.parts[0].text.endswith("Error: disk full")
    assert Meter().estimate(result) <= plan.allowance.tail_room


def test_many_large_parallel_results_are_shortened_until_the_step_fits():
    history = long_history(turns=3)
    history.user("read them all")
    history.step(*[words(4_000) for _ in range(8)])
    plan = history.planned()
    assert plan.kept_tokens <= plan.allowance.tail_ceiling
    assert len(plan.edits) == 8


def test_a_single_huge_user_message_alone_is_nothing_to_compact():
    history = History()
    history.user(words(20_000))
    plan = history.plan()
    assert isinstance(plan, NothingToCompact)
    assert "word for word" in plan.reason


def test_an_edit_is_offered_where_only_shortening_helps():
    history = History()
    history.user("read it")
    history.step(words(60_000))
    plan = history.plan()
    assert isinstance(plan, NothingToCompact)
    assert [edit.target for edit in plan.edits] == [history.path[-1].seq]


def test_nothing_to_compact_says_why():
    history = History()
    assert history.plan() == NothingToCompact(reason="there are no messages yet", brief="there are no messages yet")
    history.user("hello")
    history.answer("hi")
    small = history.plan()
    assert isinstance(small, NothingToCompact)
    assert "stays word for word" in small.reason
    history.add(CompactionEntry(summary="s", first_kept_index=2, replacement=(SystemMessage(text="s"),)))
    again = history.plan()
    assert isinstance(again, NothingToCompact)
    assert again.reason == "nothing has been said since the last compaction"


def test_r006_fixed_parts_over_the_window_are_named_with_their_sizes():
    history = History(system=words(30_000))
    history.user("hello")
    history.step(words(2_000))
    plan = history.plan()
    assert isinstance(plan, NothingToCompact)
    assert "system prompt 30," in plan.reason


def test_metadata_at_the_cut_never_makes_a_split():
    history = History()
    history.user("first")
    history.step(words(3_000))
    history.answer("done")
    for entry in (ModelEntry(model="test/model"), LabelEntry(target=2, text="x"), UsageEntry(usage=Usage())):
        history.add(entry)
    request = history.user("second")
    history.answer(words(1_200))
    plan = history.planned(keep_tokens=1_206)
    assert plan.cut == request.seq
    assert not plan.is_split_turn
    assert plan.turn_prefix == ()


def test_a_command_at_rest_starts_a_turn_and_an_excluded_one_is_not_there():
    history = History()
    history.user("first")
    history.step(words(3_000))
    history.answer("done")
    shell = history.add(ShellEntry(command="make", output=words(600)))
    secret = history.add(ShellEntry(command="env", output=words(900), excluded=True))
    history.user("and now?")
    history.answer(words(600))
    plan = history.planned(keep_tokens=1_214)
    assert (plan.cut, plan.is_split_turn) == (shell.seq, False)
    assert secret not in (*plan.history, *plan.kept)


def test_a_second_compaction_starts_at_the_previous_first_kept_index():
    history = long_history()
    first = history.planned()
    history.add(
        CompactionEntry(summary="earlier", first_kept_index=first.cut, replacement=(SystemMessage(text="earlier"),))
    )
    for turn in range(6):
        history.user(f"later {turn}")
        history.step(words(1_500))
        history.answer("ok")
    second = history.planned()
    assert second.previous_summary == "earlier"
    assert (*second.history, *second.turn_prefix)[0].seq == first.cut, "what was kept is summarised now, not lost"
    assert second.cut > first.cut


def test_a_cut_inside_the_first_kept_tail():
    history = long_history()
    first = history.planned()
    history.add(
        CompactionEntry(summary="earlier", first_kept_index=first.cut, replacement=(SystemMessage(text="earlier"),))
    )
    history.user("short")
    history.answer("ok")
    second = history.planned(keep_tokens=1_800)
    compaction = history.path[-3]
    assert first.cut < second.cut < compaction.seq


def test_an_undone_compaction_does_not_count_and_its_redo_does():
    history = long_history()
    entry = history.add(CompactionEntry(summary="s", first_kept_index=20, replacement=(SystemMessage(text="s"),)))
    undo = history.add(UndoEntry(target=entry.seq))
    assert history.planned().previous is None
    history.add(UndoEntry(target=undo.seq))
    plan = history.plan(keep_tokens=2_000)
    assert isinstance(plan, CompactionPlan)
    assert plan.previous == entry


def test_r045_queued_texts_never_enter_the_plan():
    history = long_history()
    queued = history.add(QueuedEntry(parts=text("QUEUED-NONCE")))
    plan = history.planned()
    assert queued not in (*plan.history, *plan.turn_prefix, *plan.kept)


def test_a_calibration_over_one_keeps_less():
    history = long_history()
    plain = history.planned(window=64_000)
    doubled = msgspec.structs.replace(history.size(), calibration=2.0)
    assert history.planned(window=64_000, size=doubled).allowance.tail * 2 <= plain.allowance.tail + 2


def test_a_last_answer_that_is_too_large_to_stay_is_summarised_with_the_rest():
    history = History()
    history.user("write a book")
    answer = history.answer(words(40_000))
    plan = history.planned()
    assert (plan.kept, plan.cut, plan.is_split_turn) == ((), answer.seq + 1, False)
    assert plan.history == tuple(history.path[1:])
    history.add(CompactionEntry(summary="s", first_kept_index=plan.cut, replacement=(SystemMessage(text="s"),)))
    again = history.plan()
    assert isinstance(again, NothingToCompact)
    assert again.reason == "nothing has been said since the last compaction"
    request = history.user("next")
    assert history.view()[-1] == request


def test_a_last_step_that_is_too_large_to_stay_leaves_the_turns_message():
    history = History()
    request = history.user("write it")
    history.step("written", arguments='{"content": "' + words(40_000) + '"}')
    plan = history.planned()
    assert (plan.kept, plan.is_split_turn, plan.turn_message) == ((), True, request)
    assert plan.turn_prefix == tuple(history.path[1:])


def test_a_step_whose_results_are_still_to_come_is_never_cut_off():
    history = History()
    history.user("write it")
    history.answer("fine")
    history.user("once more")
    history.add(AssistantMessage(parts=(ToolCallPart(id="open", name="write", arguments=words(40_000)),)))
    plan = history.planned()
    assert plan.kept == (history.path[-1],)


def test_a_huge_user_message_that_was_answered_is_no_dead_end():
    history = History()
    request = history.user("BEGIN " + words(60_000) + " END")
    history.answer("I have read it.")
    plan = history.planned()
    assert plan.turn_prefix == (request,)
    assert plan.cut == request.seq + 1


def test_under_the_trigger_a_large_last_step_stays():
    history = History()
    history.user("start")
    history.answer(words(4_000))
    history.user("write")
    last = history.answer(words(15_000))
    assert history.size().tokens < budget().trigger
    assert history.planned(manual=True).kept == (last,)


def test_results_that_the_model_has_not_seen_are_bounded_by_the_room_and_not_by_a_share_of_the_tail():
    history = long_history(turns=8)
    history.user("read three files")
    _, *results = history.step(words(2_500), words(2_600), words(2_400))
    plan = history.planned()
    assert plan.edits == ()
    assert all(result in plan.kept for result in results)
    assert plan.kept_tokens <= plan.allowance.tail_room


def test_once_the_model_has_answered_such_results_are_shortened_as_any():
    history = long_history(turns=8)
    history.user("read three files")
    _, *results = history.step(words(2_500), words(2_600), words(2_400))
    history.answer("I see.")
    plan = history.planned()
    assert [edit.target for edit in plan.edits] == [result.seq for result in results if result in plan.kept]


def test_a_small_result_beside_a_huge_one_stays_whole_while_neither_was_seen():
    history = long_history(turns=8)
    history.user("read two files")
    _, small, huge = history.step(words(1_500), words(30_000))
    plan = history.planned()
    assert [edit.target for edit in plan.edits] == [huge.seq]
    assert small in plan.kept
    assert 5_000 < plan.kept_tokens <= plan.allowance.tail_room


def test_a_steering_text_behind_unseen_results_does_not_push_them_into_the_summary():
    history = long_history(turns=8)
    history.user("read two files")
    step = history.step(words(4_000), words(4_000))
    steering = history.user("and hurry")
    plan = history.planned(keep_tokens=300)
    assert plan.kept == (*step, steering)


def test_a_wish_to_compact_divides_what_fits_the_tail_only_as_a_whole():
    """seeds-000-003.md: two turns that are over the aim together only: "all of it in the recent part"."""
    history = History()
    for number in range(2):
        history.user(f"question {number}")
        history.answer(words(2_500))
    plan = history.planned(window=64_000, manual=True)
    assert plan.cut == 4, "the second turn stays"


@given(st.lists(st.integers(20, 4_000), min_size=1, max_size=8), st.sampled_from([8_000, 16_000, 64_000]))
def test_what_is_said_of_nothing_to_compact_never_contradicts_itself(sizes, window):
    """seeds-000-003.md: "about 11,162 tokens, all of it in the recent part (about 7,627 tokens)"."""
    history = History()
    for size in sizes:
        history.user("question")
        history.answer(words(size))
    plan = history.plan(window=window, manual=True)
    found = re.search(r"about ([\d,]+) tokens, all of it .* \(up to ([\d,]+)\)", getattr(plan, "reason", ""))
    if found is not None:
        said, most = (int(number.replace(",", "")) for number in found.groups())
        assert said <= most


def test_least_gain_a_compaction_that_saves_under_a_tenth_asks_no_model():
    """seeds-000-003.md, truth.md T10: 4.2k → 4.1k, for a model's call."""
    history = History(system=words(1_900))
    history.user("look")
    history.answer(words(500))
    history.user("again")
    history.answer(words(1_900))
    plan = history.plan(window=16_000, manual=True)
    assert isinstance(plan, NothingToCompact)
    assert "nothing to gain" in plan.reason
    assert f"/compact up-to {plan.cut} " in plan.reason
    assert history.planned(window=16_000, manual=True, first_kept=plan.cut, keep_tokens=16_000).cut == plan.cut
