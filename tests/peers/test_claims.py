"""L1: what is computed from measured values: medians and spread, ratios, the table, the chart, kept results."""

from __future__ import annotations

import json
import statistics
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.bench_lib.peers.chart import to_svg
from scripts.bench_lib.peers.page import BEGIN, END, to_markdown, verdict, write_page
from scripts.bench_lib.peers.plan import HEADLINES, MEASURES
from scripts.bench_lib.peers.record import OtherRunError, Record, go_on
from scripts.bench_lib.peers.summary import compare, spread_of

VALUES = st.lists(st.floats(min_value=0.001, max_value=1e6), min_size=1, max_size=12)
NAMES = ("Tenuto", "Tenuto --inline", "Able", "Baker")


def a_record(**values: dict[tuple[str, str], list[float]]) -> Record:
    """A record of Tenuto and two peers; values by agent (spaces and dashes are underscores), measure and figure."""
    machine = {"cores": 2, "processor": "a chip", "memory_gb": 8, "system": "Linux 6", "python": "3.11", "load": 0.1}
    agents = [
        {
            "name": name,
            "version": "1.0",
            "package": "p",
            "protocol": "openai",
            "ours": name.startswith("T"),
            "notes": [],
        }
        for name in NAMES
    ]
    head = {"date": "2026-01-01", "pace": "usual", "tenuto_revision": "abc", "machine": machine, "network": "none"}
    record = Record(head | {"agents": agents, "absent": {"Charlie": "not installed here (npm)"}})
    for name in NAMES:
        for (measure, figure), each in values.get(name.replace(" --", "_"), {}).items():
            for value in each:
                record.add(measure, name, {figure: value})
    return record


def rows_of(markdown: str, heading: str) -> list[list[str]]:
    lines = markdown.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return [found[0], *found[2:]]


@given(VALUES)
def test_l1_a_spread_lies_within_its_values_around_their_median(values: list[float]):
    spread = spread_of(values)
    assert spread.median == pytest.approx(statistics.median(values))
    assert spread.least == min(values)
    assert spread.most == max(values)
    slack = 1e-9 * spread.most
    assert spread.least - slack <= spread.lower <= spread.median + slack
    assert spread.median - slack <= spread.upper <= spread.most + slack
    assert spread.runs == len(values)


@given(VALUES, VALUES, VALUES)
def test_l1_the_ratio_is_ours_to_the_least_of_the_peers_and_never_to_our_other_screen(ours, able, baker):
    key = ("start", "key ms")
    record = a_record(Tenuto={key: ours}, Tenuto_inline={key: [0.0001]}, Able={key: able}, Baker={key: baker})
    row = compare(record, *key, "Tenuto", ["Tenuto", "Tenuto --inline"])
    medians = {"Able": statistics.median(able), "Baker": statistics.median(baker)}
    assert medians[row.best] == min(medians.values())
    assert row.ratio == pytest.approx(statistics.median(ours) / min(medians.values()))
    assert row.times("Baker") == pytest.approx(medians["Baker"] / statistics.median(ours))


@pytest.mark.parametrize(
    ("ours", "theirs", "close"),
    [([1, 2, 3, 4], [2, 3, 4, 5], True), ([1, 2, 3, 4], [10, 11, 12, 13], False), ([5], [6], False), ([5], [5], True)],
)
def test_l1_where_the_middle_halves_overlap_no_difference_is_claimed(ours, theirs, close):
    key = ("start", "key ms")
    row = compare(a_record(Tenuto={key: ours}, Able={key: theirs}), *key, "Tenuto", ["Tenuto"])
    assert row.is_close is close
    assert verdict(row).startswith("≈") is close


def test_l1_without_a_peer_or_with_a_peer_at_zero_there_is_no_ratio():
    key = ("rest", "idle written KB")
    alone = compare(a_record(Tenuto={key: [1.0]}), *key, "Tenuto", ["Tenuto"])
    at_zero = compare(a_record(Tenuto={key: [1.0]}, Able={key: [0.0]}), *key, "Tenuto", ["Tenuto"])
    of_nothing = compare(a_record(Tenuto={key: [0.0]}, Able={key: [3.0]}), *key, "Tenuto", ["Tenuto"])
    assert (alone.ratio, at_zero.ratio, of_nothing.ratio) == (None, None, 0.0)
    assert (alone.times("Able"), of_nothing.times("Able")) == (None, None)
    assert verdict(alone) == "–"


def test_l1_below_half_a_percent_of_a_core_nobody_is_ahead():
    key = ("rest", "idle cpu %")
    row = compare(a_record(Tenuto={key: [0.4]}, Able={key: [0.001]}, Baker={key: [5]}), *key, "Tenuto", ["Tenuto"])
    assert (row.ratio, row.times("Able"), row.times("Baker")) == (1.0, 1.0, 10.0)


def test_l1_the_table_says_the_ratio_the_best_peer_and_how_many_times_ours_each_is():
    key = ("start", "key ms")
    record = a_record(Tenuto={key: [20, 22]}, Tenuto_inline={key: [10]}, Able={key: [84]}, Baker={key: [210]})
    head, row = rows_of(to_markdown(record), "figure")
    assert head == ["figure", "Tenuto / best peer", "Tenuto", "Tenuto --inline", "Able", "Baker"]
    assert row == [HEADLINES[key], "**0.25** (Able)", "21.0 ms", "0.48 ×", "4.00 ×", "10.0 ×"]
    details = rows_of(to_markdown(record), "measure")
    assert details[1] == ["Start", "key ms", "Tenuto", "21.0", "20.5 … 21.5", "20.0 … 22.0", "2", "1.00 ×"]


def test_l1_what_was_not_measured_is_said_with_its_reason():
    record = a_record(Tenuto={("start", "key ms"): [20]})
    record.miss("resume-1MB", "Able", "its sessions\nare in a_database | of rows")
    record.miss("resume-100MB", "Able", "its sessions\nare in a_database | of rows")
    text = to_markdown(record)
    assert "- Charlie: not installed here (npm)" in text
    assert "- Able, resume-1MB, resume-100MB: its sessions are in a\\_database \\| of rows" in text


def test_l1_every_headline_is_a_figure_of_a_measure_that_is_taken():
    names = [measure.name for measure in MEASURES]
    assert {measure for measure, _ in HEADLINES} <= set(names)
    assert len(names) == len(set(names))
    for measure in MEASURES:
        assert measure.runs_of("quick") <= measure.runs_of("usual") <= measure.runs_of("long")
        assert measure.runs_of("long") > 0


@given(st.lists(st.tuples(st.floats(0.0, 1e5), st.floats(0.0, 1e5)), min_size=1, max_size=6))
def test_l1_every_mark_of_the_chart_is_on_the_picture_and_more_is_further_right(pairs):
    rows = []
    for ours, theirs in pairs:
        record = a_record(Tenuto={("a", "b ms"): [ours]}, Able={("a", "b ms"): [theirs]})
        rows.append(("a <figure> & more", compare(record, "a", "b ms", "Tenuto", ["Tenuto"])))
    root = ElementTree.fromstring(to_svg(rows, NAMES, "a caption"))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    marks = [mark for mark in root.iter("{http://www.w3.org/2000/svg}circle") if len(mark)]
    assert all(0 <= float(mark.get("cx", -1)) <= width and 0 <= float(mark.get("cy", -1)) <= height for mark in marks)
    drawn = [(row.times("Tenuto"), row.times("Able")) for _, row in rows]
    assert len(marks) == sum(bool(place) for pair in drawn for place in pair)
    by_height: dict[str, list[tuple[str, float]]] = {}
    for mark in marks:
        by_height.setdefault(mark.get("cy", ""), []).append((mark.get("fill", ""), float(mark.get("cx", 0))))
    both = [pair for pair in drawn if all(pair)]
    shown = [places for places in by_height.values() if len(places) == 2]
    for (_, theirs), ((_, ours_x), (_, theirs_x)) in zip(both, shown, strict=True):
        assert (theirs_x >= ours_x) is (theirs >= 1) or abs(theirs_x - ours_x) <= 0.2


def test_l1_results_stand_in_the_page_between_their_marks_and_nothing_else_changes(tmp_path):
    page = tmp_path / "peers.md"
    page.write_text(f"# By hand\n\nBefore.\n\n{BEGIN}\n\nold\n\n{END}\n\nAfter.\n")
    record = a_record(Tenuto={("start", "key ms"): [20]}, Able={("start", "key ms"): [40]})
    write_page(record, tmp_path)
    once = page.read_text()
    write_page(record, tmp_path)
    assert page.read_text() == once
    assert once.startswith(f"# By hand\n\nBefore.\n\n{BEGIN}\n")
    assert once.endswith(f"{END}\n\nAfter.\n")
    assert "old" not in once
    assert "0.50" in once
    assert (tmp_path / "peers.svg").read_text().startswith("<svg")


KEYS = st.tuples(st.sampled_from(["start", "hello"]), st.sampled_from(["key ms", "peak MB"]))


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES), st.text(max_size=40))
def test_l1_a_record_comes_back_from_its_json_as_it_was(ours, theirs, reason):
    record = a_record(Tenuto=ours, Able=theirs)
    record.miss("hello", "Baker", reason)
    back = Record.from_json(record.to_json())
    assert back.to_json() == record.to_json()
    assert back.runs("start", "Tenuto") == record.runs("start", "Tenuto")
    assert back.missing.keys() == record.missing.keys()


def test_l1_a_measuring_goes_on_only_with_what_is_its_own(tmp_path):
    record = a_record(Tenuto={("start", "key ms"): [20, 21]})
    record.save(tmp_path / "kept.json")
    assert json.loads((tmp_path / "kept.json").read_text())["format"] == 1
    kept = go_on(tmp_path / "kept.json", record.head | {"date": "another day"})
    assert kept.runs("start", "Tenuto") == 2
    newer = record.head | {"agents": [{**record.head["agents"][0], "version": "2.0"}, *record.head["agents"][1:]]}
    with pytest.raises(OtherRunError, match="agents"):
        go_on(tmp_path / "kept.json", newer)
