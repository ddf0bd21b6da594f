"""Which terminal this is, and what it can do beyond what all can: by its environment or by its own name. Pure.

Sources: each terminal's manual; a sequence that is not understood is swallowed, except where noted. Also links (OSC 8):
which targets are sent, and to which terminals.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import zlib
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, unquote

from msgspec import Struct

from tenuto.tui.render.line import PATH

Emulator = Literal[
    "kitty", "ghostty", "wezterm", "iterm2", "foot", "rxvt", "warp", "zed", "vscode", "windows-terminal", "conemu"
    , "konsole", "vte", "apple", "alacritty", "xterm", "other"
]  # fmt: skip
NotificationForm = Literal["", "osc9", "osc99", "osc777"]
Reflow = Literal["cuts", "wraps", "wraps-above", "counts", "clears"]
"""What a terminal does with rows that have become too long: cut them; wrap them, and the cursor stays with its
character; wrap those above the one with the cursor (Konsole); wrap all but the one with the cursor, which is moved by
all rows that there are more, also by those below it (xterm.js).
"""

_BY_PROGRAM: dict[str, Emulator] = {
    "ghostty": "ghostty",
    "wezterm": "wezterm",
    "iterm.app": "iterm2",
    "warpterminal": "warp",
    "zed": "zed",
    "vscode": "vscode",
    "apple_terminal": "apple",
}
_BY_VARIABLE: tuple[tuple[str, Emulator], ...] = (
    ("KITTY_WINDOW_ID", "kitty"),
    ("GHOSTTY_RESOURCES_DIR", "ghostty"),
    ("WEZTERM_PANE", "wezterm"),
    ("ITERM_SESSION_ID", "iterm2"),
    ("WT_SESSION", "windows-terminal"),
    ("KONSOLE_VERSION", "konsole"),
    ("VTE_VERSION", "vte"),
    ("ALACRITTY_WINDOW_ID", "alacritty"),
)
_BY_NAME: tuple[tuple[str, Emulator], ...] = (
    ("kitty", "kitty"),
    ("ghostty", "ghostty"),
    ("wezterm", "wezterm"),
    ("iterm2", "iterm2"),
    ("foot", "foot"),
    ("rxvt", "rxvt"),
    ("vte", "vte"),
    ("konsole", "konsole"),
    ("alacritty", "alacritty"),
    ("xterm", "xterm"),
)
_NOTIFICATION_FORMS: dict[Emulator, NotificationForm] = {
    "kitty": "osc99",
    "vscode": "osc99",
    "iterm2": "osc9",
    "zed": "osc9",
    "ghostty": "osc777",
    "wezterm": "osc777",
    "foot": "osc777",
    "rxvt": "osc777",
    "warp": "osc777",
    "konsole": "osc777",
    "vte": "osc777",
    # Over ssh most terminals call themselves xterm, and most of them know this form.
    "xterm": "osc777",
}
_PROGRESS = frozenset[Emulator]({"ghostty", "wezterm", "windows-terminal", "conemu", "konsole"})
"""Not iTerm2: versions before 3.6.6 show each report as a notification."""
NO_OSC52 = frozenset[Emulator]({"apple"})
"""Drop what is sent to the clipboard (OSC 52)."""


def recognise(environ: Mapping[str, str]) -> Emulator:
    """Return the terminal that the program runs in; in tmux and screen that is one of those, so `other`."""
    if in_multiplexer(environ):
        return "other"
    found = _BY_PROGRAM.get(environ.get("TERM_PROGRAM", "").lower())
    if found is not None:
        return found
    if environ.get("ConEmuANSI") == "ON":
        return "conemu"
    for variable, emulator in _BY_VARIABLE:
        if environ.get(variable):
            return emulator
    if environ.get("LC_TERMINAL") == "iTerm2":  # the one that ssh takes along
        return "iterm2"
    return recognise_name(environ.get("TERM", ""))


def recognise_name(*names: str) -> Emulator:
    """Return the terminal by its names, the most telling one first: its answer to XTVERSION, its `TERM`."""
    for name in names:
        for part, emulator in _BY_NAME:
            if part in name.lower():
                return emulator
    return "other"


def is_xterm(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal is xterm itself; most others call themselves that."""
    # What is started from it inherits its variable.
    return bool(environ.get("XTERM_VERSION")) and recognise(environ) == "xterm"


def in_multiplexer(environ: Mapping[str, str]) -> bool:
    """Say whether tmux, GNU screen or zellij stands between us and the terminal."""
    return any(environ.get(name) for name in ("TMUX", "STY", "ZELLIJ"))


def in_screen(environ: Mapping[str, str]) -> bool:
    """Say whether GNU screen stands there, on this machine or on the one that ssh came from."""
    return bool(environ.get("STY")) or (environ.get("TERM", "").startswith("screen") and not environ.get("TMUX"))


def is_over_ssh(environ: Mapping[str, str]) -> bool:
    """Say whether the user sits at another machine.

    tmux gives a new window SSH_CONNECTION as its client has it, and SSH_TTY as it was when the server began.
    """
    return bool(environ.get("SSH_CONNECTION") or (environ.get("SSH_TTY") and not environ.get("TMUX")))


def notification_form(emulator: Emulator) -> NotificationForm:
    """Return how a desktop notification is asked for, empty where there is no way."""
    return _NOTIFICATION_FORMS.get(emulator, "")


def shows_progress(emulator: Emulator) -> bool:
    """Say whether the terminal is known to show progress (OSC 9;4)."""
    return emulator in _PROGRESS


SCREEN_BYTES = 700
"""GNU screen passes strings of up to 768 bytes through."""
TMUX_SECONDS = 1.0
"""Seconds that tmux has for an answer."""
_QUESTION = "#{allow-passthrough}\t#{client_termtype}\t#{client_termname}\t#{set-clipboard}"


class Outer(Struct, frozen=True):
    """The terminal at the end of the line: which one it is, and whether a sequence can get there."""

    emulator: Emulator
    reachable: bool = True


def wrap(sequence: str, environ: Mapping[str, str]) -> str:
    """Return the sequence as the multiplexer passes it on: itself without one, empty where it cannot be passed."""
    if environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environ.get("STY"):
        return f"\x1bP{sequence}\x1b\\" if len(sequence) <= SCREEN_BYTES and "\x1b\\" not in sequence else ""
    return sequence


def wrap_in_pieces(sequence: str) -> str:
    """Return a sequence of any length without ST in it as GNU screen passes it on: the terminal gets it whole."""
    pieces = (sequence[start : start + SCREEN_BYTES] for start in range(0, len(sequence), SCREEN_BYTES))
    return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)


async def ask_outer(environ: Mapping[str, str]) -> Outer:
    """Return which terminal is at the end of the line. tmux is asked each time: its client may be another one now."""
    if environ.get("TMUX"):
        target = ("-t", environ["TMUX_PANE"]) if environ.get("TMUX_PANE") else ()
        answer = await ask_tmux("display-message", "-p", *target, _QUESTION)
        allowed, kind, name = (answer.split("\t") + [""] * 3)[:3]
        return Outer(recognise_name(kind, name), reachable=allowed not in ("", "0", "off"))
    if environ.get("STY"):
        return Outer("iterm2" if environ.get("LC_TERMINAL") == "iTerm2" else "xterm")
    return Outer(recognise(environ))


async def ask_tmux(*words: str) -> str:
    """Return what this tmux command prints, without the line's end; empty when it fails or takes too long."""
    import asyncio  # nothing else here needs it, and the first frame of a session comes before it

    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *("tmux", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(TMUX_SECONDS):
                out, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return ""
        return out.decode("utf-8", "replace").strip("\n") if process.returncode == 0 else ""
    return ""


# --- links ---


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
