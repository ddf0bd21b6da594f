"""Everything that is brought, as rows: from where, and why what is left out is (J 8)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tenuto.config.settings import InstructionSettings, Settings
from tenuto.core.state.found import FINDERS, Around, Found, find_everything, other_instructions

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\nDo it."


def write(path: Path, text: object, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    path.chmod(mode)
    return path


@pytest.fixture
def place(tmp_path) -> Path:
    """A project with something of everything, good and bad."""
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}], "Setup": []}}
    for name, text in {
        "AGENTS.md": "a",
        "CLAUDE.md": "b",
        "GEMINI.md": "c",
        ".cursorrules": "d",
        ".cursor/rules/e.mdc": "e",
        ".github/copilot-instructions.md": "f",
        ".tenuto/settings.toml": "[tools]\nnope = 1\n",
        ".mcp.json": {"mcpServers": {"waits": {"command": "sh"}, "broken": {}}},
        ".claude/skills/good/SKILL.md": SKILL.format("good"),
        ".agents/skills/good/SKILL.md": SKILL.format("good"),
        ".agents/skills/runs/SKILL.md": SKILL.format("runs"),
        ".agents/skills/runs/run.sh": "true",
        ".agents/skills/bad/SKILL.md": "no head",
        ".claude/commands/good.md": "Good.",
        ".claude/commands/runs.md": "!`id`",
        ".claude/commands/help.md": "Mine.",
        ".claude/agents/good.md": "---\nname: good\n---\nGood.",
        ".claude/agents/less.md": "---\nname: less\ntools: Read, Beam\n---\nLess.",
        ".claude/agents/bad.md": "---\nname: bad\n---\n",
        ".tenuto/extensions/own.py": "",
        ".agents/plugins/near/plugin.json": {"name": "near"},
    }.items():
        write(work / name, text)
    markets = {"shop": {"source": {"source": "github", "repo": "a/b"}}}
    write(
        work / ".claude/settings.json",
        hooks | {"enabledPlugins": {"far@shop": True, "off@shop": False}, "extraKnownMarketplaces": markets},
    )
    write(tmp_path / "home/extensions/mine.py", "")
    write(
        tmp_path / "home/mcp.json", {"mcpServers": {"here": {"command": "sh"}, "gone": {"command": "no-such-program"}}}
    )
    return work


def found_in(place: Path) -> list[Found]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(place.parent)}
    around = Around(
        home=place.parent / "home", cwd=place, environ=environ, settings=Settings(), built_in=frozenset({"help"})
    )
    return find_everything(around)


def test_j8_each_thing_has_a_row_with_its_product_and_why_it_is_left_out(place):
    rows = {(row.kind, row.name, row.product): (row.left_out, row.do) for row in found_in(place)}
    other = "another product's, not read here"
    trust = "tenuto trust shows and allows it"
    expected = {
        ("instructions", "AGENTS.md", "shared"): "",
        ("instructions", "CLAUDE.md", "Claude Code"): "",
        ("instructions", "GEMINI.md", "Gemini CLI"): other,
        ("instructions", ".cursorrules", "Cursor"): other,
        ("instructions", "e.mdc", "Cursor"): other,
        ("instructions", "copilot-instructions.md", "Copilot"): other,
        ("servers", "here", "Tenuto"): "",
        ("servers", "gone", "Tenuto"): "there is no program no-such-program",
        ("servers", "waits", "shared"): "you have not trusted it",
        ("skills", "good", "shared"): "",
        ("skills", "good", "Claude Code"): f"{place}/.agents/skills/good/SKILL.md has the same name",
        ("skills", "runs", "shared"): "it has scripts and is not trusted",
        ("commands", "/good", "Claude Code"): "",
        ("commands", "/runs", "Claude Code"): "it runs commands and is not trusted",
        ("commands", "/help", "Claude Code"): "/help is a built-in command",
        ("agents", "good", "Claude Code"): "",
        ("agents", "less", "Claude Code"): "",
        ("agents", "less.md", "Claude Code"): "there are no tools Beam; the agent does without",
        ("agents", "bad.md", "Claude Code"): "is no agent: there is no prompt below its front matter",
        ("hooks", "settings.json", "Claude Code"): "Setup is no event here, so its hooks do not run",
        ("plugins", "near", "shared"): "only plugins that you added are used",
        ("plugins", "far", "Claude Code"): "only plugins that you added are used",
        ("extensions", "mine", "Tenuto"): "",
        ("extensions", "own", "Tenuto"): "you have not trusted it",
    }
    assert {key: rows.get(key, ("?", ""))[0] for key in expected} == expected
    assert rows["skills", "runs", "shared"][1] == rows["servers", "waits", "shared"][1] == trust
    assert rows["plugins", "far", "Claude Code"][1] == "tenuto plugins add https://github.com/a/b#far"
    assert rows["plugins", "near", "shared"][1] == f"tenuto plugins add {place}/.agents/plugins/near"
    lines = [(kind, left) for (kind, _, _), (left, _) in rows.items() if left]
    assert any(kind == "skills" and left.startswith("line 1: there is no front matter") for kind, left in lines)
    assert any(kind == "servers" and "broken" in left for kind, left in lines)
    assert any(kind == "settings" and "nope" in left for kind, left in lines)
    assert "off" not in {name for _, name, _ in rows}
    assert {row.kind for row in found_in(place)} == set(FINDERS)


@pytest.mark.parametrize(
    "line", ["mcpServers: [github]", "toolz: Read", "maxTurns: many", "permissionMode: plann", "tools: Read, Beam"]
)
def test_j8_an_agent_that_lacks_a_part_is_used_and_nothing_is_to_be_done(tmp_path, line):
    file = write(tmp_path / "work/.claude/agents/odd.md", f"---\nname: odd\n{line}\n---\nOdd.")
    used, left = (one for one in found_in(tmp_path / "work") if one.kind == "agents")
    assert used.is_used and used.file == left.file == str(file)
    assert left.in_part and left.do == "nothing; the rest is used"
    broken = write(tmp_path / "work/.claude/agents/odd.md", f"---\nname: odd\n{line}\n---\n")
    unused = [one for one in found_in(tmp_path / "work") if one.file == str(broken)]
    assert unused and not any(one.in_part or one.is_used for one in unused)


def test_j8_nothing_is_found_in_an_empty_place(tmp_path):
    (tmp_path / "work").mkdir()
    assert found_in(tmp_path / "work") == []


def test_j8_an_instruction_file_that_is_read_is_no_other_product_s(place):
    (place / ".clinerules").mkdir()
    write(place / ".clinerules/one.md", "x")
    (place / "link.md").symlink_to("GEMINI.md")
    environ = {"HOME": str(place.parent)}
    settings = Settings(instructions=InstructionSettings(also=("GEMINI.md",)))
    around = Around(home=place.parent / "home", cwd=place, environ=environ, settings=settings)
    rows = {row.name: row.is_used for row in find_everything(around, ("instructions",))}
    assert rows["GEMINI.md"] and not rows["one.md"]
    assert len(other_instructions(place)) == 5
