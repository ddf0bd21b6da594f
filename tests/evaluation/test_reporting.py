"""What an evaluation leaves on the disk and on the terminal: reports, progress, and the way on after a crash."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tenuto.cli import evaluating
from tenuto.cli.evaluating import run_eval
from tenuto.evaluation.driving import Case, Figures, Recalled, Sight
from tenuto.evaluation.plot import draw
from tenuto.evaluation.quality import beside_published, dollars, markdown, rows_of
from tenuto.evaluation.store import SESSIONS, Store, StoreError
from tenuto.evaluation.wires import Usage
from tests.evaluation.test_recorded import FOLDER
from tests.evaluation.times import without_times
from tests.program import TENUTO

ONE = ("--windows", "16384", "--rounds", "1", "--summarisers", "honest")


def figures_of(seed=1, strategy="ladder", in_view=(True, True), found=True, **more) -> Figures:
    sights = tuple(Sight(number, "decision", "a", seen, False) for number, seen in enumerate(in_view, 1))
    whole = Figures(
        case=Case(seed=seed, window=16_384, rounds=len(in_view), strategy=strategy),
        sights=sights,
        sizes=(),
        recalled=(Recalled("decision", "a", found, found),),
        requests=9,
        summaries=1,
        over=(),
        stubs=(),
        cached=((90, 100),),
        troubles=(),
        seconds=1.0,
        steps=Usage(1_000, 9_000, 10),
        compactions=Usage(100, 900, 50),
        made=2,
    )
    return msgspec.structs.replace(whole, **more)


def test_s20_a_row_has_shares_by_round_with_recall_beside_them():
    group = [figures_of(), figures_of(seed=2, in_view=(True, False))]
    [row] = rows_of(group)
    assert row.in_view == {"decision": [100.0, 50.0]}
    assert row.last == {"decision": 50.0}
    assert row.with_recall == {"decision": 100.0}
    assert row.cached_percent == 90.0
    assert row.summary_dollars == pytest.approx(dollars(Usage(100, 900, 50)), abs=1e-4)


def test_s20_what_neither_the_view_nor_recall_has_is_lost():
    [row] = rows_of([figures_of(in_view=(True, False), found=False)])
    assert row.with_recall == {"decision": 0.0}
    assert beside_published([figures_of(in_view=(True, False), found=False)])[3].ours.startswith("0.0 %")


def test_s20_what_is_in_view_without_a_model_stands_beside_the_benchmark_that_asks_none():
    forgetful, digested = figures_of(in_view=(True, False)), figures_of(strategy="digest", in_view=(True, True))
    assert beside_published([forgetful, digested])[1].ours.startswith("100.0 % in view without a model; 0.0 % in view")
    assert "without a model" not in beside_published([forgetful])[1].ours


def test_s20_the_last_round_is_shown_however_many_there_are():
    text = markdown([figures_of()])
    assert "all in view, round 2" in text


def test_s20_strategies_and_recorded_sessions_have_rows_of_their_own():
    recorded = figures_of(case=Case(seed=0, window=16_384, rounds=2, recorded="x/one.jsonl"))
    rows = rows_of([figures_of(), figures_of(strategy="digest"), recorded])
    assert [(row.strategy, row.source) for row in rows] == [
        ("ladder", "generated"),
        ("digest", "generated"),
        ("ladder", "recorded"),
    ]
    text = markdown([figures_of(), figures_of(strategy="digest"), recorded])
    assert "| kind | ladder | digest |" in text
    assert "Recorded sessions" in text
    assert "arXiv 2603.17781" in text


def test_s20_a_share_that_is_not_all_is_never_a_hundred():
    sights = tuple(Sight(1, "decision", f"{number}", number > 0, False) for number in range(5_000))
    [row] = rows_of([figures_of(in_view=(True,), sights=sights)])
    assert row.last == {"decision": 99.9}


def test_s20_the_picture_is_well_formed_and_names_what_it_shows():
    rows = rows_of([figures_of(), figures_of(strategy="digest", in_view=(True, False))])
    tree = ElementTree.fromstring(draw(rows, 'title with <angles> & "quotes"'))
    texts = [element.text for element in tree.iter() if element.tag.endswith("text")]
    assert {"ladder", "digest", "decision"} <= set(texts)
    assert len([element for element in tree.iter() if element.tag.endswith("polyline")]) == 2


# --- the store ---


def test_s20_what_was_measured_is_not_measured_again_after_a_crash(tmp_path, capsys):
    words = ("compaction", "--seeds", "2", "--out", str(tmp_path), *ONE)
    run_eval(words, tmp_path, {})
    first, second = (tmp_path / SESSIONS).read_bytes().splitlines(keepends=True)
    (tmp_path / SESSIONS).write_bytes(b"nonsense\n" + first + second[:100])
    capsys.readouterr()
    run_eval(words, tmp_path, {})
    assert "line 1" in capsys.readouterr().err
    nonsense, kept, again = (tmp_path / SESSIONS).read_bytes().splitlines(keepends=True)
    assert (nonsense, kept, without_times(again)) == (b"nonsense\n", first, without_times(second))
    size = (tmp_path / SESSIONS).stat().st_size
    run_eval(words, tmp_path, {})
    assert (tmp_path / SESSIONS).stat().st_size == size
    report = msgspec.json.decode((tmp_path / "report.json").read_bytes())
    assert report["rows"][0]["sessions"] == 2
    assert {"report.md", "report.svg"} <= {file.name for file in tmp_path.iterdir()}
    capsys.readouterr()


def test_s20_another_case_is_another_measurement(tmp_path):
    store = Store(tmp_path)
    store.add(figures_of())
    with pytest.raises(StoreError, match="another tenuto"):
        Store(tmp_path)
    store.close()
    again = Store(tmp_path)
    assert again.find(figures_of().case) == figures_of()
    assert again.find(msgspec.structs.replace(figures_of().case, strategy="digest")) is None


def test_s20_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "taken").write_text("x")
    with pytest.raises(StoreError, match="taken"):
        Store(tmp_path / "taken")


# --- the command line ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--strategies", "ladder,clever"), "clever"),
        (("--rounds", "0"), "0"),
        (("--keeps", "101"), "101"),
        (("--seeds", "0"), "nothing to measure"),
        (("--model", "smollm2"), "PROVIDER/NAME"),
        (("--model", "llama/smollm2"), "--recorded"),
        (("--recorded", "nowhere.jsonl"), "nowhere.jsonl"),
    ],
)
def test_s20_bad_words_are_named_before_anything_is_played(words, said, capsys, tmp_path):
    assert run_eval(("compaction", *words), tmp_path, {}) == 2
    assert said in capsys.readouterr().err


def test_s20_a_broken_session_is_named(tmp_path, capsys):
    file = tmp_path / "broken.jsonl"
    file.write_text('{"type": "message"\n')
    assert run_eval(("compaction", "--recorded", str(file)), tmp_path, {}) == 2
    assert "broken.jsonl" in capsys.readouterr().err


def test_s20_a_recorded_session_is_played_by_the_command(tmp_path, capsys):
    file = FOLDER / "swe-agent-marshmallow.jsonl"
    words = ("--seeds", "0", "--windows", "16384", "--rounds", "2", "--summarisers", "honest", "--recorded", str(file))
    run_eval(("compaction", *words, "--out", str(tmp_path / "out")), tmp_path, {})
    assert "recorded swe-agent-marshmallow" in capsys.readouterr().out
    report = msgspec.json.decode((tmp_path / "out" / "report.json").read_bytes())
    assert report["recorded"] == ["swe-agent-marshmallow"]


def test_s20_the_commands_of_the_page_are_understood(capsys):
    """Those of docs/benchmarks/compaction.md play hundreds of sessions, so their words alone are read."""
    page = Path(__file__).parents[2] / "docs" / "benchmarks" / "compaction.md"
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("tenuto eval compaction")]
    assert len(lines) >= 3
    for words in lines:
        assert evaluating.build_parser().parse_args(words[3:]).rounds
    assert capsys.readouterr().err == ""


COMMAND = (*TENUTO, "eval", "compaction", "--seeds", "1", "--windows", "16384", "--rounds", "2")


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TENUTO_HOME": str(tmp_path), "TERM": "xterm-256color"}


def test_s20_progress_is_shown_on_a_terminal(tmp_path):
    leader, follower = pty.openpty()
    try:
        words = [*COMMAND, "--summarisers", "honest,lossy,refusing"]
        with subprocess.Popen(
            words, stdin=follower, stdout=subprocess.DEVNULL, stderr=follower, env=environment(tmp_path)
        ) as process:
            try:
                told = b""
                deadline = time.monotonic() + 120
                while b" of 3 sessions" not in told and time.monotonic() < deadline and process.poll() is None:
                    if select.select([leader], [], [], 0.2)[0]:
                        told += os.read(leader, 4_096)
                assert b" of 3 sessions" in told
            finally:
                process.kill()
    finally:
        os.close(leader)
        os.close(follower)


def test_s20_nothing_is_shown_beside_the_report_without_a_terminal(tmp_path):
    words = [*COMMAND, "--summarisers", "honest"]
    ran = subprocess.run(words, capture_output=True, env=environment(tmp_path), stdin=subprocess.DEVNULL, check=False)
    assert ran.stderr == b""
    assert ran.stdout.startswith(b"seeds 1;")
