"""What many sessions say of the strategies: kinds and rounds, tokens, cost, time and cache. As data and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tenuto.evaluation.driving import Figures, Sight
from tenuto.evaluation.report import HAS_NO_VIEW, SHOWN_ROUNDS, Column, Share, column_of
from tenuto.evaluation.stories import FROM_USER, KINDS, Kind
from tenuto.evaluation.strategies import StrategyName
from tenuto.evaluation.wires import NOTHING, Usage

FRESH_PRICE, CACHED_PRICE, OUTPUT_PRICE = 3.75, 0.30, 15.0
"""US dollars for a million tokens: the list price of a model of the middle class, what is new being written to the
cache. What is compared is strategies, so their ratio counts and not the dollars."""
ARTIFACTS: frozenset[Kind] = frozenset({"read", "modified"})
_IN_VIEW = frozenset(KINDS) - HAS_NO_VIEW
CONSTRAINTS: frozenset[Kind] = frozenset({"pin", "user short", "correction"})
WITHOUT_MODEL: StrategyName = "digest"
"""The strategy that asks no model for a summary."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy's figures over all its sessions. Shares are percent, `None` where there was nothing.

    `in_view` has a share for each round, by kind; `last` and `with_recall` are after the last one: in the view, and in
    the view or found by `recall`. Tokens and dollars are of one session on average. `dollars_of_100_steps` is what all
    requests cost by the steps that were made: a strategy that leaves more room makes more of them before the next
    compaction. `stuck` sessions could not go on to the end.
    """

    window: int
    strategy: StrategyName
    writer: str
    source: str
    sessions: int
    in_view: dict[str, list[float | None]]
    last: dict[str, float]
    with_recall: dict[str, float]
    all_in_view: list[float]
    compactions: float
    summary_requests: float
    summary_fresh: int
    summary_cached: int
    summary_output: int
    step_fresh: int
    step_cached: int
    step_requests: float
    summary_dollars: float
    dollars: float
    dollars_of_100_steps: float
    cached_percent: float | None
    compacting_seconds: float
    over_window: int
    stuck: int
    questions: int
    answered: int


def rows_of(figures: Sequence[Figures]) -> list[Row]:
    """Return a row for each window, strategy, writer of summaries and source (generated or recorded)."""
    groups: dict[tuple[Column, str], list[Figures]] = {}
    for one in figures:
        source = "recorded" if one.case.recorded else "generated"
        groups.setdefault((column_of(one.case), source), []).append(one)
    return [_row(column, source, group) for (column, source), group in groups.items()]


def _row(column: Column, source: str, group: Sequence[Figures]) -> Row:
    rounds = range(1, max(one.case.rounds for one in group) + 1)
    last: dict[Kind, Share] = {
        kind: share for kind in KINDS if (share := _last(group, kind)).of and kind not in HAS_NO_VIEW
    }
    recalled = {kind: share for kind in KINDS if (share := _with_recall(group, kind)).of}
    summaries = sum((one.compactions for one in group), NOTHING)
    steps = sum((one.steps for one in group), NOTHING)
    count = len(group)
    asked = sum(one.requests - one.summaries for one in group)
    cached = [pair for one in group for pair in one.cached]
    return Row(
        window=column.window,
        strategy=column.strategy,
        writer=column.writer,
        source=source,
        sessions=count,
        in_view={kind: [_percent(_seen(group, frozenset((kind,)), number)) for number in rounds] for kind in last},
        last={kind: _exact(share) for kind, share in last.items()},
        with_recall={kind: _exact(share) for kind, share in recalled.items()},
        all_in_view=[_exact(_seen(group, _IN_VIEW, number)) for number in rounds],
        compactions=round(sum(one.made for one in group) / count, 1),
        summary_requests=round(sum(one.summaries for one in group) / count, 1),
        summary_fresh=summaries.fresh // count,
        summary_cached=summaries.cached // count,
        summary_output=summaries.output // count,
        step_fresh=steps.fresh // count,
        step_cached=steps.cached // count,
        step_requests=round(asked / count, 1),
        summary_dollars=round(dollars(summaries) / count, 4),
        dollars=round(dollars(summaries + steps) / count, 4),
        dollars_of_100_steps=round(100 * dollars(summaries + steps) / asked, 4) if asked else 0.0,
        cached_percent=round(100 * sum(a for a, _ in cached) / sum(b for _, b in cached), 1) if cached else None,
        compacting_seconds=round(sum(one.compacting_seconds for one in group) / count, 2),
        over_window=sum(len(one.over) for one in group),
        stuck=sum(one.is_stuck for one in group),
        questions=sum(len(one.answers) for one in group),
        answered=sum(answer.is_right for one in group for answer in one.answers),
    )


def dollars(usage: Usage) -> float:
    """Return what tokens cost, in US dollars."""
    return (usage.fresh * FRESH_PRICE + usage.cached * CACHED_PRICE + usage.output * OUTPUT_PRICE) / 1e6


def _seen(group: Sequence[Figures], kinds: frozenset[Kind], number: int) -> Share:
    return Share.count(
        sight.in_view for one in group for sight in one.sights if sight.round == number and sight.kind in kinds
    )


def _last(group: Sequence[Figures], kind: Kind) -> Share:
    return Share.count(
        sight.in_view for one in group for sight in one.sights if sight.round == one.case.rounds and sight.kind == kind
    )


def _with_recall(group: Sequence[Figures], kind: Kind) -> Share:
    shares: list[bool] = []
    for one in group:
        seen = {sight.text for sight in one.sights if sight.round == one.case.rounds and sight.in_view}
        shares += [fact.found or fact.text in seen for fact in one.recalled if fact.kind == kind]
    return Share.count(shares)


def _percent(share: Share) -> float | None:
    return _exact(share) if share.of else None


def _exact(share: Share) -> float:
    """Return a share in percent with one digit; 100.0 is all of them."""
    return min(round(100 * share.had / share.of, 1), 100.0 if share.had == share.of else 99.9) if share.of else 0.0


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure, what stands beside it here, and how alike the procedures are."""

    source: str
    theirs: str
    ours: str
    likeness: str


def beside_published(figures: Sequence[Figures], strategy: StrategyName = "ladder") -> list[Published]:
    """Return what others published beside what was measured here of one strategy.

    Beside the Context Decay Benchmark, which asks no model, stand the same sessions without one, too.
    """
    group = _scripted(figures, strategy)
    if not group:
        return []
    after_three = [one for one in group if one.case.rounds >= 3]
    facts = _exact(Share.count(s.in_view for one in group for s in one.sights if s.round == 1))
    limits = _exact(
        Share.count(s.in_view for one in after_three for s in one.sights if s.round == 3 and s.kind in CONSTRAINTS)
    )
    final = _final(group)
    without_model = _final(_scripted(figures, WITHOUT_MODEL))
    digested = f"{_exact(_in_sight(without_model))} % in view without a model; " if without_model else ""
    found = [fact.found for one in group for fact in one.recalled]
    files = _exact(Share.count(s.in_view for s in final if s.kind in ARTIFACTS))
    words = _exact(Share.count(s.in_view for s in final if s.kind in FROM_USER))
    both = _either(group)
    return [
        Published(
            source="Facts as First-Class Objects (arXiv 2603.17781)",
            theirs="60 % of facts lost by one summary; 46 % of constraints kept by a cascade of three",
            ours=f"{100 - facts:.1f} % of facts lost from the view after round 1; {limits} % of constraints in view "
            f"after round 3; {words} % of the user's words after the last",
            likeness="similar: facts of a coding session instead of a knowledge base, a scripted summariser",
        ),
        Published(
            source="Context Decay Benchmark (clawRxiv 2604.01047)",
            theirs="88.6 % with state in files, 14.3 % with truncation",
            ours=f"{digested}{_exact(_in_sight(final))} % in view with this summariser; "
            f"{both} % in view or by a search of words",
            likeness="similar: needles in long sessions and a budget, here a view of "
            f"{_share_of_session(group)} % of the session instead of 15 %; theirs asks no model; "
            "their code was not at hand",
        ),
        Published(
            source="Factory, Evaluating compression (artifact trail)",
            theirs="2.19 to 2.45 of 5, judged by a model",
            ours=f"{files} % of the files read or changed are listed word for word",
            likeness="similar: the same question, answered by data and not judged",
        ),
        Published(
            source="Study on LongMemEval (grep over the record)",
            theirs="82 to 93 %",
            ours=f"{_exact(Share.count(found))} % by `recall`, a search of words in the log",
            likeness="similar: the words that are asked for stand in what is looked for",
        ),
    ]


def _scripted(figures: Sequence[Figures], strategy: StrategyName) -> list[Figures]:
    return [one for one in figures if one.case.strategy == strategy and not one.case.model]


def _final(group: Sequence[Figures]) -> list[Sight]:
    """Return what was looked for in the view after the last round."""
    return [s for one in group for s in one.sights if s.round == one.case.rounds and s.kind not in HAS_NO_VIEW]


def _in_sight(sights: Sequence[Sight]) -> Share:
    return Share.count(sight.in_view for sight in sights)


def _share_of_session(group: Sequence[Figures]) -> float:
    """Return what the view after the last compaction has of all that there was, in tokens, in percent."""
    kept = whole = 0
    for one in group:
        befores, afters = [size.before for size in one.sizes], [size.after for size in one.sizes]
        kept += sum(afters[-1:])
        whole += sum(befores) - sum(afters[:-1])
    return round(100 * kept / whole, 1) if whole else 0.0


def _either(group: Sequence[Figures]) -> float:
    shares: list[bool] = []
    for one in group:
        seen = {sight.text for sight in one.sights if sight.round == one.case.rounds and sight.in_view}
        shares += [fact.found or fact.text in seen for fact in one.recalled]
    return _exact(Share.count(shares))


def markdown(figures: Sequence[Figures]) -> str:
    """Return the report as Markdown."""
    rows = rows_of(figures)
    parts: list[str] = []
    for window, writer, source in dict.fromkeys((row.window, row.writer, row.source) for row in rows):
        some = [row for row in rows if (row.window, row.writer, row.source) == (window, writer, source)]
        parts.append(f"### {source.capitalize()} sessions, window {window:,}, {writer}: {some[0].sessions} each\n")
        parts += [*_table(_kind_rows(some)), ""]
        parts += [*_table(_cost_rows(some)), ""]
    published = beside_published(figures)
    if published:
        parts += ["### Beside published figures\n", *_table(_published_rows(published)), ""]
    return "\n".join(parts)


def _kind_rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    yield ["kind", *(row.strategy for row in rows)]
    kinds = [kind for kind in KINDS if any(kind in row.with_recall for row in rows)]
    for kind in kinds:
        yield [kind, *(f"{_figure(row.last.get(kind))} / {_figure(row.with_recall.get(kind))}" for row in rows)]
    last = len(rows[0].all_in_view)
    for number in [*(number for number in SHOWN_ROUNDS if number < last), last]:
        yield [f"all in view, round {number}", *(_figure(row.all_in_view[number - 1]) for row in rows)]


def _cost_rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    yield ["in one session", *(row.strategy for row in rows)]
    yield ["compactions", *(f"{row.compactions}" for row in rows)]
    yield ["requests for a summary", *(f"{row.summary_requests}" for row in rows)]
    yield ["their tokens: new", *(f"{row.summary_fresh:,}" for row in rows)]
    yield ["from the cache", *(f"{row.summary_cached:,}" for row in rows)]
    yield ["written", *(f"{row.summary_output:,}" for row in rows)]
    yield ["of requests in place, cached %", *(_figure(row.cached_percent) for row in rows)]
    yield ["tokens of steps: new", *(f"{row.step_fresh:,}" for row in rows)]
    yield ["from the cache", *(f"{row.step_cached:,}" for row in rows)]
    yield ["steps", *(f"{row.step_requests:g}" for row in rows)]
    yield ["summaries, $", *(f"{row.summary_dollars:.3f}" for row in rows)]
    yield ["all, $", *(f"{row.dollars:.3f}" for row in rows)]
    yield ["all for 100 steps, $", *(f"{row.dollars_of_100_steps:.3f}" for row in rows)]
    yield ["seconds in compactions", *(f"{row.compacting_seconds:.2f}" for row in rows)]
    yield ["requests over the window", *(f"{row.over_window}" for row in rows)]
    yield ["sessions that could not go on", *(f"{row.stuck}" for row in rows)]
    if any(row.questions for row in rows):
        yield ["questions answered", *(f"{row.answered} of {row.questions}" for row in rows)]


def _published_rows(published: Sequence[Published]) -> Iterator[list[str]]:
    yield ["source", "published", "measured here", "procedure"]
    for one in published:
        yield [one.source, one.theirs, one.ours, one.likeness]


def _figure(value: float | None) -> str:
    return "." if value is None else f"{value:g}"


def _table(rows: Iterator[list[str]]) -> Iterator[str]:
    for place, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if not place:
            yield f"|{'---|' * len(row)}"


def session_names(figures: Sequence[Figures]) -> list[str]:
    """Return what the recorded sessions are called."""
    return list(dict.fromkeys(Path(one.case.recorded).stem for one in figures if one.case.recorded))
