"""The extensions of a running program: found and imported when somebody may need them, kept for every session.

Where there are none, nothing of `tenuto.extension` is imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.config.settings import ExtensionSettings
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Level

if TYPE_CHECKING:
    from tenuto.extension.host import ExtensionHost

FOLDER = "extensions"
PROJECT_FOLDER = Path(".tenuto") / FOLDER
MAX_NAMED = 5


class Extensions:
    """Loads extensions once. Files are loaded beside the session's start, installed packages at the first hook."""

    def __init__(self, home: Path, settings: ExtensionSettings) -> None:
        self._home = home
        self._settings = settings
        self._notify: Callable[[str, Level], None] = lambda _text, _level: None
        self._report: Callable[[str], None] = lambda _text: None
        self._wish: Callable[[str, str], None] = lambda _name, _focus: None
        self._loading: asyncio.Task[ExtensionHost | None] | None = None
        self._refused: set[Path] = set()

    def begin(
        self,
        cwd: Path,
        notify: Callable[[str, Level], None],
        report: Callable[[str], None],
        wish: Callable[[str, str], None],
    ) -> None:
        """Say what of the project of a session that was opened is not run, and load the user's own files.

        `notify` tells the session's user something, `report` a fault; `wish` is told who asks for a compaction with
        which focus.
        """
        self._notify, self._report, self._wish = notify, report, wish
        if not self._settings.enabled:
            return
        self._refuse_project(cwd)
        if self._settings.paths or (self._home / FOLDER).is_dir():
            self._start()

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

        found = await asyncio.to_thread(find_extensions, self._home, self._settings)
        for problem in found.problems:
            self._report(problem)
        if not found.sources:
            return None
        from tenuto.extension.host import ExtensionHost

        host = ExtensionHost(self._tell, self._tell_fault, self._settings.hook_timeout, self._tell_wish)
        await host.load(found.sources)
        return host

    def _refuse_project(self, cwd: Path) -> None:
        """Name what a project brings: it does not run without consent (R-085). Once for each project."""
        folder = cwd / PROJECT_FOLDER
        if folder in self._refused or not folder.is_dir() or folder.resolve() == (self._home / FOLDER).resolve():
            return
        self._refused.add(folder)
        from tenuto.extension.host import list_files

        names = [sanitize_line(path.name) for path in list_files(folder)]
        if not names:
            return
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        self._notify(
            f"This project brings extensions ({', '.join(names[:MAX_NAMED])}{more}); they are not run. To use one, "
            f"read it and copy it to {self._home / FOLDER}",
            "warning",
        )

    # What the loaded extensions keep outlives a session: the open one is looked up when there is something to tell.

    def _tell(self, text: str, level: Level) -> None:
        self._notify(text, level)

    def _tell_wish(self, name: str, focus: str) -> None:
        self._wish(name, focus)

    def _tell_fault(self, text: str) -> None:
        self._report(text)
