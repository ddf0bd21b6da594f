"""What every tool is, and what it is given: where it works, what it may store, how it speaks while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from tenuto.config.settings import ToolSettings
from tenuto.guard.secrets import command_environment
from tenuto.guard.subject import ApprovalSubject, is_inside
from tenuto.protocol.message import FileUse, HistoryEvent, Message
from tenuto.protocol.part import ImagePart
from tenuto.text.late import late
from tenuto.tool.image import ImageFacts
from tenuto.tool.output import LARGE_WINDOW, READ_CHARS, RESULT_CHARS, ToolOutput
from tenuto.tool.process.job_table import JobTable

if TYPE_CHECKING:
    from tenuto.guard.sandbox.sandbox import Sandbox
    from tenuto.session.store import Store
    from tenuto.tool.process.process import CommandLimits
    from tenuto.tool.run.editor import Editor


_KEPT_BYTES = 8_000_000
"""Compressed bytes of seen contents that are kept to show what changed."""
_KEPT_FILE_BYTES = 1_000_000


class FileTracker:
    """The newest use of each file by real path. `seen` adds to what the session knew when it was opened."""

    def __init__(self, known: Mapping[str, FileUse]) -> None:
        self._known = known
        self._own: dict[str, FileUse] = {}
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._kept = 0

    def digest(self, path: str) -> str:
        """Return the hex SHA-256 of the content that the model last saw; empty when it saw none."""
        use = self._own.get(path) or self._known.get(path)
        return use.sha256 if use is not None else ""

    def record(self, use: FileUse, data: bytes | None = None) -> FileUse:
        """Note a use, and the content if it is at hand, so that a later change can be shown. Returns the use."""
        self._own[use.path] = use
        self._forget(use.path)
        if data is not None and len(data) <= _KEPT_FILE_BYTES:
            packed = zlib.compress(data, 1)
            self._contents[use.path] = packed
            self._kept += len(packed)
            while self._kept > _KEPT_BYTES:
                self._forget(next(iter(self._contents)))
        return use

    def content(self, path: str) -> bytes | None:
        """Return the bytes that the model last saw of a file, if they are still kept."""
        packed = self._contents.get(path)
        return None if packed is None else zlib.decompress(packed)

    def _forget(self, path: str) -> None:
        packed = self._contents.pop(path, None)
        if packed is not None:
            self._kept -= len(packed)


def digest_of(data: bytes) -> str:
    """Return the hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


MAX_KEPT_FILE = 20_000_000
"""Bytes: what is larger is changed without a way back."""
_UNSAFE_IN_NAME = late(r"[^A-Za-z0-9._-]")


class FileState(Protocol):
    """The part of the session's state that tools read."""

    @property
    def files(self) -> Mapping[str, FileUse]:
        """The newest use of each file."""
        ...

    @property
    def directories(self) -> tuple[str, ...]:
        """What counts as workspace besides the session's own directory: real paths."""
        ...


class HistoryReader(Protocol):
    """The part of a session that `recall` reads; it changes nothing."""

    def path(self) -> Sequence[HistoryEvent]:
        """Return the entries from the root to the leaf."""
        ...

    def everything(self) -> Sequence[HistoryEvent]:
        """Return the entries of all branches in file order."""
        ...


class SessionPlaces(HistoryReader, Protocol):
    """The part of a session that tools use; `session.Session` is one."""

    @property
    def cwd(self) -> Path:
        """Where the session works."""
        ...

    @property
    def directory(self) -> Path:
        """Where its log lies, with what is beside it and its sub-agents."""
        ...

    @property
    def store(self) -> Store:
        """What lies beside its log."""
        ...

    @property
    def state(self) -> FileState:
        """The session's live state."""
        ...


class AgentTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a sub-agent is to do: the `agent` by its name, the whole `prompt`, a few words on it for the user."""

    prompt: str
    agent: str = "general"
    description: str = ""


RunAgent = Callable[[AgentTask, "ToolContext"], Awaitable[ToolOutput]]
"""Runs a sub-agent for the call of a context. Raises `ToolError` where there can be none."""


def _ignore(_: str) -> None:
    """Live output that nobody watches."""


def _no_window() -> int:
    """Nobody has said which model reads the results."""
    return 0


class Loading(NamedTuple):
    """What the model is told of a skill that is loaded, and what loads it."""

    text: str
    load: Callable[[], None]


def _nothing() -> None:
    """Most calls leave nothing behind that waits for their result."""


class ToolContext:
    """One for a session; `for_call` makes the one that a single call gets.

    `workspace` is the real path of the session's directory. `emit` takes live output. `subject` is what was
    approved; a tool that finds something else when it runs refuses.
    """

    def __init__(
        self, session: SessionPlaces, settings: ToolSettings | None = None, sandbox: Sandbox | None = None
    ) -> None:
        self.session = session
        self.sandbox = sandbox
        """What holds the commands of the model; `None`: nothing does, and nobody minds."""
        self.window: Callable[[], int] = _no_window
        """Returns the tokens of the model's window as it is known or assumed, 0 where nobody says; on the loop only."""
        self.settings = settings or ToolSettings()
        self.added: Callable[[], tuple[str, ...]] = lambda: session.state.directories
        """Returns what counts as workspace besides the session's own directory; a sub-agent has its parent's."""
        self.environ: Mapping[str, str] = os.environ
        self.jobs = JobTable()
        self.files = FileTracker(session.state.files)
        self.workspace = Path(os.path.realpath(session.cwd))
        self.view: Sequence[Message] = ()
        """What the model saw when it made the calls of this step."""
        self.unseen_sent: dict[str, int] = {}
        """Characters of addresses that were new when they were sent, by host."""
        self.call_id = "call"
        self.emit: Callable[[str], None] = _ignore
        self.subject: ApprovalSubject | None = None
        self.private_hosts: set[str] = set()
        """Hosts that turned out to have a private address: the next call asks for them."""
        self.ask_compaction: Callable[[str], Awaitable[str]] | None = None
        """Asks for a compaction with a focus; returns what the model is told, or raises `ToolError` with why not."""
        self.waited_for: set[asyncio.Future[None]] = set()
        """One for each command that a call waits for; done, it runs on as a job."""
        self.load_skill: Callable[[str], Loading] | None = None
        """Returns what loading the skill of a name comes to, or raises `ToolError` with why there is none."""
        self.other_sessions: Callable[[], list[Path]] | None = None
        """Returns the folders of the project's other sessions, the last used first, or raises `ToolError` with why not;
        reads the disk."""
        self.run_agent: RunAgent | None = None
        """Runs a sub-agent; `None` where there are none."""
        self.editor: Editor | None = None
        """The editor that hosts the session, if one does."""
        self.when_stored: dict[str, Callable[[], None]] = {}
        """What is to be done when the result of a call, by its id, is in the log."""

    @property
    def max_chars(self) -> int:
        """The most characters of one result."""
        return self.settings.max_output_chars or RESULT_CHARS

    @property
    def max_read_chars(self) -> int:
        """The same of `read`: more in a large window, unless the user has set a limit; asked for on the loop."""
        if self.settings.max_output_chars is None and self.window() >= LARGE_WINDOW:
            return READ_CHARS
        return self.max_chars

    @property
    def command_environ(self) -> dict[str, str]:
        """The environment that commands of the model get: without secrets."""
        return command_environment(self.environ, self.settings.pass_environment)

    @property
    def cwd(self) -> Path:
        """Where relative paths begin and commands start."""
        return self.session.cwd

    @property
    def places(self) -> tuple[str, ...]:
        """What counts as workspace: real paths, the session's own directory first."""
        return (str(self.workspace), *self.added())

    def place_of(self, path: str) -> str:
        """Return the place of the workspace that a real path lies in, empty for one outside."""
        return next((place for place in self.places if is_inside(path, place)), "")

    @property
    def outputs(self) -> Path:
        """The directory of full tool outputs."""
        return self.session.store.outputs

    @property
    def processes(self) -> Path:
        """The directory in which running commands are written down."""
        return self.session.store.processes

    @property
    def history(self) -> HistoryReader:
        """Everything that was said and done in the session."""
        return self.session

    def store_output(self, name: str, data: bytes | str) -> Path:
        """Keep a full output under `name` and return its path."""
        return self.session.store.save_output(name, data)

    def store_image(self, data: bytes, facts: ImageFacts, name: str = "") -> ImagePart:
        """Keep an image by its content and return the part that stands for it."""
        return self.session.store.save_image(data, facts.media_type, name=name, width=facts.width, height=facts.height)

    def keep_before(self, data: bytes) -> str:
        """Keep what a file was before a change; return its hash, empty for one that is too large or cannot be kept."""
        if len(data) > MAX_KEPT_FILE:
            return ""
        try:
            return self.session.store.save_bytes(data)
        except OSError:
            return ""  # a full disk must not stop the change itself

    @property
    def limits(self) -> CommandLimits:
        """What a command may take of the machine."""
        from tenuto.tool.process.process import CommandLimits

        return CommandLimits(self.settings.max_processes, self.settings.max_memory_mb * 1024)

    def spool_room(self) -> int:
        """Return the bytes that one more output may take on disk, beside all that the session has stored."""
        from tenuto.tool.process.process import SPOOL_LIMIT

        if not self.settings.max_outputs_mb:
            return SPOOL_LIMIT
        stored = 0
        with contextlib.suppress(OSError):
            stored = sum(entry.stat().st_size for entry in os.scandir(self.outputs))
        return max(0, min(SPOOL_LIMIT, self.settings.max_outputs_mb * 1_000_000 - stored))

    def new_output_path(self, suffix: str = "txt") -> Path:
        """Return a path under `outputs` for this call that no file has yet."""
        self.outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = _UNSAFE_IN_NAME.sub("_", self.call_id)[:64] or "call"
        path = self.outputs / f"{stem}.{suffix}"
        number = 2
        while path.exists():
            path = self.outputs / f"{stem}-{number}.{suffix}"
            number += 1
        return path

    def for_call(self, call_id: str, emit: Callable[[str], None], subject: ApprovalSubject | None) -> ToolContext:
        """Return the context of one call; everything but its name and its voice is shared."""
        made = object.__new__(ToolContext)
        vars(made).update(vars(self), call_id=call_id, emit=emit, subject=subject)
        return made

    def move_to_background(self) -> None:
        """Let the commands that calls wait for run on as background jobs."""
        for moved in self.waited_for:
            if not moved.done():
                moved.set_result(None)

    def note_stored(self, call_id: str) -> None:
        """The result of a call is in the log."""
        self.when_stored.pop(call_id, _nothing)()

    async def close(self) -> None:
        """End the background jobs and whatever commands left running."""
        await self.jobs.close()
        if self.sandbox is not None:
            self.sandbox.close()


class Tool(Protocol):
    """A tool. `parallel`: calls of it may run side by side."""

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether several calls may run at the same time."""
        ...

    def parse(self, values: dict[str, Any]) -> Any:
        """Return the arguments as the tool wants them. Raises `ArgumentError`."""
        ...

    def subject(self, arguments: Any, context: ToolContext) -> ApprovalSubject:
        """Return what the call would do. Runs in a thread; changes nothing. Raises `ToolError` when it cannot be."""
        ...

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Run the call. Raises `ToolError`; a cancellation leaves nothing half done and nothing running."""
        ...


@runtime_checkable
class PlacedTool(Protocol):
    """A tool that looks at a file to say what a call would do. Where the call may not run, it does not look."""

    def place(self, arguments: Any, context: ToolContext) -> ApprovalSubject:
        """Return what can be said of the call by its path alone. Reads nothing. Raises `ToolError`."""
        ...


@runtime_checkable
class SharingTool(Protocol):
    """A tool that is not `parallel`, some of whose calls may run side by side with others all the same."""

    def may_share(self, arguments: Any) -> bool:
        """Whether a call with these arguments may, if the guard finds that it only reads."""
        ...


class BuiltinTool:
    """Base of the built-in tools: their arguments are pydantic models, loaded at the first call."""

    name = ""
    parallel = True

    def parse(self, values: dict[str, Any]) -> Any:
        """Return the validated arguments. Raises `ArgumentError`."""
        from tenuto.tool.run.arguments import parse_arguments

        try:
            return parse_arguments(self.name, values)
        except ValueError as error:
            raise ArgumentError(str(error)) from None


class ToolError(Exception):
    """A call that cannot be done; the text goes to the model and says what to do instead.

    `files` are uses to record all the same (a file whose present content the text shows).
    """

    def __init__(self, text: str, *, files: tuple[FileUse, ...] = ()) -> None:
        super().__init__(text)
        self.files = files


class NotNowError(ToolError):
    """A call in order that is not done at this time; `reason` says why in few words, for the user."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


class ArgumentError(ToolError):
    """Arguments that do not fit the tool's schema."""
