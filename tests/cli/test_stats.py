"""`tenuto stats`: tables by day, model and project, and the same figures as data."""

from __future__ import annotations

import json
import time

import pytest

from tenuto.cli.stats import run_stats
from tests.session.test_spending import DAY, NOON, answer, header, write


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOON + 2 * DAY)
    write(tmp_path, "one", header(), answer(1, 5, cost=0.5), answer(2, 7, "c/d", NOON + DAY, 1.5))
    write(tmp_path, "two", header(), answer(1, 9, "local/x", NOON - 90 * DAY))
    return tmp_path


def test_the_three_tables_and_the_total(capsys, home):
    assert run_stats((), home, {}) == 0
    said = capsys.readouterr().out
    assert said.startswith("$2.00  20 in (0 % cached)  12 out in 1 session, the last 30 days")
    rows = [line.split() for line in said.splitlines() if "█" in line]
    assert [row[0] for row in rows] == ["2026-11-20", "2026-11-21", "c/d", "a/b", "/project"]
    bars = {row[0]: len(row[1]) for row in rows}
    assert bars["c/d"] == 3 * bars["a/b"] == bars["/project"]


def test_all_days_and_sums_without_a_price_are_marked(capsys, home):
    assert run_stats(("--days", "0", "--by", "model"), home, {}) == 0
    said = capsys.readouterr().out
    assert "$2.00+" in said and "local/x" in said and "price is not known" in said and "2026-11-20" not in said


def test_a_sum_of_what_costs_nothing_and_what_has_no_price_is_marked(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOON)
    write(tmp_path, "one", header(), answer(1, 5, "offline/tenuto", cost=0.0), answer(2, 7, "local/x"))
    assert run_stats((), tmp_path, {}) == 0
    assert capsys.readouterr().out.startswith("$0.00+  ")


def test_json_has_the_same_figures(capsys, home):
    assert run_stats(("--json", "--days", "0"), home, {}) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["total"]["cost"] == 2.0 and data["total"]["unpriced"] and data["total"]["sessions"] == 2
    for table in ("by_day", "by_model", "by_project"):
        assert sum(row["output"] for row in data[table].values()) == 21
    assert data["by_model"]["local/x"]["cost"] is None


@pytest.mark.parametrize("words", [("--days", "-1"), ("--by", "week"), ("more",)])
def test_bad_words_are_told(capsys, home, words):
    assert run_stats(words, home, {}) == 2
    assert capsys.readouterr().err


def test_nothing_used_is_said(capsys, tmp_path):
    assert run_stats((), tmp_path, {}) == 0
    assert "Nothing was used" in capsys.readouterr().out
