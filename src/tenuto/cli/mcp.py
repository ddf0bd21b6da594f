"""`tenuto mcp`: configure MCP servers, take over those of other agents, try one, log in at one."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tenuto.cli.parsing import Parser, add_directory, complain, parse_here, say, say_json
from tenuto.config.mcp.files import (
    Configured,
    McpFileError,
    drop_server,
    keep_servers,
    own_servers,
    plain,
    project_servers,
    read_configured,
)
from tenuto.config.mcp.peers import find_servers, read_files
from tenuto.config.mcp.servers import (
    McpServer,
    NamedServer,
    ServerError,
    check_name,
    check_server,
    describe_server,
    expand,
)
from tenuto.config.project import project_root
from tenuto.config.sources import load_settings
from tenuto.exit_codes import FAILED, OK
from tenuto.guard.terminal import sanitize_line
from tenuto.text.figures import plural
from tenuto.text.matching import did_you_mean


class Machine:
    """What the commands look at: Tenuto's home, the environment, the user's own home."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self.environ = environ
        self.user_home = Path(environ.get("HOME", "") or Path.home())

    def configured(self, cwd: Path) -> Configured:
        """Return what is configured for a directory."""
        settings, _ = load_settings(self.home, cwd, self.environ)
        return read_configured(self.home, cwd, settings)

    def find(self, cwd: Path, name: str) -> NamedServer | int:
        """Return a server that counts, or the exit code after saying that there is none."""
        servers = {one.name: one for one in self.configured(cwd).servers}
        if name in servers:
            return servers[name]
        hint = did_you_mean(name, servers) or "; tenuto mcp list shows them"
        return complain(f"there is no MCP server {name}{hint}")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto mcp`."""
    parser = Parser(
        prog="tenuto mcp",
        description="MCP servers: programs, or addresses, that give the model tools. They run as you, outside the "
        "working directory too. Yours stand in mcp.json in Tenuto's home and in settings.toml; a project's own are not "
        "started without your trust.",
    )
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    add = _act(acts, "add", "write a server into your own file: NAME COMMAND ARGS…, or NAME URL")
    add.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable that the server gets")
    add.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="a header for an address")
    add.add_argument("name", metavar="NAME", help="what the server is called")
    add.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND…|URL", help="what starts it, or where it is")
    shown = _act(acts, "list", "list the servers that are configured here; nothing is started")
    shown.add_argument("--project", action="store_true", help="those that this project brings, trusted or not")
    shown.add_argument("--json", action="store_true", help="as one JSON object")
    _act(acts, "remove", "take a server out of your own file").add_argument(
        "name", metavar="NAME", help="what the server is called"
    )
    _act(acts, "login", "log in at an address that wants it, in your browser").add_argument(
        "name", metavar="NAME", help="what the server is called"
    )
    test = _act(acts, "test", "start a server and list what it has")
    test.add_argument("name", metavar="NAME", help="what the server is called")
    test.add_argument("--json", action="store_true", help="as one JSON object")
    taken = _act(acts, "import", "copy servers of Claude Code, Codex, Gemini, VS Code and Cursor into your own file")
    taken.add_argument("files", nargs="*", metavar="FILE", help="read these files (default: all that are found)")
    taken.add_argument("--only", action="append", default=[], metavar="NAME", help="only this server")
    taken.add_argument("--dry-run", action="store_true", help="only say what would be copied")
    return parser


def _act(acts: Any, name: str, help_text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = acts.add_parser(name, help=help_text, description=help_text)
    add_directory(parser)
    return parser


def run_mcp(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto mcp ACT …`; returns the exit code: 0 done, 1 it failed, 2 bad usage."""
    lists = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help"))
    asked = parse_here(build_parser(), ("list", *arguments) if lists else arguments)
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    try:
        return ACTS[parsed.act](parsed, cwd, Machine(home, environ))
    except McpFileError as error:
        return complain(str(error), FAILED)


def _add(parsed: argparse.Namespace, _cwd: Path, machine: Machine) -> int:
    words: list[str] = [word for word in parsed.words[:1] if word != "--"] + parsed.words[1:]
    fault = check_name(parsed.name)
    if fault or not words:
        return complain(fault or "name a command or an address; tenuto mcp add --help shows how")
    is_address = len(words) == 1 and words[0].startswith(("http://", "https://"))
    if "://" in words[0] and not is_address:
        return complain(f"{words[0]}: an address begins with https:// or http://, and nothing stands behind it")
    try:
        env, headers = dict(_pair(one, "=") for one in parsed.env), dict(_pair(one, ":") for one in parsed.header)
        server = check_server(
            McpServer(url=words[0], headers=headers)
            if is_address
            else McpServer(command=words[0], args=tuple(words[1:]), env=env)
        )
    except ServerError as error:
        return complain(str(error))
    before = next((one.server for one in own_servers(machine.home) if one.name == parsed.name), server)
    file = keep_servers(machine.home, [(parsed.name, server)])
    was = f", in the place of {describe_server(before)}" if before != server else ""
    say(f"{parsed.name}: {describe_server(server)}, in {file}{was}. tenuto mcp test {parsed.name} tries it.")
    return OK


def _pair(text: str, joint: str) -> tuple[str, str]:
    name, found, value = text.partition(joint)
    if not found or not name.strip():
        raise ServerError(f"“{text}”: write it as NAME{joint}VALUE")
    return name.strip(), value.strip()


def _list(parsed: argparse.Namespace, cwd: Path, machine: Machine) -> int:
    configured = machine.configured(cwd)
    problems = list(configured.problems)
    shown = tuple(project_servers(cwd, machine.home, problems)) if parsed.project else configured.servers
    if parsed.json:
        waiting = {one.name for one in configured.waiting}
        rows = [
            {"name": one.name, "source": one.source, "waits_for_trust": one.name in waiting, **_safe(one.server)}
            for one in (*shown, *(() if parsed.project else configured.waiting))
        ]
        say_json({"servers": rows, "problems": problems})
        return OK
    for problem in problems:
        complain(problem)
    for one in shown:
        say(f"{one.name}  {describe_server(one.server)}  ({one.source})")
    if not shown:
        say("There are no MCP servers here. tenuto mcp add and tenuto mcp import configure some.")
    if configured.waiting and not parsed.project:
        names = ", ".join(one.name for one in configured.waiting)
        say(
            f"This project brings {plural(len(configured.waiting), 'server')} that you have not said you trust: {names}"
        )
    return OK


def _safe(server: McpServer) -> dict[str, Any]:
    """Return a server without the values that may be secret."""
    values = plain(server)
    return values | {key: dict.fromkeys(values[key], "…") for key in ("env", "headers") if key in values}


def _remove(parsed: argparse.Namespace, cwd: Path, machine: Machine) -> int:
    if drop_server(machine.home, parsed.name):
        say(f"Removed: {parsed.name}")
        return OK
    found = machine.find(cwd, parsed.name)
    if isinstance(found, int):
        return found
    return complain(f"{parsed.name} stands in {found.source}; remove it there", FAILED)


def _import(parsed: argparse.Namespace, cwd: Path, machine: Machine) -> int:
    files = [Path(name).expanduser() for name in parsed.files]
    if missing := [str(file) for file in files if not file.is_file()]:
        return complain(f"there is no file {', '.join(missing)}")
    found = read_files(files, project_root(cwd)) if files else find_servers(machine.user_home, cwd)
    for problem in found.problems:
        complain(problem)
    present = {one.name for one in machine.configured(cwd).servers}
    wanted = [one for one in found.servers if not parsed.only or one.name in parsed.only]
    new = [one for one in wanted if one.name not in present]
    for one in wanted:
        kept = "" if one in new else "  left out: you have one of that name"
        say(f"{one.name}  {describe_server(one.server)}  ({one.source}){kept}")
    if new and not parsed.dry_run:
        file = keep_servers(machine.home, ((one.name, one.server) for one in new))
        say(f"Copied {plural(len(new), 'server')} to {file}")
    if not wanted and found.servers:
        say(f"None of them is called {' or '.join(parsed.only)}: {', '.join(one.name for one in found.servers)}")
    elif not wanted:
        say("No MCP servers of other agents were found.")
    return OK


def _test(parsed: argparse.Namespace, cwd: Path, machine: Machine) -> int:
    named = machine.find(cwd, parsed.name)
    return named if isinstance(named, int) else asyncio.run(_try(named, cwd, machine, as_json=parsed.json))


async def _try(named: NamedServer, cwd: Path, machine: Machine, *, as_json: bool) -> int:
    from tenuto.command.mcp_commands import command_name, hint_of
    from tenuto.tool.mcp.hub import Ears, McpHub, describe_state
    from tenuto.tool.mcp.remote import Elicitation, Reply, Surroundings

    async def decline(_asked: Elicitation) -> Reply:
        return Reply(action="decline")

    with tempfile.TemporaryDirectory(prefix="tenuto-mcp-") as folder:
        around = Surroundings(
            cwd=cwd, home=machine.home, environ=machine.environ, logs=Path(folder), records=Path(folder)
        )
        ears = Ears(notify=lambda _text, _level: None, changed=lambda _server: None, ask=decline)
        hub = McpHub([named], around, ears, 0)
        try:
            hub.start()
            server = hub.servers[named.name]
            await server.settled.wait()
        finally:
            await hub.close()
    is_ready, listing = not server.why, server.listing
    if as_json:
        tools = [tool.schema.name for tool in listing.tools]
        prompts = [command_name(server, prompt) for prompt in listing.prompts]
        facts = {"name": named.name, "ready": is_ready, "why": server.why, "version": listing.version}
        say_json({**facts, "tools": tools, "prompts": prompts})
    elif not is_ready:
        return complain(f"{named.name} cannot be used: {server.why}", FAILED)
    else:
        server.state = "ready"
        say(f"{named.name} answers (MCP {listing.version}): {describe_state(server)}")
        for tool in listing.tools:
            say(f"  {tool.schema.name}")
        for prompt in listing.prompts:
            say(f"  {sanitize_line(f'/{command_name(server, prompt)} {hint_of(prompt)}')}")
    return OK if is_ready else FAILED


def _login(parsed: argparse.Namespace, cwd: Path, machine: Machine) -> int:
    named = machine.find(cwd, parsed.name)
    if isinstance(named, int):
        return named
    if not named.server.url:
        return complain(f"{named.name} is a program; only an address has a login")
    from tenuto.tool.mcp.login import log_in
    from tenuto.tool.mcp.remote import innermost

    def open_page(address: str) -> None:
        import webbrowser

        say(f"Open this page and log in: {address}")
        webbrowser.open(address)

    try:
        server = expand(named.server, machine.environ)
        asyncio.run(log_in(machine.home, named.name, server.url, open_page))
    except Exception as error:  # noqa: BLE001 - whatever a stranger's login runs into ends here, as a line
        cause = innermost(error)
        return complain(f"the login at {named.name} failed: {str(cause) or type(cause).__name__}", FAILED)
    say(f"Logged in at {named.name}.")
    return OK


ACTS: dict[str, Callable[[argparse.Namespace, Path, Machine], int]] = {
    "add": _add,
    "list": _list,
    "remove": _remove,
    "login": _login,
    "test": _test,
    "import": _import,
}
