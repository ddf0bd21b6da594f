"""`/mcp`, and the prompts of servers as slash commands."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.prompt import reload_system_entry
from tenuto.guard.foreign import PROMPT_TAG, frame
from tenuto.guard.subject import MCP_PREFIX
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
    hub = await runtime.live.mcp.look()
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
        raise UsageError(f"there is no MCP server {name}{did_you_mean(name, hub.servers) or '; /mcp lists them'}")
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


async def is_prompt(runtime: Runtime, name: str) -> bool:
    """Say whether a command's name means a prompt: `mcp__…` always does, `server:prompt` where there is one."""
    return name.startswith(MCP_PREFIX) or (":" in name and await _find_prompt(runtime, name) is not None)


async def _find_prompt(runtime: Runtime, name: str) -> tuple[McpHub, Server, RemotePrompt] | None:
    """Return the prompt that a command's name means. Its server is waited for: the user has named it."""
    hub = await runtime.live.mcp.look()
    server = _server_of(hub, name)
    if hub is None or server is None:
        return None
    if not server.is_stored:
        await server.settled.wait()
    found = (one for one in server.listing.prompts if name in (command_name(server, one), f"{server.name}:{one.name}"))
    prompt = next(found, None)
    return None if prompt is None else (hub, server, prompt)


def _server_of(hub: McpHub | None, name: str) -> Server | None:
    """Return the server that the name of a prompt's command begins with."""
    from tenuto.tool.mcp.naming import server_of, server_word

    word = server_of(name) or server_word(name.partition(":")[0])
    return next((one for one in hub.servers.values() if server_word(one.name) == word), None) if hub else None


async def run_prompt(runtime: Runtime, name: str, argument: str) -> list[CommandOutcome]:
    """Put a server's prompt, with its arguments, into the editor: the user reads a stranger's words before sending.

    Where there is no editor it is sent as what it is, a stranger's words. Raises `UsageError`.
    """
    from tenuto.tool.mcp.remote import CallFailed, ConnectionLost
    from tenuto.tool.mcp.results import parts_of

    found = await _find_prompt(runtime, name)
    if found is None:
        raise UsageError(_no_prompt(runtime, name))
    hub, server, prompt = found
    given = read_arguments(prompt, argument)
    try:
        result = await hub.prompt(server, prompt.name, given)
    except (CallFailed, ConnectionLost) as error:
        raise UsageError(f"{server.name} gives no prompt {prompt.name}: {error}") from error
    images, texts = parts_of(result, runtime.live.tool_context)
    text = "\n\n".join(texts)
    pictures = tuple(part for part in images if isinstance(part, ImagePart))
    if not text.strip() and not pictures:
        raise UsageError(f"{server.name} gives an empty prompt {prompt.name}")
    head = f"{f'/{name} {argument}'.strip()}\n\nDo what this prompt of the MCP server {server.name} asks for."
    return [Edit(text, pictures, sent=f"{head}\n\n{frame(text, PROMPT_TAG)}")]


def _no_prompt(runtime: Runtime, name: str) -> str:
    """Return that there is no such prompt, and why that may be."""
    from tenuto.tool.mcp.hub import describe_state

    hub = runtime.live.mcp.hub
    if hub is None:
        return f"there is no prompt /{name}: {NONE[0].lower()}{NONE[1:]}"
    server = _server_of(hub, name)
    if server is not None and server.state != "ready" and not server.is_stored:
        return sanitize_line(
            f"there is no prompt /{name}: the server {server.name} is not there ({describe_state(server)})"
        )
    names = [command_name(one, prompt) for one in hub.servers.values() for prompt in one.listing.prompts]
    return f"there is no prompt /{name}{did_you_mean(name, names, '/{}') or '; /mcp lists those of the servers'}"


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
