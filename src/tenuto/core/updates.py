"""Whether there is a newer Tenuto: the package index is asked for the version, once a day at most; nothing is sent."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from tenuto.model.endpoint import Endpoint, host_of
from tenuto.model.http.transport import HttpTransport
from tenuto.private_files import make_directory, replace_file
from tenuto.protocol.model import ModelError
from tenuto.text.json_access import as_dict, as_text, decode_object
from tenuto.version import __version__

INDEX = "https://pypi.org/pypi/tenuto/json"
PAUSE = 24 * 3600.0
"""Seconds between two questions."""
TIMEOUT = 20.0
MAX_BYTES = 5_000_000
ASKED = Path("told") / "update"
"""When it was asked for last (seconds since the epoch), in Tenuto's home."""
MANAGERS = {
    ("uv", "tools"): "uv tool upgrade tenuto",
    ("pipx", "venvs"): "pipx upgrade tenuto",
    ("Cellar", "tenuto"): "brew upgrade tenuto",
}
"""What upgrades a program, by two folders that follow each other on the way to its environment."""


def is_due(home: Path, environ: Mapping[str, str], now: float) -> bool:
    """Say whether it is time to ask: not where a machine runs Tenuto (`CI`), and once a day."""
    if environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    try:
        asked = float((home / ASKED).read_text()[:40])
    except (OSError, ValueError):
        return True
    return not 0 <= now - asked < PAUSE


async def find_notice(home: Path, url: str, now: float) -> str:
    """Return the line that says which newer version is there, empty for none, or where nobody answers."""
    with contextlib.suppress(OSError):
        make_directory((home / ASKED).parent)
        replace_file(home / ASKED, str(now).encode())
    found = await _ask(url or INDEX)
    if not found or not is_newer(found, __version__):
        return ""
    return f"Tenuto {found} is there: {upgrade_command(Path(sys.prefix), Path(__file__).parents[1])}"


def upgrade_command(prefix: Path, package: Path) -> str:
    """Return what the user types to get a newer version; `prefix` is the environment, `package` where our code lies."""
    checkout = package.parent.parent
    if package.parent.name == "src" and (checkout / "pyproject.toml").is_file():
        return shlex.join(["git", "-C", str(checkout), "pull"])
    names = prefix.parts
    found = next((command for folders, command in MANAGERS.items() if folders in pairwise(names)), "")
    return found or shlex.join([str(prefix / "bin" / "python"), "-m", "pip", "install", "--upgrade", "tenuto"])


def is_newer(found: str, present: str) -> bool:
    """Say whether a released version comes after the present one; trial versions are not offered."""
    if not re.fullmatch(r"\d+(\.\d+)*", found):
        return False
    return _numbers(found) > _numbers(present)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in release.group().split(".")] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


async def _ask(url: str) -> str:
    if not url.startswith(("https://", "http://")) or not host_of(url):
        return ""
    transport = HttpTransport(Endpoint(provider="update", kind="openai-chat", base_url=url))
    try:
        async with asyncio.timeout(TIMEOUT):
            data = await transport.get(url, {"accept": "application/json"}, MAX_BYTES)
        return as_text(as_dict(as_dict(decode_object(data)).get("info")).get("version"))
    except (ModelError, TimeoutError, ValueError):
        return ""
    finally:
        await transport.close()
