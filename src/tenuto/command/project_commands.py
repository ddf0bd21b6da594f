"""Commands on what always holds: instruction files, pins."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from tenuto.command.found_rows import around, say_found
from tenuto.command.outcome import Choice, Choose, CommandOutcome, EditFile, ReadOwnFiles, Say
from tenuto.config.instructions import LOCAL, NAMES, add_line
from tenuto.config.plugins.installed import all_hook_files, forget_what_was_read
from tenuto.config.project import project_root
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.found import find_everything
from tenuto.core.state.instructions import describe_patterns, instructions_of, remember, told_instructions
from tenuto.core.state.pins import PIN_SHARE, pin, pinned_tokens, unpin
from tenuto.core.state.prompt import reload_system_entry
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import shorten
from tenuto.text.writable import clean_text

CARRIED_AT_MOST = 30
"""So many instruction files of other agents are named to the model."""
SHOWN = 60
"""Characters of a line in a title."""
CONTENT = """It is read at the start of every session, by people too. Say what cannot be seen from one or two files:
- the commands: build, test (all of it, and one test alone), lint, run;
- the architecture: the main parts, where they lie, how data flows between them;
- rules of this project that are easily broken: conventions, generated files, things never to be done, traps.
Look before you write: the README, the build and CI files, the tests' layout, rules for other agents, a few files of
each part. Try a command before you name it where that is cheap.
Leave out what any project has, lists of files, and what nobody checks. At most 80 lines. Invent nothing."""
WRITE = "Write {path}, the instruction file of this project for coding agents."
IMPROVE = (
    "Look over {path}, the instruction file of this project for coding agents: check what it says against the "
    "project, correct what is not true any more, add what is missing, cut what tells nothing. Keep what people have "
    "decided there."
)


async def run_init(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Send the prompt, with what stands behind the command; while something runs it is queued, like every prompt."""
    path, exists = instruction_file(project_root(runtime.live.session.cwd))
    task = (IMPROVE if exists else WRITE).format(path=path)
    wishes = f"\n\nBeside that: {argument}" if argument else ""
    found = await asyncio.to_thread(find_everything, around(runtime))
    others = [Path(row.file) for row in found if row.kind == "instructions" and row.origin == "project"]
    carried = _carry_over([other for other in others if other != path and other.name != LOCAL], path)
    await runtime.submit_prompt((TextPart(text=f"{task}\n\n{CONTENT}{carried}{wishes}"),), origin="command")
    return [Say(f"Found here:\n{said}")] if (said := say_found(found)) else []


def _carry_over(others: Sequence[Path], path: Path) -> str:
    """Return what the model is asked to do with instruction files that are there for other agents."""
    if not others:
        return ""
    names = "\n".join(f"- {clean_text(str(other))}" for other in others[:CARRIED_AT_MOST])
    more = f"\n- and {len(others) - CARRIED_AT_MOST} more beside them" if others[CARRIED_AT_MOST:] else ""
    return (
        f"\n\nThese files tell other agents about this project. Read each, and carry over into {path.name} what holds "
        f"and is missing there, without repeating what stands in it. Leave the files themselves as they are.\n"
        f"{names}{more}"
    )


def instruction_file(root: Path) -> tuple[Path, bool]:
    """Return the project's instruction file, and whether it is there already."""
    present = next((root / name for name in NAMES if (root / name).is_file()), None)
    return (present, True) if present is not None else (root / NAMES[0], False)


TO_PROJECT, TO_OWN = "--project", "--own"
"""Which file gets the line, as a word before its text."""


async def run_remember(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Ask where a line belongs; with the word for a place before it, put it there and have the model told."""
    word, _, rest = argument.partition(" ")
    text = " ".join((rest if word in (TO_PROJECT, TO_OWN) else argument).split())
    if not text:
        return [Say("/remember TEXT, or # TEXT, adds a line to the instructions.", "warning")]
    live = runtime.live
    places = {TO_PROJECT: project_root(live.session.cwd), TO_OWN: runtime.home}
    if word in places:
        path, _ = instruction_file(places[word])
        await asyncio.to_thread(add_line, path, text)
        remember(live, path)
        return [Say(f"Added to {path}: - {text} (/memory opens the file)")]
    names = {TO_PROJECT: "this project", TO_OWN: "every project"}
    rows: list[Choice] = []
    for option, folder in places.items():
        path, exists = instruction_file(folder)
        detail = str(path) if exists else f"{path} · not there yet"
        rows.append(Choice(f"{option} {text}", names[option], detail, preview=f"- {text}"))
    return [Choose(f"Remember “{shorten(text, SHOWN)}” for", "remember", tuple(rows), in_order=True)]


async def run_memory(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List them, and those that there could be; open the one that is named. Raises `UsageError` for another file."""
    rows = _rows(runtime)
    if not argument:
        return [Choose("Instructions (Enter: editor; then /reload)", "memory", rows)]
    if argument not in {row.value for row in rows}:
        raise UsageError(f"{argument} is no instruction file that holds here; /memory lists them")
    return [EditFile(argument)]


def _rows(runtime: Runtime) -> tuple[Choice, ...]:
    home, cwd = runtime.home, runtime.live.session.cwd
    found = instructions_of(runtime.live)
    files = (*found.files, *found.on_touch)
    rows = [
        Choice(
            file.path,
            file.path,
            f"{_scope(file.path, home)} · {len(file.text):,} characters{describe_patterns(file)}",
            preview=file.text,
        )
        for file in files
    ]
    for path, text in told_instructions(runtime.live.session.get_llm_history()).items():
        if all(path != file.path for file in files):
            rows.append(Choice(path, path, "told, because a file there was touched", preview=text))
    for folder in (project_root(cwd), home):
        if not any(Path(file.path).parent == folder for file in files):
            path = str(folder / NAMES[0])
            rows.append(Choice(path, path, f"{_scope(path, home)} · not there yet"))
    return tuple(rows)


def _scope(path: str, home: Path) -> str:
    return "every project" if {home, home / "rules"} & set(Path(path).parents[:2]) else "this project"


async def run_reload(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Write a new `system` entry from the files as they are now; the next request starts a new cache.

    Extensions are imported again, so that their author can try them without leaving the session.
    """
    del argument
    if runtime.executor.tasks.running(runtime.session_id) is not None:
        words = "Only your own keys are read again while something runs; /reload reads the rest when it has ended."
        return [ReadOwnFiles(), Say(words, "warning")]
    forget_what_was_read()
    await runtime.live.mcp.refresh()
    names = await runtime.live.extensions.reload()
    changed = reload_system_entry(runtime.live)
    runtime.live.publish_usage()
    loaded = (f" Extensions: {', '.join(names)}." if names else "") + await _reload_hooks(runtime)
    return [
        ReadOwnFiles(),
        Say(("Instructions, skills and tools are read again." if changed else "Nothing has changed.") + loaded),
    ]


async def _reload_hooks(runtime: Runtime) -> str:
    """Read the hook files again and return what is to be said of it."""
    live, settings = runtime.live, runtime.settings.hooks
    if not settings.enabled or live.session.is_read_only:
        return ""
    files = all_hook_files(runtime.home, live.session.cwd, runtime.start.environ, shared=settings.shared)
    if live.hooks is None:
        return " There are hook files now; they hold in the next session (/new)." if files else ""
    await live.hooks.reload(files)
    return f" Hooks: {len(live.hooks.commands)}."


async def run_pin(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Pin the text, the message of that `#seq`, or without either the last message."""
    message = re.fullmatch(r"#(\d+)", argument.strip())
    entry = pin(runtime.live, target=int(message[1])) if message else pin(runtime.live, argument)
    number = len(runtime.live.session.state.pins)
    return [Say(f"Pinned (#{number}): {shorten(entry.text, 100)}")]


async def run_pins(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all pins with the numbers that `/unpin` takes, and how much of their room they use; or remove one."""
    words = argument.split()
    if words[:1] == ["remove"]:
        return await run_unpin(runtime, " ".join(words[1:]))
    live = runtime.live
    pins = live.session.state.pins
    if not pins:
        return [Say("No pins. /pin TEXT pins a text, /pin your last message.")]
    width = len(str(len(pins))) + 2
    rows = [
        f"{f'{number}.':<{width}}{entry.text.replace(chr(10), chr(10) + ' ' * width)}"
        for number, entry in enumerate(pins, 1)
    ]
    most = live.budget().window // PIN_SHARE
    used = f"~{pinned_tokens(pins):,} of at most {most:,} tokens; /pins remove N removes one"
    return [Say("\n".join([*rows, used]))]


async def run_unpin(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Remove the pin with that number; without a number, offer all."""
    pins = runtime.live.session.state.pins
    if not pins:
        return [Say("No pins.")]
    if not argument:
        rows = enumerate(pins, 1)
        choices = tuple(Choice(str(number), f"{number}. {shorten(entry.text, 100)}") for number, entry in rows)
        return [Choose("Remove pin", "unpin", choices)]
    number = argument.removeprefix("#").removesuffix(".")
    if not number.isdecimal():
        raise UsageError(f"“{argument}” is not the number of a pin; /pins shows them")
    entry = unpin(runtime.live.session, int(number))
    return [Say(f"Unpinned: {shorten(entry.text, 100)}")]
