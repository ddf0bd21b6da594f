import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.budget import (
    DEFAULT_CONTEXT_WINDOW,
    LEAST_TAIL_SHARE,
    MIN_FREE,
    MIN_OUTPUT,
    MOST_USER_SHARE,
    allowance_for,
    budget_for,
    leave_room,
    reserve_words,
)
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.model import ModelFacts

SETTINGS = CompactionSettings()
LARGE = ModelFacts(provider="p", name="m", context_window=200_000, max_output_tokens=64_000)


def facts(**more: object) -> ModelFacts:
    return msgspec.structs.replace(LARGE, **more)


def test_the_named_numbers_of_a_large_model():
    budget = budget_for(LARGE, CompactionSettings(), 16_384)
    assert (budget.planned_output, budget.reserve, budget.keep_recent) == (16_384, 16_384, 20_000)
    assert budget.trigger == 200_000 - 16_384
    assert budget.target == int(0.8 * budget.trigger)
    assert budget.max_summary == int(0.8 * 16_384)
    assert budget.max_turn_prefix == int(0.5 * 16_384)


def test_r026_an_unknown_window_is_a_named_default():
    budget = budget_for(facts(context_window=None), CompactionSettings())
    assert (budget.window, budget.known) == (DEFAULT_CONTEXT_WINDOW, False)


@given(st.integers(512, 2_000_000), st.one_of(st.none(), st.integers(1, 2_000_000)), st.integers(1, 500_000))
def test_r007_the_trigger_never_falls_under_half_of_the_window(window, output, reserve):
    settings = CompactionSettings(reserve_tokens=reserve)
    budget = budget_for(facts(context_window=window, max_output_tokens=output), settings, 100_000)
    assert window // 2 <= budget.trigger < window
    assert 1 <= budget.planned_output <= max(1, window // 2)
    if output is not None:
        assert budget.output_for(budget.trigger) >= min(256, budget.planned_output)


def test_r007_a_request_asks_for_no_more_output_than_the_window_leaves():
    budget = budget_for(LARGE, CompactionSettings())
    assert budget.output_for(1_000) == 64_000, "the model's own limit (B1)"
    assert 1_000 < budget.output_for(195_000) <= 5_000


def test_a_configured_reserve_that_is_too_small_is_raised_and_reported():
    budget = budget_for(LARGE, CompactionSettings(reserve_tokens=2_000))
    assert (budget.reserve, budget.reserve_raised_from) == (16_384, 2_000)
    larger = budget_for(LARGE, CompactionSettings(reserve_tokens=40_000))
    assert (larger.reserve, larger.reserve_raised_from) == (40_000, None)
    assert larger.trigger == 160_000


def test_a_limit_on_input_alone_leaves_the_output_out():
    budget = budget_for(facts(input_only_limit=True), CompactionSettings(reserve_tokens=20_000))
    assert budget.trigger == 180_000


def test_settings_limit_the_summary():
    assert budget_for(LARGE, CompactionSettings(max_summary_tokens=900)).max_summary == 900


@given(
    st.integers(4_000, 1_000_000),
    st.integers(0, 50_000),
    st.floats(0.5, 4.0),
    st.booleans(),
)
def test_the_shares_fit_the_target_together(window, fixed, calibration, manual):
    budget = budget_for(facts(context_window=window), CompactionSettings())
    shares = allowance_for(budget, fixed=fixed, calibration=calibration, manual=manual)
    together = shares.tail_ceiling + shares.summary + shares.user_messages + shares.extras
    assert together <= shares.free + 4
    if fixed < budget.target - 1_000:
        assert shares.free * calibration <= budget.target - fixed + 4


def test_t10_the_output_limit_takes_at_most_a_quarter_of_a_small_window():
    small = budget_for(facts(context_window=16_384), CompactionSettings())
    assert (small.planned_output, small.trigger) == (4_096, 12_288)


@given(st.integers(1_024, 400_000))
def test_t10_the_trigger_never_falls_as_the_window_grows(window):
    one, larger = (budget_for(facts(context_window=size), CompactionSettings()) for size in (window, window + 100))
    assert one.trigger <= larger.trigger
    assert one.planned_output <= larger.planned_output
    if window <= 32_768:
        assert one.planned_output <= window // 4


@given(st.integers(8_000, 300_000), st.integers(0, 4_000), st.integers(0, 6_000))
def test_t10_a_request_that_stays_whole_takes_its_room_from_the_tail(window, floor, message):
    budget = budget_for(facts(context_window=window), CompactionSettings())
    shares = allowance_for(budget, fixed=1_000)
    shares = reserve_words(shares, min(floor, int(MOST_USER_SHARE * shares.free)))
    left = leave_room(shares, message)
    beside = message - (shares.user_messages - shares.user_floor)
    if beside <= shares.tail_room - LEAST_TAIL_SHARE * shares.free:
        assert (left.summary, left.user_messages, left.extras) == (
            shares.summary,
            shares.user_messages,
            shares.extras,
        ), "notes and words lose nothing"
    together = left.tail_room + left.summary + left.user_floor + left.extras + message
    if message < shares.free - MIN_FREE:
        assert together <= shares.free + 8


def test_a_manual_compaction_keeps_a_quarter():
    budget = budget_for(LARGE, CompactionSettings())
    assert allowance_for(budget, fixed=5_000, manual=True).tail == pytest.approx(5_000, abs=2)


@given(st.integers(8_000, 4_000_000))
def test_r007_up_to_the_trigger_most_of_the_output_fits_in_windows_of_every_size(window):
    """Found at 1M: the margin was as large as the reserve, and answers near the trigger were cut off at 256 tokens."""
    budget = budget_for(facts(context_window=window, max_output_tokens=16_384), SETTINGS)
    assert budget.output_for(budget.trigger) >= 0.7 * budget.planned_output
    assert budget.margin >= min(4_096, window // 64)


@given(st.integers(2_000, 2_000_000), st.floats(0, 1.1), st.floats(0, 1))
def test_r007_what_is_only_estimated_leaves_room_for_its_error(window, filled, estimated):
    budget = budget_for(facts(context_window=window, max_output_tokens=16_384), SETTINGS)
    request = int(filled * window)
    uncounted = int(estimated * request)
    output = budget.output_for(request, uncounted)
    assert 1 <= output <= max(MIN_OUTPUT, budget.output_limit)
    assert output <= budget.output_for(request), "never more than for a request that was counted"
    left = window - request - budget.margin
    assert output >= min(MIN_OUTPUT, budget.output_limit) or left < MIN_OUTPUT
    if left // 2 >= uncounted // 4 and left - uncounted // 4 >= MIN_OUTPUT:
        assert request + uncounted // 4 + output <= window, "a quarter more than estimated still fits"
    elif left // 2 > MIN_OUTPUT:
        assert output >= min(budget.output_limit, left // 2), "and never less than half of what is left"


@given(st.integers(8_000, 2_000_000), st.integers(1, 400_000), st.integers(0, 2_000_000))
def test_b1_the_limit_is_the_models_own_or_what_the_window_leaves(window, limit, request):
    budget = budget_for(ModelFacts(provider="p", name="m", context_window=window, max_output_tokens=limit), SETTINGS)
    assert budget.output_for(request) == max(MIN_OUTPUT, min(limit, window - request - budget.margin))
    assert budget.trigger == budget_for(msgspec.structs.replace(LARGE, context_window=window), SETTINGS).trigger or (
        limit < 16_384
    ), "how long answers may be moves no compaction"


def test_b1_where_nobody_knows_the_limit_none_is_sent():
    budget = budget_for(ModelFacts(provider="p", name="m", context_window=200_000), SETTINGS)
    assert budget.output_for(1_000) is None
    assert budget_for(facts(max_output_tokens=None), SETTINGS, 9_000).output_for(1_000) == 9_000
