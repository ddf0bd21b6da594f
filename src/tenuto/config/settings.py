"""Settings: what a user can set in `settings.toml` or by `TENUTO_SECTION__KEY`.

Read in this order, later wins: the defaults here, `$TENUTO_HOME/settings.toml`, `.tenuto/settings.toml` of the project
(as far as `config/trust.py` lets it), environment variables. A broken file or a wrong value never stops the agent: that
value keeps its default and a problem line says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from tenuto.config.mcp.servers import McpServer
from tenuto.config.project import RefusedFileError, find_upwards, project_root, read_text
from tenuto.private_files import replace_file
from tenuto.protocol.entry import Mode

if TYPE_CHECKING:
    from tenuto.config.consent import Project, TrustItem

PROJECT_FILE = Path(".tenuto") / "settings.toml"
TOP_LEVEL_VARIABLES = {"TENUTO_MODEL": "model", "TENUTO_MODE": "mode", "TENUTO_MAX_OUTPUT_TOKENS": "max_output_tokens"}
"""The keys that are in no section."""


# Every number has its range here: what is outside is named, and the default holds.
Window = Annotated[int, Meta(ge=500, le=100_000_000)]
"""Tokens of a whole window."""
AnswerTokens = Annotated[int, Meta(ge=1, le=100_000_000)]
PartTokens = Annotated[int, Meta(ge=0, le=100_000_000)]
"""Tokens of a part of the window; the budget fits them to the window that there is."""
Characters = Annotated[int, Meta(ge=1, le=10_000_000)]
Lines = Annotated[int, Meta(ge=1, le=1_000_000)]
Wait = Annotated[float, Meta(ge=0.01, le=604_800)]
"""Seconds that something gets, at most a week."""
Seconds = Annotated[float, Meta(ge=0, le=604_800)]
"""Seconds between two things; 0 is none."""
Count = Annotated[int, Meta(ge=0, le=100_000_000)]
Retries = Annotated[int, Meta(ge=0, le=1_000)]
FileName = Annotated[str, Meta(pattern=r"^(?!\.{0,2}$)[^/\\\x00-\x1f\x7f]{1,255}$", description="file names")]
"""The name of a file in any folder, and no path."""
RequestBytes = Annotated[int, Meta(ge=1_000, le=10_000_000_000)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections; an unknown key is a problem, not a silence."""


class ModelSettings(Section, frozen=True, kw_only=True):
    """What the user knows better about one model than the lists do. Tokens."""

    context_window: Window | None = None
    max_output_tokens: AnswerTokens | None = None
    effort: str = ""
    thinking: bool | None = None
    reserve_tokens: PartTokens | None = None
    keep_recent_tokens: PartTokens | None = None
    max_summary_tokens: PartTokens | None = None
    remote_compaction: Literal["", "off", "request", "endpoint", "automatic"] = ""
    clear_tool_uses: bool = False


class ProviderSettings(Section, frozen=True, kw_only=True):
    """A server of the user's own, named by its key; `api_key_env` is the variable that holds its key."""

    kind: Literal["anthropic", "openai", "openai-chat"] = "openai-chat"
    base_url: str = ""
    api_key_env: str = ""
    headers: dict[str, str] = {}


class PromptSettings(Section, frozen=True, kw_only=True):
    """Replacements for the built-in compaction prompts; empty keeps the built-in one."""

    system: str = ""
    first: str = ""
    update: str = ""
    turn_prefix: str = ""
    same_prefix: str = ""
    summary_prefix: str = ""
    branch: str = ""


class CompactionSettings(Section, frozen=True, kw_only=True):
    """Compaction (DESIGN section 4). Tokens; `None` means adapted to the model's window."""

    enabled: bool = True
    reserve_tokens: PartTokens | None = None
    keep_recent_tokens: PartTokens | None = None
    max_summary_tokens: PartTokens | None = None
    user_message_tokens: PartTokens = 20_000
    strategy: str = ""
    model: str = ""
    remote: bool = False
    idle: bool = False
    ahead: bool = False
    background: bool = True
    same_prefix: bool = True
    tool: bool = True
    prompts: PromptSettings = PromptSettings()


class BranchSummarySettings(Section, frozen=True, kw_only=True):
    """Summaries of a branch that is left (seed 003). `reserve_tokens` is what of the window stays free for them."""

    reserve_tokens: PartTokens = 16_384


class ToolSettings(Section, frozen=True, kw_only=True):
    """Limits of the tools: characters and lines of one result, seconds of one command.

    `max_output_chars` is `None` where each tool has its own limit. `web_search` is the provider's own: "auto" at the
    address of the vendor, true wherever the protocol has it. `pass_environment` names variables that commands of the
    model get although their names say that they are secret. `mask_sent`: what looks like a secret in a result is masked
    before the model gets it. `max_processes` is what commands may have together, `max_memory_mb` what each of their
    processes may, in megabytes, `max_outputs_mb` what all outputs of a session take on disk; 0 is no limit.
    """

    max_output_chars: Characters | None = None
    max_output_lines: Lines = 2_000
    bash_timeout: Wait = 120.0
    bash_max_timeout: Wait = 600.0
    fetch_timeout: Wait = 30.0
    web_search: bool | Literal["auto"] = "auto"
    pass_environment: tuple[str, ...] = ()
    mask_sent: bool = False
    max_processes: Count = 512
    max_memory_mb: Count = 0
    max_outputs_mb: Count = 1_000


class ApprovalSettings(Section, frozen=True, kw_only=True):
    """Rules by tool and pattern (`guard/rules.py`): what needs no approval, always needs one, or never runs."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class AgentSettings(Section, frozen=True, kw_only=True):
    """How the agent works. `final_check`: in mode auto and without a user it is asked, once a turn, to check edits that
    no command ran after, and to see to open todo items. `wake`: the end of a background job begins a turn. `job_wait`:
    seconds for which a run without a user stays open for its background jobs.
    """

    final_check: bool = True
    wake: bool = True
    job_wait: Seconds = 600.0


class AgentsSettings(Section, frozen=True, kw_only=True):
    """Sub-agents. `enabled`: the model has the tool that runs them. `models` has by an agent's name, or by a name of a
    model that an agent's file uses, the model that it gets.

    `depth`: 1 lets the agent have sub-agents, 2 those as well, and so on. `side_by_side` run at a time in a session,
    `max_steps` calls of the model are made by each.
    """

    enabled: bool = True
    models: dict[str, str] = {}
    depth: Annotated[int, Meta(ge=1, le=3)] = 1
    side_by_side: Annotated[int, Meta(ge=1, le=16)] = 4
    max_steps: Annotated[int, Meta(ge=1, le=1_000)] = 50


class ExtensionSettings(Section, frozen=True, kw_only=True):
    """Python extensions. `paths` are files, packages or folders of them, seen from Tenuto's home; `disabled` names.

    `hook_timeout` is the seconds that one extension has for an answer, `load_timeout` those for its import and `setup`.
    """

    enabled: bool = True
    paths: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    hook_timeout: Wait = 120.0
    load_timeout: Wait = 10.0


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where the model's commands run. `enabled`: in a sandbox, where the machine has one of this `kind`.

    Paths may begin with `~`. `writable` and `hidden` are added to what is; `readable` are shown all the same. `network`
    lets all commands reach it.
    """

    enabled: bool = True
    kind: Literal["auto", "bubblewrap", "landlock", "seatbelt"] = "auto"
    network: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class HookSettings(Section, frozen=True, kw_only=True):
    """Hook commands. `shared` says whether those count that stand in the files of other agents."""

    enabled: bool = True
    shared: bool = True


class McpSettings(Section, frozen=True, kw_only=True):
    """MCP servers, by name. `wait` is how many seconds after the session's opening the first prompt waits for servers
    that are still starting; more than `defer_over` tools of all servers together stand behind a search.
    """

    enabled: bool = True
    wait: Seconds = 5.0
    defer_over: Annotated[int, Meta(ge=0, le=1_000)] = 20
    servers: dict[str, McpServer] = {}


class SessionSettings(Section, frozen=True, kw_only=True):
    """Sessions on disk. `durability`: when entries are forced to the disk itself, against power cuts.

    "points": at prompts, compactions and the end of each task, beside the work; "wait": the same, and the work waits
    for it; "none": the system decides.
    """

    durability: Literal["none", "points", "wait"] = "points"


class InstructionSettings(Section, frozen=True, kw_only=True):
    """Instruction files. `also` are names of more such files, beside `AGENTS.md` and `CLAUDE.md`."""

    also: tuple[FileName, ...] = ()


class UiSettings(Section, frozen=True, kw_only=True):
    """The interactive front-ends. `notifications = true` is the command where there is one, else the terminal.

    `mask_secrets`: what looks like a secret is masked on the screen.
    """

    theme: str = "auto"
    inline: bool = False
    reduce_motion: bool | Literal["off", "on", "strict"] = "off"
    interrupt: Literal["esc", "esc-esc"] = "esc"
    show_thinking: bool = True
    diff: Literal["auto", "unified", "split"] = "auto"
    notifications: bool | Literal["off", "bell", "terminal", "command"] = True
    notification_command: str = ""
    notification_seconds: Seconds = 10.0
    title: bool = True
    progress: bool | Literal["auto"] = "auto"
    status_items: tuple[str, ...] = ()
    status_command: str = ""
    status_interval: Seconds = 0.5
    copy_on_select: bool = True
    mouse: Literal["full", "wheel", "off"] = "full"
    leave_transcript: Literal["screen", "answer", "off"] = "screen"
    mask_secrets: bool = True


class RequestSettings(Section, frozen=True, kw_only=True):
    """Model calls: how often a failed one is repeated, seconds to connect and of silence in a stream."""

    retries: Retries = 5
    connect_timeout: Wait = 15.0
    stream_timeout: Wait = 300.0
    max_request_bytes: RequestBytes = 20_000_000


class CatalogueSettings(Section, frozen=True, kw_only=True):
    """The catalogue of windows and prices: whether an interactive start fetches a newer one each week, and from where.

    An empty `url` is where the genai-prices project publishes its data.
    """

    refresh: bool = True
    url: str = ""


class Settings(Section, frozen=True, kw_only=True):
    """All settings. `model` is `provider/name[:effort]`; empty lets the first run choose."""

    model: str = ""
    mode: Mode = "ask"
    max_output_tokens: AnswerTokens | None = None
    models: dict[str, ModelSettings] = {}
    providers: dict[str, ProviderSettings] = {}
    compaction: CompactionSettings = CompactionSettings()
    branch_summary: BranchSummarySettings = BranchSummarySettings()
    approvals: ApprovalSettings = ApprovalSettings()
    agent: AgentSettings = AgentSettings()
    agents: AgentsSettings = AgentsSettings()
    tools: ToolSettings = ToolSettings()
    sandbox: SandboxSettings = SandboxSettings()
    session: SessionSettings = SessionSettings()
    extensions: ExtensionSettings = ExtensionSettings()
    hooks: HookSettings = HookSettings()
    mcp: McpSettings = McpSettings()
    instructions: InstructionSettings = InstructionSettings()
    ui: UiSettings = UiSettings()
    request: RequestSettings = RequestSettings()
    catalogue: CatalogueSettings = CatalogueSettings()

    def compaction_for(self, model: str) -> CompactionSettings:
        """Return the compaction settings with what `[models."provider/name"]` sets for this model."""
        own = self.models.get(model)
        if own is None:
            return self.compaction
        names = ("reserve_tokens", "keep_recent_tokens", "max_summary_tokens")
        changes = {name: value for name in names if (value := getattr(own, name)) is not None}
        return msgspec.structs.replace(self.compaction, **changes)


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return `$TENUTO_HOME`, or `~/.tenuto`."""
    configured = environ.get("TENUTO_HOME", "")
    return Path(configured).expanduser() if configured else Path.home() / ".tenuto"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One place that settings come from: a file, or the environment. `values` are those that hold, as they stand there.

    `problems` has a line for each that does not; `text` is the file's.
    """

    name: str
    values: dict[str, Any]
    problems: tuple[str, ...] = ()
    text: str = ""
    is_project: bool = False


ENVIRONMENT = "environment"


def load_settings(home: Path, project: Path | None, environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Return the settings and a line for every problem found on the way. Never raises for bad content.

    `project` is the working directory, somewhere in the project.
    """
    sources = read_sources(home, project, environ)
    return settings_of(sources), [problem for source in sources for problem in source.problems]


def settings_of(sources: Sequence[Source]) -> Settings:
    """Return what these sources make together, the later one wins."""
    merged: dict[str, Any] = {}
    for source in sources:
        _merge(merged, source.values)
    return msgspec.convert(merged, Settings, strict=False)


def read_sources(home: Path, project: Path | None, environ: Mapping[str, str]) -> list[Source]:
    """Return the places of settings that there are, the weakest first."""
    own = home / "settings.toml"
    sources = [_read_file(own)]
    if project is not None and (file := find_upwards(project, home, PROJECT_FILE)) is not None:
        sources.append(_read_project_file(file, sources[0], project, home))
    problems: list[str] = []
    values = _accept(_from_environment(environ, problems), ENVIRONMENT, problems)
    return [*sources, Source(name=ENVIRONMENT, values=values, problems=tuple(problems))]


def _read_file(file: Path) -> Source:
    problems: list[str] = []
    text, values = _read_toml(file, (), problems)
    values = _accept(values, str(file), problems, text)
    return Source(name=str(file), values=values, problems=tuple(problems), text=text)


def _read_project_file(file: Path, own: Source, cwd: Path, home: Path) -> Source:
    """Read a project's settings; they count as far as the user's `own` and their trust let them."""
    problems: list[str] = []
    text, values = _read_toml(file, (project_root(file.parent.parent),), problems)
    values = _accept(values, str(file), problems, text)
    if values:
        from tenuto.config.trust import keep_allowed  # few projects have settings

        values, said = keep_allowed(values, own.values.get("mode", Settings().mode), file, (cwd, home))
        problems += [f"{file}: {line.format(own=own.name)}" for line in said]
    return Source(name=str(file), values=values, problems=tuple(problems), text=text, is_project=True)


def project_items(project: Project) -> list[TrustItem]:
    """Return the settings of a project that need the user's trust."""
    file = find_upwards(project.cwd, project.home, PROJECT_FILE)
    if file is None:
        return []
    from tenuto.config.trust import setting_items, sort_settings

    unheard: list[str] = []
    _, own = _read_toml(project.home / "settings.toml", (), unheard)
    _, values = _read_toml(file, (project_root(file.parent.parent),), unheard)
    values = _accept(values, str(file), unheard)
    found = sort_settings(values, own.get("mode", Settings().mode))
    return list(setting_items(found, file, project).values())


def _read_toml(path: Path, inside: Sequence[Path], problems: list[str]) -> tuple[str, dict[str, Any]]:
    """Return a file's text and its values; one of a project lies `inside` it."""
    try:
        text = read_text(path, inside)
        import tomllib  # 3 ms; most people have no settings file

        return text, tomllib.loads(text)
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError, RecursionError, RefusedFileError) as error:
        problems.append(f"{path} cannot be read and is ignored: {error}")
        return "", {}


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """`TENUTO_MODE=auto` sets `mode`, `TENUTO_COMPACTION__ENABLED=false` sets `compaction.enabled`."""
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if name in TOP_LEVEL_VARIABLES:
            values[TOP_LEVEL_VARIABLES[name]] = value
        elif name.startswith("TENUTO_") and "__" in name:
            *sections, key = name.removeprefix("TENUTO_").lower().split("__")
            place = values
            for section in sections:
                inner = place.get(section)
                if not isinstance(inner, dict):
                    inner = place[section] = {}
                place = cast("dict[str, Any]", inner)
            place[key] = _list_or_text(value)
        elif name.startswith("TENUTO_") and name.removeprefix("TENUTO_").lower() in Settings.__struct_fields__:
            problems.append(f"environment: {name} is ignored: it names a section; its keys are {name}__KEY")
    return values


def _list_or_text(value: str) -> object:
    """Read `["a", "b"]` as TOML does; everything else is a text, and what does not fit is named later."""
    if not value.startswith("["):
        return value
    import tomllib

    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _accept(values: dict[str, Any], source: str, problems: list[str], text: str = "") -> dict[str, Any]:
    """Return `values` without what does not fit, naming each in `problems`, with its line in the `text` of a file."""
    try:
        msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError:
        from tenuto.config.fitting import keep_fitting
        from tenuto.config.lines import find_lines

        lines = find_lines(text)

        def tell(path: tuple[str, ...], fault: str) -> None:
            place = f"{source}:{lines[path]}" if path in lines else source
            problems.append(f"{place}: {fault}")

        return keep_fitting(values, Settings, tell)
    return values


def _merge(target: dict[str, Any], values: dict[str, Any]) -> None:
    """Lay `values`, which stay as they are, over `target`, section by section."""
    for key, value in values.items():
        if isinstance(value, dict):
            present = target.get(key)
            section = cast("dict[str, Any]", present if isinstance(present, dict) else {})
            target[key] = section
            _merge(section, cast("dict[str, Any]", value))
        else:
            target[key] = value


class SettingNotKept(Exception):  # noqa: N818 - it names what happened
    """The file cannot be changed; the text says why, and what to do."""


def keep_setting(home: Path, section: str, key: str, value: str) -> Path:
    """Set `key` in `[section]` and return the file. Raises `SettingNotKept`; the file is then as it was."""

    def put(document: Any) -> None:
        _section(document, section)[key] = value

    return _change(home, put, f'[{section}] {key} = "{value}" was not put into it')


def keep_rule(home: Path, effect: Literal["allow", "ask", "deny"], text: str) -> Path:
    """Add a rule to the user's own and return the file. Raises `SettingNotKept`."""

    def put(document: Any) -> None:
        section = _section(document, "approvals")
        if text not in section.setdefault(effect, []):
            section[effect].append(text)

    return _change(home, put, f"the rule {text} was not put into it")


def drop_rule(home: Path, effect: Literal["allow", "ask", "deny"], text: str) -> Path:
    """Take a rule out of the user's own, however it is spelled there: `text` is what it is read as.

    Returns the file. Raises `SettingNotKept`, also when the rule is not there.
    """

    def take(document: Any) -> None:
        rules = _section(document, "approvals").get(effect, [])
        alike = [each for each in rules if "".join(each.split()) == "".join(text.split())]
        for each in alike:
            rules.remove(each)
        if not alike:
            raise SettingNotKept(f"{home / 'settings.toml'} has no rule to {effect} {text}")

    return _change(home, take, f"the rule {text} was not taken out of it")


def _section(document: Any, name: str) -> Any:
    import tomlkit

    if name not in document:
        document[name] = tomlkit.table()
    return document[name]


def _change(home: Path, change: Callable[[Any], None], otherwise: str) -> Path:
    """Change the user's own file. Comments, order and spelling stay. A link to a file elsewhere stays a link."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    file = home / "settings.toml"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = file.resolve()
        document = cast("Any", tomlkit.parse(target.read_text(encoding="utf-8") if target.exists() else ""))
        change(document)
        _write(target, document.as_string())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingNotKept(f"{file} cannot be written: {error}") from error
    except (TOMLKitError, AttributeError, TypeError, RecursionError) as error:
        raise SettingNotKept(f"{file} is not valid, so {otherwise}: {error}") from error
    return file


def _write(target: Path, text: str) -> None:
    """Write the whole file or nothing; it keeps its mode, a new one is the owner's alone."""
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, text.encode(), mode)
