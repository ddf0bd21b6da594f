"""A keyring in a file, as a backend of the `keyring` library: what a desktop has, on a machine without one."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

BACKEND = f"{__name__}.FileKeyring"


class FileKeyring(KeyringBackend):
    priority = 9  # pyright: ignore

    @property
    def file(self) -> Path:
        return Path(os.environ["KEYRING_FILE"])

    def _read(self) -> dict[str, str]:
        if self.file.name == "locked":
            raise KeyringLocked("the user said no")
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self.file.write_text(json.dumps({**self._read(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError(username)
        self.file.write_text(json.dumps(kept))
