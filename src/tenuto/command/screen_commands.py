"""Commands on the screen: help, keys, theme, mouse."""

from __future__ import annotations

from tenuto.command.outcome import (
    ChangeTheme,
    Choice,
    Choose,
    CommandOutcome,
    EditKeys,
    MouseMode,
    Say,
    SetMouse,
    ShowKeys,
)
from tenuto.command.own_commands import own_commands
from tenuto.command.registry import COMMANDS, Command
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.text.bounding import shorten
from tenuto.text.matching import did_you_mean

HEAD_CELLS = 24
"""Behind a longer command its description stands in the next row."""
OWN_CHARS = 120
"""Characters of the description of a skill or a command file."""
WAYS = (
    ("@path", "names a file"),
    ("!command", "runs a command here, and the model sees its output"),
    ("!!command", "the same, kept from the model"),
    ("?, /keys", "the keys"),
)
"""What else can be typed."""


async def run_help(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all commands, or the one that is named."""
    word = argument.lstrip("/")
    shown = [entry for entry in COMMANDS if word in ("", entry.name, *entry.aliases)]
    own = own_commands(runtime.live)
    brought = [entry for entry in own if word in ("", entry.name)] if not (word and shown) else []
    if not shown and not brought:
        hint = did_you_mean(word, [entry.name for entry in (*COMMANDS, *own)], "/{}") or "; /help lists them"
        return [Say(f"There is no command /{word}{hint}", "warning")]
    rows = [(f"/{entry.name} {entry.argument_hint}".strip(), entry) for entry in shown]
    width = min(HEAD_CELLS, max((len(head) for head, _ in rows), default=HEAD_CELLS))
    lines = [_row(head, f"{entry.description}{_alias_note(entry.aliases)}", width) for head, entry in rows]
    if brought:
        lines += [
            "",
            *(["Yours and the project's:"] if not word else []),
            *(_own_row(entry, width) for entry in brought),
        ]
    if not argument:
        lines += ["", *(_row(head, text, width) for head, text in WAYS)]
        lines += ["", "What is sent while something runs is queued."]
    return [Say("\n".join(lines))]


def _row(head: str, text: str, width: int) -> str:
    """Return what can be typed and what it does, that in a column of its own."""
    return f"{head:<{width}}  {text}" if len(head) <= width else f"{head}\n{'':{width}}  {text}"


def _own_row(entry: Command, width: int) -> str:
    return _row(f"/{entry.name} {entry.argument_hint}".strip(), shorten(entry.description, OWN_CHARS), width)


def _alias_note(aliases: tuple[str, ...]) -> str:
    return f" (also {', '.join('/' + alias for alias in aliases)})" if aliases else ""


async def run_keys(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the keys, or open the file of the user's own ones."""
    del runtime
    match argument.strip():
        case "":
            return [ShowKeys()]
        case "edit":
            return [EditKeys()]
        case _:
            return [Say("/keys lists the keys, /keys edit opens the file in which you change them", "warning")]


async def run_theme(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the theme that is named; without a name, let the user look at all."""
    del runtime
    return [ChangeTheme(argument.strip())]


MODES: dict[MouseMode, str] = {
    "full": "the wheel scrolls, dragging selects, a click collapses; with Shift the terminal selects",
    "wheel": "the wheel scrolls; with Shift the terminal selects",
    "off": "the terminal keeps the mouse, and selects by itself",
}


async def run_mouse(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Offer the ways, or take the one that is named, until the program ends; the setting is permanent."""
    del runtime
    word = argument.strip().lower()
    if not word:
        rows = tuple(Choice(mode, mode, description) for mode, description in MODES.items())
        return [Choose("Mouse mode (this session; set ui.mouse to keep it)", "mouse", rows)]
    if word not in MODES:
        raise UsageError(f"There is no /mouse “{word}”: there are {', '.join(MODES)}{did_you_mean(word, MODES)}")
    return [SetMouse(word)]
