"""The loaded extensions: asked, told and called one by one, and whatever is wrong with one is told once.

Nothing that an extension does raises out of here but `CallError`, with the reason: a handler that throws, hangs or
answers badly is named to the user, and everything goes on as if it had not been there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tenuto.extension.api import ExtensionApi, Handler, Outside
from tenuto.extension.finding import LoadingError, Source
from tenuto.extension.lane import Lane, LaneTimeoutError, describe_fault
from tenuto.extension.registered import (
    STATUS_CHARS,
    AskError,
    OwnCommand,
    OwnProvider,
    OwnTool,
    Prompt,
    Registered,
    Result,
    ToolCall,
    read_lines,
    read_result,
)
from tenuto.extension.voice import Voice
from tenuto.protocol.entry import Level
from tenuto.protocol.event import AnyEvent
from tenuto.protocol.hooks import (
    HOOKS,
    BeforeCompactAnswer,
    BeforeTreeAnswer,
    HookEvent,
    HookName,
    SessionBeforeCompact,
    SessionBeforeTree,
)
from tenuto.protocol.model import ToolSchema
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

MAX_TIMEOUTS = 2
"""Answers in a row that may come too late, before an extension is not waited for any more."""
CLOSE_PATIENCE = 5.0
"""Seconds that the program's end waits for handlers that are being told something."""
LOAD_SECONDS = 10.0
"""Seconds that an extension has for its import and its `setup`."""
RENDER_SECONDS = 2.0
MOST_WAITING = 500
"""Events that wait for a slow handler."""
MOST_COMPLETIONS = 200
LINE_SAID_CHARS = 4_000
MOST_EMITTED = 1_000_000
"""Characters of live output of one call."""

Notify = Callable[[str, Level], None]
Asking = Callable[[str], None]
"""Told the name of the extension that is being asked now."""
A = TypeVar("A", BeforeCompactAnswer, BeforeTreeAnswer)
T = TypeVar("T")
Lines = tuple[tuple[tuple[str, str], ...], ...]


class CallError(Exception):
    """A call of an extension's function that came to nothing; `str(error)` is one line that says why."""


async def _nobody_to_ask(_name: str, _prompt: str, _system: str, _max_tokens: int) -> str:
    raise AskError("there is no session")


@dataclass(frozen=True, kw_only=True)
class Doors:
    """What extensions reach in the open session, each with the extension's name first. Called on the host's loop."""

    wish: Callable[[str, str], None] = lambda _name, _focus: None
    ask: Callable[[str, str, str, int], Coroutine[Any, Any, str]] = _nobody_to_ask
    add_entry: Callable[[str, str, bool], None] = lambda _name, _text, _keep: None
    show_status: Callable[[str, str], None] = lambda _name, _text: None
    cwd: Callable[[], Path] = Path.cwd


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    """Names that are Tenuto's own: an extension that registers one does without it."""

    tools: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()


class Named(msgspec.Struct, Generic[A], frozen=True):
    """An answer, and the name of the extension that gave it."""

    extension: str
    answer: A


class _Extension:
    """One loaded extension. `timeouts` counts the answers in a row that came too late.

    `telling` is the last thing that it is being told: what it is told or asked next comes after that. `waiting` are
    events that it has not been told of yet, `pump` tells them.
    """

    def __init__(self, source: Source, api: ExtensionApi, lane: Lane) -> None:
        self.source = source
        self.api = api
        self.lane = lane
        self.timeouts = 0
        self.telling: asyncio.Task[None] | None = None
        self.waiting: deque[AnyEvent] = deque()
        self.pump: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.api.name

    @property
    def is_given_up(self) -> bool:
        return self.timeouts >= MAX_TIMEOUTS


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded extension, as lists show it. What it does without is not in `registered`."""

    name: str
    place: str
    registered: Registered
    hooks: tuple[HookName, ...]


class ExtensionHost:
    """Holds the loaded extensions. Its methods are for the event loop that it was made on.

    `notify` shows what extensions say, `report` what is wrong with one; `timeout` is the seconds that an answer may
    take, `load_timeout` those of an import. `doors` lead into the open session.
    """

    def __init__(
        self,
        notify: Notify,
        report: Callable[[str], None],
        timeout: float,
        doors: Doors | None = None,
        *,
        reserved: Reserved | None = None,
        load_timeout: float = LOAD_SECONDS,
    ) -> None:
        self._notify = notify
        self._doors = doors or Doors()
        self._reserved = reserved or Reserved()
        self._report_fault = report
        self._timeout = max(0.1, timeout)
        self._load_timeout = max(0.1, load_timeout)
        self._loop = asyncio.get_running_loop()
        self._extensions: list[_Extension] = []
        self._told: dict[str, None] = {}
        self._telling: dict[asyncio.Task[None], _Extension] = {}
        self._tools: dict[str, tuple[_Extension, OwnTool]] = {}
        self._commands: dict[str, tuple[_Extension, OwnCommand]] = {}
        self._providers: dict[str, tuple[_Extension, OwnProvider]] = {}
        self._before: Callable[[threading.ExceptHookArgs], Any] | None = None
        self.tool_schemas: tuple[ToolSchema, ...] = ()
        """What a model is told of the tools, in a fixed order: the same object all the time."""
        self.loading: set[str] = set()
        """The names of those that are being imported or set up."""

    @property
    def names(self) -> tuple[str, ...]:
        """The loaded extensions, in the order in which they are asked."""
        return tuple(extension.name for extension in self._extensions)

    @property
    def loaded(self) -> tuple[Loaded, ...]:
        """The same with what each has registered."""
        return tuple(
            Loaded(
                name=one.name,
                place=one.source.place,
                registered=one.api.registered,
                hooks=tuple(hook for hook in HOOKS if one.api.handlers(hook)),
            )
            for one in self._extensions
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """What was wrong so far, a line each."""
        return tuple(self._told)

    async def load(self, sources: Iterable[Source]) -> None:
        """Import and set up what was found, side by side; what cannot be is told, and the others are loaded."""
        chosen = {source.name: source for source in sources if source.name not in self.names}
        if chosen and self._before is None:
            self._before, threading.excepthook = threading.excepthook, self._hear_thread
        for extension in await asyncio.gather(*map(self._load, chosen.values())):
            if extension is not None:
                self._take_over(extension)
                self._extensions.append(extension)
        self.tool_schemas = tuple(tool.schema for _, tool in self._tools.values())

    def listens(self, hook: HookName) -> bool:
        """Say whether anybody has to be asked or told."""
        return any(extension.api.handlers(hook) for extension in self._extensions if not extension.is_given_up)

    async def ask_before_compact(self, event: SessionBeforeCompact, asking: Asking) -> list[Named[BeforeCompactAnswer]]:
        """Return what is answered to `session_before_compact`, in order; a cancel is the last one."""
        return await self._ask("session_before_compact", event, BeforeCompactAnswer, asking)

    async def ask_before_tree(self, event: SessionBeforeTree, asking: Asking) -> list[Named[BeforeTreeAnswer]]:
        """Return what is answered to `session_before_tree`, in order; a cancel is the last one.

        A summary that nobody wants is left out.
        """
        named = await self._ask("session_before_tree", event, BeforeTreeAnswer, asking)
        if event.preparation.user_wants_summary:
            return named
        return [Named(one.extension, msgspec.structs.replace(one.answer, summary=None)) for one in named]

    def tell(self, hook: HookName, event: HookEvent) -> None:
        """Tell everybody who listens; nothing waits for that but their own next hook, and the program's end."""
        for extension in self._extensions:
            if extension.api.handlers(hook):
                task = asyncio.create_task(self._tell(extension, hook, event, extension.telling), name=hook)
                extension.telling = task
                self._telling[task] = extension
                task.add_done_callback(self._telling.pop)

    def hear(self, event: AnyEvent) -> None:
        """Have an event told to whoever subscribed to its kind; never waits. A slow handler misses the oldest ones."""
        for extension in self._extensions:
            if type(event) not in extension.api.registered.events or extension.is_given_up:
                continue
            if len(extension.waiting) >= MOST_WAITING:
                extension.waiting.popleft()
                self._report(f"The extension {extension.name} is too slow for the events that it wants; it misses some")
            extension.waiting.append(event)
            if extension.pump is None or extension.pump.done():
                extension.pump = asyncio.create_task(self._tell_events(extension), name=f"events of {extension.name}")
                self._telling[extension.pump] = extension
                extension.pump.add_done_callback(self._telling.pop)

    # --- tools, commands, providers, strategies ---

    def find_tool(self, name: str) -> OwnTool | None:
        """Return the tool of that name."""
        return self._tools[name][1] if name in self._tools else None

    def owner_of(self, tool: str) -> str:
        """Return the name of the extension that a tool is of."""
        return self._tools[tool][0].name

    async def run_tool(self, tool: OwnTool, arguments: dict[str, Any], call: ToolCall) -> tuple[Result, Lines]:
        """Run a tool and have its renderer draw the result. Raises `CallError`."""
        extension = self._tools[tool.name][0]
        if extension.lane.is_stuck:
            raise CallError(f"the extension {extension.name} is still busy with an earlier call")
        own = ToolCall(id=call.id, cwd=call.cwd, emit=self._bounded(call.emit), signal=call.signal)
        given = {**arguments, tool.call_parameter: own} if tool.call_parameter else arguments
        try:
            answer = await extension.lane.call(
                lambda: tool.function(**given), timeout=tool.timeout, is_excused=lambda: extension.api.is_asking
            )
            result = read_result(answer)
        except ValueError as error:
            self._report(f"The tool {tool.name} of the extension {extension.name} failed: {describe_fault(error)}")
            raise CallError(describe_fault(error)) from error
        except Exception as error:
            raise CallError(describe_fault(error)) from error
        finally:
            call.signal.set()
        return result, await self._render(extension, tool, arguments, result)

    def _bounded(self, emit: Callable[[str], None]) -> Callable[[str], None]:
        """Return what shows live output from any thread, up to a bound."""
        left = MOST_EMITTED

        def emit_some(text: str) -> None:
            nonlocal left
            shown = str(text)[:left]
            left -= len(shown)
            if shown:
                self._post(emit, shown)

        return emit_some

    async def _render(self, extension: _Extension, tool: OwnTool, arguments: dict[str, Any], result: Result) -> Lines:
        renderer = extension.api.registered.renderers.get(tool.name)
        if renderer is None or result.is_error or extension.lane.is_stuck:
            return ()
        try:
            return read_lines(await extension.lane.call(renderer, arguments, result, timeout=RENDER_SECONDS))
        except Exception as error:  # noqa: BLE001 - the plain result is shown instead
            self._report(_describe(extension.name, f"the renderer of {tool.name}", error))
            return ()

    @property
    def commands(self) -> tuple[OwnCommand, ...]:
        """The slash commands, in the order in which they were registered."""
        return tuple(command for _, command in self._commands.values())

    async def run_command(self, name: str, argument: str) -> str | Prompt:
        """Run a command and return what it says, or what it sends. Raises `CallError`."""
        extension, command = self._commands[name]
        if extension.lane.is_stuck:
            raise CallError(f"the extension {extension.name} is still busy with an earlier call")
        try:
            answer = await extension.lane.call(
                command.function, argument, timeout=self._timeout, is_excused=lambda: extension.api.is_asking
            )
        except Exception as error:
            raise CallError(_describe(extension.name, f"/{name}", error)) from error
        if answer is None or isinstance(answer, str | Prompt):
            return answer or ""
        raise CallError(f"/{name} of the extension {extension.name} returned {type(answer).__name__}, not a text")

    async def complete(self, name: str, typed: str) -> tuple[str, ...]:
        """Return what may stand behind a command; nothing, with the fault told, where that cannot be said soon."""
        extension, command = self._commands[name]
        if command.complete is None or extension.lane.is_stuck or extension.is_given_up:
            return ()
        try:
            given = await extension.lane.call(command.complete, typed, timeout=RENDER_SECONDS)
            return tuple(shorten(str(one), 200) for one in tuple(given)[:MOST_COMPLETIONS])  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - there is no completion then
            self._report(_describe(extension.name, f"the completion of /{name}", error))
            return ()

    @property
    def providers(self) -> tuple[tuple[OwnProvider, Lane], ...]:
        """The providers, each with the lane that its `stream` is to be called on."""
        return tuple((provider, extension.lane) for extension, provider in self._providers.values())

    def find_strategy(self, name: str) -> Callable[..., object] | None:
        """Return what makes the strategy of that name."""
        found = (extension.api.registered.strategies.get(name) for extension in self._extensions)
        return next((one for one in found if one is not None), None)

    async def close(self) -> None:
        """Wait a moment for what is being told, then let go of everything."""
        for task, extension in self._telling.items():
            if extension.lane.is_stuck:
                task.cancel()  # it would not be heard
        if self._telling:
            _, late = await asyncio.wait(tuple(self._telling), timeout=CLOSE_PATIENCE)
            for task in late:
                task.cancel()
        for extension in self._extensions:
            extension.lane.close()
        self._extensions.clear()
        if self._before is not None:
            threading.excepthook, self._before = self._before, None

    # --- loading ---

    async def _load(self, source: Source) -> _Extension | None:
        name = source.name
        api = ExtensionApi(name, self._outside(name))
        lane = Lane(
            f"extension {name}",
            lambda error: self._from_anywhere(self._notify, _describe(name, "the background", error), "warning"),
        )

        def set_up() -> object:
            return source.load()(api)

        self.loading.add(name)
        try:
            await lane.call(set_up, timeout=self._load_timeout)
        except LoadingError as error:
            self._report(f"The extension {name} ({source.place}) is not loaded: {error}")
        except Exception as error:  # noqa: BLE001 - an extension's fault ends here and becomes a notice
            self._report(f"The extension {name} ({source.place}) is not loaded: {describe_fault(error)}")
        else:
            api.close_registration()
            return _Extension(source, api, lane)
        finally:
            self.loading.discard(name)
        lane.close()
        return None

    def _outside(self, name: str) -> Outside:
        doors = self._doors
        flood = f"The extension {name} says too much; some of it is left out"
        voice = Voice(self._post, lambda text: doors.show_status(name, text), lambda: self._report(flood))

        def notify(text: str, level: Level) -> None:
            if voice.may_say():
                self._from_anywhere(self._notify, f"{name}: {shorten(str(text), LINE_SAID_CHARS)}", level)

        def ask(prompt: str, system: str, max_tokens: int) -> concurrent.futures.Future[str]:
            return asyncio.run_coroutine_threadsafe(doors.ask(name, prompt, system, max_tokens), self._loop)

        def show(text: str | None) -> None:
            line = shorten(" ".join(str(text).split()), STATUS_CHARS) if text else ""
            voice.show(line)

        return Outside(
            notify=notify,
            request_compaction=lambda focus: self._from_anywhere(doors.wish, f"the extension {name}", focus),
            ask_model=ask,
            add_entry=lambda text, keep: self._post(doors.add_entry, name, text, keep),
            show_status=show,
            cwd=doors.cwd,
        )

    def _take_over(self, extension: _Extension) -> None:
        """Add what it has registered to what is there; a name that is taken is told, and it does without."""
        own = extension.api.registered
        for what, mine, all_of_them, reserved in (
            ("tool", own.tools, self._tools, self._reserved.tools),
            ("command", own.commands, self._commands, self._reserved.commands),
            ("provider", own.providers, self._providers, self._reserved.providers),
        ):
            for name in tuple(mine):
                whose = "Tenuto itself" if name in reserved or (what == "tool" and name.startswith("mcp_")) else ""
                if not whose and name in all_of_them:
                    whose = f"the extension {all_of_them[name][0].name}"
                if whose:
                    self._report(f"The {what} {name} of the extension {extension.name} is left out: {whose} has it")
                    del mine[name]
                else:
                    all_of_them[name] = (extension, mine[name])  # type: ignore[assignment]

    def _hear_thread(self, hooked: threading.ExceptHookArgs) -> None:
        """Tell of a thread of an extension that died; of all others whoever was told before hears."""
        error, trace = hooked.exc_value, hooked.exc_traceback
        while trace is not None:
            filename = trace.tb_frame.f_code.co_filename
            for extension in tuple(self._extensions):
                if error is not None and filename.startswith(extension.source.place):
                    text = _describe(extension.name, "a thread of its own", error)
                    self._from_anywhere(self._notify, text, "warning")
                    return
            trace = trace.tb_next
        if self._before is not None:
            self._before(hooked)

    # --- asking and telling ---

    async def _ask(self, hook: HookName, event: HookEvent, kind: type[A], asking: Asking) -> list[Named[A]]:
        answers: list[Named[A]] = []
        for extension in tuple(self._extensions):
            for handler in extension.api.handlers(hook):
                if extension.is_given_up:
                    break
                asking(extension.api.name)
                if extension.telling is not None:
                    await asyncio.wait((extension.telling,))
                given = await self._call(extension, hook, handler, event)
                answer = self._read(extension, hook, given, kind) if given is not None else None
                if answer is None:
                    continue
                answers.append(Named(extension.api.name, answer))
                if answer.cancel:
                    return answers
        return answers

    async def _tell(
        self, extension: _Extension, hook: HookName, event: HookEvent, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))
        for handler in extension.api.handlers(hook):
            if not extension.is_given_up:
                await self._call(extension, hook, handler, event)

    async def _tell_events(self, extension: _Extension) -> None:
        while extension.waiting and not extension.is_given_up:
            event = extension.waiting.popleft()
            for handler in extension.api.registered.events[type(event)]:
                await self._call(extension, str(event.__struct_config__.tag), handler, event)

    async def _call(self, extension: _Extension, hook: str, handler: Handler, event: HookEvent | AnyEvent) -> object:
        """Return what a handler returns; `None`, with the fault told, when it fails or is too late."""
        name = extension.api.name
        signal = threading.Event()
        if isinstance(event, SessionBeforeCompact | SessionBeforeTree):
            event = msgspec.structs.replace(event, signal=signal)
        try:
            answer = await extension.lane.call(
                handler, event, timeout=self._timeout, is_excused=lambda: extension.api.is_asking
            )
        except LaneTimeoutError as error:
            extension.timeouts += 1
            ending = "; it is not asked any more" if extension.is_given_up else ""
            self._report(f"{_describe(name, hook, error)}{ending}")
            return None
        except Exception as error:  # noqa: BLE001 - an extension's fault ends here and becomes a notice
            self._report(_describe(name, hook, error))
            return None
        finally:
            signal.set()
        extension.timeouts = 0
        return answer

    def _read(self, extension: _Extension, hook: HookName, given: object, kind: type[A]) -> A | None:
        try:
            return read_answer(given, kind)
        except ValueError as error:
            self._report(f"The extension {extension.api.name} answered {hook} with what is no answer: {error}")
            return None

    def _report(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self._told:
            self._told[text] = None
            self._report_fault(text)

    def _from_anywhere(self, tell: Callable[[str, T], None], text: str, more: T) -> None:
        self._post(tell, text, more)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Have a function called on the host's loop, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def describe_loaded(one: Loaded) -> str:
    """Return what an extension has registered, in a few words."""
    own = one.registered
    handlers = len(one.hooks) + len(own.events)
    counts = (
        (len(own.tools), "tool"),
        (len(own.commands), "command"),
        (len(own.providers), "provider"),
        (len(own.strategies), "strategy"),
        (handlers, "event"),
    )
    said = [
        plural(count, word) if word != "strategy" else f"{count} strateg{'ies' if count > 1 else 'y'}"
        for count, word in counts
        if count
    ]
    return ", ".join(said) or "registers nothing"


def read_answer(given: object, kind: type[A]) -> A:
    """Return an answer from a struct or a dict of its shape. Raises `ValueError` that names what does not fit.

    What goes into the log is made plain JSON here, so that nothing of the extension's own objects is kept.
    """
    try:
        return msgspec.convert(msgspec.json.decode(msgspec.json.encode(given)), kind)
    except (msgspec.ValidationError, TypeError, UnicodeError, OverflowError, RecursionError) as error:
        raise ValueError(_one_line(str(error))) from error


def _describe(name: str, where: str, error: BaseException) -> str:
    return f"The extension {name} failed in {where}: {describe_fault(error)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
