"""Whether there is to be a first light, and of what: only where that is as good as certain to come. Imports nothing.

In doubt the answer is no: then everything is as if this package did not exist.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUBCOMMANDS = frozenset(
    {
        "sessions",
        "models",
        "login",
        "logout",
        "acp",
        "approvals",
        "import",
        "doctor",
        "config",
        "search",
        "stats",
        "eval",
        "batch",
        "prompt",
        "sandbox",
        "trust",
        "hooks",
        "extensions",
        "skills",
        "plugins",
        "mcp",
        "completion",
    }
)
PROJECT_FILE = ".tenuto/settings.toml"
SETTINGS_BYTES = 65_536
MODES = ("plan", "ask", "edits", "auto")
"""The strictest first: a project may only make it stricter (`config/trust.py`)."""
EARLIER_SESSION = frozenset({"-c", "--continue", "-r", "--resume"})
SHORT = {"-m": "--model", "-C": "--cwd"}
FLAGS = EARLIER_SESSION | {"--no-session", "--inline"}


def choose_front_end(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the front-end that the command line and the settings ask for, `full` or `inline`, empty when in doubt."""
    words = read_options(arguments)
    if words is None or environ.get("TENUTO_PROFILE"):
        return ""
    if "--inline" in words:
        return "inline"
    match wants_inline(environ, words.get("--cwd", "")):
        case "true":
            return "inline"
        case "" | "false":
            return "full"
        case _:
            return ""


def read_options(arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the options with their values; `None` unless the command line surely opens one of the two screens."""
    if arguments[:1] and arguments[0] in SUBCOMMANDS:
        return None
    if len(arguments) == 1 and arguments[0].isalpha():  # it may be a subcommand written badly
        return None
    seen: dict[str, str] = {}
    earlier = 0
    index = 0
    while index < len(arguments):
        word = SHORT.get(arguments[index], arguments[index])
        index += 1
        if not word.startswith("-"):
            continue
        value = ""
        if word not in FLAGS:
            value = arguments[index] if index < len(arguments) else ""
            if not _takes(word, value):
                return None
            index += 1
        seen[word] = value
        earlier += word in EARLIER_SESSION
    return None if earlier > 1 or (earlier and "--no-session" in seen) else seen


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


def wants_inline(environ: Mapping[str, str], cwd: str = "") -> str:
    """Return what the settings say of the inline front-end, by a look for the word: the environment, the project's,
    the user's own. `true`, `false`, empty when nothing, and something else when it takes more than a look.
    """
    if said := environ.get("TENUTO_UI__INLINE"):
        return {"1": "true", "0": "false"}.get(said, said.lower())
    return _said_of_inline(_project_settings(cwd)) or _said_of_inline(_settings(environ))


def _said_of_inline(settings: bytes) -> str:
    found, section = "", b""
    for line in settings.splitlines() if b"inline" in settings else ():
        code = line.partition(b"#")[0].strip()
        if code.startswith(b"["):
            section = code
        if b"inline" in code:
            name, _, value = code.partition(b"=")
            plain = section == b"[ui]" and name.strip() == b"inline" and not found
            found = value.strip().decode("ascii", "replace") if plain else "?"
    return found


IMMOVABLE = ("", "dumb", "unknown")
"""What `TERM` is where the cursor cannot be moved."""


def is_accessible(environ: Mapping[str, str]) -> bool:
    """Say whether the environment asks for lines that a screen reader can read."""
    return environ.get("ACCESSIBLE", "").lower() not in ("", "0", "false", "no")


def wanted_theme(environ: Mapping[str, str]) -> str:
    """Return the theme of the user's settings, `auto` when none is found: a look for the word, no parsing."""
    if name := environ.get("TENUTO_UI__THEME"):
        return name
    for line in _settings(environ).splitlines():
        before, word, after = line.partition(b"theme")
        value = after.strip().removeprefix(b"=").strip()
        if word and b"#" not in before and value[:1] in (b'"', b"'"):
            return value[1:].partition(value[:1])[0].decode("ascii", "replace")
    return "auto"


def wanted_mode(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the approval mode of the session that is going to be opened, empty when in doubt: it is then not shown."""
    words = read_options(arguments)
    if words is None or not EARLIER_SESSION.isdisjoint(words):
        return ""
    if mode := words.get("--mode", environ.get("TENUTO_MODE", "")):
        return mode if mode in MODES else ""
    own, projects = _said_of_mode(_settings(environ)), _said_of_mode(_project_settings(words.get("--cwd", "")))
    return min(own or "ask", projects or own or "ask", key=MODES.index) if "?" not in (own, projects) else ""


def _said_of_mode(settings: bytes) -> str:
    """Return the mode that stands before the first section, empty for none, `?` when it takes more than a look."""
    found = ""
    for line in settings.splitlines():
        code = line.partition(b"#")[0].strip()
        if code.startswith(b"["):
            break
        name, _, value = code.partition(b"=")
        doubtful = b"\\" in name or b'"""' in value or b"'''" in value
        if name.strip(b" \t\"'") != b"mode" and not doubtful:
            continue
        word = value.strip()[1:-1].decode("ascii", "replace")
        plain = name.strip() == b"mode" and value.strip()[:1] in (b'"', b"'") and word in MODES and not found
        found = word if plain else "?"
    return found


def _settings(environ: Mapping[str, str]) -> bytes:
    home = environ.get("TENUTO_HOME", "") or f"{environ.get('HOME', '')}/.tenuto"
    return _read(f"{home}/settings.toml")


def _project_settings(cwd: str) -> bytes:
    """Return the nearest settings file from `cwd` up to the root of its repository, as `config/sources.py` does."""
    try:
        here = place = os.path.abspath(cwd)  # noqa: PTH100 - pathlib would have to be imported
    except OSError:
        return b""
    found = b""
    while place:
        found = found or _read(f"{place}/{PROJECT_FILE}")
        if os.access(f"{place}/.git", os.F_OK):
            return found
        place = place.rpartition("/")[0]
    return _read(f"{here}/{PROJECT_FILE}")


def _read(path: str) -> bytes:
    """Return the beginning of a regular file: a pipe under this name would be waited for."""
    try:
        if os.stat(path).st_mode & 0o170000 != 0o100000:  # noqa: PTH116 - neither pathlib nor stat is there yet
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
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
