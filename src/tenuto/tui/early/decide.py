"""Whether there is to be a first light: only where the full screen is as good as certain to come. Imports nothing.

In doubt the answer is no: then everything is as if this package did not exist.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUBCOMMANDS = frozenset({"sessions", "acp", "import", "doctor", "config", "stats", "eval", "sandbox"})
SETTINGS_BYTES = 65_536
MODES = frozenset({"ask", "edits", "auto", "plan"})
EARLIER_SESSION = frozenset({"-c", "--continue", "-r", "--resume"})


def is_for_full_screen(arguments: Sequence[str]) -> bool:
    """Say whether the command line is one that opens the full screen, without a word of complaint."""
    if arguments[:1] and arguments[0] in SUBCOMMANDS:
        return False
    seen: list[str] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        if not word.startswith("-"):
            continue
        seen.append(word)
        if word in ("-c", "--continue", "--no-session", "-r", "--resume"):
            continue
        value = arguments[index] if index < len(arguments) else ""
        if not _takes(word, value):
            return False
        index += 1
    earlier = [word for word in seen if word in EARLIER_SESSION]
    return len(earlier) <= 1 and not (earlier and "--no-session" in seen)


def _takes(option: str, value: str) -> bool:
    if not value or value.startswith("-"):
        return False
    match option:
        case "--model":
            return True
        case "--mode":
            return value in MODES
        case "--cwd":
            return os.path.isdir(value)  # noqa: PTH112 - pathlib would have to be imported
        case _:
            return False


def may_be_inline(environ: Mapping[str, str]) -> bool:
    """Say whether the person's settings, or the project's, may ask for the inline front-end: a look for the word."""
    if environ.get("TENUTO_UI__INLINE"):
        return True
    return b"inline" in _settings(environ) or b"inline" in _project_settings()


IMMOVABLE = ("", "dumb", "unknown")
"""What `TERM` is where the cursor cannot be moved."""


def is_accessible(environ: Mapping[str, str]) -> bool:
    """Say whether the environment asks for lines that a screen reader can read."""
    return environ.get("ACCESSIBLE", "").lower() not in ("", "0", "false", "no")


def wanted_theme(environ: Mapping[str, str]) -> str:
    """Return the theme of the person's settings, `auto` when none is found: a look for the word, no parsing."""
    if name := environ.get("TENUTO_UI__THEME"):
        return name
    for line in _settings(environ).splitlines():
        before, word, after = line.partition(b"theme")
        value = after.strip().removeprefix(b"=").strip()
        if word and b"#" not in before and value[:1] in (b'"', b"'"):
            return value[1:].partition(value[:1])[0].decode("ascii", "replace")
    return "auto"


def _settings(environ: Mapping[str, str]) -> bytes:
    home = environ.get("TENUTO_HOME", "") or f"{environ.get('HOME', '')}/.tenuto"
    return _read(f"{home}/settings.toml")


def _project_settings() -> bytes:
    """Return the nearest settings file above here; the directory that `--cwd` names is not looked at."""
    try:
        place = os.getcwd()  # noqa: PTH109 - pathlib would have to be imported
    except OSError:
        return b""
    while place:
        if found := _read(f"{place}/.tenuto/settings.toml"):
            return found
        place = place.rpartition("/")[0]
    return b""


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, SETTINGS_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def is_terminal_ready(environ: Mapping[str, str]) -> bool:
    """Say whether there is a terminal that can move its cursor, and that is ours to use."""
    if sys.platform == "win32" or environ.get("TERM", "") in IMMOVABLE or is_accessible(environ):
        return False
    try:
        return all(map(os.isatty, (0, 1, 2))) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
