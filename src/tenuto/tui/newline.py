"""Which key makes a new line in this terminal: not every terminal tells Shift+Enter from Enter.

Sources: the manuals of the terminals; tmux(1), "extended-keys".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tenuto.tui.emulator import Emulator, is_xterm, recognise
from tenuto.tui.machine.intent import Intent, KeyboardKnown, Said
from tenuto.tui.multiplexer import ask_tmux

TELLING = frozenset[Emulator]({"kitty", "ghostty", "foot", "iterm2", "zed", "konsole"})
"""Terminals that tell all keys apart when they are asked to by kitty's protocol, as they come. Konsole has Shift+Enter
without it.
"""
MORE_KEYS, NO_MORE_KEYS = "\x1b[>4;1m", "\x1b[>4;0m"
"""Asks xterm and tmux, which do not know kitty's protocol, for the same (`modifyOtherKeys`)."""
ALT_SENDS_ESCAPE, ALT_AS_BEFORE = "\x1b[?1036s\x1b[?1036h", "\x1b[?1036r"
"""Asks xterm, where Alt with B types `â` by itself, for an Escape and the key; xterm remembers what it was before."""
NO_MORE_FLAGS = "\x1b7\x1b[<u"
"""Takes back what was asked for by kitty's protocol; where nothing was, nothing happens. Konsole takes it for "put the
cursor where it was saved", so it is saved before.
"""
CLEAN_KEYBOARD = "\x1b[=0;1u"
"""Takes back what a program that crashed has left switched on."""
TOLD_FILE = Path("told") / "tmux-extended-keys"
ADVICE = (
    "tmux keeps Shift+Enter to itself, because its extended-keys is off: Ctrl+J, or \\ and Enter, begin a new line. To "
    "have Shift+Enter as well:  set -s extended-keys on  in ~/.tmux.conf. This is said once."
)


def more_keys(environ: Mapping[str, str]) -> str:
    """Return what asks for keys told apart where kitty's protocol is not known, empty elsewhere."""
    asks = environ.get("TERM", "").startswith("xterm") and recognise(environ) not in ("kitty", "ghostty")
    asked = MORE_KEYS if environ.get("TMUX") or asks else ""
    return asked + (ALT_SENDS_ESCAPE if is_xterm(environ) else "")


def no_more_keys(environ: Mapping[str, str]) -> str:
    """Return what takes back what `more_keys` asked for."""
    return (NO_MORE_KEYS if more_keys(environ) else "") + (ALT_AS_BEFORE if is_xterm(environ) else "")


async def learn_keyboard(home: Path, environ: Mapping[str, str], handle: Callable[[Intent], None]) -> None:
    """Find out whether Shift+Enter arrives here, and say once what tmux needs for it."""
    if not environ.get("TMUX"):
        handle(KeyboardKnown(is_xterm(environ) or recognise(environ) in TELLING))
        return
    setting = (await ask_tmux("show-options", "-sv", "extended-keys")).strip()  # empty: a tmux without it
    handle(KeyboardKnown(setting in ("on", "always")))
    if setting == "off" and _tell_first_time(home / TOLD_FILE):
        handle(Said(ADVICE))


def _tell_first_time(mark: Path) -> bool:
    """Leave the mark; return whether it was not there. Where nothing can be written, nothing is said each time."""
    try:
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True
