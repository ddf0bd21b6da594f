"""Lines of earlier notes that new ones leave out: which are asked about, and which stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.data.told import latest_on, said_by
from tenuto.compaction.summary.digest import GO_ON, LAST_ANSWER, digest, sections_of
from tenuto.compaction.summary.prompts import CHECK, OVER
from tenuto.compaction.summary.summary import add_identifiers
from tenuto.compaction.summary.vanished import (
    BLOCKED,
    CONTEXT,
    DECISIONS,
    KEPT_SECTIONS,
    MAX_LATER,
    MAX_LINES,
    NEXT,
    Check,
    Line,
    complete,
    length_for_lines,
    question,
    read_answer,
    vanished,
    without_answer,
)
from tenuto.compaction.summary.view import SessionData
from tenuto.protocol.message import AssistantMessage
from tenuto.text.estimate import estimate_text
from tests.compaction.build import History, text, words

EARLIER = """## Goal
Mend the parser.

## Progress
### Done
- [x] Read `parser.py`.

### Blocked
- The port 8443 of `parser_host` is taken.

## Key Decisions
- **Queue**: Redis streams, as `orders.py` needs replays.
- Four workers for the nightly import.

## Next Steps
1. Write `tests/test_lexer.py`.

## Critical Context
- The staging host is `db-7.internal`.
- none"""


def answer(value: str, seq: int = 1) -> AssistantMessage:
    return AssistantMessage(parts=text(value), stop_reason="end_turn", seq=seq)


def notes_of(*lines: Line) -> str:
    return "\n\n".join(
        "\n".join((f"## {section}", *(line.text for line in lines if line.section == section)))
        for section in KEPT_SECTIONS
    )


def test_what_new_notes_leave_out_is_found_and_work_that_is_done_is_not_asked_about():
    assert vanished(EARLIER, "## Goal\nMend the parser.") == [
        Line(BLOCKED, "- The port 8443 of `parser_host` is taken."),
        Line(DECISIONS, "- **Queue**: Redis streams, as `orders.py` needs replays."),
        Line(DECISIONS, "- Four workers for the nightly import."),
        Line(NEXT, "1. Write `tests/test_lexer.py`."),
        Line(CONTEXT, "- The staging host is `db-7.internal`."),
    ]
    assert vanished(EARLIER, EARLIER) == []
    assert vanished("", EARLIER) == []


def test_notes_that_say_it_in_other_words_or_another_section_are_not_asked_about_it():
    new = """## Key Decisions
- Redis streams stay the queue, since `orders.py` needs replays.

## Progress
### Done
- [x] Freed the port 8443 of `parser_host`.
- [x] Wrote `tests/test_lexer.py`, four workers do the nightly import.

## Critical Context
- Staging is on the host `db-7.internal`."""
    assert vanished(EARLIER, new) == []


def test_both_parts_of_notes_on_a_split_turn_are_looked_at():
    earlier = f"{EARLIER}\n\n---\n\n## Context Needed to Continue\n- The lock file is `/var/lock/import.pid`."
    assert Line(CONTEXT, "- The lock file is `/var/lock/import.pid`.") in vanished(earlier, "## Goal\nMend it.")


def test_what_the_program_carries_itself_is_not_asked_about():
    earlier = add_identifiers("## Critical Context\n- The staging host is `db-7.internal`.", ["orders_export_17_x7x7"])
    assert [line.text for line in vanished(earlier, "## Goal\nGo on.")] == ["- The staging host is `db-7.internal`."]


def test_what_a_digest_says_of_its_own_end_is_not_asked_about():
    history = History()
    history.user("mend the parser")
    history.answer("We keep `db-7.internal` as the staging host.")
    for _ in range(8):
        history.user("go on")
        history.step(words(2_000))
    history.answer("All is quiet.")
    plan = history.planned(keep_tokens=100)
    compiled = digest(plan, SessionData())
    assert LAST_ANSWER in compiled
    assert GO_ON in compiled
    [line] = vanished(compiled, "## Goal\nGo on.")
    assert "db-7.internal" in line.text


def test_an_item_goes_with_its_further_lines():
    earlier = "## Key Decisions\n- **Queue**: Redis streams.\n  `orders.py` needs replays."
    [line] = vanished(earlier, "## Goal\nGo on.")
    assert line.text == "- **Queue**: Redis streams.\n  `orders.py` needs replays."
    assert line.text in complete("## Goal\nGo on.", Check((line,)), [], 100)


def test_of_too_many_lines_the_newest_are_asked_about():
    lines = [f"- The setting `cache_size_{number}` is {number} MB." for number in range(MAX_LINES + 5)]
    found = vanished("## Critical Context\n" + "\n".join(lines), "## Goal\nGo on.")
    assert [line.text for line in found] == lines[5:]


def test_the_question_numbers_the_lines_without_their_marks():
    lines = [Line(DECISIONS, "- Four workers."), Line(NEXT, "3. [ ] Write the test."), Line(NEXT, "- [x] Look again.")]
    asked = question(CHECK, lines)
    assert asked.startswith(CHECK)
    assert asked.endswith("\n\n1. Four workers.\n2. Write the test.\n3. Look again.")


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("none", set()),
        ("", set()),
        ("None of the 4 lines above.", set()),
        ("2", {2}),
        ("2, 4", {2, 4}),
        ("- 2\n- 4", {2, 4}),
        ("2 and 4", {2, 4}),
        ("#2, #4", {2, 4}),
        ("**2**: replaced by 4 workers\n4. done on 3 hosts", {2, 4}),
        ("3: moved to 4 workers", {3}),
        ("2-4", {2, 3, 4}),
        ("1, 3–4", {1, 3, 4}),
        ("1 - 99999999999999999999", {1, 2, 3, 4}),
        ("[1, 2]", {1, 2}),
        ("Lines 2 and 3 are done.", {2, 3}),
        ("17", set()),
    ],
)
def test_the_numbers_of_an_answer_are_read_as_models_write_them(over, expected):
    lines = [Line(NEXT, f"- Mend `part_{number}.py`.") for number in range(1, 5)]
    check = read_answer(f"## {OVER}\n{over}\n\n## Key Decisions\n- 3 workers", lines)
    assert check is not None
    assert {number for number, line in enumerate(lines, 1) if line not in check.kept} == expected


def test_an_answer_adds_what_stands_in_lists_under_the_three_headings():
    check = read_answer(
        f"## {OVER}\nnone\n\n## Key Decisions\n- `msgspec` and not `pydantic`\n- none\n\n"
        "## Next Steps\n(nothing is missing here)\n\n## Done\n- Read `parser.py`.",
        [],
    )
    assert check == Check((), (Line(DECISIONS, "- `msgspec` and not `pydantic`"),))


@pytest.mark.parametrize("said", ["", "I will now open the next file.", "## Goal\nMend it.", "2, 4"])
def test_an_answer_that_does_not_name_what_is_over_is_none(said):
    assert read_answer(said, vanished(EARLIER, "")) is None


def test_without_an_answer_all_stays_but_next_steps_and_what_blocks_them():
    lines = vanished(EARLIER, "## Goal\nMend the parser.")
    kept = without_answer(lines).kept
    assert [line.section for line in kept] == [DECISIONS, DECISIONS, CONTEXT]
    gone = {line.section for line in set(lines) - set(kept)}
    assert gone == {NEXT, BLOCKED}


def test_what_blocked_the_work_is_no_reason_to_ask_by_itself():
    blocked = "## Progress\n### Blocked\n- The port 8443 of `parser_host` is taken."
    assert vanished(blocked, "## Goal\nGo on.") == []
    assert len(vanished(f"{blocked}\n\n## Next Steps\n- Free the disk of `db-7.internal`.", "## Goal\nGo on.")) == 2


def test_what_blocks_the_work_comes_back_as_context():
    [line, *_] = vanished(EARLIER, "")
    assert line.section == BLOCKED
    summary = complete("## Critical Context\n- x\n\n## Notes\n- y", Check((line,)), [], 100)
    assert sections_of(summary)[CONTEXT] == f"- x\n{line.text}"


def test_what_a_model_adds_leaves_half_of_the_room_to_the_lines_that_stay():
    kept = [Line(DECISIONS, f"- The queue `queue_{number}` has {number} workers.") for number in range(20)]
    added = [Line(CONTEXT, f"- The host `host_{number}` has {number} disks.") for number in range(20)]
    each = estimate_text(kept[-1].text) + 2
    summary = complete("", Check(tuple(kept), tuple(added)), [], 8 * each)
    assert [line for line in added if line.text in summary] == added[:4]
    assert [line for line in kept if line.text in summary] == kept[-4:]
    assert complete("", Check((), tuple(added)), [], 8 * each).count("host_") >= 8, "what nobody needs is free"
    assert complete(added[0].text, Check((), (added[0],)), [], 8 * each) == added[0].text, "it stands there already"


def test_lines_go_under_their_heading_which_is_made_where_it_is_missing():
    lines = [Line(DECISIONS, "- Four workers."), Line(CONTEXT, "- The host is `db-7`.")]
    summary = complete("## Key Decisions\n- Redis streams.\n\n## Next Steps\n1. Go on.", Check(tuple(lines)), [], 100)
    assert sections_of(summary) == {
        DECISIONS: "- Redis streams.\n- Four workers.",
        NEXT: "1. Go on.",
        CONTEXT: "- The host is `db-7`.",
    }


def test_a_line_on_which_an_answer_spoke_later_has_that_behind_it():
    """A decision that was taken back must not stand alone, though the model forgot to say that it is over."""
    line = Line(DECISIONS, "- The importer uses four worker processes.")
    told = [
        answer("I read the parser.", 7),
        answer("The worker processes are taken back: one is enough.", 9),
        answer("The parser is done.", 11),
    ]
    summary = complete("## Goal\nGo on.", Check((line,)), told, 200)
    assert f"{line.text} (later, #9: The worker processes are taken back: one is enough.)" in summary
    known = "## Key Decisions\n- The worker processes are taken back: one is enough."
    assert "later" not in complete(known, Check((line,)), told, 200), "the notes have it already"


def test_few_later_sentences_stand_behind_one_line():
    item = "- The importer uses four worker processes."
    for seq in range(10):
        told = [answer(f"The worker processes were looked at, time {seq}.", seq)]
        [item] = complete("", Check((Line(DECISIONS, item),)), told, 500).splitlines()[-1:]
    assert item.startswith("- The importer uses four worker processes. (later, #")
    assert item.count("(later, #") == MAX_LATER
    assert item.endswith("(later, #9: The worker processes were looked at, time 9.)")


def test_the_latest_sentence_on_a_thing_is_found_by_its_names_and_plain_words():
    told = [
        *said_by(answer("We keep `db-7.internal` for now. The retry limit is gone. Is the `db-7.internal` fast?", 3)),
        *said_by(answer("```\ndb-7.internal\n```\nAll is quiet here.", 5)),
    ]
    assert [one.seq for one in told] == [3, 3, 5]
    items = ["- staging: `db-7.internal`", "- a retry limit of 5", "- the colour is green"]
    assert {item: one.text for item, one in latest_on(items, told).items()} == {
        items[0]: "We keep `db-7.internal` for now.",
        items[1]: "The retry limit is gone.",
    }


def test_the_program_keeps_a_fifth_of_the_length():
    assert length_for_lines("", 1_000) == 800
    assert length_for_lines("word " * 4_000, 1_000) < 0


LINES = st.lists(
    st.builds(
        Line,
        st.sampled_from(KEPT_SECTIONS),
        st.builds("- `{}_{}` {}".format, st.integers(0, 99), st.integers(0, 99), st.text("abc d\n", max_size=30)).map(
            lambda item: item.strip().replace("\n", "\n  x")
        ),
    ),
    max_size=12,
    unique=True,
)
NUMBERS = st.sets(st.integers(1, 12))


@given(LINES, NUMBERS)
def test_nothing_is_lost_that_was_not_named_as_over(lines: list[Line], over: set[int]):
    """The notes forget all; afterwards they have every line word for word but those that the model named."""
    asked = vanished(notes_of(*lines), "## Goal\nGo on.")
    check = read_answer(f"## {OVER}\n" + (", ".join(map(str, sorted(over))) or "none"), asked)
    assert check is not None
    summary = complete("## Goal\nGo on.", check, [], 10_000)
    for number, line in enumerate(asked, 1):
        assert (line.text in summary) is (number not in over) or any(line.text in other.text for other in check.kept)


@given(LINES, LINES, st.integers(-50, 400), st.sampled_from(["", "## Goal\nGo on.", notes_of(), "no headings at all"]))
def test_notes_keep_what_they_say_and_grow_by_no_more_than_the_room(kept, added, room, summary):
    completed = complete(summary, Check(tuple(kept), tuple(added)), [], room)
    headings = sum(estimate_text(f"\n\n## {section}\n") for section in KEPT_SECTIONS)
    assert estimate_text(completed) <= estimate_text(summary) + max(0, room) + headings
    left = iter(completed.splitlines())
    assert all(line in left for line in summary.splitlines() if line), "in their order, none changed"


@given(LINES, st.integers(0, 60))
def test_of_too_many_lines_the_newest_stay_word_for_word(lines: list[Line], room: int):
    summary = complete("", Check(tuple(lines)), [], room)
    stays = [line for line in lines if line.text in summary]
    price = sum(estimate_text(line.text) + 2 for line in stays)
    for line in lines:
        if line not in stays:
            assert price + estimate_text(line.text) + 2 > room


@given(st.text(), LINES)
def test_any_text_is_read_without_an_error(said: str, lines: list[Line]):
    for text_ in (said, f"## {OVER}\n{said}"):
        check = read_answer(text_, lines)
        assert check is None or set(check.kept) <= set(lines)
    vanished(said, notes_of(*lines))
    vanished(notes_of(*lines), said)
