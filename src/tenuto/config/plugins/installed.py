"""The plugins that a user added: copies in Tenuto's home, where each came from, and the content that was agreed to.

A plugin counts while its files are the ones that the user said yes to. One that changed is left out until they say so
again: `tenuto plugins enable` shows what it brings.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.config.consent import digest_of
from tenuto.config.plugins.manifest import DATA, Plugin, PluginError, is_name, read_plugin
from tenuto.config.project import MADE_BY_RUNNING, HookFile, RefusedFileError, find_hook_files, read_regular
from tenuto.private_files import doubt_file, locked, make_directory, replace_file
from tenuto.text.writable import to_json

FOLDER, FILE = "plugins", "plugins.json"
MAX_FILES, MAX_BYTES = 5_000, 50_000_000
"""Files and bytes of one plugin."""
State = Literal["used", "off", "changed", "broken"]


class PluginsError(Exception):
    """The file of added plugins cannot be read or written; the message says why."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Where a plugin came from, and what was agreed to.

    `entry` is its name in the marketplace at `source`, empty where the source is the plugin; `commit` the one that was
    checked out, empty for a folder.
    """

    source: str
    digest: str
    ref: str = ""
    entry: str = ""
    commit: str = ""
    enabled: bool = True


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin that was added. `plugin` is `None` where it is broken; `problem` says why it does not count."""

    name: str
    root: Path
    record: Record
    state: State
    plugin: Plugin | None = None
    problem: str = ""


class AddedPlugins(msgspec.Struct, frozen=True):
    """All of them, by name. `problem` says why none counts, empty when they do."""

    added: tuple[Added, ...] = ()
    problem: str = ""

    @property
    def usable(self) -> tuple[Plugin, ...]:
        """Those that count."""
        return tuple(one.plugin for one in self.added if one.plugin is not None and one.state == "used")

    def find(self, name: str) -> Added | None:
        """Return the plugin of a name."""
        return next((one for one in self.added if one.name == name), None)


def plugin_folder(home: Path, name: str) -> Path:
    """Return where a plugin's files lie."""
    return home / FOLDER / name


def data_folder(home: Path, name: str) -> Path:
    """Return where a plugin's programs keep things."""
    return home / DATA / name


def read_added(home: Path) -> AddedPlugins:
    """Return what there is. Costs a look at one name where no plugin was ever added; never raises."""
    stamp = _stamp(home / FILE)
    if not stamp:
        return AddedPlugins()
    try:
        records = _read_records(home / FILE, stamp)
    except PluginsError as error:
        return AddedPlugins(problem=str(error))
    named = sorted(name for name in records if is_name(name))
    return AddedPlugins(tuple(_look(home, name, records[name]) for name in named))


def usable_plugins(home: Path) -> tuple[Plugin, ...]:
    """Return the plugins that count."""
    return read_added(home).usable


def all_hook_files(home: Path, cwd: Path, environ: Mapping[str, str], *, shared: bool = True) -> list[HookFile]:
    """Return the hook files of the user and the project, then those of plugins.

    A plugin's count as the user's own: they said yes to what is in them.
    """
    files = find_hook_files(home, cwd, environ, shared=shared)
    for plugin in usable_plugins(home):
        files += [HookFile(file, is_shared=True, plugin=plugin.root) for file in plugin.hooks]
    return files


def digest_folder(root: Path) -> str:
    """Return what tells the files of a folder, with whether they can be run, from all others.

    Raises `PluginError` where that cannot be told: too many, too large, or something that is no file.
    """
    parts: list[str | bytes] = ["plugin"]
    room, count = MAX_BYTES, 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in MADE_BY_RUNNING)
        for name in sorted((*names, *(one for one in folders if Path(place, one).is_symlink()))):
            if name.endswith(".pyc"):
                continue
            file = Path(place, name)
            shown = os.path.relpath(file, root)
            count += 1
            if count > MAX_FILES:
                raise PluginError(f"it has more than {MAX_FILES:,} files")
            try:
                data = read_regular(file, (root,), limit=max(1, room))
                is_program = os.access(file, os.X_OK)
            except (FileNotFoundError, RefusedFileError) as error:
                raise PluginError(f"{shown}: {error}") from None
            room -= len(data)
            parts += [shown.encode("utf-8", "surrogateescape"), "x" if is_program else "-", data]
    return digest_of(*parts)


def forget_what_was_read() -> None:
    """Compare every plugin's files again at the next look."""
    _read.cache_clear()


def _look(home: Path, name: str, record: Record) -> Added:
    root = plugin_folder(home, name)
    return _read(root, _stamp(root), name, record)


@lru_cache(maxsize=1_024)
def _read(root: Path, stamp: tuple[int, ...], name: str, record: Record) -> Added:
    """`stamp` is another one when the folder was exchanged; what changes inside is seen by the next process."""
    if not stamp:
        problem = f"its folder {root} is gone; tenuto plugins remove {name} forgets it"
        return Added(name=name, root=root, record=record, state="broken", problem=problem)
    try:
        plugin = read_plugin(root, name)
        if plugin.name != name:
            raise PluginError(f"its manifest calls it {plugin.name}")
        digest = digest_folder(root)
    except PluginError as error:
        return Added(name=name, root=root, record=record, state="broken", problem=str(error))
    if digest != record.digest:
        problem = f"its files have changed since you added it; tenuto plugins enable {name} shows and uses them"
        return Added(name=name, root=root, record=record, state="changed", plugin=plugin, problem=problem)
    if not record.enabled:
        problem = f"you switched it off; tenuto plugins enable {name} uses it again"
        return Added(name=name, root=root, record=record, state="off", plugin=plugin, problem=problem)
    return Added(name=name, root=root, record=record, state="used", plugin=plugin)


@lru_cache(maxsize=8)
def _read_records(file: Path, stamp: tuple[int, ...]) -> dict[str, Record]:
    """Raises `PluginsError`; `stamp` is another one when the file has changed."""
    del stamp
    try:
        if doubt := doubt_file(file):
            raise PluginsError(f"{file} {doubt}, so no plugin counts")
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Record])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PluginsError(f"{file} cannot be read, so no plugin counts: {error}") from None


@contextlib.contextmanager
def changing_records(home: Path) -> Generator[dict[str, Record]]:
    """Give the records to be changed, and write them; no other process does so meanwhile. Raises `PluginsError`."""
    file = home / FILE
    try:
        make_directory(home)
        with locked(home):
            stamp = _stamp(file)
            records = dict(_read_records(file, stamp)) if stamp else {}
            yield records
            text = msgspec.json.format(to_json(records), indent=1)
            replace_file(file, text + b"\n")
    except OSError as error:
        raise PluginsError(f"{file} cannot be written: {error.strerror or error}") from error


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when a file or a folder is exchanged, empty where there is none."""
    try:
        facts = path.stat()
    except OSError:
        return ()
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_dev)
