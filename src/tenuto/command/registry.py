"""The table of slash commands, and the one function that runs a line of them.

The table itself imports no command, so that completion costs nothing; a command's module is imported when it is run.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import EXPECTED_FAILURES, names_nothing

if TYPE_CHECKING:
    from tenuto.core.runtime import Runtime

Runner = Callable[["Runtime", str], Awaitable[list[CommandOutcome]]]


class Command(msgspec.Struct, frozen=True):
    """One command as completion and `/help` show it; `topic` is the module that has its
    `async run_NAME(runtime, argument)`.

    For completion (`command/runtime.py`): `values` are words that may stand behind it; `offers` says that without
    an argument it changes nothing and offers a list of what it takes; `folders`, that it takes a directory.
    `stoppable` says that it may be cancelled at any moment, because nothing of it is left then; `yields`, that a file
    or a skill of its name goes before it.
    """

    name: str
    description: str
    argument_hint: str = ""
    aliases: tuple[str, ...] = ()
    topic: str = ""
    values: tuple[str, ...] = ()
    offers: bool = False
    folders: bool = False
    stoppable: bool = False
    yields: bool = False

    @property
    def completes(self) -> bool:
        """Whether there is anything to complete behind it."""
        return bool(self.values or self.offers or self.folders)


COMMANDS: tuple[Command, ...] = (
    Command("help", "what you can type here", aliases=("?",), topic="screen_commands"),
    Command(
        "model", "show or change the model", "[provider/name[:effort] | forget]", offers=True, topic="model_commands"
    ),
    Command(
        "effort",
        "show or change how hard the model thinks",
        "[LEVEL|default]",
        offers=True,
        topic="model_commands",
    ),
    Command("mode", "show or change the approval mode", "[ask|edits|auto|plan]", offers=True, topic="model_commands"),
    Command(
        "approvals",
        "rules: what is allowed, asked about or denied; add and revoke",
        "[add RULE | remove N]",
        aliases=("permissions",),
        offers=True,
        topic="approval_commands",
    ),
    Command(
        "add-dir",
        "one more directory to work in, for this session",
        "[DIR | remove DIR]",
        folders=True,
        topic="approval_commands",
    ),
    Command(
        "new", "start a new session; this one stays and /resume finds it", aliases=("clear",), topic="session_commands"
    ),
    Command(
        "resume",
        "open an earlier session",
        "[id|WORDS]",
        aliases=("sessions", "continue"),
        offers=True,
        topic="session_commands",
    ),
    Command(
        "move",
        "go on with this session in another directory: its project was renamed or moved",
        "DIR",
        folders=True,
        topic="session_commands",
    ),
    Command("fork", "copy this session into a new one and go on there", topic="session_commands"),
    Command(
        "compact",
        "summarise the older part now, look at that first, choose where, or undo it",
        "[focus|--preview|up-to|from|undo|redo]",
        values=("--preview", "up-to", "from", "undo", "redo"),
        topic="compaction_commands",
    ),
    Command(
        "tree",
        "the session as a tree; go on from any entry of it",
        "[SEQ [summary [instructions]]]",
        topic="tree_commands",
    ),
    Command(
        "rewind",
        "back to an earlier message: the conversation, the files, or both",
        "[SEQ both|talk|files]",
        topic="tree_commands",
    ),
    Command("label", "name a place in the session, for the tree", "[#SEQ] [TEXT]", topic="tree_commands"),
    Command("undo", "take the last turn's edits of files back; again: one turn further", topic="tree_commands"),
    Command("context", "what fills the model's window", topic="compaction_commands"),
    Command("cost", "tokens and money used by this session", aliases=("usage",), topic="model_commands"),
    Command(
        "recall",
        "find what was said or done, however long ago",
        "WORDS or /REGEX/ or #SEQ-SEQ",
        stoppable=True,
        topic="search_commands",
    ),
    Command(
        "search",
        "find what was said in any session of this project, and open it there",
        "WORDS or /REGEX/",
        stoppable=True,
        topic="search_commands",
    ),
    Command(
        "pin",
        "keep a text, or a message, word for word through every compaction",
        "[TEXT|#SEQ]",
        topic="project_commands",
    ),
    Command("pins", "what is pinned", "[remove N]", topic="project_commands"),
    Command("unpin", "take a pin back", "[number]", offers=True, topic="project_commands"),
    Command(
        "copy",
        "the last answer, code from it, or everything, on the clipboard",
        "[N|code [N]|all]",
        values=("code", "all"),
        stoppable=True,
        topic="file_commands",
    ),
    Command("transcript", "the whole conversation in your pager", topic="file_commands"),
    Command(
        "mouse",
        "what the mouse is for: all, the wheel alone, or nothing",
        "[full|wheel|off]",
        values=("full", "wheel", "off"),
        topic="screen_commands",
    ),
    Command("title", "name this session", "TEXT", aliases=("rename",), topic="session_commands"),
    Command(
        "export",
        "this session as a file: HTML, Markdown, JSON lines or a trajectory",
        "[html|md|jsonl|atif] [path] [--force]",
        values=("html", "md", "jsonl", "atif", "--force"),
        folders=True,
        stoppable=True,
        topic="file_commands",
    ),
    Command(
        "theme",
        "the colours of the screen",
        "[NAME]",
        values=("auto", "dark", "light", "ansi", "contrast", "contrast-dark", "contrast-light"),
        topic="screen_commands",
    ),
    Command(
        "queue",
        "what waits to be sent; change it",
        "[edit|delete|steer|up|down N]",
        values=("edit", "delete", "steer", "up", "down"),
        topic="work_commands",
    ),
    Command(
        "jobs",
        "what runs in the background: read its output, end it",
        "[N|end N]",
        aliases=("tasks", "bashes"),
        values=("end",),
        topic="work_commands",
    ),
    Command(
        "agents",
        "the sub-agents: read what one did, end one; which kinds there are",
        "[ID|end ID|kinds]",
        values=("end", "kinds"),
        topic="work_commands",
    ),
    Command(
        "diff",
        "what has changed in the work tree since the last commit, new files too",
        "[PATH]",
        folders=True,
        topic="file_commands",
    ),
    Command(
        "review",
        "have the agent look over what is not committed, a branch or a commit; it changes nothing",
        "[BRANCH|COMMIT|RANGE|WORDS]",
        topic="review_command",
        yields=True,
    ),
    Command(
        "status",
        "where this session stands: model, directory, context, instructions, where it is saved",
        topic="model_commands",
    ),
    Command(
        "memory",
        "the instruction files that hold here; change them in your editor",
        offers=True,
        topic="project_commands",
    ),
    Command(
        "remember",
        "add a line to the instructions of this project, or to yours; # TEXT in the prompt does the same",
        "TEXT",
        topic="project_commands",
    ),
    Command(
        "init",
        "have the model write the project's AGENTS.md, or update the existing one",
        "[INSTRUCTIONS]",
        topic="project_commands",
    ),
    Command(
        "trust",
        "what this project brings that needs your trust: settings, extensions, hooks, MCP servers, skills, commands",
        "[allow|deny|forget [ID|all]]",
        values=("allow", "deny", "forget"),
        offers=True,
        topic="trust_commands",
    ),
    Command(
        "hooks", "the commands that are asked at events: where they stand, what they did last", topic="hook_commands"
    ),
    Command(
        "extensions",
        "the extensions that are loaded, what each registers, and what is wrong with others",
        topic="extension_commands",
    ),
    Command(
        "skills",
        "the skills that are here; open one in your editor, or unload one",
        "[NAME | unload NAME]",
        offers=True,
        topic="own_commands",
    ),
    Command(
        "plugins",
        "the plugins that you added: what each brings, and what is left out",
        aliases=("plugin",),
        topic="plugin_commands",
    ),
    Command(
        "mcp",
        "MCP servers: what they have, their logs; start one again, allow its tools, tell the model of new ones",
        "[NAME | log NAME | reconnect NAME | allow NAME | reload]",
        values=("reload",),
        offers=True,
        topic="mcp_commands",
    ),
    Command("keys", "list or customise key bindings", "[edit]", values=("edit",), topic="screen_commands"),
    Command(
        "reload",
        "read instruction files, skills, tools, extensions, hooks and your keys again",
        topic="project_commands",
    ),
    Command("exit", "leave; the session stays", aliases=("quit",), topic="session_commands"),
)


def built_in_names() -> frozenset[str]:
    """Return all names and aliases that no command file can have."""
    return frozenset(name for command in COMMANDS if not command.yields for name in (command.name, *command.aliases))


def find_command(name: str) -> Command | None:
    """Return the command of that name or alias, without its slash."""
    return next((command for command in COMMANDS if name == command.name or name in command.aliases), None)


def command_names() -> frozenset[str]:
    """Return the names and aliases of all of them."""
    return frozenset(name for command in COMMANDS for name in (command.name, *command.aliases))


def runner_of(command: Command) -> Runner:
    """Return the function that runs a command; its module is imported now."""
    runner: Runner = getattr(
        importlib.import_module(f"tenuto.command.{command.topic}"), f"run_{command.name.replace('-', '_')}"
    )
    return runner


async def run_command(runtime: Runtime, line: str) -> list[CommandOutcome]:
    """Run `/name argument` and return what the front-end is to do. An unknown name is answered, never raised."""
    own = importlib.import_module("tenuto.command.own_commands")  # it knows this table
    run_other: Callable[[Runtime, str, str], Awaitable[list[CommandOutcome]]] = own.run_other
    tell_shadowed: Callable[[Runtime, str], None] = own.tell_shadowed
    name, *rest = line.strip().removeprefix("/").split(maxsplit=1) or [""]
    argument = rest[0] if rest else ""
    command = find_command(name)
    if command is not None and command.yields and own.find_own(runtime.live, name) is not None:
        command = None
    if command is None:
        return await _answer(run_other(runtime, name, argument))
    tell_shadowed(runtime, command.name)
    return await _answer(runner_of(command)(runtime, argument))


async def _answer(running: Awaitable[list[CommandOutcome]]) -> list[CommandOutcome]:
    """Return what a command asks for; what it could not do is said."""
    try:
        return await running
    except EXPECTED_FAILURES as error:
        return [Say(str(error), "warning" if names_nothing(error) else "error")]
