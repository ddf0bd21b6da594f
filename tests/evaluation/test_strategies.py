"""Every strategy is measured, a planted fact is found where it is and missed where it is not (issue 20, item 3)."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import msgspec
import pytest

import tenuto.compaction
from tenuto.compaction.strategy import LadderCompaction
from tenuto.evaluation import driving
from tenuto.evaluation.driving import Case, measure
from tenuto.evaluation.phrases import SET_NAMES
from tenuto.evaluation.report import HAS_NO_VIEW
from tenuto.evaluation.strategies import BUILT_IN, STRATEGIES, STRATEGY_NAMES
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.message import SystemMessage


def built_in_classes() -> set[type]:
    """Return every class of the program that is a strategy, wherever it stands."""
    found = set[type]()
    for module in pkgutil.walk_packages(tenuto.compaction.__path__, "tenuto.compaction."):
        for name, value in vars(import_module(module.name)).items():
            is_own = inspect.isclass(value) and value.__module__.startswith("tenuto.compaction.")
            if is_own and name.endswith("Compaction") and inspect.iscoroutinefunction(getattr(value, "compact", None)):
                found.add(value)
    return found


def test_s20_every_built_in_strategy_is_measured():
    assert {STRATEGIES[name] for name in BUILT_IN} == built_in_classes()
    assert set(STRATEGIES) == set(STRATEGY_NAMES)


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
async def test_s20_a_session_is_played_with_each_strategy(strategy):
    figures = await measure(Case(seed=1, window=16_384, rounds=2, strategy=strategy))
    assert figures.made
    assert {sight.round for sight in figures.sights} == {1, 2}
    assert [sight for sight in figures.sights if sight.kind in {"pin", "todo"} and not sight.in_view] == []
    assert [fact for fact in figures.recalled if not fact.found] == []
    rungs = {size.rung for size in figures.sizes}
    expected = {"hiding": "hide", "digest": "digest", "summary": "serialised", "ladder": "same prefix"}
    assert expected.get(strategy, rungs.copy().pop()) in rungs
    assert not figures.troubles
    if strategy != "hiding-then-summary":  # in two rounds there is enough to hide
        assert bool(figures.summaries) == (strategy not in {"hiding", "digest"})


class Forgetful:
    """The default strategy, and nothing of what it would have kept before the tail."""

    async def compact(self, ctx):
        outcome = await LadderCompaction().compact(ctx)
        return CompactionOutcome(
            summary="the work goes on",
            replacement=(SystemMessage(text="The work goes on."),),
            first_kept_index=outcome.first_kept_index,
            edits=outcome.edits,
        )


async def test_s20_the_measure_misses_what_a_strategy_throws_away(monkeypatch):
    monkeypatch.setitem(driving.STRATEGIES, "digest", Forgetful)
    case = Case(seed=1, window=16_384, rounds=3, strategy="digest")
    lost = await measure(case)
    seen = [sight for sight in lost.sights if sight.round == 3]
    old = {sight.text for sight in lost.sights if sight.round == 1 and sight.kind != "pin"}  # pins are told again
    assert old
    assert not [sight for sight in seen if sight.text in old and sight.in_view]
    assert not lost.troubles
    assert all(fact.found for fact in lost.recalled), "the log has it still"


class Broken:
    """A strategy that the program refuses."""

    async def compact(self, ctx):
        return 7


async def test_s20_a_strategy_that_was_not_used_is_told(monkeypatch):
    monkeypatch.setitem(driving.STRATEGIES, "digest", Broken)
    figures = await measure(Case(seed=1, window=16_384, rounds=1, strategy="digest"))
    assert any("Broken" in text for text in figures.troubles)


async def test_s20_a_summariser_that_keeps_nothing_loses_what_only_it_could_keep():
    def decisions(figures):
        return [sight.in_view for sight in figures.sights if sight.kind == "decision" and sight.round == 3]

    case = Case(seed=1, window=16_384, rounds=3, summariser="lossy", keeps=0.0)
    nothing, everything = await measure(case), await measure(msgspec.structs.replace(case, keeps=1.0))
    assert decisions(nothing)
    assert not any(decisions(nothing))
    assert all(decisions(everything))


async def test_s20_the_same_case_gives_the_same_figures():
    def told(figures):
        clock = {"seconds": 0.0, "compacting_seconds": 0.0}
        return msgspec.structs.replace(figures, **clock)

    case = Case(seed=2, window=16_384, rounds=2, summariser="lossy", keeps=0.5)
    one, other = told(await measure(case)), told(await measure(case))
    assert one.sights == other.sights
    assert one.recalled == other.recalled
    assert (one.requests, one.summaries, one.made) == (other.requests, other.summaries, other.made)


async def test_s20_a_session_that_cannot_go_on_has_nothing_in_view():
    from pathlib import Path

    file = Path(__file__).parents[1] / "fixtures" / "recorded" / "mini-sphinx.jsonl"
    case = Case(seed=0, window=2_048, rounds=2, recorded=str(file))  # system prompt and tools are larger
    figures = await measure(case)
    last = [sight for sight in figures.sights if sight.round == 2]
    assert figures.is_stuck
    assert last
    assert not any(sight.in_view for sight in last)
    assert any("no request was accepted" in text for text in figures.troubles)


@pytest.mark.parametrize("phrases", SET_NAMES)
async def test_s20_eleven_forgetful_summaries_leave_more_in_view_than_context_decay_has(phrases):
    """A summariser that loses 60 % of all that it reads or wrote, each time; what a reversal took back never returns.

    Without the check of its notes it is 80 %.
    """
    cases = [Case(seed=seed, window=16_384, summariser="lossy", keeps=0.4, phrases=phrases) for seed in (1, 2, 3)]
    sights = [sight for case in cases for sight in (await measure(case)).sights if sight.round == case.rounds]
    seen = [sight.in_view for sight in sights if sight.kind not in HAS_NO_VIEW]
    assert sum(seen) / len(seen) > 0.886
    assert not [sight.text for sight in sights if sight.stale]
