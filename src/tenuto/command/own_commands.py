"""Commands that users and projects bring: of extensions, skills (`/skill:NAME`, `/NAME`) and command files (`/NAME`,
`/folder:NAME`), prompts of MCP servers (`/mcp__SERVER__PROMPT`, `/SERVER:PROMPT`; more in `mcp_commands`).

A built-in command of a name goes before all of them, then one of an extension, a skill, a file, a prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.command.mcp_commands import command_name, hint_of, is_prompt, run_prompt
from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, EditFile, Say
from tenuto.command.registry import COMMANDS, Command, find_command
from tenuto.config.commands import CommandFile, find_commands
from tenuto.config.skills import Skill, Skills
from tenuto.core.agent.command_text import NotAllowedError, expand, takes_arguments
from tenuto.core.runtime import Runtime
from tenuto.core.state.live import READ_ONLY, LiveSession, SessionServices
from tenuto.core.state.skills import describe_loaded, load_skill, unload_skill
from tenuto.core.state.terms import terms_of
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.text.matching import did_you_mean
from tenuto.text.writable import clean_text

if TYPE_CHECKING:
    from tenuto.extension.host import ExtensionHost
    from tenuto.extension.registered import OwnCommand

SKILL = "skill:"
"""Stands before the name of a skill where another command has that name."""
TOPIC = "own_commands"
SAID_CHARS = 20_000
"""Of what a command of an extension says."""


def own_commands(services: SessionServices) -> tuple[Command, ...]:
    """Return what can be typed besides the built-in commands, by name, as completion and `/help` show it."""
    host = services.extensions.loaded
    found = {own.name: _of_extension(own) for own in (host.commands if host is not None else ())}
    skills, files = services.skills(), find_commands(services.where)
    for skill in skills.usable:
        if not skill.is_background:
            built_in = find_command(skill.name)
            name = f"{SKILL}{skill.name}" if built_in is not None and not built_in.yields else skill.name
            found.setdefault(name, Command(name, skill.description, skill.argument_hint, topic=TOPIC))
    for file in files.usable:
        built_in = find_command(file.name)
        if built_in is None or built_in.yields:
            found.setdefault(file.name, Command(file.name, file.description, file.argument_hint, topic=TOPIC))
    for command in prompt_commands(services):
        found.setdefault(command.name, command)
    return tuple(sorted(found.values(), key=lambda command: command.name))


def prompt_commands(services: SessionServices) -> tuple[Command, ...]:
    """Return the prompts of MCP servers as commands."""
    hub = services.mcp.hub
    if hub is None:
        return ()
    return tuple(
        Command(
            command_name(server, prompt),
            sanitize_line(prompt.description or f"the prompt {prompt.name} of {server.name}"),
            sanitize_line(hint_of(prompt)),
            topic=TOPIC,
            stoppable=True,
        )
        for server in tuple(hub.servers.values())
        for prompt in server.listing.prompts
    )


def _of_extension(own: OwnCommand) -> Command:
    return Command(
        *(own.name, own.description, own.argument_hint),
        topic=TOPIC,
        offers=own.complete is not None,
        stoppable=True,
    )


def find_extension_command(services: SessionServices, name: str) -> OwnCommand | None:
    """Return the command of a loaded extension."""
    host = services.extensions.loaded
    return next((own for own in (host.commands if host is not None else ()) if own.name == name), None)


async def is_own(runtime: Runtime, name: str) -> bool:
    """Say whether `/name` is what users, projects or MCP servers bring. What is still starting is waited for."""
    live = runtime.live
    await live.extensions.host()
    is_there = find_extension_command(live, name) is not None or find_own(live, name) is not None
    return is_there or _waits_for_trust(live, name) or await is_prompt(runtime, name)


def _waits_for_trust(services: SessionServices, name: str) -> bool:
    return name.removeprefix(SKILL) in {skill.name for skill in services.skills().waiting}


def find_own(services: SessionServices, name: str) -> Skill | CommandFile | None:
    """Return what `/name` is, if users or projects bring it."""
    skills = services.skills()
    skill = skills.find(name.removeprefix(SKILL))
    if skill is not None and not skill.is_background:
        return skill
    return find_commands(services.where).find(name)


def tell_shadowed(runtime: Runtime, name: str) -> None:
    """Say once that a built-in command goes before what users or projects bring under its name."""
    services = runtime.live
    own = find_own(services, name)
    if own is not None:
        way = f"; /{SKILL}{name} loads that skill" if isinstance(own, Skill) else "; rename the file to use it"
        services.notify_once(f"shadowed /{name}", f"/{name} is the built-in command, and not {own.path}{way}")


async def run_other(runtime: Runtime, name: str, argument: str) -> list[CommandOutcome]:
    """Run, or send, what `/name` stands for; say what there is where nobody brings it."""
    host = await runtime.live.extensions.host()
    if host is not None and find_extension_command(runtime.live, name) is not None:
        return await _run_of_extension(runtime, host, name, argument)
    match find_own(runtime.live, name):
        case None if await is_prompt(runtime, name):
            return await run_prompt(runtime, name, argument)
        case None:
            if _waits_for_trust(runtime.live, name):
                return [Say(f"/{name} is a skill with scripts that you do not trust yet: /trust shows it", "warning")]
            names = [known for entry in COMMANDS for known in (entry.name, *entry.aliases)]
            names += [entry.name for entry in own_commands(runtime.live)]
            hint = did_you_mean(name, names, "/{}") or "; /help lists them"
            return [Say(f"There is no command /{name}{hint}", "warning")]
        case Skill() as skill:
            return await _run_skill(runtime, name, skill, argument)
        case CommandFile() as file:
            return await _run_file(runtime, file, argument)


async def _run_of_extension(runtime: Runtime, host: ExtensionHost, name: str, argument: str) -> list[CommandOutcome]:
    """Run a command of an extension; show what it says, send what it wants sent."""
    from tenuto.extension.host import CallError

    try:
        said = await host.run_command(name, argument)
    except CallError as error:
        return [Say(str(error), "warning")]
    if isinstance(said, str):
        return [Say(shorten(clean_text(said), SAID_CHARS))] if said.strip() else []
    await runtime.submit_prompt((TextPart(text=clean_text(said.text)),), origin="extension")
    return []


async def _run_skill(runtime: Runtime, name: str, skill: Skill, argument: str) -> list[CommandOutcome]:
    """Load a skill, and have the model follow it."""
    live = runtime.live
    if not live.session.is_read_only:
        load_skill(live, skill)
    places = (
        " Where its text has $ARGUMENTS or $1, these are meant." if argument and takes_arguments(skill.body) else ""
    )
    text = f"{f'/{name} {argument}'.strip()}\n\nFollow the skill {skill.name}, which is loaded.{places}"
    await runtime.submit_prompt((TextPart(text=text),), origin="skill", terms=terms_of(live, skill))
    return []


async def _run_file(runtime: Runtime, file: CommandFile, argument: str) -> list[CommandOutcome]:
    """Send a file's text; one that cannot be sent, and a command in it that is not allowed, are named."""
    live = runtime.live
    if file.waits:
        return [Say(f"/{file.name} runs commands that you do not trust yet: /trust shows them", "warning")]
    for fault in file.faults:
        if fault.fatal:
            return [Say(f"/{file.name} cannot be used: {file.path}, line {fault.line}: {fault.text}", "warning")]
        live.notify_once(f"{file.path}:{fault.line}", f"{file.path}, line {fault.line}: {fault.text}", "warning")
    terms = terms_of(live, file)
    if live.session.is_read_only:
        text = file.body  # it is handed back, and nothing is run for it
    else:
        try:
            text = await expand(live, file, argument, terms)
        except NotAllowedError as error:
            return [Say(str(error), "warning"), Edit(f"/{file.name} {argument}".strip())]
    await runtime.submit_prompt((TextPart(text=text),), origin="command", terms=terms)
    return []


async def run_skills(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the skills, with those that are loaded marked, and what is wrong; open the file of the one that is named.

    `unload NAME` lets a loaded one hold no longer.
    """
    live = runtime.live
    skills = live.skills()
    word, _, rest = argument.partition(" ")
    if word == "unload":
        return [_unload(live, rest.strip())]
    if argument:
        skill = skills.find(argument)
        return [EditFile(skill.path) if skill is not None else Say(f"There is no skill {argument}", "warning")]
    said: list[CommandOutcome] = [Say(line, "warning") for line in skills.lines()]
    said += [Say(f"{skill.path} has scripts and waits for your trust: /trust", "warning") for skill in skills.waiting]
    if not skills.usable:
        return [*said, Say("No skills. Put one into skills/NAME/SKILL.md of Tenuto's home, or .tenuto/skills here.")]
    loaded = {entry.name for entry in live.session.state.skills}
    rows = tuple(
        Choice(skill.name, skill.name, " · ".join(_details(skill, skills, loaded)), preview=skill.description)
        for skill in sorted(skills.usable, key=lambda one: one.name)
    )
    room = describe_loaded(live)
    ways = f"Enter: editor; /NAME uses one{'; /skills unload NAME' if room else ''}"
    return [*said, Choose(f"Skills ({ways}{f'; {room}' if room else ''})", "skills", rows)]


def _unload(live: LiveSession, name: str) -> Say:
    names = [entry.name for entry in live.session.state.skills]
    if live.session.is_read_only:
        return Say(READ_ONLY, "warning")
    if unload_skill(live, name):
        return Say(f"Unloaded {name}: the model is told, and the next compaction leaves its text out.")
    there = f"; loaded: {', '.join(names)}" if names else "; none is loaded"
    return Say(f"No skill {name} is loaded{there}" if name else f"Which skill?{there[1:].capitalize()}", "warning")


def _details(skill: Skill, skills: Skills, loaded: set[str]) -> list[str]:
    """Return what is said of a skill beside its name."""
    details = [f"{skill.origin}", skill.path]
    if skill.name in loaded:
        details.insert(0, "loaded")
    if skill.is_hidden:
        details.append("not told to the model")
    if skill.is_withheld:
        details.append("what it asks for a turn waits for your trust")
    if skill.faults:
        details.append(f"{plural(len(skill.faults), 'fault')}: tenuto skills check")
    if any(file.shadowed_by == skill.path for file in skills.files):
        details.append("goes before another of this name")
    return details
