"""When an automatic compaction may run again (R-005, R-012)."""

from __future__ import annotations

from tenuto.core.state.compaction_state import MAX_INEFFECTIVE, AutomaticCompaction

TRIGGER = 1_000


def test_r005_two_in_a_row_of_no_use_stop_it_and_it_is_said_once() -> None:
    automatic = AutomaticCompaction()
    said: list[bool] = []
    for _ in range(MAX_INEFFECTIVE + 1):
        assert automatic.may_run(5_000) or automatic.is_stopped
        automatic.note_done(2 * TRIGGER, TRIGGER, manual=False)
        said.append(automatic.note_measured(TRIGGER + 1))
    assert said[:2] == [False, True]
    assert automatic.is_stopped
    assert not automatic.may_run(10**9)


def test_r005_one_that_helped_begins_the_count_anew() -> None:
    automatic = AutomaticCompaction()
    for tokens in (TRIGGER + 1, TRIGGER, TRIGGER + 1):
        automatic.note_done(2 * TRIGGER, TRIGGER, manual=False)
        assert not automatic.note_measured(tokens)
    assert not automatic.is_stopped
    assert automatic.may_run(TRIGGER + 1)


def test_only_the_first_measured_request_after_a_compaction_counts() -> None:
    automatic = AutomaticCompaction()
    automatic.note_done(2 * TRIGGER, TRIGGER, manual=False)
    assert not automatic.note_measured(TRIGGER + 1)
    for _ in range(5):
        assert not automatic.note_measured(TRIGGER + 1), "the conversation only grew"
    assert automatic.ineffective == 1


def test_a_request_without_a_compaction_before_it_says_nothing() -> None:
    automatic = AutomaticCompaction()
    assert not automatic.note_measured(10 * TRIGGER)
    assert automatic.ineffective == 0


def test_r012_after_a_failure_the_next_waits_for_a_tenth_more() -> None:
    automatic = AutomaticCompaction()
    automatic.note_failed(2_000)
    assert not automatic.may_run(2_000)
    assert not automatic.may_run(2_199)
    assert automatic.may_run(2_201)
    automatic.note_done(2 * TRIGGER, TRIGGER, manual=False)
    assert automatic.may_run(1)


def test_the_user_acting_begins_anew() -> None:
    for act in (lambda one: one.note_done(2 * TRIGGER, TRIGGER, manual=True), lambda one: one.reset()):
        automatic = AutomaticCompaction()
        for _ in range(MAX_INEFFECTIVE):
            automatic.note_done(2 * TRIGGER, TRIGGER, manual=False)
            automatic.note_measured(TRIGGER + 1)
        automatic.note_failed(3_000)
        assert not automatic.may_run(3_000)
        act(automatic)
        assert automatic.may_run(3_000)


def test_r005_where_the_window_is_full_one_that_helps_a_little_is_better_than_a_lost_prompt() -> None:
    for before, saves in ((TRIGGER + 1, False), (2 * TRIGGER, True)):
        automatic = AutomaticCompaction()
        for _ in range(MAX_INEFFECTIVE):
            assert automatic.may_save
            automatic.note_done(before, TRIGGER, manual=False)
            automatic.note_measured(TRIGGER + 1)
        assert automatic.is_stopped
        assert automatic.may_save == saves
        automatic.reset()
        assert automatic.may_save
