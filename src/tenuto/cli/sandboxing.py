"""`tenuto sandbox`: run a command as the agent's commands run, and say what this machine has of a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tenuto.cli.parsing import Parser, complain, parse, say, say_json
from tenuto.config.sources import load_settings
from tenuto.exit_codes import FAILED

if TYPE_CHECKING:
    from tenuto.config.settings import SandboxSettings
    from tenuto.guard.sandbox.machine import Machine


def run_sandbox(words: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto sandbox [--status] [--json] [-- COMMAND …]`; returns the exit code, of the command where one ran."""
    own, behind, command = _divide(words)
    parser = Parser(
        prog="tenuto sandbox",
        usage="tenuto sandbox [--status] [--json] [--read-only] -- COMMAND ...",
        description="Run a command in the sandbox, as the agent does. One word is a shell line.",
    )
    parser.add_argument("--status", action="store_true", help="say what this machine has")
    parser.add_argument("--json", action="store_true", help="the same as one line of JSON")
    parser.add_argument("--read-only", action="store_true", help="as for commands that only read: no writes at all")
    parsed = parse(parser, own)
    if isinstance(parsed, int):
        return parsed
    cwd = Path.cwd()
    wishes = load_settings(home, cwd, environ)[0].sandbox
    if not command:
        if behind:
            return complain("there is no command behind --")
        return _tell(wishes, as_json=parsed.json)
    line = command[0] if len(command) == 1 else shlex.join(command)
    return asyncio.run(_run(line, cwd, home, environ, wishes, strict=parsed.read_only))


def _divide(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool, tuple[str, ...]]:
    """Return our own words, whether `--` came, and those of the command."""
    if "--" in words:
        place = words.index("--")
        return words[:place], True, words[place + 1 :]
    place = next((place for place, word in enumerate(words) if not word.startswith("-")), len(words))
    return words[:place], False, words[place:]


def describe_machine(wishes: SandboxSettings) -> tuple[bool, str]:
    """Return whether commands of the model are held here, and what by or why not, in one line. Tries it, once."""
    from tenuto.guard.sandbox.machine import find_machine

    machine = find_machine(wishes.kind)
    if not wishes.enabled:
        return False, f"switched off in the settings (sandbox.enabled); this machine has {machine}"
    return bool(machine.kind), str(machine)


class NetworkFound(Struct, frozen=True):
    """What network commands have, in a few words; of less than there could be why, and what to do."""

    found: str
    fault: str = ""
    do: str = ""


def describe_network(wishes: SandboxSettings) -> NetworkFound:
    """Return what network commands in the sandbox of this machine have. Tries it."""
    from tenuto.guard.sandbox.machine import find_machine
    from tenuto.guard.sandbox.network.namespace import why_no_network

    machine = find_machine(wishes.kind)
    if wishes.network:
        return NetworkFound("commands have the network (sandbox.network)")
    if machine.kind != "bubblewrap":
        fault = f"{machine.kind} cannot hold sandbox.domains" if wishes.domains else ""
        return NetworkFound("commands have no network", fault, "install bubblewrap (apt install bubblewrap)")
    fault = why_no_network(machine.detail)
    if fault:
        found = "each command has an empty network of its own" + (", without sandbox.domains" if wishes.domains else "")
        return NetworkFound(found, fault, "run servers and what uses them in one command, or outside the sandbox")
    reached = f", and reach {', '.join(wishes.domains)}" if wishes.domains else ""
    return NetworkFound(f"commands of a session share a loopback{reached}")


def _tell(wishes: SandboxSettings, *, as_json: bool) -> int:
    from tenuto.guard.sandbox.machine import find_machine

    machine: Machine = find_machine(wishes.kind)
    holds, said = describe_machine(wishes)
    if as_json:
        say_json(
            {
                "kind": machine.kind or None,
                "detail": machine.detail,
                "weakness": machine.weakness or None,
                "enabled": wishes.enabled,
                "network": wishes.network,
                "domains": list(wishes.domains),
                "unavailable": dict(machine.reasons),
            }
        )
    else:
        say(f"Sandbox: {said}")
        if holds:
            network = describe_network(wishes)
            say(f"Network: {network.found}" + (f" ({network.fault})" if network.fault else ""))
        else:
            say("Without one, mode auto asks as edits does; --no-sandbox does without it.")
    return 0 if holds else FAILED


async def _run(
    line: str, cwd: Path, home: Path, environ: Mapping[str, str], wishes: SandboxSettings, *, strict: bool
) -> int:
    """Run a shell line and pass its output on as it comes."""
    import tempfile

    from tenuto.tool.process.process import Collector, start_command
    from tenuto.tool.run.confining import make_sandbox

    sandbox = make_sandbox(wishes, cwd, home, wanted=True)
    if not sandbox.holds:
        return complain(f"there is no sandbox on this machine: {sandbox.machine}", FAILED)
    with tempfile.TemporaryDirectory(prefix="tenuto-") as folder, contextlib.closing(sandbox):
        collector = Collector(lambda: Path(folder, "output"), spool_limit=0)
        try:
            confined = sandbox.confine(cwd, environ, strict=strict)
            command = start_command(line, cwd, environ, collector, Path(folder, "running"), confined=confined)
        except (OSError, ValueError) as error:
            return complain(f"the command could not be started: {error}", FAILED)
        command.on_output = _pass_on
        try:
            code = await command.exited
            await command.settle()
        finally:
            await command.end()
            command.close()
        for refused in sandbox.refused_since(0):
            complain(f"blocked: network: {refused}", FAILED)
        for place in confined.unchanged():
            complain(f"blocked: {place} stays as it is", FAILED)
    return code


def _pass_on(chunk: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
