"""A runtime that also understands slash commands: what `tenuto.Agent` holds.

Nothing of the commands is imported before one is typed: a prompt needs none.
"""

from __future__ import annotations

import asyncio
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.core.errors import EXPECTED_FAILURES
from tenuto.core.runtime import Runtime
from tenuto.guard.terminal import sanitize_line

if TYPE_CHECKING:
    from tenuto.command.outcome import Choice, CommandOutcome
    from tenuto.command.registry import Command
    from tenuto.core.start import Start


class CommandRuntime(Runtime):
    """The runtime with the commands, which `core/` itself may not know."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.opener.extensions.commands = _command_names

    async def is_command(self, text: str) -> bool:
        """Say whether a text that was typed is a slash command; a path that begins with a slash is none.

        Extensions and MCP servers are waited for: it may be one of theirs.
        """
        name = typed_name(text)
        if not name:
            return False
        from tenuto.command.registry import find_command

        if find_command(name) is not None:
            return True
        from tenuto.command.own_commands import is_own

        return await is_own(self, name)

    async def is_stoppable(self, line: str) -> bool:
        """Say whether a slash command may be cancelled at any moment: nothing of it is left then."""
        from tenuto.command.registry import find_command

        name = typed_name(line)
        command = find_command(name) or next((one for one in await self.own_commands() if one.name == name), None)
        if command is not None:
            return command.stoppable
        from tenuto.command.mcp_commands import is_prompt

        return await is_prompt(self, name)

    async def run_command(self, line: str) -> list[CommandOutcome]:
        """Run `/name argument`; what it asks of the front-end comes back as data."""
        from tenuto.command.registry import run_command

        return await run_command(self, line)

    async def own_commands(self) -> tuple[Command, ...]:
        """Return what users and projects bring to be typed as `/name`."""
        from tenuto.command.own_commands import own_commands

        live = self.live
        return await asyncio.to_thread(own_commands, live)

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        """Return what may stand behind `/name`; `typed` is there already."""
        return await argument_choices(self, name, typed)

    async def resources(self) -> tuple[Choice, ...]:
        """Return what MCP servers have to be mentioned as `@server:uri`."""
        from tenuto.command.outcome import Choice

        hub = self.live.mcp.hub
        servers = () if hub is None else hub.servers.values()
        return tuple(
            Choice(f"{server.name}:{one.uri}", sanitize_line(f"{server.name}:{one.uri}"), sanitize_line(one.name))
            for server in servers
            for one in server.listing.resources
            if one.uri.isprintable() and '"' not in one.uri
        )


def typed_name(text: str) -> str:
    """Return the name behind the slash that a text begins with, empty where it does not begin with one."""
    return next(iter(text[1:].split(maxsplit=1)), "") if text.startswith("/") else ""


def _command_names() -> frozenset[str]:
    from tenuto.command.registry import command_names

    return command_names()


MAX_FOLDERS = 200
WHOLE_FOLDERS = frozenset({".", "..", "~"})
"""Words that name a directory as they stand."""


async def argument_choices(runtime: Runtime, name: str, typed: str) -> tuple[Choice, ...]:
    """Return what may stand behind `/name`; `typed` is what stands there so far. Nothing is run or changed."""
    from tenuto.command.outcome import Choice, Choose
    from tenuto.command.registry import find_command, runner_of

    command = find_command(name)
    if command is None:
        host = runtime.live.extensions.loaded
        if host is None or all(own.name != name for own in host.commands):
            return ()
        return tuple(Choice(one, one) for one in await host.complete(name, typed))
    found = [Choice(word, word) for word in command.values]
    outcomes: list[CommandOutcome] = []
    if command.offers:
        run = runner_of(command)
        try:
            outcomes = await run(runtime, "")
        except EXPECTED_FAILURES:
            return tuple(found)
        offered = [outcome for outcome in outcomes if isinstance(outcome, Choose) and outcome.command == command.name]
        found += [choice for outcome in offered for choice in outcome.choices if choice.value]
    if command.folders:
        found += await asyncio.to_thread(folder_choices, runtime.live.session.cwd, typed)
    return tuple(found)


def folder_choices(cwd: Path, typed: str) -> list[Choice]:
    """Return the directories that the last word of `typed` may become, each with what stands before it."""
    from tenuto.command.outcome import Choice

    before, space, word = typed.rpartition(" ")
    if word in WHOLE_FOLDERS:  # else Enter would make a hidden folder of the dot
        return [Choice(typed, word)]
    folder, slash, last = word.rpartition("/")
    try:
        with os.scandir(cwd / Path(f"{folder}{slash}").expanduser()) as entries:
            names = [entry.name for entry in islice(entries, MAX_FOLDERS * 10) if entry.is_dir()]
    except (OSError, RuntimeError, ValueError):
        return []
    shown = sorted(name for name in names if name.isprintable() and name.startswith(".") == last.startswith("."))
    paths = [f"{folder}{slash}{name}/" for name in shown[:MAX_FOLDERS]]
    return [Choice(f"{before}{space}{path}", path) for path in paths]
