"""`/mcp`, and the prompts of servers as slash commands."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.prompt import reload_system_entry
from tenuto.guard.terminal import sanitize_line, sanitize_output
from tenuto.protocol.entry import ApprovalEntry
from tenuto.protocol.part import ImagePart
from tenuto.text.bounding import cut_tail
from tenuto.text.matching import did_you_mean

if TYPE_CHECKING:
    from tenuto.tool.mcp.hub import McpHub, Server
    from tenuto.tool.mcp.remote import RemotePrompt

RELOAD, RECONNECT, LOG, ALLOW, TOOLS = "reload", "reconnect", "log", "allow", "tools"
ACTS = (TOOLS, LOG, RECONNECT, ALLOW, RELOAD)
LOG_CHARS = 4_000
NONE = "There are no MCP servers here. tenuto mcp add NAME COMMAND… configures one, tenuto mcp import takes them over."
WAIT_TEXT = "Something runs; /mcp reload tells the model of new tools when it has ended."


async def run_mcp(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the servers; show tools or log of one, start it again, allow it, or tell the model of all tools anew."""
    act, _, name = argument.strip().partition(" ")
    if runtime.live.mcp.hub is None:
        await runtime.live.mcp.wait()  # it is not known yet whether there are any
    hub = runtime.live.mcp.hub
    if hub is None:
        return [Say(NONE)]
    if act == RELOAD:
        return await _reload(runtime)
    if act and act not in ACTS:
        act, name = TOOLS, argument.strip()
    if not act:
        return [_list(hub)]
    server = _find(hub, name.strip())
    match act:
        case "log":
            return [Say(await asyncio.to_thread(_log_of, server))]
        case "reconnect":
            await hub.reconnect(server)
            return [Say(_line(server))]
        case "allow":
            return [_allow(runtime, server)]
        case _:
            return [Say(_describe(server))]


def _list(hub: McpHub) -> Choose:
    from tenuto.tool.mcp.hub import describe_state

    rows = [
        Choice(
            f"{TOOLS} {server.name}",
            server.name,
            sanitize_line(describe_state(server)),
            mark={"ready": "✓", "starting": "…"}.get(server.state, "✗"),
            preview=_describe(server),
        )
        for server in hub.servers.values()
    ]
    rows += [Choice(f"{RECONNECT} {server.name}", f"Start {server.name} again") for server in hub.servers.values()]
    rows += [
        Choice(f"{LOG} {server.name}", f"Log of {server.name}")
        for server in hub.servers.values()
        if server.log.exists()
    ]
    rows.append(Choice(RELOAD, "Tell the model of all tools", "as they are now; the next request starts a new cache"))
    return Choose("MCP servers", "mcp", tuple(rows), in_order=True)


def _find(hub: McpHub, name: str) -> Server:
    if not name and len(hub.servers) == 1:
        return next(iter(hub.servers.values()))
    server = hub.servers.get(name)
    if server is None:
        raise UsageError(f"there is no MCP server {name}{did_you_mean(name, hub.servers)}; /mcp lists them")
    return server


async def _reload(runtime: Runtime) -> list[CommandOutcome]:
    """Ask all servers again and write a new `system` entry with the tools that there are."""
    if runtime.executor.tasks.running(runtime.session_id) is not None:
        return [Say(WAIT_TEXT, "warning")]
    await runtime.live.mcp.refresh()
    changed = reload_system_entry(runtime.live)
    runtime.live.publish_usage()
    return [Say("The model is told of the tools as they are now." if changed else "Nothing has changed.")]


def _allow(runtime: Runtime, server: Server) -> Say:
    from tenuto.tool.mcp.naming import server_prefix

    runtime.live.session.append(ApprovalEntry(tool=server_prefix(server.name), pattern="", form="rule"))
    return Say(f"All tools of {server.name} may run in this session without being asked for. /approvals revokes it.")


def _line(server: Server) -> str:
    from tenuto.tool.mcp.hub import describe_state

    return sanitize_line(f"{server.name}: {describe_state(server)}")


def _describe(server: Server) -> str:
    from tenuto.config.mcp.servers import describe_server

    listing = server.listing
    lines = [_line(server), f"  {describe_server(server.named.server)} ({server.named.source})"]
    lines += [
        f"  {tool.schema.name}" + ("  (says it only reads)" if tool.says_it_reads else "") for tool in listing.tools
    ]
    lines += [f"  /{command_name(server, prompt)} {hint_of(prompt)}".rstrip() for prompt in listing.prompts]
    lines += [f"  @{server.name}:{resource.uri}" for resource in listing.resources[:20]]
    if server.log.exists():
        lines.append(f"  log: {server.log}")
    return sanitize_output("\n".join(lines))


def _log_of(server: Server) -> str:
    try:
        text = server.log.read_text("utf-8", "replace")
    except OSError:
        return f"{server.name} has written nothing to its stderr."
    return sanitize_output(f"{server.log}\n{cut_tail(text, LOG_CHARS)}")


# --- prompts ---


def command_name(server: Server, prompt: RemotePrompt) -> str:
    """Return the name of a prompt as a command."""
    from tenuto.tool.mcp.naming import tool_names

    return next(iter(tool_names(server.name, [prompt.name])))


def hint_of(prompt: RemotePrompt) -> str:
    """Return what stands behind the command of a prompt."""
    return " ".join(f"<{name}>" if name in prompt.needed else f"[{name}]" for name in prompt.arguments)


def find_prompt(runtime: Runtime, name: str) -> tuple[Server, RemotePrompt] | None:
    """Return the server and the prompt that a command's name means."""
    hub = runtime.live.mcp.hub
    found = (
        (server, prompt)
        for server in (hub.servers.values() if hub is not None else ())
        for prompt in server.listing.prompts
        if name in (command_name(server, prompt), f"{server.name}:{prompt.name}")
    )
    return next(found, None)


async def run_prompt(runtime: Runtime, name: str, argument: str) -> list[CommandOutcome]:
    """Put a server's prompt, with its arguments, into the editor: the user reads a stranger's words before sending.

    Raises `UsageError`.
    """
    from tenuto.tool.mcp.remote import CallFailed, ConnectionLost
    from tenuto.tool.mcp.results import parts_of

    await runtime.live.mcp.wait()
    found = find_prompt(runtime, name)
    hub = runtime.live.mcp.hub
    if found is None or hub is None:
        raise UsageError(f"there is no prompt /{name}; /mcp lists those of the servers")
    server, prompt = found
    given = read_arguments(prompt, argument)
    try:
        result = await hub.prompt(server, prompt.name, given)
    except (CallFailed, ConnectionLost) as error:
        raise UsageError(f"{server.name} gives no prompt {prompt.name}: {error}") from error
    images, texts = parts_of(result, runtime.live.tool_context)
    return [Edit("\n\n".join(texts), tuple(part for part in images if isinstance(part, ImagePart)))]


def read_arguments(prompt: RemotePrompt, text: str) -> dict[str, str]:
    """Return the arguments by name: words in order, quoted like a shell's; the last one takes the rest.

    `name=value` names one. Raises `UsageError` for one that is missing.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    given = {
        word.partition("=")[0]: word.partition("=")[2]
        for word in words
        if word.partition("=")[0] in prompt.arguments and "=" in word
    }
    plain = [word for word in words if word.partition("=")[0] not in given]
    free = [name for name in prompt.arguments if name not in given]
    for place, name in enumerate(free):
        if plain[place:]:
            given[name] = " ".join(plain[place:]) if place == len(free) - 1 else plain[place]
    missing = [name for name in prompt.needed if name not in given]
    if missing:
        raise UsageError(f"the prompt {prompt.name} needs {', '.join(missing)}: {hint_of(prompt)}")
    return given
