"""Links as terminals take them (OSC 8): which targets are sent, and to which terminals."""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Mapping
from urllib.parse import quote, unquote

from tenuto.tui.render.links import PATH
from tenuto.tui.terminal.emulator import in_screen, is_over_ssh

SCHEMES = ("https://", "http://", "mailto:", "file://")
LONGEST = 2_000
"""Characters of a target: some terminals take no more, and print the rest."""
END = "\x1b]8;;\x1b\\"


class Hyperlinks:
    """Makes targets of links, or nothing on terminals that would print them. `directory` is what paths start from."""

    def __init__(self, environ: Mapping[str, str], directory: str = "") -> None:
        self._enabled = knows_links(environ)
        self._lines = "kitty" in environ.get("TERM", "") or bool(environ.get("KITTY_WINDOW_ID"))
        self._host = socket.gethostname() if is_over_ssh(environ) else ""
        self.directory = directory

    def target(self, link: str) -> str:
        """Return the address of a link of a style name; empty for one that is not to be sent."""
        if not self._enabled or not link:
            return ""
        address = self._file(link.removeprefix(PATH)) if link.startswith(PATH) else quote(link, safe=_AS_IS)
        return address if address.lower().startswith(SCHEMES) and len(address) <= LONGEST else ""

    def _file(self, written: str) -> str:
        quoted, _, line = written.partition("#")
        path = os.path.expanduser(unquote(quoted))  # noqa: PTH111 - never raises, whatever is written
        if not path.startswith("/"):
            if not self.directory:
                return ""
            path = os.path.normpath(f"{self.directory}/{path}")
        # Most terminals hand the whole to the desktop, which takes a line for a part of the name.
        return f"file://{self._host}{quote(path)}{f'#{line}' if line and self._lines else ''}"


_AS_IS = ":/?#[]@!$&'()*+,;=%-._~"


def knows_links(environ: Mapping[str, str]) -> bool:
    """Say whether a terminal may be sent links: all but few take them, or leave them out."""
    return environ.get("TERM", "") not in ("", "dumb", "linux") and not in_screen(environ)


def hyperlink(shown: str, target: str) -> str:
    """Return a piece of text as a link. Pieces with one target are one link, also where they stand in two rows."""
    return f"\x1b]8;id={zlib.crc32(target.encode()):x};{target}\x1b\\{shown}{END}"
