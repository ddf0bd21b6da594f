"""What sessions used, from their logs: each entry once, read on from where the last reading ended."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies

from tenuto.protocol.usage import Usage
from tenuto.session.library.spending import FILE, read_spending

NOON = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
DAY = 86_400


def line(kind: str, seq: int, ts: float = NOON, **more) -> bytes:
    return json.dumps({"type": kind, "ts": ts, "seq": seq, **more}, separators=(",", ":")).encode() + b"\n"


def header(**more) -> bytes:
    return line("header", 0, session_id="s", cwd="/project", **more)


def answer(seq: int, output: int, model: str = "a/b", ts: float = NOON, cost: float | None = None) -> bytes:
    usage = {"output": output, "input": 10} | ({"cost": cost} if cost is not None else {})
    return line("assistant", seq, ts, model=model, parts=[], usage=usage)


def write(home: Path, name: str, *lines: bytes) -> Path:
    directory = home / "sessions" / "p" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "events.jsonl").write_bytes(b"".join(lines))
    return directory


def spent(home: Path, *directories: Path) -> dict[tuple[str, str, str], tuple[int, int]]:
    return {
        (directory.name, one.day, one.model): (one.usage.output, one.calls)
        for directory, read in read_spending(home, directories).items()
        for one in read.spent
    }


def test_days_and_models_are_kept_apart_and_calls_without_a_model_go_to_the_last(tmp_path):
    one = write(
        tmp_path,
        "one",
        header(),
        answer(1, 5),
        answer(2, 7, ts=NOON + DAY),
        answer(3, 9, model="c/d"),
        line("compaction", 4, NOON, summary="x", usage={"output": 3}),
        line("usage", 5, NOON, usage={"output": 1}, purpose="agent explore", model="e/f"),
    )
    assert spent(tmp_path, one) == {
        ("one", "2026-11-20", "a/b"): (5, 1),
        ("one", "2026-11-21", "a/b"): (7, 1),
        ("one", "2026-11-20", "c/d"): (12, 2),
        ("one", "2026-11-20", "e/f"): (1, 1),
    }


def test_what_a_fork_copied_is_not_counted_twice(tmp_path):
    first = write(tmp_path, "first", header(), answer(1, 5), answer(2, 7))
    origin = {"session": "first", "seq": 2}
    fork = write(tmp_path, "fork", header(forked_from=origin), answer(1, 5), answer(2, 7), answer(3, 11))
    assert sum(output for output, _ in spent(tmp_path, first, fork).values()) == 5 + 7 + 11


def test_a_session_that_moved_counts_for_the_new_place(tmp_path):
    moved = write(tmp_path, "moved", header(), answer(1, 5), line("moved", 2, cwd="/elsewhere"))
    assert read_spending(tmp_path, [moved])[moved].cwd == "/elsewhere"


def test_damage_a_torn_end_and_a_missing_log_cost_nothing_else(tmp_path):
    one = write(tmp_path, "one", header(), b'{"usage": broken\n', answer(1, 5), answer(2, 7)[:-9])
    gone = tmp_path / "sessions" / "p" / "gone"
    assert spent(tmp_path, one, gone) == {("one", "2026-11-20", "a/b"): (5, 1)}


def test_a_log_that_is_another_one_is_read_anew(tmp_path):
    one = write(tmp_path, "one", header(), answer(1, 5), answer(2, 7))
    spent(tmp_path, one)
    write(tmp_path, "one", header(), answer(1, 50), answer(2, 70), answer(3, 1))
    assert sum(output for output, _ in spent(tmp_path, one).values()) == 121
    write(tmp_path, "one", header(), answer(1, 4))
    assert sum(output for output, _ in spent(tmp_path, one).values()) == 4


def test_what_is_kept_is_private_and_what_is_not_ours_is_thrown_away(tmp_path):
    one = write(tmp_path, "one", header(), answer(1, 5))
    for broken in (b"", b"\xff\xfe", b'{"version": 99}', b"[]"):
        (tmp_path / FILE).write_bytes(broken)
        assert spent(tmp_path, one)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    outputs=strategies.lists(strategies.integers(0, 99), min_size=1, max_size=12),
    cuts=strategies.sets(strategies.integers(1, 600)),
)
def test_reading_in_parts_comes_to_what_reading_at_once_does(tmp_path_factory, outputs, cuts):
    home = tmp_path_factory.mktemp("home")
    whole = header() + b"".join(
        answer(seq, output, f"a/{seq % 3}", NOON + seq * DAY) for seq, output in enumerate(outputs, 1)
    )
    directory = write(home, "one")
    for cut in [*sorted(cuts), len(whole)]:
        write(home, "one", whole[:cut])
        last = read_spending(home, [directory])[directory]
    os.remove(home / FILE)
    assert last == read_spending(home, [directory])[directory]
    assert sum((one.usage for one in last.spent), Usage()).output == sum(outputs)
