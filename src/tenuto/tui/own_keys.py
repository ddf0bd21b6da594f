"""Where the user's own keys are, and what the runner does with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tenuto.tui.bindings import Bindings, default_bindings
from tenuto.tui.key_file import FILE_NAME, key_file_text, read_key_file
from tenuto.tui.keys import CONTEXT_TITLES, key_list
from tenuto.tui.machine.intent import Intent, KeysLoaded


class OwnKeys:
    """`home` is Tenuto's own directory."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME

    def read(self, handle: Callable[[Intent], None]) -> tuple[str, ...]:
        """Have the keys of the file used from now on; return a line for everything that is wrong with it."""
        found = read_key_file(self.path)
        handle(KeysLoaded(found.bindings))
        return tuple(found.problems)

    def prepare(self) -> None:
        """Make a file that explains itself, if there is none. Raises `OSError`."""
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = key_file_text(default_bindings().rows, CONTEXT_TITLES)
            self.path.write_text(text, encoding="utf-8")
            self.path.chmod(0o600)

    def describe(self, bindings: Bindings) -> str:
        """Return the list of `/keys`."""
        return key_list(bindings, str(self.path))
