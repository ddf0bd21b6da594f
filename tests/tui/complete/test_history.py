from __future__ import annotations

import os
import stat
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.tui.complete.history import GLOBAL_NAME, MAX_BYTES, MAX_CHARACTERS, MAX_PROMPTS, PromptHistory


def test_a_projects_own_prompts_come_last_and_each_once(tmp_path):
    one, two = PromptHistory(tmp_path, Path("/one")), PromptHistory(tmp_path, Path("/two"))
    one.append("a", 1.0)
    two.append("b", 2.0)
    one.append("c", 3.0)
    two.append("d", 4.0)
    one.append("a", 5.0)
    assert one.load().texts == ("b", "d", "c", "a")
    assert two.load().texts == ("c", "a", "b", "d")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1).filter(str.strip))
def test_every_text_comes_back(tmp_path, text):
    history = PromptHistory(tmp_path, Path("/one"))
    history.append(text, 1.0)
    assert history.load().texts[-1] == text


def test_files_are_the_owners_only_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        PromptHistory(tmp_path / "home", Path("/one")).append("secret", 1.0)
    finally:
        os.umask(before)
    directory = tmp_path / "home" / "history"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_a_damaged_line_and_a_torn_one_cost_only_themselves(tmp_path):
    history = PromptHistory(tmp_path, Path("/one"))
    history.append("first", 1.0)
    file = tmp_path / "history" / GLOBAL_NAME
    file.write_bytes(file.read_bytes() + b'\xff\xfe\n{"text": 3}\n{"text":"torn')
    history.append("second", 2.0)
    other = PromptHistory(tmp_path, Path("/two"))
    assert other.load().texts == ("first", "second")


def test_the_files_are_bounded(tmp_path):
    history = PromptHistory(tmp_path, Path("/one"))
    for number in range(60):
        history.append(f"{number} {'x' * 90_000}", float(number))
    file = tmp_path / "history" / GLOBAL_NAME
    assert file.stat().st_size <= MAX_BYTES + MAX_CHARACTERS
    assert history.load().texts[-1].startswith("59 ")
    assert not list((tmp_path / "history").glob("*.new"))


def test_at_most_so_many_prompts_are_offered(tmp_path):
    history = PromptHistory(tmp_path, Path("/one"))
    for number in range(MAX_PROMPTS + 5):
        history.append(str(number), float(number))
    assert history.load().texts[0] == "5"
    assert len(history.load().texts) == MAX_PROMPTS


def test_blank_and_endless_prompts_are_not_kept(tmp_path):
    history = PromptHistory(tmp_path, Path("/one"))
    history.append("  \n", 1.0)
    history.append("x" * (MAX_CHARACTERS + 1), 1.0)
    assert history.load().texts == ()
