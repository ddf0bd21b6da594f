"""What servers had when they were last asked: with it a session's first request waits for no server.

One file for each server, as it is configured, and each directory that it was started in: what a server has may depend
on both. A listing that turns out to be another is told like every change; that of a server that does not start goes.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tenuto.config.mcp.servers import NamedServer
from tenuto.private_files import make_directory, replace_file
from tenuto.text.writable import to_json
from tenuto.tool.mcp.remote import Listing
from tenuto.version import __version__

FOLDER = "mcp-listings"
MOST_FILES = 200
"""Files that are kept, the newest ones."""


class StoredListings:
    """The listings below Tenuto's home, for servers that are started in `cwd`. Every method touches the disk."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self._folder = home / FOLDER
        self._cwd = cwd

    def load(self, servers: Iterable[NamedServer]) -> dict[str, Listing]:
        """Return what is known of these servers, by their names."""
        found: dict[str, Listing] = {}
        for one in servers:
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                found[one.name] = msgspec.json.decode(self._path(one).read_bytes(), type=Listing)
        return found

    def keep(self, server: NamedServer, listing: Listing) -> None:
        """Keep what a server has now; a disk that refuses costs the next start a wait and nothing else."""
        path, data = self._path(server), to_json(listing)
        with contextlib.suppress(OSError):
            if not (path.is_file() and path.read_bytes() == data):
                make_directory(self._folder)
                replace_file(path, data)
                self._drop_old()

    def forget(self, server: NamedServer) -> None:
        """Keep nothing of a server: the next start waits for it again."""
        with contextlib.suppress(OSError):
            self._path(server).unlink(missing_ok=True)

    def _path(self, server: NamedServer) -> Path:
        facts = (__version__, server.name, server.source, server.server, str(self._cwd))
        return self._folder / f"{hashlib.sha256(to_json(facts)).hexdigest()[:32]}.json"

    def _drop_old(self) -> None:
        files = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[MOST_FILES:]:
            path.unlink(missing_ok=True)
