"""`docs/configuration.md` against the settings: every key, its type, its default, and examples that are valid."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tenuto.config.manual import parts, settings_in
from tenuto.config.settings import Settings
from tenuto.config.sources import TOP_LEVEL_VARIABLES, load_settings
from tenuto.config.trust import PROJECT_KEYS
from tests.config.manual_tables import DOCUMENT, heading_of, with_tables

TEXT = DOCUMENT.read_text(encoding="utf-8")
SECTIONS = {heading_of(name): section for name, section in parts() if list(settings_in(section))}
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)


def part(heading: str) -> str:
    """The document's text under a heading, up to the next."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"docs/configuration.md has no part “{heading}”"
    return found[1]


def rows(heading: str) -> dict[str, tuple[str, str, str]]:
    return {key: (kind, default, meaning) for key, kind, default, meaning in ROW.findall(part(heading))}


def test_the_tables_are_those_that_the_settings_make():
    assert with_tables(TEXT) == TEXT, "scripts/manual writes them"


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_setting_is_explained_and_nothing_else_is(heading: str):
    assert list(rows(heading)) == [one.name for one in settings_in(SECTIONS[heading])]
    for one in settings_in(SECTIONS[heading]):
        assert one.meaning.endswith("."), f"{heading} {one.name}: a text with a full stop under it in settings.py"


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_part_has_an_example_that_is_valid(heading: str, tmp_path: Path):
    examples = re.findall(r"^```toml\n(.*?)^```", part(heading), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        (tmp_path / "settings.toml").write_text(example, encoding="utf-8")
        settings, problems = load_settings(tmp_path, None, {})
        assert problems == []
        assert msgspec.to_builtins(settings) != msgspec.to_builtins(Settings())


def test_the_variables_in_the_text_set_what_they_say(tmp_path: Path):
    examples = re.findall(r"`(TENUTO_\w+__\w+)=([^`]+)`", TEXT)
    assert len(examples) >= 3
    for name, value in examples:
        settings, problems = load_settings(tmp_path, None, {name: value})
        assert problems == [], name
        assert settings != Settings(), name


@pytest.mark.parametrize("variable", TOP_LEVEL_VARIABLES)
def test_the_variables_without_a_section_are_named(variable: str):
    assert f"`{variable}`" in TEXT


def test_the_keys_that_a_project_may_set_are_named():
    sentence = re.search(r"A project's file may set .*?: (`mode`.*?)\.\s", TEXT, re.DOTALL)
    assert sentence and set(re.findall(r"`([\w.]+)`", sentence[1])) == PROJECT_KEYS


def test_the_stored_keys_of_the_example_are_read(tmp_path: Path):
    from tenuto.model.access.stored import FILE, read_stored

    example = re.search(r"^```json\n(.*?)^```", part("Connecting a model"), re.MULTILINE | re.DOTALL)
    assert example
    (tmp_path / FILE).write_text(example[1], encoding="utf-8")
    assert set(read_stored(tmp_path)) == {"anthropic", "openrouter"}


def test_ports_and_variables_of_providers_are_the_true_ones():
    from tenuto.model.endpoints import BUILT_IN, USUAL_PORTS

    for name, port in USUAL_PORTS:
        assert re.search(rf"`{name}` \((?:port )?{port}\)", TEXT), name
    for _, _, key, address in BUILT_IN.values():
        assert f"`{key}`" in TEXT
        assert f"`{address}`" in TEXT


def test_every_theme_is_named():
    from tenuto.tui.render.theme import THEME_NAMES

    meaning = rows("`[ui]`")["theme"][2]
    assert all(f"`{name}`" in meaning for name in (*THEME_NAMES, "auto"))
