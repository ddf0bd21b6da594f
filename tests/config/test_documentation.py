"""`docs/configuration.md` against the settings: every key, its type, its default, and examples that are valid."""

from __future__ import annotations

import json
import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from tenuto.config.fitting import plain_type
from tenuto.config.mcp.servers import McpServer
from tenuto.config.settings import (
    TOP_LEVEL_VARIABLES,
    AgentSettings,
    AgentsSettings,
    ApprovalSettings,
    BranchSummarySettings,
    CatalogueSettings,
    CompactionSettings,
    ExtensionSettings,
    HookSettings,
    InstructionSettings,
    McpSettings,
    ModelSettings,
    PromptSettings,
    ProviderSettings,
    RequestSettings,
    SandboxSettings,
    Section,
    SessionSettings,
    Settings,
    ToolSettings,
    UiSettings,
    load_settings,
)
from tenuto.config.trust import PROJECT_KEYS

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
SECTIONS: dict[str, type[Section | McpServer]] = {
    "Top level": Settings,
    '`[models."provider/name"]`': ModelSettings,
    "`[providers.NAME]`": ProviderSettings,
    "`[compaction]`": CompactionSettings,
    "`[compaction.prompts]`": PromptSettings,
    "`[branch_summary]`": BranchSummarySettings,
    "`[approvals]`": ApprovalSettings,
    "`[agent]`": AgentSettings,
    "`[agents]`": AgentsSettings,
    "`[tools]`": ToolSettings,
    "`[sandbox]`": SandboxSettings,
    "`[session]`": SessionSettings,
    "`[extensions]`": ExtensionSettings,
    "`[hooks]`": HookSettings,
    "`[mcp]`": McpSettings,
    "`[mcp.servers.NAME]`": McpServer,
    "`[instructions]`": InstructionSettings,
    "`[ui]`": UiSettings,
    "`[request]`": RequestSettings,
    "`[catalogue]`": CatalogueSettings,
}
TYPES = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    dict: "table of texts",
    tuple: "list of texts",
}
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)


def part(heading: str) -> str:
    """The document's text under a heading, up to the next."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"docs/configuration.md has no part “{heading}”"
    return found[1]


def rows(heading: str) -> dict[str, tuple[str, str, str]]:
    return {key: (kind, default, meaning) for key, kind, default, meaning in ROW.findall(part(heading))}


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, (Section, McpServer))


def own_keys(section: type[Section | McpServer]) -> set[str]:
    """The keys that stand in a section's own table; sections in these two, and tables of sections, have their own."""
    hints = get_type_hints(section)
    inner = {name for name, kind in hints.items() if is_section(kind) or any(is_section(one) for one in get_args(kind))}
    return set(section.__struct_fields__) - (inner if section in (Settings, McpSettings) else set())


def describe_type(kind: Any) -> str:
    if get_origin(kind) in (types.UnionType, Union):
        return ", ".join(describe_type(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(kind))
    kind, limits = plain_type(kind)
    return "section" if is_section(kind) else TYPES[get_origin(kind) or kind] + limits


def describe_default(value: Any) -> str:
    if value is None:
        return "*unset*"
    return f"`{'{}' if isinstance(value, Section) else json.dumps(value)}`"


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_setting_is_documented_and_nothing_else_is(heading: str):
    assert set(rows(heading)) == own_keys(SECTIONS[heading])


@pytest.mark.parametrize("heading", SECTIONS)
def test_types_and_defaults_are_the_true_ones(heading: str):
    section = SECTIONS[heading]
    hints, defaults = get_type_hints(section, include_extras=True), section()
    for key, (kind, default, meaning) in rows(heading).items():
        assert kind == describe_type(hints[key]), f"{heading} {key}"
        assert default == describe_default(getattr(defaults, key)), f"{heading} {key}"
        assert meaning.endswith("."), f"{heading} {key}"


def test_every_section_of_the_settings_has_a_part():
    hints = get_type_hints(Settings)
    found = {kind for hint in hints.values() for kind in (hint, *get_args(hint)) if is_section(kind)}
    assert found < set(SECTIONS.values())


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
    from tenuto.model.endpoints import FILE, read_keys

    example = re.search(r"^```json\n(.*?)^```", part("Connecting a model"), re.MULTILINE | re.DOTALL)
    assert example
    (tmp_path / FILE).write_text(example[1], encoding="utf-8")
    assert set(read_keys(tmp_path)) == {"anthropic", "openrouter"}


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
