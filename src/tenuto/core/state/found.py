"""Everything that users, projects and plugins bring, as rows: what it is, from where, and why what is left out is.

The one answer that `tenuto doctor`, `/init` and `tenuto plugins` give. Each kind has a finder; all of them ask the same
readers as a session does. Nothing is run and nothing is changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tenuto.config.agents import read_agents
from tenuto.config.commands import find_commands
from tenuto.config.instructions import read_instructions
from tenuto.config.mcp.files import read_configured
from tenuto.config.mcp.servers import NamedServer, ServerError, describe_server, expand
from tenuto.config.places import Origin, Where, user_home
from tenuto.config.plugins.installed import FOLDER, all_hook_files, read_added
from tenuto.config.plugins.manifest import PLUGIN_VARIABLES
from tenuto.config.plugins.marketplace import GITHUB, SHORT
from tenuto.config.project import EXTENSIONS, RefusedFileError, find_upwards, project_root, read_text
from tenuto.config.settings import Settings
from tenuto.config.skills import find_skills
from tenuto.config.sources import ENVIRONMENT, read_sources
from tenuto.core.state.trust import trusted_extensions
from tenuto.extension.finding import find_extensions, list_files
from tenuto.extension.hooks.files import read_hook_files
from tenuto.extension.hooks.trusting import STATES, HookTrust
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.text.json_access import as_dict
from tenuto.tool.run.registry import builtin_schemas

FoundKind = Literal[
    "instructions", "settings", "servers", "skills", "commands", "hooks", "agents", "plugins", "extensions"
]
OTHER_INSTRUCTIONS = (
    "GEMINI.md",
    "AGENT.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    ".junie/guidelines.md",
    "CONVENTIONS.md",
)
"""Instruction files of other products that are not read here, at a project's root."""
_OTHER_FOLDERS = (".cursor/rules", ".windsurf/rules", ".clinerules", ".github/instructions")
_PRODUCTS = {
    ".claude": "Claude Code",
    ".claude-plugin": "Claude Code",
    ".codex": "Codex",
    ".pi": "Pi",
    ".agents": "shared",
    ".cursor": "Cursor",
    ".cursorrules": "Cursor",
    ".windsurf": "Windsurf",
    ".windsurfrules": "Windsurf",
    ".clinerules": "Cline",
    ".github": "Copilot",
    ".junie": "Junie",
    "CLAUDE.md": "Claude Code",
    "CLAUDE.local.md": "Claude Code",
    "GEMINI.md": "Gemini CLI",
    "CONVENTIONS.md": "Aider",
    "AGENTS.md": "shared",
    "AGENT.md": "shared",
    ".mcp.json": "shared",
}
"""Names in a path by the product whose place that is."""
_SHOWN = 100
"""Characters of what one thing does."""
_MOST_RULES = 50
_PLUGIN = "plugin "
_PROBLEM = re.compile(r"(/[^:\0]*?\.[A-Za-z]{1,6}|/[^:\0]*?)(?::| is | cannot | has ).*", re.DOTALL)
TRUST = "tenuto trust shows and allows it"
_REST = "nothing; the rest is used"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is there. `left_out` says why it is not used, empty where it is; `do` what to do about that.

    `product` is whose place it stands in, or `plugin NAME`; `origin` who brought it.
    `in_part`: only something of it is left out, and the rest has a row of its own.
    """

    kind: FoundKind
    name: str
    file: str
    product: str
    origin: Origin
    does: str = ""
    left_out: str = ""
    do: str = ""
    is_fault: bool = False
    in_part: bool = False

    @property
    def is_used(self) -> bool:
        """Whether it counts."""
        return not self.left_out


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """Where is looked: Tenuto's home, the working directory, the environment.

    `built_in` are the names of commands that go before everybody else's.
    """

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    settings: Settings
    built_in: frozenset[str] = frozenset()

    @property
    def where(self) -> Where:
        """The same for those who look for skills and commands."""
        return Where(self.home, self.cwd, user_home(self.environ))

    def row(
        self,
        kind: FoundKind,
        name: str,
        file: object,
        *,
        does: str = "",
        left_out: str = "",
        do: str = "",
        is_fault: bool = False,
        in_part: bool = False,
    ) -> Found:
        """Return a row; who brought it and whose place it is follow from the file."""
        path = Path(str(file))
        return Found(
            kind=kind,
            name=name,
            file=str(file),
            product=product_of(path, self.home),
            origin=self._origin(path),
            does=does,
            left_out=left_out,
            do=do,
            is_fault=is_fault,
            in_part=in_part,
        )

    def problem(
        self,
        kind: FoundKind,
        line: str,
        file: str = "",
        *,
        do: str = "",
        is_fault: bool = False,
        used: frozenset[str] = frozenset(),
    ) -> Found:
        """Return a row for what a reader says cannot be used: a line that begins with a path, and why behind it.

        `used` are the files that count, but for what the line says.
        """
        match = _PROBLEM.fullmatch(line)
        file = file or (match[1] if match else "")
        left = line.removeprefix(file).removeprefix(":").strip() if file else line
        part = file in used
        do = _REST if part and not do else do
        return self.row(kind, Path(file).name or kind, file, left_out=left, do=do, is_fault=is_fault, in_part=part)

    def _origin(self, path: Path) -> Origin:
        if product_of(path, self.home).startswith(_PLUGIN):
            return "plugin"
        is_ours = path.is_relative_to(project_root(self.cwd)) and not path.is_relative_to(self.home)
        return "project" if is_ours else "user"


def product_of(path: Path, home: Path) -> str:
    """Return the product whose place a file stands in, or the plugin that it belongs to."""
    if path.is_relative_to(home / FOLDER) and path.parent != home / FOLDER and path != home / FOLDER:
        return f"{_PLUGIN}{path.relative_to(home / FOLDER).parts[0]}"
    if path.is_relative_to(home):
        return "Tenuto"
    return next((_PRODUCTS[part] for part in reversed(path.parts) if part in _PRODUCTS), "Tenuto")


def find_everything(around: Around, kinds: Sequence[FoundKind] = ()) -> list[Found]:
    """Return all rows, of all kinds or of these."""
    return [row for kind, find in FINDERS.items() if not kinds or kind in kinds for row in find(around)]


def _instructions(around: Around) -> Iterator[Found]:
    found = read_instructions(around.home, around.cwd, around.settings.instructions.also)
    read: set[str] = set()
    for file in (*found.files, *found.on_touch):
        read.add(os.path.realpath(file.path))
        cut = ", cut" if file.truncated else ""
        only = f", for {', '.join(file.patterns)}" if file.patterns else ""
        does = f"{len(file.text):,} characters{cut}{only}"
        yield around.row("instructions", Path(file.path).name, file.path, does=does)
    for problem in found.problems:
        do = "change or remove it; the model does not get it"
        yield around.problem("instructions", problem, do=do)
    for path in other_instructions(around.cwd):
        if os.path.realpath(path) not in read:
            do = "/init carries what it says over; or name it in instructions.also"
            yield around.row("instructions", path.name, path, left_out="another product's, not read here", do=do)


def other_instructions(cwd: Path) -> list[Path]:
    """Return the instruction files of other products in the project, which are not read."""
    root = project_root(cwd)
    found = [root / name for name in OTHER_INSTRUCTIONS if (root / name).is_file()]
    for name in _OTHER_FOLDERS:
        if (root / name).is_dir():
            found += sorted(path for path in (root / name).rglob("*") if path.suffix in (".md", ".mdc"))[:_MOST_RULES]
    return found


def _settings(around: Around) -> Iterator[Found]:
    for source in read_sources(around.home, around.cwd, around.environ):
        if source.values and source.name != ENVIRONMENT:
            yield around.row("settings", Path(source.name).name, source.name, does=plural(len(source.values), "key"))
        for problem in source.problems:
            yield around.problem("settings", problem, source.name, is_fault=not source.is_project)


def _servers(around: Around) -> Iterator[Found]:
    if not around.settings.mcp.enabled:
        return
    configured = read_configured(around.home, around.cwd, around.settings)
    for one in configured.servers:
        fault = server_fault(one, around.environ)
        yield _server(around, one, left_out=fault, do="correct it there", is_fault=bool(fault))
    for one in configured.waiting:
        yield _server(around, one, left_out="you have not trusted it", do=TRUST)
    for problem in configured.problems:
        yield around.problem("servers", problem, do="correct the entry", is_fault=True)


def _server(around: Around, one: NamedServer, *, left_out: str, do: str, is_fault: bool = False) -> Found:
    env = {name: value for name, value in one.server.env.items() if name not in PLUGIN_VARIABLES}
    does = _as_written(around, describe_server(msgspec.structs.replace(one.server, env=env)))
    does = shorten(does, _SHOWN)
    return around.row("servers", one.name, one.source, does=does, left_out=left_out, do=do, is_fault=is_fault)


def server_fault(one: NamedServer, environ: Mapping[str, str]) -> str:
    """Return why a server cannot be started, as far as can be seen without starting it."""
    import shutil

    try:
        server = expand(one.server, environ)
    except ServerError as error:
        return str(error)
    if server.command and shutil.which(server.command, path=environ.get("PATH")) is None:
        return f"there is no program {server.command}"
    return ""


def _skills(around: Around) -> Iterator[Found]:
    found = find_skills(around.where)
    for file in found.files:
        if file.skill is None:
            fault = next((fault for fault in file.faults if fault.fatal), file.faults[0])
            left, do = f"line {fault.line}: {fault.text}", "tenuto skills check names every fault"
            yield around.row("skills", Path(file.path).parent.name, file.path, left_out=left, do=do)
            continue
        left = f"{file.shadowed_by} has the same name" if file.shadowed_by else ""
        left = "it has scripts and is not trusted" if file.waits else left
        does = shorten(file.skill.description, _SHOWN)
        do = TRUST if file.waits else ""
        yield around.row("skills", file.skill.name, file.path, does=does, left_out=left, do=do)
    yield from (around.problem("skills", line) for line in found.problems)


def _as_written(around: Around, text: str) -> str:
    """Return a text with the folder of a plugin as the plugin's files name it: where it lies says nothing."""
    return re.sub(rf"{re.escape(str(around.home / FOLDER))}/[\w.-]+", "${CLAUDE_PLUGIN_ROOT}", text)


def _commands(around: Around) -> Iterator[Found]:
    found = find_commands(around.where)
    for file in found.files:
        fault = next((fault for fault in file.faults if fault.fatal), None)
        left = f"{file.shadowed_by} has the same name" if file.shadowed_by else ""
        left = "it runs commands and is not trusted" if file.waits else left
        left = f"/{file.name} is a built-in command" if file.name in around.built_in else left
        left = f"line {fault.line}: {fault.text}" if fault is not None else left
        do = TRUST if file.waits else "tenuto skills check names every fault" if fault is not None else ""
        runs = f"; runs {shorten(_as_written(around, '; '.join(file.shell)), _SHOWN)}" if file.shell else ""
        does = f"{shorten(file.description, _SHOWN)}{runs}"
        yield around.row("commands", f"/{file.name}", file.path, does=does, left_out=left, do=do)
    yield from (around.problem("commands", line) for line in found.problems)


def _hooks(around: Around) -> Iterator[Found]:
    settings = around.settings.hooks
    read = read_hook_files(all_hook_files(around.home, around.cwd, around.environ, shared=settings.shared))
    verdicts = HookTrust(around.cwd, around.home).verdicts(read.commands)
    for command in read.commands:
        left = "hooks are switched off (hooks.enabled)" if not settings.enabled else ""
        left = left or STATES[verdicts[command]].removeprefix("not run: ")
        matcher = f" {command.matcher}" if command.matcher not in ("", "*") else ""
        does = shorten(" ".join(command.command.split()), _SHOWN)
        do = TRUST if left and verdicts[command] != "trusted" else ""
        yield around.row("hooks", f"{command.event}{matcher}", command.file.path, does=does, left_out=left, do=do)
    for problem in read.problems:
        yield around.problem("hooks", problem, do="change it, or leave it out")


def _agents(around: Around) -> Iterator[Found]:
    own = user_home(around.environ) or around.home
    found = read_agents(around.home, own, around.cwd, tuple(schema.name for schema in builtin_schemas()))
    for kind in found.own:
        yield around.row("agents", kind.name, kind.source, does=shorten(kind.description, _SHOWN))
    used = frozenset(kind.source for kind in found.own)
    yield from (around.problem("agents", line, used=used) for line in found.problems)


def _plugins(around: Around) -> Iterator[Found]:
    found = read_added(around.home)
    if found.problem:
        yield around.problem("plugins", found.problem, is_fault=True)
    for one in found.added:
        version = one.plugin.version if one.plugin is not None else ""
        does = f"{version + ', ' if version else ''}from {one.record.source}"
        yield around.row("plugins", one.name, one.root, does=does, left_out=one.problem, do="")
        for problem in one.plugin.problems if one.plugin is not None else ():
            yield around.row("plugins", one.name, one.root, left_out=problem, do=_REST, in_part=True)
    for folder in _plugin_folders(around):
        if found.find(folder.name) is None:
            left, do = "only plugins that you added are used", f"tenuto plugins add {folder}"
            yield around.row("plugins", folder.name, folder, left_out=left, do=do)
    for name, source, file in _named_plugins(around):
        if found.find(name) is None:
            do = f"tenuto plugins add {source}#{name}" if source else "tenuto plugins add ADDRESS"
            yield around.row("plugins", name, file, left_out="only plugins that you added are used", do=do)


def _plugin_folders(around: Around) -> Iterator[Path]:
    """Yield the plugins that lie in folders of the project and of the user's home."""
    homes = [project_root(around.cwd), *([own] if (own := user_home(around.environ)) is not None else [])]
    for place in dict.fromkeys(homes):
        for name in (".tenuto/plugins", ".agents/plugins"):
            folder = place / name
            if folder.is_dir() and folder != around.home / FOLDER:
                yield from sorted(path for path in folder.iterdir() if path.is_dir() and path.name[:1] != ".")[:100]


def _named_plugins(around: Around) -> Iterator[tuple[str, str, Path]]:
    """Yield name, address and file of each plugin that Claude Code's settings switch on; the address may be unknown."""
    root, own = project_root(around.cwd), user_home(around.environ)
    files = [root / ".claude" / name for name in ("settings.json", "settings.local.json")]
    files += [own / ".claude" / "settings.json"] if own is not None else []
    for file in dict.fromkeys(files):
        try:
            values: object = msgspec.json.decode(read_text(file))
        except (OSError, RefusedFileError, msgspec.DecodeError, RecursionError):
            continue  # the hooks of the same file say so
        given = as_dict(values)
        markets = as_dict(given.get("extraKnownMarketplaces"))
        for name, is_on in as_dict(given.get("enabledPlugins")).items():
            plugin, _, market = name.partition("@")
            if is_on:
                yield plugin, _address(as_dict(as_dict(markets.get(market)).get("source")), market), file


def _address(source: Mapping[str, Any], market: str) -> str:
    repository = source.get("repo")
    if isinstance(repository, str) and SHORT.fullmatch(repository):
        return f"{GITHUB}{repository}"
    written = source.get("url") or source.get("path")
    if isinstance(written, str):
        return written
    return _KNOWN_MARKETPLACES.get(market, "")


_KNOWN_MARKETPLACES = {
    "claude-plugins-official": f"{GITHUB}anthropics/claude-plugins-official",
    "claude-code-plugins": f"{GITHUB}anthropics/claude-code",
    "anthropic-agent-skills": f"{GITHUB}anthropics/skills",
}
"""Marketplaces that Claude Code knows without their address."""


def _extensions(around: Around) -> Iterator[Found]:
    listed, problems = list_extensions(around.home, around.cwd, around.settings)
    for one in listed:
        left = "" if one.state == "used" else "you have not trusted it" if one.state == WAITING else one.state
        yield around.row("extensions", one.name, one.place, left_out=left, do=TRUST if one.state == WAITING else "")
    yield from (around.problem("extensions", line, do="correct the setting, or rename one") for line in problems)


WAITING = "not trusted, so not run: tenuto trust"
"""The state of a project's extension that waits for the user."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """An extension of a list. `origin` is user, project or package; `state` says whether it runs here."""

    name: str
    place: str
    origin: str
    state: str


def list_extensions(home: Path, cwd: Path, settings: Settings) -> tuple[list[Listed], tuple[str, ...]]:
    """Return all extensions that there are for a directory, and a line for each thing that is wrong. None is run."""
    own = settings.extensions
    everything = find_extensions(home, msgspec.structs.replace(own, disabled=()))
    off = "off (extensions.enabled)"
    rows = [
        Listed(
            name=source.name,
            place=source.place,
            origin="user" if Path(source.place).is_absolute() else "package",
            state=off if not own.enabled else "disabled" if source.name in own.disabled else "used",
        )
        for source in everything.sources
    ]
    folder = find_upwards(cwd, home, EXTENSIONS)
    if folder is not None:
        trusted, taken = trusted_extensions(cwd, home), {row.name for row in rows}
        for path in list_files(folder):
            state = "used" if path in trusted else WAITING
            state = "not used: another has the same name" if path.stem in taken else state
            state = "disabled" if path.stem in own.disabled else state
            rows.append(Listed(name=path.stem, place=str(path), origin="project", state=state if own.enabled else off))
    return rows, everything.problems


FINDERS: dict[FoundKind, Callable[[Around], Iterable[Found]]] = {
    "instructions": _instructions,
    "settings": _settings,
    "servers": _servers,
    "skills": _skills,
    "commands": _commands,
    "hooks": _hooks,
    "agents": _agents,
    "plugins": _plugins,
    "extensions": _extensions,
}
"""A kind of thing that can be brought is one function here."""


def in_plugin(rows: Iterable[Found], name: str) -> list[Found]:
    """Return the rows of what a plugin brings."""
    return [row for row in rows if row.product == f"{_PLUGIN}{name}"]


def describe_found(row: Found) -> str:
    """Return a row on one line, without its file."""
    one = {"servers": "server", "hooks": "hook", "settings": "settings", "instructions": "instructions"}
    word = one.get(row.kind, row.kind.removesuffix("s"))
    return f"{word} {row.name}{f': {row.does}' if row.does else ''}"
