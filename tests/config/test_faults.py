"""What is said of a setting that is wrong: what is allowed there, and the nearest of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.config.settings import load_settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('mode = "atuo"', "mode is ignored: “atuo” is none of ask, edits, auto, plan; did you mean auto?"),
        ('mode = "x"', "mode is ignored: “x” is none of ask, edits, auto, plan"),
        ('[ui]\nmouse = "whel"', "ui.mouse is ignored: “whel” is none of full, wheel, off; did you mean wheel?"),
        (
            '[ui]\nreduce_motion = "stric"',
            "ui.reduce_motion is ignored: “stric” is none of off, on, strict, true, false; did you mean strict?",
        ),
        ("[ui]\ntheme = 3", "ui.theme is ignored: it takes a text"),
        ('[ui]\ninline = "yes"', "ui.inline is ignored: it takes true or false"),
        ("[ui]\nmouse = 3", "ui.mouse is ignored: it takes full, wheel or off"),
        ("[ui]\nstatus_items = [3]", "ui.status_items is ignored: it takes a list"),
        ('[compaction]\nreserve_tokens = "many"', "compaction.reserve_tokens is ignored: it takes a whole number"),
        ("ui = 3", "ui is ignored: it takes a table"),
        ('[ui]\nthem = "dark"', "ui.them is ignored: there is no such setting; did you mean ui.theme?"),
        ('[uii]\ntheme = "dark"', "uii is ignored: there is no such setting; did you mean ui?"),
        (
            '[providers.mine]\nwire = "openai"',
            "providers.*.wire is ignored: there is no such setting; there are kind, base_url, api_key_env, headers",
        ),
        (
            '[models."a/b"]\ncontext_windw = 3',
            "models.*.context_windw is ignored: there is no such setting; did you mean models.*.context_window?",
        ),
    ],
)
def test_the_line_says_what_is_allowed_and_what_was_meant(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "settings.toml").write_text(f"max_output_tokens = 99\n{text}\n[tools]\nbash_timeout = 7\n")
    settings, problems = load_settings(tmp_path, None, {})
    assert problems == [f"{tmp_path / 'settings.toml'}: {said}"]
    assert (settings.max_output_tokens, settings.tools.bash_timeout) == (99, 7), "the rest holds"


def test_a_variable_is_judged_as_a_file_is(tmp_path: Path) -> None:
    _settings, problems = load_settings(tmp_path, None, {"TENUTO_MODE": "paln", "TENUTO_UI__DIFF": "splitt"})
    assert sorted(problems) == [
        "environment: mode is ignored: “paln” is none of ask, edits, auto, plan; did you mean plan?",
        "environment: ui.diff is ignored: “splitt” is none of auto, unified, split; did you mean split?",
    ]
