"""Recorded runs of other agents through our tools: what they take, and where edits land, held as counts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectories.calls import Create, Find, Lines, Look, Recorded, Search, Sed, Shell, Shown, shell
from tests.trajectories.readers import find_recordings, read_recording
from tests.trajectories.replay import SLIPS, Tally, hunks, replay

ROOT = Path(__file__).parents[2]
RECORDINGS = {path.name: path for path in find_recordings(Path(__file__).parent / "recordings")}
BOUNDS = {
    "claude-code.jsonl": ({"read": 1, "grep": 1, "glob": 1, "bash": 1, "write": 1, "edit": 2}, 3, 1),
    "mini.traj.json": ({"read": 4, "grep": 1, "bash": 4, "write": 1, "edit": 3}, 4, 2),
    "openhands.trajectory.json": ({"read": 1, "bash": 1, "write": 1, "edit": 2}, 3, 2),
    "swe-agent.traj": ({"read": 1, "glob": 1, "bash": 1, "write": 2, "edit": 3}, 5, 4),
}
"""Of each recording: the calls that our tools take, edits that land, those of them that a later answer shows."""


@pytest.mark.parametrize("name", RECORDINGS)
async def test_l7_recorded_calls_are_taken_and_edits_land_where_they_landed(name: str) -> None:
    _, calls = read_recording(RECORDINGS[name])
    tally = await replay(calls)
    taken, landed, confirmed = BOUNDS[name]
    assert tally.faults == []
    assert tally.asked == tally.taken == Counter(taken)
    assert (tally.landed, tally.confirmed, tally.elsewhere, tally.unchecked) == (landed, confirmed, 0, 0)
    assert sum(tally.ours.values()) > 0
    outcomes = {outcome for (_, outcome) in tally.slips}
    assert outcomes == {"landed"}, "what models misquote is found all the same, and nowhere else"


def test_l7_every_recording_has_its_bounds_and_what_failed_for_them_is_not_counted() -> None:
    assert RECORDINGS.keys() == BOUNDS.keys()
    total = Tally()
    for path in RECORDINGS.values():
        calls = read_recording(path)[1]
        total.calls += len(calls)
        assert all(call.refused for call in calls if call.failed)
    assert total.calls == 40


async def test_l7_an_edit_that_lands_elsewhere_is_counted_and_named() -> None:
    """The measure has teeth: the answer shows another line than the edit makes."""
    look = Recorded(Look("a.py"), "", shown=(Shown("a.py", {1: "one", 2: "two"}, 2),))
    edit = Recorded(Lines("a.py", 2, 2, "three"), "", shown=(Shown("a.py", {1: "one", 2: "3"}, 2),))
    tally = await replay([look, edit])
    assert (tally.landed, tally.elsewhere) == (0, 1)
    assert "line 2: 'three' instead of '3'" in tally.faults[0]
    right = replace(edit, shown=(Shown("a.py", {1: "one", 2: "three"}, 2),))
    tally = await replay([look, right])
    assert (tally.landed, tally.confirmed, tally.elsewhere) == (1, 1, 0)


async def test_l7_text_that_was_never_shown_is_not_played() -> None:
    look = Recorded(Look("a.py"), "", shown=(Shown("a.py", {5: "five"}, 9),))
    tally = await replay([look, Recorded(Lines("a.py", 2, 2, "new"), "")])
    assert (tally.unseen, tally.landed, tally.elsewhere) == (1, 0, 0)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("cat a/b.py", Look("a/b.py")),
        ("sed -n '3,7p' a.py", Look("a.py", 3, 5)),
        ("nl -ba a.py | sed -n '3,7p'", Look("a.py", 3, 5)),
        ("head -n 20 a.py", Look("a.py", 1, 20)),
        ("cat <<'EOF' > a.py\nx = $1\nEOF", Create("a.py", "x = $1\n")),
        ("cat > a.py << EOF\nx = 1\nEOF", Create("a.py", "x = 1\n")),
        ("sed -i '3d' a.py", Sed("a.py", ("3d",))),
        ('grep -rn "a b" src', Search("a b", "src")),
        ("find . -name '*.py'", Find("**/*.py", ".")),
    ],
)
def test_l7_a_plain_command_is_what_it_is_for(command: str, wanted: object) -> None:
    assert shell(command) == wanted


@pytest.mark.parametrize(
    "command",
    [
        "cat a.py b.py",
        "cat a.py; rm -r b",
        "cat $(ls)",
        "cat < a.py",
        "cat *.py",
        "cat > a.py << EOF\nx = $HOME\nEOF",
        "cat > a.py << 'EOF'\nx\nEOF\npython a.py",
        "sed -n '3,7p' a.py > b",
        "sed -i 's/a/b/' a.py && python a.py",
        "grep -rn a src | head",
        "cd a && cat b",
    ],
)
def test_l7_everything_else_stays_a_command(command: str) -> None:
    assert shell(command) == Shell(command)


LINES = st.lists(st.sampled_from(["a", "b", "  a", "", "}", "return x"]), min_size=1, max_size=12)


@given(LINES, LINES)
def test_l7_the_edits_of_a_change_make_that_change(before: list[str], after: list[str]) -> None:
    text = "\n".join(before) + "\n"
    if before == after:
        return
    made = hunks(before, after)
    for hunk in made:
        assert text.count(hunk["old_string"]) == 1 or len(made) == 1
        text = text.replace(hunk["old_string"], hunk["new_string"], 1)
    assert text == "\n".join(after) + "\n"


def test_l7_the_command_prints_the_table_and_all_counts_as_json() -> None:
    command = [str(ROOT / "scripts" / "trajectories"), str(ROOT / "tests" / "trajectories" / "recordings")]
    table = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "| edits that land with their bytes | 3 of 3 (100.0%) | 5 of 5 (100.0%) |" in table
    assert all(slip in table for slip in SLIPS)
    counts = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, timeout=120).stdout
    assert json.loads(counts)["mini-swe-agent"]["landed"] == 4
