"""The clipboard: by way of the terminal (OSC 52), and by the system's own command where there is one."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from collections.abc import Mapping

OSC52_BYTES = 1_000_000
"""More base64 than this is not sent to the terminal: most drop it or stall."""
COPY_TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("pbcopy",)),
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
)
"""(variable that must be set, command that takes the text on stdin)"""


def copy_sequence(text: str, environ: Mapping[str, str]) -> str:
    """Return what puts `text` on the clipboard by way of the terminal (OSC 52), empty where it would do harm.

    Inside tmux the sequence also goes wrapped, for a tmux that passes such ones through. GNU screen would print it.
    """
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    in_tmux = bool(environ.get("TMUX"))
    if len(encoded) > OSC52_BYTES or (environ.get("TERM", "").startswith("screen") and not in_tmux):
        return ""
    sequence = f"\x1b]52;c;{encoded}\x07"
    if not in_tmux:
        return sequence
    return sequence + "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def copy_command(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the system's own clipboard command, `None` when there is none (or the clipboard is on another machine)."""
    if environ.get("SSH_TTY"):
        return None
    for variable, command in COPY_TOOLS:
        if (not variable or environ.get(variable)) and shutil.which(command[0]):
            return command
    return None


async def copy_with_tool(text: str, environ: Mapping[str, str]) -> bool:
    """Hand `text` to the system's clipboard command; say whether that worked."""
    command = copy_command(environ)
    if command is None:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        async with asyncio.timeout(3.0):
            await process.communicate(text.encode("utf-8", "replace"))
    except (OSError, TimeoutError):
        return False
    return process.returncode == 0
