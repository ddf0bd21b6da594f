import pytest

from tenuto.compaction.measure.budget import SUMMARY_SHARE
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.summary import join_summaries
from tenuto.compaction.summary.view import SessionData, build_replacement
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.message import CompactionEntry, SystemMessage, UserMessage
from tests.compaction.build import History, words


def one_turn(steps: int = 12) -> History:
    history = History()
    history.user("mend the parser, and keep the API names")
    for _ in range(steps):
        history.step(words(1_500))
    return history


def compact(history: History, summary: str = "summary") -> CompactionEntry:
    plan = history.planned()
    replacement = build_replacement(plan, summary, SessionData(), Prompts())
    return history.add(
        CompactionEntry(
            summary=summary, first_kept_index=plan.cut, replacement=replacement, edits=plan.edits, rung="test"
        )
    )


def requests_of(history: History) -> int:
    """How often the turn's user message stands in the view."""
    return sum("mend the parser" in str(message) for message in history.view())


def test_a_cut_inside_a_turn_summarises_its_first_part_apart():
    history = History()
    history.user("before")
    history.answer("done")
    request = history.user("mend the parser")
    for _ in range(12):
        history.step(words(1_500))
    plan = history.planned()
    assert plan.is_split_turn
    assert (plan.turn_start, plan.turn_message) == (request.seq, request)
    assert [entry.seq for entry in plan.history] == [2, 3]
    assert plan.turn_prefix[0] == request
    assert plan.turn_prefix[-1].seq < plan.cut == plan.kept[0].seq


def test_the_turns_user_message_stays_word_for_word_as_a_real_message():
    history = one_turn()
    compact(history)
    first, summary, request, *_tail = history.view()
    assert isinstance(first, SystemMessage)
    assert isinstance(summary, SystemMessage)
    assert isinstance(request, UserMessage)
    assert request.parts[0].text == "mend the parser, and keep the API names"
    assert requests_of(history) == 1


def test_three_compactions_inside_one_turn_summarise_nothing_twice():
    history = one_turn()
    summarised: list[int] = []
    for number in range(3):
        plan = history.planned()
        assert plan.is_split_turn
        assert plan.turn_message == history.path[1]
        if number:
            assert plan.turn_prefix == (), "a turn that is already split is ordinary update history"
            assert plan.previous_summary == "summary"
        summarised += [entry.seq for entry in (*plan.history, *plan.turn_prefix)]
        compact(history)
        assert requests_of(history) == 1
        for _ in range(8):
            history.step(words(1_500))
    assert len(summarised) == len(set(summarised))


def test_a_split_turn_without_history_keeps_the_previous_summary():
    assert join_summaries("the earlier notes", "the first part").startswith("the earlier notes")
    assert "the first part" in join_summaries("", "the first part")
    assert join_summaries("only history", "") == "only history"


def test_a_command_in_the_middle_of_a_turn_does_not_hide_the_request():
    history = one_turn(4)
    history.add(ShellEntry(command="git status", output="clean"))
    for _ in range(8):
        history.step(words(1_500))
    plan = history.planned()
    assert plan.turn_message == history.path[1]


def test_a_tail_that_begins_with_an_answer_gets_one_fixed_line_before_it():
    history = History()
    history.add(ShellEntry(command="make", output="ok"))
    for _ in range(12):
        history.step(words(1_500))
    plan = history.planned()
    assert plan.turn_message is None
    replacement = build_replacement(plan, "s", SessionData(), Prompts())
    assert [type(message) for message in replacement] == [SystemMessage, UserMessage]
    again = build_replacement(plan, "s", SessionData(), Prompts())
    assert replacement == again


def test_only_the_request_before_the_cut_is_nothing_to_summarise():
    history = History()
    history.user(words(9_000))
    history.step(words(400))
    history.step(words(400))
    plan = history.planned(keep_tokens=300)
    assert plan.turn_prefix, "a step was made before the cut"
    assert plan.kept[0].seq > 2


@pytest.mark.parametrize("turns", [1, 3])
def test_t10_a_paste_that_would_stay_with_its_turn_is_summarised_where_a_later_turn_begins(turns: int):
    """Seen on a screen: "all of it is one message or one step", with whole turns behind the paste."""
    history = History()
    history.user("alpha beta gamma delta. " * 2_400)
    history.answer("noted")
    later = history.user("todo")
    history.answer("done")
    for number in range(turns):
        history.user(f"more {number}")
        history.answer("fine")
    plan = history.planned(window=40_000, manual=True)
    assert plan.cut >= later.seq
    assert plan.turn_message is None
    assert plan.history


@pytest.mark.parametrize("window", [16_384, 32_000])
def test_t10_a_paste_that_stays_with_its_turn_takes_nothing_from_the_notes(window: int):
    """truth.md T10: one paste cut the summary, and an honest summariser lost 14 of 16 names in one round."""
    history = History()
    history.user("first")
    history.answer(words(400))
    paste = history.user(words(window // 4))
    for _ in range(60):
        history.step(words(window // 80))
    plan = history.planned(window)
    assert plan.turn_message == paste
    assert plan.allowance.summary >= int(SUMMARY_SHARE * plan.allowance.free), "all of the share that notes have"
    [system, request] = build_replacement(plan, words(plan.allowance.summary), SessionData(), Prompts())
    assert request.parts == paste.parts, "word for word"
    assert estimate_message(system) + estimate_message(request) + plan.kept_tokens <= plan.allowance.free
