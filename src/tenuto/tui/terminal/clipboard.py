"""The clipboard: by the system's own command where there is one, by tmux, and by way of the terminal (OSC 52).

What is said afterwards is what is known: a command that ended well has copied; a terminal does not answer.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
from collections.abc import Mapping

from msgspec import Struct

from tenuto.text.figures import format_bytes
from tenuto.tui.terminal.emulator import NO_OSC52, in_screen, is_over_ssh, recognise, wrap, wrap_in_pieces

OSC52_BYTES = 1_000_000
"""More base64 than this is not sent to the terminal: most drop it or stall."""
NO_CLIPBOARD = frozenset({"", "dumb", "unknown", "linux"})
"""What `TERM` is where there is no clipboard behind it; old consoles would print the text."""
COMMAND_SECONDS = 3.0
"""Seconds that a system's command may take."""
COPY_TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("pbcopy",)),
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
)
"""(variable that must be set, command that takes the text on stdin)"""
TMUX_COPY = ("tmux", "load-buffer", "-w", "-")
"""Into tmux's buffer and, by tmux, to its terminal's clipboard: what a program in it sends is ignored by default."""


class Copied(Struct, frozen=True):
    """What is to be written to the terminal, what to say, and whether there was any way at all."""

    sequence: str
    message: str
    sent: bool = True


async def copy_text(text: str, environ: Mapping[str, str]) -> Copied:
    """Copy by every way there is."""
    ran = [command[0] for command in copy_commands(environ) if await _run(command, text)]
    sequence = copy_sequence(text, environ)
    many = f"{len(text):,} characters" if len(text) != 1 else "1 character"
    if ran:
        return Copied(sequence, f"Copied {many} ({', '.join(ran)})")
    if sequence:
        return Copied(sequence, f"Sent {many} to the terminal's clipboard (OSC 52)")
    return Copied("", f"Not copied: {_why_not(text, environ)}", sent=False)


def _why_not(text: str, environ: Mapping[str, str]) -> str:
    tools = "there is no way over ssh but that" if is_over_ssh(environ) else "install wl-copy, xclip or xsel"
    if _takes_none(environ):
        return f"this terminal takes no copies from programs; {tools}"
    return f"{format_bytes(len(text.encode('utf-8', 'replace')))} are too much for the terminal (OSC 52); {tools}"


def _takes_none(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "") in NO_CLIPBOARD or recognise(environ) in NO_OSC52


def copy_sequence(text: str, environ: Mapping[str, str]) -> str:
    """Return what puts `text` on the clipboard by way of the terminal (OSC 52), empty where it would do harm.

    Inside tmux the sequence also goes wrapped, for a tmux that passes such ones through. GNU screen would print it, and
    passes it through in pieces.
    """
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(encoded) > OSC52_BYTES or _takes_none(environ):
        return ""
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX"):
        return sequence + wrap(sequence, environ)
    return wrap_in_pieces(sequence) if in_screen(environ) else sequence


def copy_commands(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the commands to hand a text to: the system's own, but not over ssh (it is another machine's), and tmux."""
    import shutil

    commands: list[tuple[str, ...]] = []
    if not is_over_ssh(environ):
        for variable, command in COPY_TOOLS:
            if (not variable or environ.get(variable)) and shutil.which(command[0], path=environ.get("PATH")):
                commands.append(command)
                break
    if environ.get("TMUX") and shutil.which("tmux", path=environ.get("PATH")):
        commands.append(TMUX_COPY)
    return commands


def encode_for(command: tuple[str, ...], text: str) -> bytes:
    """Return the bytes that a command takes: Windows' own reads UTF-16, and another encoding as mojibake."""
    return text.encode("utf-16-le" if command[0] == "clip.exe" else "utf-8", "replace")


async def _run(command: tuple[str, ...], text: str) -> bool:
    """Hand `text` to a command; say whether that worked."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            await process.communicate(encode_for(command, text))
    except (OSError, TimeoutError):
        return False
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                process.kill()
    return process.returncode == 0
