"""`tenuto config`: what is set and where, changes that keep comments, the schema that editors complete from."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import stat
import sys
import tomllib
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies

from tenuto.cli.config import run_config
from tenuto.cli.parsing import toml_text
from tenuto.config.manual import explain, json_schema, parts, settings_in
from tenuto.config.settings import Settings
from tenuto.config.sources import load_settings

OWN = """# mine
mode = "edits"  # for now

[ui]
theme = 'dark'  # at night

[providers.box]
base_url = "http://user:secret@box:8000/v1"
headers = { Authorization = "Bearer hidden-key" }
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text(OWN)
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return project


def run(capsys, home: Path, project: Path, *words: str, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
    place = () if words == ("schema",) else ("--cwd", str(project))
    code = run_config((*words[:1], *place, *words[1:]), home, environ or {})
    said = capsys.readouterr()
    return code, said.out, said.err


def test_show_names_each_setting_with_file_and_line_and_no_secret(capsys, home, project):
    code, out, _ = run(capsys, home, project, "show", environ={"TENUTO_UI__THEME": "light"})
    assert code == 0
    assert f'mode = "edits"  ({home / "settings.toml"}:2)' in out
    assert f'ui.theme = "dark"  ({home / "settings.toml"}:5; overruled)' in out
    assert 'ui.theme = "light"  (environment)' in out
    assert "secret" not in out and "hidden-key" not in out


def test_a_section_whose_settings_are_all_ignored_is_no_setting(capsys, home, project):
    (home / "settings.toml").write_text("[ui]\nthem = 'light'\n[agents]\ndepth = 9\n")
    code, out, err = run(capsys, home, project, "show", environ={"TENUTO_COMPACTION__ENABELD": "false"})
    assert code == 0 and err.count("is ignored") == 3
    assert "No settings are made" in out


def test_show_all_lists_every_setting_once(capsys, home, project):
    _, out, _ = run(capsys, home, project, "show", "--all", "--json")
    keys = [row["key"] for row in json.loads(out)]
    assert len(keys) == len(set(keys))
    for name, section in parts():
        if "NAME" not in name and '"' not in name:
            assert {f"{name}.{one.name}".lstrip(".") for one in settings_in(section)} <= set(keys)
    assert "hidden-key" not in out


def test_get_says_value_place_and_meaning(capsys, home, project):
    code, out, _ = run(capsys, home, project, "get", "ui.theme")
    assert code == 0 and out.startswith(f'ui.theme = "dark"  ({home / "settings.toml"}:5)')
    assert "contrast-light" in out and "](" not in out
    _, out, _ = run(capsys, home, project, "get", "tools.bash_timeout", "--json")
    answer = json.loads(out)
    assert (answer["value"], answer["source"], answer["default"]) == (120.0, "default", "120.0")


@pytest.mark.parametrize("words", [("get", "ui.tehme"), ("set", "ui.tehme", "x"), ("unset", "ui.tehme")])
def test_a_mistyped_key_is_told_with_the_one_that_was_meant(capsys, home, project, words):
    code, _, err = run(capsys, home, project, *words)
    assert code == 2 and "ui.theme" in err
    assert (home / "settings.toml").read_text() == OWN


@pytest.mark.parametrize(
    ("key", "word", "said"),
    [
        ("mode", "paln", "plan"),
        ("tools.bash_timeout", "soon", "a number"),
        ("compaction.enabled", "maybe", "true or false"),
        ("tools.max_output_lines", "0", "from 1"),
        ("approvals.allow", "bash", "a list"),
        ("ui", "x", "table"),
        ("a b", "x", "no key"),
        ("ui.theme = 1\nx", "x", "no key"),
    ],
)
def test_what_does_not_fit_changes_nothing_and_says_what_would(capsys, home, project, key, word, said):
    code, _, err = run(capsys, home, project, "set", key, word)
    assert code == 2 and said in err, err
    assert (home / "settings.toml").read_text() == OWN


def test_set_keeps_comments_and_unset_gives_the_default_back(capsys, home, project):
    code, out, _ = run(capsys, home, project, "set", "ui.theme", "light")
    assert code == 0 and 'ui.theme = "light"' in out
    assert (home / "settings.toml").read_text() == OWN.replace("'dark'", '"light"')
    for key, word in (
        ('models."openai/gpt-6.1".effort', "high"),
        ("models.'openai/gpt-6.1'.context_window", "200000"),
        ("compaction.enabled", "false"),
        ("tools.bash_timeout", "5"),
        ("approvals.allow", '["bash(pytest *)"]'),
        ("ui.reduce_motion", "strict"),
        ("model", "5"),
    ):
        assert run(capsys, home, project, "set", key, word)[0] == 0, key
    values, problems = load_settings(home, None, {})
    assert not problems
    assert values.models["openai/gpt-6.1"].effort == "high"
    assert values.models["openai/gpt-6.1"].context_window == 200_000
    assert (values.compaction.enabled, values.tools.bash_timeout, values.model) == (False, 5.0, "5")
    assert values.approvals.allow == ("bash(pytest *)",)
    assert "# at night" in (home / "settings.toml").read_text()
    assert run(capsys, home, project, "unset", "ui.theme")[0] == 0
    assert load_settings(home, None, {})[0].ui.theme == Settings().ui.theme
    assert "is not in" in run(capsys, home, project, "unset", "ui.theme")[1]


def test_a_stronger_source_is_named(capsys, home, project):
    _, out, _ = run(capsys, home, project, "set", "ui.theme", "light", environ={"TENUTO_UI__THEME": "ansi"})
    assert "environment sets it too, and wins" in out


def test_what_a_project_may_not_set_is_told_at_once(capsys, home, project):
    code, _, err = run(capsys, home, project, "set", "mode", "auto", "--project")
    assert code == 0 and "mode" in err


def test_a_projects_file_is_made_where_its_root_is(capsys, home, project):
    (project / "deep").mkdir()
    assert run(capsys, home, project / "deep", "set", "ui.diff", "split", "--project")[0] == 0
    assert tomllib.loads((project / ".tenuto" / "settings.toml").read_text()) == {"ui": {"diff": "split"}}


def test_a_broken_file_stays_as_it_is(capsys, home, project):
    (home / "settings.toml").write_text("[ui\n")
    code, _, err = run(capsys, home, project, "set", "ui.theme", "light")
    assert code == 1 and "not valid" in err
    assert (home / "settings.toml").read_text() == "[ui\n"


def test_edit_opens_the_file_and_tells_what_is_wrong_with_it(home, project, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho \'mode = "paln"\' > "$1"\n')
    editor.chmod(stat.S_IRWXU)
    shown, code = in_a_terminal(["config", "edit"], project, {"VISUAL": str(editor), "TENUTO_HOME": str(home)})
    assert code == 1
    assert f"{home / 'settings.toml'}:1" in shown and "plan" in shown


def in_a_terminal(words: list[str], cwd: Path, environ: dict[str, str]) -> tuple[str, int]:
    """What a run of the program in a pseudo-terminal of its own printed, and its exit code."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(cwd)
        os.execve(sys.executable, [sys.executable, "-m", "tenuto", *words], os.environ | environ)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65_536):
            shown += data
    os.close(terminal)
    return shown.decode().replace("\r\n", ""), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_schema_takes_what_the_settings_take_and_names_the_rest(capsys, home, project):
    _, out, _ = run(capsys, home, project, "schema")
    schema = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(OWN), schema)
    for wrong in ({"ui": {"tehme": "x"}}, {"mode": "paln"}, {"tools": {"max_output_lines": 0}}, {"nothing": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    described = [one for part in schema["$defs"].values() for one in part["properties"].values() if "$ref" not in one]
    assert sum("description" in one for one in described) > 0.9 * len(described)


def test_every_setting_is_found_by_its_key():
    for name, section in parts():
        words = tuple({"NAME": "x", '"provider/name"': "a/b"}.get(word, word) for word in name.split(".") if word)
        for one in settings_in(section):
            assert explain((*words, one.name)) == one


KEYS = [
    (*([name] if name else []), one.name)
    for name, section in parts()
    if "." not in name and '"' not in name
    for one in settings_in(section)
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(key=strategies.sampled_from(KEYS), word=strategies.text(max_size=12) | strategies.integers().map(str))
def test_whatever_is_set_is_read_back_or_the_file_is_untouched(tmp_path_factory, key, word):
    home = tmp_path_factory.mktemp("home")
    (home / "settings.toml").write_text(OWN)
    code = run_config(("set", ".".join(key), "--", word), home, {})
    values, problems = load_settings(home, None, {})
    assert not problems
    if code == 0:
        read = msgspec.to_builtins(values)
        for name in key:
            read = read[name]
        assert str(read) in (word, word.capitalize()) or read == tomllib.loads(f"value = {word}")["value"]
        assert "# mine" in (home / "settings.toml").read_text()
    else:
        assert (home / "settings.toml").read_text() == OWN


def test_the_examples_of_the_document_do_what_they_say(capsys, home, project):
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    lines = re.findall(r"^tenuto (config.*)$", text, re.MULTILINE)
    assert len(lines) >= 7
    for line in lines:
        _, *words = shlex.split(line, comments=True)
        if words != ["edit"]:
            assert run(capsys, home, project, *(words or ["show"]))[0] == 0, line
    assert load_settings(home, None, {})[0].models["openai/gpt-6.1"].effort == "high"


def test_the_schema_needs_no_home():
    assert json_schema()["$schema"].startswith("https://json-schema.org/")


VALUES = strategies.recursive(
    strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False, allow_infinity=False)
    | strategies.text(alphabet="aä \"\\\n'{}"),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(alphabet='a b"'), inner),
    max_leaves=5,
)


@given(VALUES)
def test_k4_a_value_is_shown_as_it_is_written_in_the_file(value):
    assert tomllib.loads(f"x = {toml_text(value)}") == {"x": value}


@pytest.mark.parametrize(
    ("key", "value", "doubt"),
    [
        ("ui.theme", "pink", "There is no theme “pink”"),
        ("model", "nosuch/x", "there is no provider “nosuch”"),
        ("model", "openai/gpt-6.1", "there is no key for openai"),
        ("ui.theme", "dark", ""),
        ("model", "offline/tenuto", ""),
    ],
)
def test_k4_a_name_that_nothing_has_is_kept_and_doubted_at_once(capsys, home, project, key, value, doubt):
    code, out, errors = run(capsys, home, project, "set", key, value)
    assert code == 0 and f'{key} = "{value}"' in out
    assert doubt in errors and bool(errors) == bool(doubt)


def test_k4_a_broken_file_is_named_with_its_line_and_what_opens_it(capsys, home, project):
    (home / "settings.toml").write_text("[ui]\ntheme = [\n")
    _, _, errors = run(capsys, home, project, "show")
    assert f"{home / 'settings.toml'} cannot be read and is ignored" in errors and "line 2" in errors
    code, _, errors = run(capsys, home, project, "set", "ui.theme", "dark")
    assert code == 1 and "line 2" in errors and "tenuto config edit" in errors
    assert (home / "settings.toml").read_text() == "[ui]\ntheme = [\n"
