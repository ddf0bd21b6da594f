"""Getting a plugin from where it is: a folder, a git repository, or an entry of a marketplace in one of these.

What is got lies in a home of its own first, laid out like Tenuto's, so that the readers of a session can be asked what
it brings before anything counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

import msgspec

from tenuto.config.plugins.copying import copy_folder
from tenuto.config.plugins.installed import (
    FILE,
    FOLDER,
    MAX_BYTES,
    Added,
    Record,
    digest_folder,
    plugin_folder,
    read_added,
)
from tenuto.config.plugins.manifest import MANIFESTS, PluginError, find_manifest, inner_path, is_name, read_plugin
from tenuto.config.plugins.marketplace import (
    GITHUB,
    SHORT,
    Elsewhere,
    Entry,
    Marketplace,
    folder_of,
    read_marketplace,
)
from tenuto.guard.git import GitFailedError, GitRefusedError
from tenuto.guard.git_fetching import check_address, fetch_repository
from tenuto.private_files import make_directory, make_new_directory, write_new
from tenuto.text.writable import to_json

SECONDS = 120.0
"""That fetching a repository may take."""
FETCHED_BYTES = 4 * MAX_BYTES
"""Of a repository with its history's one commit: a marketplace has many plugins."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for: an address or a folder, and the name of a plugin in it where it is a marketplace."""

    source: str
    entry: str = ""
    ref: str = ""

    @property
    def is_address(self) -> bool:
        """Whether git has to fetch it."""
        return "://" in self.source


class MarketplaceFound(Exception):  # noqa: N818 - it names what was found
    """The source is a marketplace, and nobody said which plugin of it is wanted."""

    def __init__(self, market: Marketplace) -> None:
        super().__init__(market.name)
        self.market = market


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that was got: a home with it and nothing else, and what is known of it."""

    home: Path
    added: Added

    @property
    def name(self) -> str:
        """Its name."""
        return self.added.name


def read_wanted(text: str, ref: str, cwd: Path) -> Wanted:
    """Return what `PATH|URL[#NAME]` means. Raises `PluginError`."""
    source, _, entry = text.partition("#")
    if source.startswith("-") or not source:
        raise PluginError(f"{text[:80]!r} is neither a folder nor an address")
    if entry and not is_name(entry):
        raise PluginError(f"{entry[:80]!r} is no name of a plugin")
    folder = Path(os.path.abspath(cwd / Path(source).expanduser()))  # noqa: PTH100 - links stay as they are written
    if "://" not in source and "::" not in source and folder.is_dir():
        if ref:
            raise PluginError(f"--ref is for repositories that are fetched; file://{folder} is one")
        return Wanted(source=str(folder), entry=entry)
    if source.startswith(("/", "./", "../", "~")):
        raise PluginError(f"there is no folder {source[:200]}")
    if SHORT.fullmatch(source):
        source = f"{GITHUB}{source}"
    elif source.startswith("git@") and "://" not in source:
        host, _, path = source.partition(":")
        source = f"ssh://{host}/{path}"
    elif "://" not in source and "::" not in source:
        raise PluginError(f"{source[:200]} is no folder and no address")
    if problem := check_address(source, ref):
        raise PluginError(f"{source[:200]}: {problem}")
    return Wanted(source=source, entry=entry, ref=ref)


@contextlib.contextmanager
def obtained(wanted: Wanted, home: Path, environ: Mapping[str, str], seconds: float = SECONDS) -> Generator[Staged]:
    """Give the plugin that is wanted, in a home of its own that is removed afterwards.

    Raises `PluginError`, `MarketplaceFound` and `OSError`.
    """
    make_directory(home / FOLDER)
    stage = home / FOLDER / f".new-{os.urandom(6).hex()}"
    make_new_directory(stage)
    try:
        yield _stage(wanted, stage, environ, seconds)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _stage(wanted: Wanted, stage: Path, environ: Mapping[str, str], seconds: float) -> Staged:
    root, commit = _root_of(Elsewhere(wanted.source, wanted.ref), stage / "fetched", environ, seconds)
    folder, entry = _choose(root, wanted)
    if entry is not None and isinstance(entry.source, Elsewhere):
        elsewhere = entry.source
        root, commit = _root_of(elsewhere, stage / "elsewhere", environ, seconds)
        folder = inner_path(root, elsewhere.folder or ".")
    default = entry.name if entry is not None else _last_name(wanted.source)
    has_manifest = find_manifest(folder) is not None
    name = read_plugin(folder, default).name if has_manifest or entry is None else entry.name
    target = plugin_folder(stage, name)
    copy_folder(folder, target, root)
    if entry is not None and not has_manifest:
        make_directory((target / MANIFESTS[0]).parent)
        write_new(target / MANIFESTS[0], msgspec.json.format(to_json(entry.values)))
    record = Record(
        source=wanted.source, digest=digest_folder(target), ref=wanted.ref, entry=wanted.entry, commit=commit
    )
    write_new(stage / FILE, to_json({name: record}))
    added = read_added(stage).find(name)
    if added is None or added.plugin is None or added.state != "used":
        raise PluginError(added.problem if added is not None else "it cannot be read")
    return Staged(home=stage, added=added)


def _root_of(where: Elsewhere, target: Path, environ: Mapping[str, str], seconds: float) -> tuple[Path, str]:
    """Return the folder that a source is, fetched where it is an address, and the commit."""
    if "://" not in where.address:
        if not Path(where.address).is_dir():
            raise PluginError(f"{where.address} is not there any more")
        return Path(where.address), ""
    try:
        commit = fetch_repository(where.address, where.ref, target, environ, seconds=seconds, limit=FETCHED_BYTES)
    except (GitRefusedError, GitFailedError) as error:
        raise PluginError(f"{where.address}: {error}") from None
    return target, commit


def _choose(root: Path, wanted: Wanted) -> tuple[Path, Entry | None]:
    """Return the plugin's folder in a source, and its entry where that is a marketplace."""
    market = read_marketplace(root)
    if not wanted.entry:
        if market is None or find_manifest(root) is not None:
            return root, None
        raise MarketplaceFound(market)
    if market is None:
        plugin = read_plugin(root, _last_name(wanted.source))
        if plugin.name == wanted.entry:
            return root, None
        raise PluginError(f"{wanted.source} is no marketplace, so #{wanted.entry} names nothing in it")
    entry = market.find(wanted.entry)
    return (folder_of(root, market, entry.source), entry) if isinstance(entry.source, str) else (root, entry)


def _last_name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2].removesuffix(".git")
