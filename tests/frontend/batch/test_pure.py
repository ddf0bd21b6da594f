"""What of a batch is pure: tasks, results, money, the table, the report."""

from __future__ import annotations

import io
import json
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.engine.display import Row, Running, Standing, draw
from tenuto.engine.ray_engine import OwnOutput
from tenuto.engine.record import read_lines
from tenuto.frontend.batch.conduct import Budget, is_finished, make_result
from tenuto.frontend.batch.report import write_report
from tenuto.frontend.batch.results import Attempt, Result, open_results
from tenuto.frontend.batch.tasks import Defaults, Task, read_task
from tenuto.frontend.batch.worker import read_answer
from tenuto.text.writable import to_json

HERE = Defaults(Path(__file__).parent)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["id", "prompt", "cwd", "repo", "ref", "model", "mode", "allow", "setup", "check", "schema"])
OUTCOME = st.sampled_from(["done", "failed", "refused", "crashed"])


@given(st.dictionaries(KEYS, JSON | st.just("."), max_size=6) | JSON)
def test_l5_a_line_is_a_task_or_has_a_fault(value: object):
    try:
        task = read_task(json.dumps(value), HERE)
    except ValueError as error:
        assert str(error)
    else:
        assert re.fullmatch(r"[\w.-]+", task.id)
        assert task.prompt.strip()
        assert Path(task.cwd or task.repo).is_absolute()


@given(st.lists(st.tuples(st.sampled_from("abc"), OUTCOME), max_size=6), st.integers(0, 2_000))
def test_l5_whatever_a_crash_leaves_of_the_file_whole_lines_count(rows, cut: int):
    lines = [to_json(Result(id=name, task="t", outcome=outcome)) + b"\n" for name, outcome in rows]
    data = b"".join(lines)[:cut]
    whole = data[: data.rfind(b"\n") + 1]
    latest, faults = read_lines(whole, Result, lambda result: result.id)
    kept = rows[: whole.count(b"\n")]
    assert {name: result.outcome for name, result in latest.items()} == dict(kept)
    assert faults == []


def test_l5_a_half_line_goes_and_a_bad_one_is_named(tmp_path: Path):
    path = tmp_path / "r.jsonl"
    good = to_json(Result(id="a", task="t", outcome="done")) + b"\n"
    path.write_bytes(good + b"nonsense\n" + b'{"id":"b"')
    file = open_results(path)
    file.append(Result(id="c", task="t", outcome="failed"))
    file.close()
    assert ([*file.latest], len(file.faults)) == (["a", "c"], 1)
    assert "line 2" in file.faults[0]
    assert path.read_bytes().endswith(b'"reward":null}\n')
    assert path.read_bytes().count(b"\n") == 3


@given(
    st.floats(0.01, 100),
    st.none() | st.floats(0.01, 50),
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=40),
)
def test_l5_together_tasks_never_cost_more_than_there_is(total: float, wish: float | None, steps):
    budget, running = Budget(total), list[float]()
    for begins, share in steps:
        if begins:
            part = budget.reserve(wish, free=3)
            if part is not None:
                running.append(part)
            else:
                assert running or budget.is_spent or budget.total - budget.spent <= 0
        elif running:
            part = running.pop()
            budget.settle(part, part * share)
        assert budget.spent + sum(running) <= total * 1.000001


def test_l5_without_a_total_each_task_has_its_own_limit():
    assert (Budget().reserve(2.0, 1), Budget().reserve(None, 1)) == (2.0, float("inf"))


@given(
    st.integers(20, 200),
    st.integers(1, 60),
    st.integers(0, 30),
    st.lists(st.tuples(OUTCOME, st.text(max_size=80)), max_size=50),
)
def test_l5_the_table_fits_the_terminal(width: int, height: int, running: int, rows):
    standing = Standing(100, "task")
    for number in range(running):
        standing.running[f"r{number}"] = Running("look [bold]\x1b[2J" * 9, 0.0, 1)
    standing.rows += [Row(f"f{n}", outcome, outcome == "done", 1.0, None, why) for n, (outcome, why) in enumerate(rows)]
    drawn = draw(standing, width, height, 5.0, 5.0).rstrip("\n")
    assert drawn.count("\n") + 1 <= max(height, 7)
    assert "\x1b[2J" not in drawn


def test_l5_sums_are_over_all_tries():
    first = Attempt("failed", "no", {"total_cost_usd": 0.5, "num_turns": 1, "usage": {"input_tokens": 5}}, seconds=1)
    last = Attempt("done", "", {"total_cost_usd": 0.25, "num_turns": 2, "usage": {"input_tokens": 7}}, seconds=2)
    result = make_result(Task(id="a", prompt="p"), [first, last], "")
    assert (result.total_cost_usd, result.num_turns, result.usage, result.duration_ms) == (
        0.75,
        3,
        {"input_tokens": 12},
        3000,
    )
    assert (result.outcome, result.attempts, result.error) == ("done", 2, None)


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [
        (0, b'{"result": "x"}\n', "done"),
        (5, b'{"result": "x"}\n', "refused"),
        (2, b"", "invalid"),
        (1, b'{"error": "e"}', "failed"),
        (1, b"", "crashed"),
        (0, b"half a li", "crashed"),
        (137, b"", "crashed"),
        (143, b'{"result": "x"}', "crashed"),
        (None, b"", "limit_reached"),
    ],
)
def test_l5_how_an_agent_ended(code: int | None, output: bytes, outcome: str):
    assert read_answer(code, output, "said").outcome == outcome


def test_l5_only_results_of_this_very_task_count():
    task = Task(id="a", prompt="p")
    done = Result(id="a", task=task.digest, outcome="done")
    assert is_finished(task, {"a": done}, frozenset())
    assert not is_finished(task, {"a": done}, frozenset({"done"}))
    assert not is_finished(Task(id="a", prompt="other"), {"a": done}, frozenset())
    assert not is_finished(task, {}, frozenset())


def test_l5_the_report_has_counts_sessions_and_what_is_left():
    tasks = [Task(id="a", prompt="p", repo="/r"), Task(id="b", prompt="p", repo="/r")]
    denied = [{"tool_name": "bash", "summary": "rm | x", "reason": "no"}]
    result = Result(id="a", task=tasks[0].digest, outcome="refused", session_id="s1", permission_denials=denied)
    text = write_report("t.jsonl", tasks, {"a": result})
    assert "| refused | 1 |" in text
    assert "`tenuto -r s1 -C /r`" in text
    assert "bash rm \\| x" in text
    assert text.rstrip().endswith("- b")


def test_threads_of_rays_write_nothing_to_standard_output_and_those_of_the_display_do():
    theirs: set[threading.Thread] = set()
    output = OwnOutput(io.StringIO(), theirs)
    assert output.write("results\n") == 8
    for text in ("a node is lost", "a table"):
        thread = threading.Thread(target=print, args=(text,), kwargs={"file": output})
        if text == "a node is lost":
            theirs.add(thread)
        thread.start()
        thread.join()
    assert (output.getvalue(), output.isatty()) == ("results\na table\n", False)
