"""Checks of files: settings and where each comes from, Tenuto's home, sessions, the disk."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.cli.parsing import shown_value
from tenuto.config.fitting import name_key
from tenuto.config.settings import UiSettings
from tenuto.config.sources import ENVIRONMENT, Source, made_settings
from tenuto.private_files import write_new
from tenuto.session.library.catalog import BIN, list_bin, session_directories
from tenuto.session.paths import SESSIONS
from tenuto.text.figures import format_bytes, plural
from tenuto.tui.keys.key_file import read_key_file
from tenuto.tui.themes import find_any

MAX_DETAILS = 40
"""So many settings are listed."""
MAX_NAMED = 5
MAX_FILES = 200_000
"""So many files of a home are looked at."""
SCARCE, FULL = 1_000_000_000, 100_000_000
"""Bytes of free disk under which a note is worth it, and under which work will soon fail."""


async def check_settings(place: Surroundings) -> list[Row]:
    """Tell every setting that somebody made with its place, and every one that does not hold."""
    rows = [
        Row("settings", place.short(problem), "note" if source.is_project else "problem", _advice(source))
        for source in place.sources
        for problem in source.problems
    ]
    rows += [Row("theme", problem, "problem", "change ui.theme, or the file") for problem in _theme_problems(place)]
    keys = read_key_file(place.home / "keys.toml").problems
    rows += [
        Row("keys.toml", place.short(problem), "problem", "change that line; /keys lists the keys") for problem in keys
    ]
    made = list(_made(place))
    counted = [
        f"{len(made_settings([source]))} in {place.short(source.name)}" for source in place.sources if source.values
    ]
    details = made[:MAX_DETAILS] + ([f"and {len(made) - MAX_DETAILS} more"] if made[MAX_DETAILS:] else [])
    return [*rows, Row("settings", "; ".join(counted) or "none are made; the defaults hold", details=tuple(details))]


def _advice(source: Source) -> str:
    if source.is_project:
        return "tell the project's owner, or leave it: it changes nothing"
    return "change or remove that variable" if source.name == ENVIRONMENT else "change or remove that line"


def _theme_problems(place: Surroundings) -> tuple[str, ...]:
    theme = place.settings.ui.theme
    return () if theme == UiSettings().theme else find_any(theme, place.home, place.environ, light=False).problems


def _made(place: Surroundings) -> Iterator[str]:
    """Yield each setting with its value and its place, later sources first in force."""
    for one in made_settings(place.sources):
        over = "; overruled" if one.overruled else ""
        yield f"{name_key(one.key)} = {shown_value(one.key, one.value)} ({place.short(one.place)}{over})"


class Inventory(Struct):
    """What lies in a home: bytes, files, and what cannot be written. `is_whole`: all of it was looked at."""

    size: int = 0
    files: int = 0
    locked: list[str] = field(default_factory=list[str])
    is_whole: bool = True


async def check_home(place: Surroundings) -> list[Row]:
    """Tell whether Tenuto's home is there, private, and can be written."""
    home, shown = place.home, place.short(place.home)
    set_by = " (TENUTO_HOME)" if place.environ.get("TENUTO_HOME") else ""
    try:
        facts = home.stat()
    except FileNotFoundError:
        return [_missing_home(home, f"{shown}{set_by} is not there yet")]
    except OSError as error:
        return [Row("home", f"{shown}{set_by}: {error.strerror}", "problem", "set TENUTO_HOME to a folder of your own")]
    if not stat.S_ISDIR(facts.st_mode):
        return [Row("home", f"{shown}{set_by} is no folder", "problem", "set TENUTO_HOME to a folder of your own")]
    reason = why_not_writable(home)
    if reason:
        do = "give it to your user (chown, chmod 700), or set TENUTO_HOME to another folder; sessions are not saved"
        return [Row("home", f"{shown}{set_by} cannot be written: {reason}", "problem", do)]
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077:
        do = f"chmod 700 {shown}; sessions and keys in it are private all the same"
        return [Row("home", f"{shown}{set_by}, mode {mode:03o}: others may look into it", "note", do)]
    return [Row("home", f"{shown}{set_by}, mode {mode:03o}")]


def _missing_home(home: Path, found: str) -> Row:
    parent = next((above for above in home.parents if above.is_dir()), Path("/"))
    reason = why_not_writable(parent)
    if reason:
        do = "set TENUTO_HOME to a folder that you can write; sessions are not saved"
        return Row("home", f"{found}, and {parent} cannot be written: {reason}", "problem", do)
    return Row("home", f"{found}; the first start makes it")


def why_not_writable(directory: Path) -> str:
    """Return why no file can be made in a directory, empty where one can: a file is made and removed."""
    attempt = directory / f".doctor.{os.getpid()}.new"
    try:
        write_new(attempt, b"")
        attempt.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def is_writable(path: Path) -> bool:
    """Say whether a file or directory that is there can be written by this process."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


async def check_sessions(place: Surroundings) -> list[Row]:
    """Tell how many sessions there are, what they take, and which files cannot be written."""
    count = sum(1 for _ in session_directories(place.home))
    found = take_stock(place.home)
    rows: list[Row] = []
    if found.locked:
        named = ", ".join(place.short(name) for name in found.locked[:MAX_NAMED])
        more = f" and {len(found.locked) - MAX_NAMED} more" if found.locked[MAX_NAMED:] else ""
        do = f"give them to your user: chown -R and chmod -R u+rwX {place.short(place.home)}"
        rows.append(Row("files", f"cannot be written: {named}{more}", "problem", do))
    size = f"{format_bytes(found.size)}{'' if found.is_whole else ' and more'} in {place.short(place.home)}"
    in_bin = len(list_bin(place.home))
    binned = f", {plural(in_bin, 'session')} in the bin" if in_bin else ""
    return [*rows, Row("sessions", f"{plural(count, 'session')}{binned}; {size}")]


def take_stock(home: Path) -> Inventory:
    """Look at all files of a home. Links are not followed."""
    found = Inventory()
    for place, folders, names in os.walk(home):
        for name in [*folders, *names]:
            path = Path(place, name)
            if found.files >= MAX_FILES:
                found.is_whole = False
                return found
            found.files += 1
            with suppress(OSError):
                facts = path.lstat()
                found.size += facts.st_size if stat.S_ISREG(facts.st_mode) else 0
                if not stat.S_ISLNK(facts.st_mode) and not is_writable(path):
                    found.locked.append(str(path))
    return found


async def check_disk(place: Surroundings) -> list[Row]:
    """Tell how much room the disk of the home has."""
    folder = next((one for one in (place.home, *place.home.parents) if one.is_dir()), Path("/"))
    try:
        usage = shutil.disk_usage(folder)
        left = os.statvfs(folder)
    except OSError as error:
        return [Row("disk", f"{folder}: {error.strerror}", "problem", "look at the disk")]
    found = f"{format_bytes(usage.free)} free of {format_bytes(usage.total)}"
    if left.f_files and not left.f_favail:
        return [Row("disk", f"{found}, and no room for another file", "problem", "delete files; inodes are used up")]
    if usage.free < FULL:
        return [Row("disk", found, "problem", f"make room: sessions are in {place.short(place.home / SESSIONS)}")]
    if usage.free < SCARCE:
        return [Row("disk", found, "note", f"make room; {place.short(place.home / BIN)} holds deleted sessions")]
    return [Row("disk", found)]
