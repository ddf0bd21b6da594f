"""The extensions of a running program: found and imported beside its start, kept for every session.

Where there are none, nothing of `tenuto.extension` is imported.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.config.project import EXTENSIONS, TRUST_FILE, find_upwards
from tenuto.config.settings import ExtensionSettings, ProviderSettings
from tenuto.model.registry import ModelRegistry, Provided
from tenuto.protocol.entry import Level
from tenuto.protocol.event import AnyEvent, SessionOpenedEvent
from tenuto.tool.run.registry import ToolRegistry

if TYPE_CHECKING:
    from tenuto.extension.finding import Source
    from tenuto.extension.host import Doors, ExtensionHost

FOLDER = "extensions"
ENTRY_POINTS = b"[tenuto.extensions]"
MOST_ENTRY_POINTS = 1_000_000
"""Bytes of the file of one package."""
NAMED_AFTER = 1.0
"""Seconds that a prompt waits before it is said for whom."""


class Acts(msgspec.Struct, frozen=True, kw_only=True):
    """What extensions may do in the open session (`core/extension_acts.py`); each is told the extension's name first.

    `notify` tells the user something, `report` a fault.
    """

    notify: Callable[[str, Level], None]
    report: Callable[[str], None]
    wish: Callable[[str, str], None]
    ask: Callable[[str, str, str, int], Coroutine[Any, Any, str]]
    add_entry: Callable[[str, str, bool], None]
    show_status: Callable[[str, str], None]


class Extensions:
    """Loads extensions once, beside the start of the first session, and gives what they register to those who use it.

    `commands` returns the names of Tenuto's own slash commands, which no extension may take. `own` are those that the
    program brings itself: they are there whatever the settings say, and before all others.
    """

    def __init__(
        self,
        home: Path,
        settings: ExtensionSettings,
        tools: ToolRegistry,
        models: ModelRegistry,
        own: Sequence[Source] = (),
    ) -> None:
        self.commands: Callable[[], frozenset[str]] = frozenset
        self._home = home
        self._settings = settings
        self._own = tuple(own)
        self._is_enabled = settings.enabled or bool(own)
        self._tools = tools
        self._models = models
        self._acts: Acts | None = None
        self._early: list[tuple[str, Level]] = []
        """What was to be said before there was a session."""
        self._status: dict[str, str] = {}
        self._loading: asyncio.Task[ExtensionHost | None] | None = None
        self._opened: SessionOpenedEvent | None = None
        self._made: ExtensionHost | None = None
        self._starting: asyncio.Task[None] | None = None
        self._following: asyncio.Task[tuple[str, ...] | None] | None = None
        self._cwd: Path | None = None
        self._has_installed: bool | None = None
        self._of_project: dict[Path, str] = {}
        """The extensions of a project that were loaded, or are being, with the digest of what is in them."""

    def begin(self, cwd: Path, acts: Acts) -> None:
        """Load the user's own, and those of the project of a session that was opened which the user trusts."""
        self._cwd, self._acts = cwd, acts
        if not self._is_enabled:
            return
        for text, level in self._early:
            acts.notify(text, level)
        self._early.clear()
        for name, text in self._status.items():
            acts.show_status(name, text)
        if self._loading is not None and (self._of_project or self._may_trust()):
            self._following = asyncio.create_task(self.follow_trust(), name="extensions of another project")
        elif self._loading is None:
            self._starting = asyncio.create_task(self._look(), name="looking for extensions")

    def hear(self, event: AnyEvent) -> None:
        """Have an event told to the extensions that want it; nothing waits for them."""
        if isinstance(event, SessionOpenedEvent):
            self._opened = event
        if self.loaded is not None:
            self.loaded.hear(event)

    def _may_trust(self) -> bool:
        """Say whether the project has extensions and the user has ever trusted anything."""
        return (self._home / TRUST_FILE).is_file() and self._folder() is not None

    def _folder(self) -> Path | None:
        return find_upwards(self._cwd, self._home, EXTENSIONS) if self._cwd is not None else None

    @property
    def early(self) -> tuple[str, ...]:
        """What is to be said while there is no session."""
        return tuple(text for text, _ in self._early)

    async def follow_trust(self) -> tuple[str, ...] | None:
        """Load what the user trusts by now, and let go of what they do not.

        Returns the names of what is loaded then, `None` where nothing has changed.
        """
        if not self._is_enabled or await asyncio.to_thread(self._trusted) == self._of_project:
            return None
        return await self.reload()

    async def host(self, cwd: Path | None = None) -> ExtensionHost | None:
        """Return the loaded extensions, `None` where there are none. Waits at most as long as one import may take.

        `cwd` is the project whose extensions count, where no session is open yet.
        """
        if not self._is_enabled:
            return None
        self._cwd = self._cwd or cwd
        if self._loading is None:
            await self._look()
        return await asyncio.shield(self._loading) if self._loading is not None else None

    async def wait(self) -> None:
        """Wait before a prompt until everything is loaded; what takes more than a moment is named."""
        if not self._is_enabled:
            return
        loading = asyncio.ensure_future(self.host())
        await asyncio.wait((loading,), timeout=NAMED_AFTER)
        if not loading.done() and self._made is not None:
            names = ", ".join(sorted(self._made.loading))
            self._tell(f"Waiting for extensions, {self._settings.load_timeout:g} seconds at most: {names}", "info")
        await loading

    async def provide(self, model: str, cwd: Path) -> None:
        """Load the extensions now where nobody else knows a model's provider: it may be one of theirs."""
        if not self._models.has_provider(model):
            await self.host(cwd)

    async def reload(self) -> tuple[str, ...]:
        """Let go of everything and load it again from the files as they are now; return the names of what is loaded.

        Installed packages stay as they were imported.
        """
        await self.close()
        self._loading = None
        for name in tuple(self._status):
            self._show_status(name, "")
        host = await self.host()
        if host is None:
            self._use(None)
        return host.names if host is not None else ()

    @property
    def loaded(self) -> ExtensionHost | None:
        """The loaded extensions, without waiting for any."""
        loading = self._loading
        return loading.result() if loading is not None and loading.done() and not loading.cancelled() else None

    async def close(self) -> None:
        """Wait a moment for what is being told, and let go of everything."""
        if self._starting is not None:
            self._starting.cancel()
        if self._loading is None:
            return
        self._loading.cancel()
        await asyncio.wait((self._loading,))
        if self.loaded is not None:
            await self.loaded.close()

    async def _look(self) -> None:
        """Begin to load where there is anything to load: a look at some folders, and no import."""
        is_any = self._own or self._settings.paths or (self._home / FOLDER).is_dir() or self._may_trust()
        if not is_any and self._has_installed is None:
            self._has_installed = await asyncio.to_thread(has_entry_points, tuple(sys.path))
        if self._loading is None and (is_any or self._has_installed):
            self._loading = asyncio.create_task(self._load(), name="extensions")

    async def _load(self) -> ExtensionHost | None:
        from tenuto.extension.finding import find_extensions

        self._of_project = await asyncio.to_thread(self._trusted)
        sources = list(self._own)
        if self._settings.enabled:
            found = await asyncio.to_thread(find_extensions, self._home, self._settings, tuple(self._of_project))
            for problem in found.problems:
                self._report(problem)
            taken = {source.name for source in sources}
            sources += [source for source in found.sources if source.name not in taken]
        if not sources:
            return None
        from tenuto.extension.host import ExtensionHost, Reserved

        reserved = Reserved(
            tools=frozenset(self._tools.names()) - frozenset(tool.name for tool in self._tools.registered),
            commands=self.commands(),
            providers=frozenset(self._models.provider_names()),
        )
        host = ExtensionHost(
            *(self._tell, self._report, self._settings.hook_timeout, self._doors()),
            reserved=reserved,
            load_timeout=self._settings.load_timeout,
        )
        self._made = host
        await host.load(sources)
        self._use(host)
        if self._opened is not None:
            host.hear(self._opened)  # it was open before they were loaded
        return host

    def _use(self, host: ExtensionHost | None) -> None:
        """Give what was registered to those who use it."""
        if host is None:
            self._tools.attach("extensions", None)
            self._models.use_provided(())
            return
        from tenuto.core.state.extension_tools import OwnTools

        self._tools.attach("extensions", OwnTools(host) if host.tool_schemas else None)
        self._models.use_provided(_provided(host))

    def _trusted(self) -> dict[Path, str]:
        """Return the extensions of the project that the user trusts as they are: no other runs (R-085)."""
        cwd = self._cwd
        if cwd is None or not self._settings.enabled or not self._may_trust():
            return {}
        from tenuto.core.state.trust import trusted_extensions

        return trusted_extensions(cwd, self._home)

    # What the loaded extensions keep outlives a session: the open one is looked up when there is something to tell.

    def _doors(self) -> Doors:
        from tenuto.extension.host import Doors

        return Doors(
            wish=self._wish,
            ask=self._ask,
            add_entry=self._add_entry,
            show_status=self._show_status,
            cwd=lambda: self._cwd or Path.cwd(),
        )

    def _tell(self, text: str, level: Level) -> None:
        if self._acts is None:
            self._early.append((text, level))
        else:
            self._acts.notify(text, level)

    def _report(self, text: str) -> None:
        if self._acts is None:
            self._early.append((text, "warning"))
        else:
            self._acts.report(text)

    def _wish(self, name: str, focus: str) -> None:
        if self._acts is not None:
            self._acts.wish(name, focus)

    def _add_entry(self, name: str, text: str, keep: bool) -> None:
        if self._acts is not None:
            self._acts.add_entry(name, text, keep)

    def _show_status(self, name: str, text: str) -> None:
        if text == self._status.get(name, ""):
            return
        self._status[name] = text
        if not text:
            del self._status[name]
        if self._acts is not None:
            self._acts.show_status(name, text)

    async def _ask(self, name: str, prompt: str, system: str, max_tokens: int) -> str:
        if self._acts is None:
            from tenuto.extension.registered import AskError

            raise AskError("no session is open yet")
        return await self._acts.ask(name, prompt, system, max_tokens)


def _provided(host: ExtensionHost) -> Iterable[Provided]:
    from tenuto.extension.providing import ProvidedClient

    for own, lane in host.providers:
        settings = ProviderSettings(
            kind=own.wire, base_url=own.base_url, api_key_env=own.api_key_env, headers=own.headers
        )
        client = ProvidedClient(own, lane) if own.stream is not None else None
        yield Provided(name=own.name, models=own.models, settings=settings, client=client)


def has_entry_points(places: Iterable[str]) -> bool:
    """Say whether an installed package brings extensions: a look at small files, without `importlib.metadata`."""
    for place in places:
        try:
            with os.scandir(place or ".") as entries:
                infos = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        if any(ENTRY_POINTS in _read_small(f"{info}/entry_points.txt") for info in infos):
            return True
    return False


def _read_small(path: str) -> bytes:
    """Return how a file begins, empty where there is none. Without `pathlib`: every start asks for a hundred."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, MOST_ENTRY_POINTS)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
