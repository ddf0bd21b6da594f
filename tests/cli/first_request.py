"""The table of docs/prompts.md: what the first request of a session has, by part and tool, in estimated tokens.

`python -m tests.cli.first_request` writes the table into the page; a test compares the two, and another one real
requests with these numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from tenuto.compaction.measure.weight import estimate_tools
from tenuto.core.state.live import SKILL_TOOL
from tenuto.core.state.place import MAX_TOKENS as PLACE_TOKENS
from tenuto.core.state.prompt import build_system_prompt
from tenuto.core.state.reminders import MODE_TEXTS, alone_text, environment_text
from tenuto.model.wire.conversation import frame_note
from tenuto.protocol.entry import Mode
from tenuto.protocol.model import Family
from tenuto.text.estimate import estimate_text
from tenuto.tool.run.registry import EDITING, PATCHING, ToolRegistry

LIMIT = 3_500
"""Tokens that the first request may have without instruction files and prompt."""
PAGE = Path(__file__).parents[2] / "docs" / "prompts.md"
BEGIN, END = "<!-- table: python -m tests.cli.first_request -->", "<!-- /table -->"
FAMILIES: dict[Family, str] = {
    "claude": "for Claude",
    "gpt": "for GPT",
    "gemini": "for Gemini",
    "other": "for all others",
}
TOOLS: tuple[Family, ...] = ("gpt", "other")
"""Families that differ in their tools."""
MODES: tuple[Mode, ...] = get_args(Mode)
NOON = 1_728_043_200.0
"""A day that is the same in nearly every time zone."""


def system_tokens(family: Family) -> int:
    """Return the tokens of the system prompt for a family of models, without instruction files."""
    return estimate_text(build_system_prompt([], family=family))


def mode_tokens(mode: Mode, *, alone: bool) -> int:
    """Return the tokens of the note on a mode, as it is sent; `alone`: in a run without a user."""
    return estimate_text(frame_note(alone_text(mode, (), "") if alone else MODE_TEXTS[mode]))


def environment_tokens() -> int:
    """Return about how many tokens the note on directory and date has, in tens: it names directory, system and day."""
    return round(estimate_text(frame_note(environment_text(Path("/home/user/project"), NOON))), -1)


def tool_tokens(family: Family) -> dict[str, int]:
    """Return the tokens of each tool of a family of models, by name, in the order in which they are sent.

    Without `skill`, which is sent where there are skills.
    """
    schemas = ToolRegistry().schemas(family, frozenset({SKILL_TOOL}))
    return {schema.name: estimate_tools([schema]) for schema in schemas}


def describe() -> str:
    """Return the table as Markdown."""
    place = environment_tokens()
    system = {family: system_tokens(family) for family in FAMILIES}
    tools = {family: tool_tokens(family) for family in FAMILIES}
    every = {name: tokens for own in (tools["other"], tools["gpt"]) for name, tokens in own.items()}
    largest = max(system[family] + sum(tools[family].values()) for family in FAMILIES)
    screen = {mode: mode_tokens(mode, alone=False) for mode in MODES}
    alone = {mode: mode_tokens(mode, alone=True) for mode in MODES}
    rest = largest + place + PLACE_TOKENS
    lines = ["| part | tokens |", "|---|---|"]
    lines += [f"| system prompt, {title} | {system[family]} |" for family, title in FAMILIES.items()]
    lines.append(f"| note on directory and date | about {place} |")
    lines.append(f"| note on the place, once | at most {PLACE_TOKENS} |")
    lines += [f"| note on mode `{mode}`: on a screen, with `-p` | {screen[mode]}, {alone[mode]} |" for mode in MODES]
    lines += [f"| tool `{name}`{_whose(name)} | {tokens} |" for name, tokens in every.items()]
    lines += [f"| all tools, {FAMILIES[family]} | {sum(tools[family].values()):,} |" for family in TOOLS]
    largest_ask = _about(rest + screen["ask"], rest + alone["ask"])
    lines.append(f"| the largest request in mode `ask`: on a screen, with `-p` | {largest_ask} |")
    return "\n".join(lines)


def _whose(name: str) -> str:
    if name in PATCHING:
        return f", {FAMILIES['gpt']}"
    return f", {FAMILIES['other']}" if name in EDITING else ""


def _about(*tokens: int) -> str:
    return "about " + ", ".join(f"{round(number, -1):,}" for number in tokens)


def with_table(page: str) -> str:
    """Return the page with the present table in it."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{describe()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
