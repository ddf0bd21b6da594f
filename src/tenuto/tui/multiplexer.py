"""What stands between us and the terminal: tmux and GNU screen, and how a sequence gets through them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Mapping

from msgspec import Struct

from tenuto.tui.emulator import Emulator, recognise, recognise_name

SCREEN_BYTES = 700
"""GNU screen passes strings of up to 768 bytes through."""
PATIENCE = 1.0
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
    """Return what this tmux command prints, without the line's end; empty when it fails or takes over `PATIENCE`."""
    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *("tmux", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                out, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return ""
        return out.decode("utf-8", "replace").strip("\n") if process.returncode == 0 else ""
    return ""
