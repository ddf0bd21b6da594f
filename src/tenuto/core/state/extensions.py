"""The extensions of a running program: found and imported when somebody may need them, kept for every session.

Where there are none, nothing of `tenuto.extension` is imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.config.project import EXTENSIONS, TRUST_FILE, find_upwards
from tenuto.config.settings import ExtensionSettings
from tenuto.protocol.entry import Level

if TYPE_CHECKING:
    from tenuto.extension.host import ExtensionHost

FOLDER = "extensions"


class Extensions:
    """Loads extensions once. Files are loaded beside the session's start, installed packages at the first hook."""

    def __init__(self, home: Path, settings: ExtensionSettings) -> None:
        self._home = home
        self._settings = settings
        self._notify: Callable[[str, Level], None] = lambda _text, _level: None
        self._report: Callable[[str], None] = lambda _text: None
        self._wish: Callable[[str, str], None] = lambda _name, _focus: None
        self._loading: asyncio.Task[ExtensionHost | None] | None = None
        self._following: asyncio.Task[tuple[str, ...] | None] | None = None
        self._cwd: Path | None = None
        self._of_project: dict[Path, str] = {}
        """The extensions of a project that were loaded, or are being, with the digest of what is in them."""

    def begin(
        self,
        cwd: Path,
        notify: Callable[[str, Level], None],
        report: Callable[[str], None],
        wish: Callable[[str, str], None],
    ) -> None:
        """Load the user's own files, and those of the project of a session that was opened which the user trusts.

        `notify` tells the session's user something, `report` a fault; `wish` is told who asks for a compaction with
        which focus.
        """
        self._notify, self._report, self._wish, self._cwd = notify, report, wish, cwd
        if not self._settings.enabled:
            return
        if self._loading is not None and (self._of_project or self._may_trust()):
            self._following = asyncio.create_task(self.follow_trust(), name="extensions of another project")
        elif self._settings.paths or (self._home / FOLDER).is_dir() or self._may_trust():
            self._start()

    def _may_trust(self) -> bool:
        """Say whether the project has extensions and the user has ever trusted anything."""
        return (self._home / TRUST_FILE).is_file() and self._folder() is not None

    def _folder(self) -> Path | None:
        return find_upwards(self._cwd, self._home, EXTENSIONS) if self._cwd is not None else None

    async def follow_trust(self) -> tuple[str, ...] | None:
        """Load what the user trusts by now, and let go of what they do not.

        Returns the names of what is loaded then, `None` where nothing has changed.
        """
        if not self._settings.enabled or await asyncio.to_thread(self._trusted) == self._of_project:
            return None
        return await self.reload()

    async def host(self) -> ExtensionHost | None:
        """Return the loaded extensions, `None` where there are none."""
        if not self._settings.enabled:
            return None
        return await asyncio.shield(self._start())

    async def reload(self) -> tuple[str, ...]:
        """Let go of everything and load it again from the files as they are now; return the names of what is loaded.

        Installed packages stay as they were imported.
        """
        await self.close()
        self._loading = None
        host = await self.host()
        return host.names if host is not None else ()

    @property
    def loaded(self) -> ExtensionHost | None:
        """The loaded extensions, without waiting for any."""
        loading = self._loading
        return loading.result() if loading is not None and loading.done() and not loading.cancelled() else None

    async def close(self) -> None:
        """Wait a moment for what is being told, and let go of everything."""
        if self._loading is None:
            return
        self._loading.cancel()
        await asyncio.wait((self._loading,))
        if self.loaded is not None:
            await self.loaded.close()

    def _start(self) -> asyncio.Task[ExtensionHost | None]:
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(), name="extensions")
        return self._loading

    async def _load(self) -> ExtensionHost | None:
        from tenuto.extension.host import find_extensions

        self._of_project = await asyncio.to_thread(self._trusted)
        found = await asyncio.to_thread(find_extensions, self._home, self._settings, tuple(self._of_project))
        for problem in found.problems:
            self._report(problem)
        if not found.sources:
            return None
        from tenuto.extension.host import ExtensionHost

        host = ExtensionHost(self._tell, self._tell_fault, self._settings.hook_timeout, self._tell_wish)
        await host.load(found.sources)
        return host

    def _trusted(self) -> dict[Path, str]:
        """Return the extensions of the project that the user trusts as they are: no other runs (R-085)."""
        cwd = self._cwd
        if cwd is None or not self._may_trust():
            return {}
        from tenuto.core.state.trust import trusted_extensions

        return trusted_extensions(cwd, self._home)

    # What the loaded extensions keep outlives a session: the open one is looked up when there is something to tell.

    def _tell(self, text: str, level: Level) -> None:
        self._notify(text, level)

    def _tell_wish(self, name: str, focus: str) -> None:
        self._wish(name, focus)

    def _tell_fault(self, text: str) -> None:
        self._report(text)
