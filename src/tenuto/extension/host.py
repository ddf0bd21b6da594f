"""The loaded extensions: their hooks are asked one after the other, and whatever is wrong with one is told once.

Nothing that an extension does raises out of here: a handler that throws, hangs or answers badly is named to the
user, and everything goes on as if it had not been there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import msgspec

from tenuto.config.settings import ExtensionSettings
from tenuto.extension.api import ExtensionApi, Handler
from tenuto.protocol.entry import Level
from tenuto.protocol.hooks import (
    BeforeCompactAnswer,
    BeforeTreeAnswer,
    HookEvent,
    HookName,
    SessionBeforeCompact,
    SessionBeforeTree,
)

ENTRY_POINT_GROUP = "tenuto.extensions"
FOLDER = "extensions"

Setup = Callable[[object], object]


class LoadingError(Exception):
    """An extension that cannot be loaded; `str(error)` says why in one line."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An extension that was found: what it is called, where it is, and how to get its `setup`. Nothing ran yet."""

    name: str
    place: str
    load: Callable[[], Setup]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, without the disabled ones, and a line for each thing that is wrong."""

    sources: tuple[Source, ...] = ()
    problems: tuple[str, ...] = ()


def find_extensions(home: Path, settings: ExtensionSettings, of_project: Sequence[Path] = ()) -> Found:
    """Return every extension that the user installed or named, in the order in which they are asked.

    Those `of_project` are the ones that the user trusts there; they come last.
    """
    problems: list[str] = []
    candidates = [*_installed(), *map(_file_source, list_files(home / FOLDER))]
    for text in settings.paths:
        path = home / Path(text).expanduser()
        if _is_extension(path):
            candidates.append(_file_source(path))
        elif path.is_dir():
            candidates.extend(map(_file_source, list_files(path)))
        else:
            problems.append(f"extensions.paths names {path}, which is neither a Python file nor a folder of them")
    if of_project:
        sys.dont_write_bytecode = True  # what is compiled lies beside them, is part of what is trusted, and must stay
        candidates.extend(map(_file_source, of_project))
    return Found(sources=_once(candidates, settings.disabled, problems), problems=tuple(problems))


def list_files(folder: Path) -> list[Path]:
    """Return the extensions in a folder by name: Python files and packages; what begins with `_` or `.` is none."""
    try:
        return sorted((path for path in folder.iterdir() if _is_extension(path)), key=lambda path: path.stem)
    except OSError:
        return []


def import_file(path: Path, name: str) -> ModuleType:
    """Import a file, or a package's folder, under a name of its own. Raises whatever its code raises."""
    from importlib.util import module_from_spec, spec_from_file_location

    is_package = path.is_dir()
    file = path / "__init__.py" if is_package else path
    digest = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:8]
    module_name = f"tenuto_extension_{digest}_{name.replace('.', '_')}"
    spec = spec_from_file_location(module_name, file, submodule_search_locations=[str(path)] if is_package else None)
    if spec is None or spec.loader is None:
        raise LoadingError(f"{file} is not a Python file")
    module = module_from_spec(spec)
    for known in [known for known in sys.modules if known == module_name or known.startswith(f"{module_name}.")]:
        del sys.modules[known]  # loaded once more: a package's own modules have to be read again too
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def setup_of(loaded: object) -> Setup:
    """Return the function that sets an extension up: the object itself, or its `setup`. Raises `LoadingError`."""
    setup = getattr(loaded, "setup", None) if isinstance(loaded, ModuleType) else loaded
    if not callable(setup):
        raise LoadingError("it has no function setup(tenuto)")
    return setup


def _is_extension(path: Path) -> bool:
    if path.name.startswith(("_", ".")):
        return False
    return path.is_file() if path.suffix == ".py" else (path / "__init__.py").is_file()


def _file_source(path: Path) -> Source:
    return Source(name=path.stem, place=str(path), load=lambda: setup_of(import_file(path, path.stem)))


def _installed() -> Iterable[Source]:
    from importlib.metadata import entry_points  # costs more than everything else here together

    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        yield Source(name=point.name, place=point.value, load=lambda point=point: setup_of(point.load()))


def _once(candidates: Iterable[Source], disabled: Iterable[str], problems: list[str]) -> tuple[Source, ...]:
    """Leave out what is disabled, and the second of two with the same name."""
    chosen: dict[str, Source] = {}
    unwanted = frozenset(disabled)
    for source in candidates:
        first = chosen.setdefault(source.name, source)
        if first is not source and first.place != source.place and source.name not in unwanted:
            problems.append(
                f"two extensions are called {source.name}: {first.place} is used, {source.place} is left out"
            )
    return tuple(source for source in chosen.values() if source.name not in unwanted)


MAX_REPORT = 300
"""Characters of a foreign error that the user is shown."""


class LaneError(Exception):
    """A call that came to no answer; `str(error)` is one line that says why."""


class LaneTimeoutError(LaneError):
    """A call that took too long."""


@dataclass(eq=False, slots=True)
class _Call:
    """A function that runs on the lane, and whether nobody waits for it any more."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    is_left: bool = False


class Lane:
    """Runs somebody else's functions, plain or `async`, on a thread of that name.

    `on_stray` is told, on the lane, of faults nobody waits for.
    """

    def __init__(self, name: str, on_stray: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, context: _tell_stray(context, on_stray))
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._inside: set[_Call] = set()
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        """Whether a function that nobody waits for any more still runs."""
        return any(call.is_left for call in tuple(self._inside))

    async def call(
        self,
        function: Callable[..., object],
        *arguments: object,
        timeout: float,
        is_excused: Callable[[], bool] | None = None,
        on_leave: Callable[[], None] | None = None,
    ) -> object:
        """Call `function` on the lane, await what it returns, and return that.

        Raises what it raises, `LaneTimeoutError` after `timeout` seconds (at the end of which `is_excused` may grant
        as many again), `LaneError` when it would end the program or cancels itself. When the caller is cancelled, so is
        an `async` function; a plain one is left behind. Before that `on_leave` is called, on the lane.
        """
        if self._loop.is_closed():
            raise LaneError("it has ended")
        call = _Call(function, arguments)
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._invoke(call), self._loop))
        try:
            await asyncio.wait((waiting,), timeout=timeout)
            while not waiting.done() and is_excused is not None and is_excused():
                await asyncio.wait((waiting,), timeout=timeout)
            if not waiting.done():
                raise LaneTimeoutError(f"no answer within {timeout:g} seconds")
        finally:
            call.is_left = True
            if on_leave is not None and not waiting.done():
                with contextlib.suppress(RuntimeError):  # it has ended
                    self._loop.call_soon_threadsafe(on_leave)
            waiting.cancel()
        if waiting.cancelled():
            raise LaneError("it cancelled itself")
        return waiting.result()

    def close(self) -> None:
        """Let the thread end when it is free. Safe to call twice."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._give_up())
        finally:
            self._loop.close()

    async def _give_up(self) -> None:
        """Cancel what is still asked for, so that nobody waits for an answer that cannot come."""
        await asyncio.sleep(0)  # a call that was made just before the end becomes a task
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _invoke(self, call: _Call) -> object:
        self._inside.add(call)
        try:
            result = call.function(*call.arguments)
            return await result if inspect.isawaitable(result) else result
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # SystemExit and its like: it would end the lane's loop, or the program
            raise LaneError(f"it tried to end the program ({type(error).__name__})") from error
        finally:
            self._inside.discard(call)


def _tell_stray(context: dict[str, Any], on_stray: Callable[[BaseException], None]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        on_stray(error)


def describe_fault(error: BaseException) -> str:
    """Return a foreign error as one line, with the last place in the code that it came from."""
    if isinstance(error, LaneError):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_foreign(frame.filename)]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_REPORT] + place


def _is_foreign(filename: str) -> bool:
    """Say whether a frame is neither the import machinery's nor of what runs foreign code."""
    return not filename.startswith("<frozen") and Path(filename).parent != Path(__file__).parent


MAX_TIMEOUTS = 2
"""Answers in a row that may come too late, before an extension is not waited for any more."""
CLOSE_PATIENCE = 5.0
"""Seconds that the program's end waits for handlers that are being told something."""

Notify = Callable[[str, Level], None]
Asking = Callable[[str], None]
"""Told the name of the extension that is being asked now."""
A = TypeVar("A", BeforeCompactAnswer, BeforeTreeAnswer)
T = TypeVar("T")


class Named(msgspec.Struct, Generic[A], frozen=True):
    """An answer, and the name of the extension that gave it."""

    extension: str
    answer: A


class _Extension:
    """One loaded extension. `timeouts` counts the answers in a row that came too late.

    `telling` is the last thing that it is being told: what it is told or asked next comes after that.
    """

    def __init__(self, api: ExtensionApi, lane: Lane) -> None:
        self.api = api
        self.lane = lane
        self.timeouts = 0
        self.telling: asyncio.Task[None] | None = None

    @property
    def is_given_up(self) -> bool:
        return self.timeouts >= MAX_TIMEOUTS


class ExtensionHost:
    """Holds the loaded extensions. Its methods are for the event loop that it was made on.

    `notify` shows what extensions say, `report` what is wrong with one; `timeout` is seconds. `wish` is told which
    extension asks for a compaction, and its focus.
    """

    def __init__(
        self,
        notify: Notify,
        report: Callable[[str], None],
        timeout: float,
        wish: Callable[[str, str], None] = lambda _name, _focus: None,
    ) -> None:
        self._notify = notify
        self._wish = wish
        self._report_fault = report
        self._timeout = max(0.1, timeout)
        self._loop = asyncio.get_running_loop()
        self._extensions: list[_Extension] = []
        self._told: set[str] = set()
        self._telling: dict[asyncio.Task[None], _Extension] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The loaded extensions, in the order in which they are asked."""
        return tuple(extension.api.name for extension in self._extensions)

    async def load(self, sources: Iterable[Source]) -> None:
        """Import and set up what was found; what cannot be is told, and the others are loaded."""
        for source in sources:
            if source.name not in self.names:
                await self._load(source)

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

    async def _load(self, source: Source) -> None:
        name = source.name
        api = ExtensionApi(
            name,
            lambda text, level: self._from_anywhere(self._notify, f"{name}: {text}", level),
            lambda focus: self._from_anywhere(self._wish, f"the extension {name}", focus),
        )
        lane = Lane(
            f"extension {name}",
            lambda error: self._from_anywhere(self._notify, _describe(name, "the background", error), "warning"),
        )

        def set_up() -> object:
            return source.load()(api)

        try:
            await lane.call(set_up, timeout=self._timeout)
            self._extensions.append(_Extension(api, lane))
        except LoadingError as error:
            self._report(f"The extension {name} ({source.place}) is not loaded: {error}")
        except Exception as error:  # noqa: BLE001 - an extension's fault ends here and becomes a notice
            self._report(f"The extension {name} ({source.place}) is not loaded: {describe_fault(error)}")
        finally:
            if name not in self.names:
                lane.close()

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

    async def _call(self, extension: _Extension, hook: HookName, handler: Handler, event: HookEvent) -> object:
        """Return what a handler returns; `None`, with the fault told, when it fails or is too late."""
        name = extension.api.name
        signal = threading.Event()
        if isinstance(event, SessionBeforeCompact | SessionBeforeTree):
            event = msgspec.structs.replace(event, signal=signal)
        try:
            answer = await extension.lane.call(handler, event, timeout=self._timeout)
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
            self._told.add(text)
            self._report_fault(text)

    def _from_anywhere(self, tell: Callable[[str, T], None], text: str, more: T) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(tell, text, more)


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
