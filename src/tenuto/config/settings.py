"""Settings: what a user can set, section by section. The text under a setting is its manual.

`docs/configuration.md`, `tenuto config` and the JSON schema are made from this file; `config/sources.py` reads values.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tenuto.config.mcp.servers import McpServer
from tenuto.protocol.entry import Mode

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
DomainName = Annotated[
    str,
    Meta(
        pattern=r"^(\[[0-9A-Fa-f:.]{2,45}\]|\*(\.[A-Za-z0-9_-]{1,63}){2,20}|[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63}){0,20})"
        r"(:[0-9]{1,5})?$",
        description="domains, as example.org, *.example.org or example.org:8443",
    ),
]
"""Names that commands may reach; `guard/sandbox/network/domains.py` reads it."""
RequestBytes = Annotated[int, Meta(ge=1_000, le=10_000_000_000)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections; an unknown key is a problem, not a silence."""


class ModelSettings(Section, frozen=True, kw_only=True):
    """What the user knows better about one model than the lists do. Tokens."""

    context_window: Window | None = None
    """The window. Wins over what the provider, the catalogue and earlier refusals say."""
    max_output_tokens: AnswerTokens | None = None
    """The longest answer that the model can give. *Unset*: what its provider or the catalogue says; where nobody says
    it, the request names no limit."""
    effort: str = ""
    """How hard it is to think where the session does not say: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`,
    `max`, `ultra`, as far as the model has it, see [Effort](#effort). Empty: the model's own default."""
    thinking: bool | None = None
    """Whether the model can think, where its name does not tell."""
    fallback: tuple[str, ...] | None = None
    """As in `[request]`, for this model alone; an empty list: none answers for it."""
    reserve_tokens: PartTokens | None = None
    """As in `[compaction]`, for this model alone."""
    keep_recent_tokens: PartTokens | None = None
    """As in `[compaction]`, for this model alone."""
    max_summary_tokens: PartTokens | None = None
    """As in `[compaction]`, for this model alone."""
    remote_compaction: Literal["", "off", "request", "endpoint", "automatic"] = ""
    """Compaction by the provider itself, see [compaction.md](compaction.md#compaction-by-the-provider). `request`:
    asked for within a normal request (Anthropic, OpenAI). `endpoint`: at `/responses/compact` (OpenAI). `automatic`: as
    `request`, and the server also compacts by itself (OpenAI). Empty: what `compaction.remote` says."""
    clear_tool_uses: bool = False
    """Anthropic only: the server leaves old tool results out of long requests; the log and the screen keep them."""
    parallel_tools: bool = True
    """Off: the model is asked for one call at a time, for those that mix up several."""
    system_role: Literal["", "system", "developer", "user"] = ""
    """Chat Completions only: the role of the system prompt; `user` puts it in front of the first message. Empty:
    `system`."""
    output_limit_field: Literal["", "max_tokens", "max_completion_tokens", "none"] = ""
    """Chat Completions only: the name of the output limit, or none at all. Empty: found out by what is refused."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely the model chooses its words. *Unset*: as its server does. Anthropic has neither this nor `top_p`."""
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    """From how much of the likeliest words it chooses. *Unset*: as its server does."""
    body: dict[str, Any] = {}
    """Further fields of a request, as the server names them. They come before those that Tenuto makes, but for what it
    has to make itself (`model`, `messages`, `tools` and the like)."""
    headers: dict[str, str] = {}
    """Headers for the requests of this model, beside those of its provider."""


class ProviderSettings(Section, frozen=True, kw_only=True):
    """A server of the user's own, named by its key; `api_key_env` is the variable that holds its key."""

    kind: Literal["anthropic", "openai", "openai-chat", "gemini"] = "openai-chat"
    """What the server speaks: Anthropic Messages, OpenAI Responses, Gemini, or Chat Completions as most servers do."""
    base_url: str = ""
    """Where it is, up to and with `/v1` (Gemini: `/v1beta`). Needed for a name that is not built in."""
    api_key_env: str = ""
    """The environment variable that holds the key. Empty: no key is needed, or it is stored (`tenuto login`)."""
    api_key_cmd: str = ""
    """A command of yours that prints the key, as `op read op://Private/OpenAI/key`. It runs with the first request, for
    60 seconds at most, and again after a 401. The variable comes before it."""
    api_key_seconds: Wait = 3_600.0
    """Seconds for which what the command printed is used."""
    region: str = ""
    """Of `bedrock` and `vertex`: the region. Empty: `AWS_REGION`, `CLOUD_ML_REGION`."""
    aws_profile: str = ""
    """Of `bedrock`: the profile of your AWS configuration. Empty: `AWS_PROFILE`."""
    project: str = ""
    """Of `vertex`: the project. Empty: `ANTHROPIC_VERTEX_PROJECT_ID`, else that of your credentials."""
    deployment: str = ""
    """Of `azure`: the deployment. Empty: the name of the model is that of its deployment."""
    api_version: str = ""
    """Of `azure`: the version of the interface. Empty: `OPENAI_API_VERSION`."""
    headers: dict[str, str] = {}
    """Headers for every request. One of `Authorization`, `X-Api-Key`, `Api-Key` counts as the key."""


class PromptSettings(Section, frozen=True, kw_only=True):
    """Replacements for the built-in compaction prompts; empty keeps the built-in one."""

    system: str = ""
    """The summariser's system prompt."""
    first: str = ""
    """The instructions for the first summary of a session."""
    update: str = ""
    """The instructions for bringing an earlier summary up to date."""
    turn_prefix: str = ""
    """The instructions for the first part of a turn that the cut falls into."""
    same_prefix: str = ""
    """How the conversation's own model is asked for a summary in place, and what a provider that compacts by itself is
    told. What stays word for word and how long the summary may be is added."""
    check: str = ""
    """How a model is asked about lines of its earlier notes that the new ones leave out; the lines are added."""
    summary_prefix: str = ""
    """What introduces the summary to the working model; `{seq}` becomes the last summarised entry."""
    branch: str = ""
    """The instructions for notes on a branch that is left."""


class CompactionSettings(Section, frozen=True, kw_only=True):
    """Compaction (DESIGN section 4). Tokens; `None` means adapted to the model's window."""

    enabled: bool = True
    """Off: nothing compacts by itself, not even after a request was refused as too long. `/compact` still works."""
    reserve_tokens: PartTokens | None = None
    """What stays free for an answer. Unset: 16 384, at most a quarter of the window. Raised when it is too small, at
    most half of the window."""
    keep_recent_tokens: PartTokens | None = None
    """How much of the end stays word for word. Unset: 20 000, at most a quarter of the window."""
    max_summary_tokens: PartTokens | None = None
    """A summary's longest length. Unset: 0.8 of the reserve, which is also its upper bound."""
    user_message_tokens: PartTokens = 20_000
    """How much of your earlier messages is carried over word for word."""
    strategy: str = ""
    """Another way to compact, as `module:ClassName`: a built-in one, an installed one, or a file in `strategies/` of
    Tenuto's home; or the name of one that an extension registers. See
    [extensions.md](extensions.md#compaction-strategies). Empty: the ladder."""
    model: str = ""
    """The model that writes summaries, as `provider/name`. Empty: the session's own, which also takes over when this
    one cannot be used."""
    remote: bool = False
    """Models whose provider has a compaction of its own use it, as `remote_compaction = "request"` does for one
    model."""
    idle: bool = False
    """Compact a large session while nothing runs, shortly before the provider's cache of it expires."""
    ahead: bool = False
    """Write a summary while nothing runs and the trigger is near; the next compaction then takes no time."""
    background: bool = True
    """Write the next compaction's summary beside a running task, from 80 % of the trigger on. Not with a local server
    that needs no key."""
    same_prefix: bool = True
    """While the provider's prefix cache is warm, the present model summarises in place: the next step's request with
    one message more. Off: always from a transcript."""
    check: bool = True
    """Where a new summary leaves out decisions, next steps or facts of the one before, the model is asked about them
    once more, and what still holds stays word for word. Off: what it leaves out is gone from the view."""
    tool: bool = True
    """The agent has the `compact` tool: it may ask for a compaction between two parts of its work. A change holds for
    new sessions, and from the next compaction or `/reload` on."""
    prompts: PromptSettings = PromptSettings()
    """See below."""


class BranchSummarySettings(Section, frozen=True, kw_only=True):
    """Summaries of a branch that is left (seed 003). `reserve_tokens` is what of the window stays free for them."""

    reserve_tokens: PartTokens = 16_384
    """What of the summariser's window stays free when notes on a branch are made, at most a quarter of it. The newest
    of what is left is read up to that."""


class ToolSettings(Section, frozen=True, kw_only=True):
    """Limits of the tools: characters and lines of one result, seconds of one command.

    `max_output_chars` is `None` where each tool has its own limit. `web_search` is the provider's own: "auto" at the
    address of the vendor, true wherever the protocol has it. `pass_environment` names variables that commands of the
    model get although their names say that they are secret. `mask_sent`: what looks like a secret in a result is masked
    before the model gets it. `max_processes` is what commands may have together, `max_memory_mb` what each of their
    processes may, in megabytes, `max_outputs_mb` what all outputs of a session take on disk; 0 is no limit.
    """

    max_output_chars: Characters | None = None
    """Characters of one result that the model is sent; the rest is in a file that the result names. Unset: 30 000, of
    `read` 51 200 where the window has 128 000 tokens or more."""
    max_output_lines: Lines = 2_000
    """Lines of one result."""
    bash_timeout: Wait = 120.0
    """Seconds that a command gets when the model names no time."""
    bash_max_timeout: Wait = 600.0
    """Seconds that the model can ask for at most."""
    fetch_timeout: Wait = 30.0
    """Seconds for one page."""
    web_search: bool | Literal["auto"] = "auto"
    """The provider's own web search, for models over Anthropic Messages and OpenAI Responses. `"auto"`: at
    api.anthropic.com and api.openai.com. `true`: at every server that speaks these protocols."""
    pass_environment: tuple[str, ...] = ()
    """Variables that commands of the model get although their names look secret (`*KEY*`, `*TOKEN*`, `*SECRET*`,
    `*PASSW*`, `*CREDENTIAL*`). Your own `!commands` get all."""
    mask_sent: bool = False
    """What looks like a secret (`sk-…`, `AKIA…`, `ghp_…`, a private key) is masked in results before the model gets
    it."""
    max_processes: Count = 512
    """Processes that commands may have; 0 is no limit. What limits them: [security.md](security.md#processes)."""
    max_memory_mb: Count = 0
    """Megabytes of address space for each process of a command; 0 is no limit."""
    max_outputs_mb: Count = 1_000
    """Megabytes on disk that all outputs of a session take; 0 is no limit (one output: 256)."""


class ApprovalSettings(Section, frozen=True, kw_only=True):
    """Rules by tool and pattern (`guard/rules.py`): what needs no approval, always needs one, or never runs."""

    allow: tuple[str, ...] = ()
    """What needs no approval."""
    ask: tuple[str, ...] = ()
    """What is asked about in every mode."""
    deny: tuple[str, ...] = ()
    """What never runs."""


class AgentSettings(Section, frozen=True, kw_only=True):
    """How the agent works. `final_check`: in mode auto and without a user it is asked, once a turn, to check edits that
    no command ran after, and to see to open todo items. `wake`: the end of a background job begins a turn. `job_wait`:
    seconds for which a run without a user stays open for its background jobs.
    """

    final_check: bool = True
    """In mode `auto` and in headless runs the agent is asked, once a turn, to check edits that no command ran after,
    and to see to open todo items."""
    wake: bool = True
    """The end of a background job begins a turn, so that the agent goes on with what came of it."""
    job_wait: Seconds = 600.0
    """Seconds for which a headless run stays open for the background jobs that its agent has left running."""


class AgentsSettings(Section, frozen=True, kw_only=True):
    """Sub-agents. `enabled`: the model has the tool that runs them. `models` has by an agent's name, or by a name of a
    model that an agent's file uses, the model that it gets.

    `depth`: 1 lets the agent have sub-agents, 2 those as well, and so on. `side_by_side` run at a time in a session,
    `max_steps` calls of the model are made by each.
    """

    enabled: bool = True
    """The agent may give tasks to sub-agents ([subagents.md](subagents.md)). A session keeps the tools that it began
    with until `/reload` or a compaction."""
    models: dict[str, str] = {}
    """By an agent's name, or by a name that an agent's file uses for a model, the model that it gets, as
    `provider/name[:effort]`."""
    depth: Annotated[int, Meta(ge=1, le=3)] = 1
    """1: only the agent has sub-agents; 2: those have some, too."""
    side_by_side: Annotated[int, Meta(ge=1, le=16)] = 4
    """So many work at a time for one session; the others wait."""
    max_steps: Annotated[int, Meta(ge=1, le=1_000)] = 50
    """Calls of the model that one sub-agent makes at most."""


class ExtensionSettings(Section, frozen=True, kw_only=True):
    """Python extensions. `paths` are files, packages or folders of them, seen from Tenuto's home; `disabled` names.

    `hook_timeout` is the seconds that one extension has for an answer, `load_timeout` those for its import and `setup`.
    """

    enabled: bool = True
    """Off: no extension is looked for."""
    paths: tuple[str, ...] = ()
    """Further extensions: Python files, packages, or folders of them; a relative path is seen from Tenuto's home."""
    disabled: tuple[str, ...] = ()
    """Names of extensions that are not loaded."""
    hook_timeout: Wait = 120.0
    """Seconds that an extension, or a compaction strategy of yours, has for an answer. Esc ends the wait earlier."""
    load_timeout: Wait = 10.0
    """Seconds that an extension has for its import and its `setup`; the first prompt waits that long."""


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where the model's commands run. `enabled`: in a sandbox, where the machine has one of this `kind`.

    Paths may begin with `~`. `writable` and `hidden` are added to what is; `readable` are shown all the same. `network`
    lets all commands reach it; without it they reach `domains`, over HTTP and HTTPS.
    """

    enabled: bool = True
    """Run them in a sandbox where the machine has one. `false` is `--no-sandbox`: mode `auto` then runs them with your
    rights."""
    kind: Literal["auto", "bubblewrap", "landlock", "seatbelt"] = "auto"
    """What holds them; `auto` takes the first that works, in this order."""
    network: bool = False
    """Let them reach the network. Commands that only read never do."""
    domains: tuple[DomainName, ...] = ()
    """What they reach over HTTP and HTTPS without `network`, at the ports 80 and 443 unless an entry has one; an
    address in brackets or as it is. Needs bubblewrap: [security.md](security.md#the-network)."""
    writable: tuple[str, ...] = ()
    """Folders that they may write beside the working directory; `~` is your home."""
    readable: tuple[str, ...] = ()
    """What they may read although it is hidden."""
    hidden: tuple[str, ...] = ()
    """What they may not read, beside keys and tokens."""


class HookSettings(Section, frozen=True, kw_only=True):
    """Hook commands. `shared` says whether those count that stand in the files of other agents."""

    enabled: bool = True
    """Off: no hook is looked for."""
    shared: bool = True
    """Whether the hooks in your files of other agents (`.claude`, `.codex`) run too."""


class McpSettings(Section, frozen=True, kw_only=True):
    """MCP servers, by name. `wait` is how many seconds after the session's opening the first prompt waits for servers
    that are still starting; more than `defer_over` tools of all servers together stand behind a search.
    """

    enabled: bool = True
    """Off: no server is looked for or started."""
    wait: Seconds = 5.0
    """Seconds after the session's opening for which its first prompt waits for servers that are still starting."""
    defer_over: Annotated[int, Meta(ge=0, le=1_000)] = 20
    """With more tools than these, of all servers together, the model gets a search and a call tool in their place."""
    servers: dict[str, McpServer] = {}


class SessionSettings(Section, frozen=True, kw_only=True):
    """Sessions on disk. `recall_project`: whether `recall` may look into the project's other ones. `durability`: when
    entries are forced to the disk itself, against power cuts.

    "points": at prompts, compactions and the end of each task, beside the work; "wait": the same, and the work waits
    for it; "none": the system decides.
    """

    durability: Literal["none", "points", "wait"] = "points"
    """When entries are forced to the disk itself, against power cuts: at prompts, compactions and the end of each task,
    beside the work (`points`); the same, and the work waits for it (`wait`); when the system likes (`none`). A killed
    process loses nothing in either."""
    titles: bool = True
    """Have the small model name a session behind its first exchange, in one short request beside the work. Off, or
    without such a model: the title is how the session began. `/title` wins over both."""
    title_model: str = ""
    """The model that names sessions, as `provider/name`. Empty: `compaction.model`; if that is empty too, none is
    asked."""
    recall_project: bool | Literal["auto"] = "auto"
    """The model may search the other sessions of the project (`recall` with the scope `project`), which sends what it
    finds to the present model. `"auto"`: where a user is there, so not in headless runs. Nothing is read unless asked.
    """


class InstructionSettings(Section, frozen=True, kw_only=True):
    """Instruction files. `also` are names of more such files, beside `AGENTS.md` and `CLAUDE.md`."""

    also: tuple[FileName, ...] = ()
    """Names of further instruction files, read in each folder beside `AGENTS.md` and `CLAUDE.md`. Names only, no
    paths."""


class UiSettings(Section, frozen=True, kw_only=True):
    """The interactive front-ends. `notifications = true` is the command where there is one, else the terminal.

    `mask_secrets`: what looks like a secret is masked on the screen.
    """

    theme: str = "auto"
    """`auto` (dark or light, by the background of the terminal), `dark`, `light`, `ansi` (the terminal's own 16
    colours), `contrast` (high contrast, by the background), `contrast-dark`, `contrast-light`, or a theme of your own:
    [themes.md](themes.md). `/theme` sets it."""
    inline: bool = False
    """Print into the terminal's own scrollback instead of drawing a full screen, as `--inline` does. Not asked where a
    terminal cannot move its cursor (`TERM=dumb`) or with `--screen-reader`: those write plain lines."""
    reduce_motion: bool | Literal["off", "on", "strict"] = "off"
    """`"on"` (or `true`): the spinner stands still. `"strict"`: answers also grow three times a second at most, and
    seconds count in fives."""
    interrupt: Literal["esc", "esc-esc"] = "esc"
    """How often Esc is pressed to interrupt."""
    editing: Literal["emacs", "vim"] = "emacs"
    """The keys of the prompt: readline's, or vi's with a normal, an insert and a visual mode
    ([keys.md](keys.md#vis-keys)). The mode stands in the last line. Esc leaves the insert mode first, and interrupts in
    the normal one."""
    tips: bool = True
    """A new session begins with a tip below name, model and directory, another one each time."""
    show_thinking: bool = True
    """Show a model's thinking while it thinks."""
    diff: Literal["auto", "unified", "split"] = "auto"
    """How changes are shown: one below the other, or old and new side by side; `auto` puts them side by side from 140
    columns on."""
    notifications: bool | Literal["off", "bell", "terminal", "command"] = True
    """How you are called while you look elsewhere; `true` is your command if there is one, else the terminal
    ([terminal.md](terminal.md#notifications))."""
    notification_command: str = ""
    """A command of yours that calls you: it gets what there is to say as JSON on standard input."""
    notification_seconds: Seconds = 10.0
    """A run that took less is no reason to call you."""
    title: bool = True
    """Say in the terminal's title what is worked on, and where."""
    progress: bool | Literal["auto"] = "auto"
    """Show on the terminal's tab that something runs (OSC 9;4); `auto`: where it is known to understand that."""
    status_items: tuple[str, ...] = ()
    """What the last line shows, in this order; empty: all of it ([terminal.md](terminal.md#status-line))."""
    status_command: str = ""
    """A command of yours whose first line of output is shown in the last line: it gets the session as JSON on standard
    input."""
    status_interval: Seconds = 0.5
    """Seconds that lie at least between two runs of it; without a change it does not run at all."""
    copy_on_select: bool = True
    """What the mouse selects in the transcript goes to the clipboard."""
    mouse: Literal["full", "wheel", "off"] = "full"
    """Wheel: it scrolls, and nothing else. Off: the terminal keeps the mouse, and selects by itself. `/mouse` changes
    it for now."""
    leave_transcript: Literal["screen", "answer", "off"] = "screen"
    """What the full screen leaves on the normal one: the last screenful, the last answer, nothing."""
    mask_secrets: bool = True
    """What looks like a secret in answers and results is masked on the screen. Exports are always masked."""


class RequestSettings(Section, frozen=True, kw_only=True):
    """Model calls: how often a failed one is repeated, seconds to connect and of silence in a stream."""

    retries: Retries = 5
    """How often a failed request is made again."""
    connect_timeout: Wait = 15.0
    """Seconds to reach the server."""
    stream_timeout: Wait = 300.0
    """Seconds of silence in an answer after which it counts as broken."""
    max_request_bytes: RequestBytes = 20_000_000
    """Bytes of a request. A larger one is not sent; the error says what makes it smaller."""
    fallback: tuple[str, ...] = ()
    """Models that answer where one is overloaded or at its rate limit after all retries, as `provider/name[:effort]`:
    the first that can be used and whose window has room for the conversation, until the turn is over."""


class CatalogueSettings(Section, frozen=True, kw_only=True):
    """The catalogue of windows and prices: whether an interactive start fetches a newer one each week, and from where.

    An empty `url` is where the genai-prices project publishes its data.
    """

    refresh: bool = True
    """An interactive start fetches a newer catalogue each week, beside everything else. Off: `tenuto models refresh`
    alone does."""
    url: str = ""
    """Where it is fetched from: the data of the genai-prices project, or a copy of it. Empty: from the project's own
    place on GitHub."""


class UpdateSettings(Section, frozen=True, kw_only=True):
    """Whether an interactive start looks for a newer version, and where."""

    check: bool = True
    """Once a day at most an interactive start asks the package index which version there is, beside everything else,
    and says so where it is newer. Nothing is sent but the request; never in headless runs, nor where `CI` is set."""
    url: str = ""
    """Where it asks, for a mirror: an address that answers as PyPI's JSON does. Empty: PyPI."""


class TelemetrySettings(Section, frozen=True, kw_only=True):
    """Export of what Tenuto does to a collector of the user's own."""

    otel: bool = False
    """Send turns, model calls, tools and compactions as OpenTelemetry spans to where `OTEL_EXPORTER_OTLP_ENDPOINT` says
    (OTLP over HTTP). Needs the extra `otel`, and both: this setting and the variable."""
    content: bool = False
    """Let prompts, answers, arguments and results go along. Off: names, sizes, times and cost alone."""


class Settings(Section, frozen=True, kw_only=True):
    """All settings. `model` is `provider/name[:effort]`; empty lets the first run choose."""

    model: str = ""
    """The model of new sessions, as `provider/name` or `provider/name:effort`. Empty: chosen from what is there, see
    [Connecting a model](#connecting-a-model)."""
    mode: Mode = "ask"
    """The approval mode of new sessions."""
    max_output_tokens: AnswerTokens | None = None
    """Tokens of one answer at most, for every model. *Unset*: the model's own limit. A request never asks for more than
    its window leaves."""
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
    update: UpdateSettings = UpdateSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    profiles: dict[str, Settings] = {}
    """Settings that count when `--profile NAME` asks for them."""

    def compaction_for(self, model: str) -> CompactionSettings:
        """Return the compaction settings with what `[models."provider/name"]` sets for this model."""
        own = self.models.get(model)
        if own is None:
            return self.compaction
        names = ("reserve_tokens", "keep_recent_tokens", "max_summary_tokens")
        changes = {name: value for name in names if (value := getattr(own, name)) is not None}
        return msgspec.structs.replace(self.compaction, **changes)
