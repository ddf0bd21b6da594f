"""`tenuto plugins`: add, list, update, enable, disable and remove plugins, with what each brings item by item."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, add_directory, agrees, complain, parse, say, say_json
from tenuto.cli.plugins.obtaining import MarketplaceFound, Staged, Wanted, obtained, read_wanted
from tenuto.config.plugins.installed import (
    Added,
    PluginsError,
    changing_records,
    data_folder,
    plugin_folder,
    read_added,
)
from tenuto.config.plugins.manifest import PluginError
from tenuto.config.settings import Settings
from tenuto.core.state.found import Around, Found, FoundKind, describe_found, find_everything, in_plugin
from tenuto.exit_codes import BAD_USAGE, FAILED, OK
from tenuto.private_files import make_directory
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_bytes, plural
from tenuto.text.matching import did_you_mean

ACTS = ("list", "add", "update", "enable", "disable", "remove")
PARTS: tuple[FoundKind, ...] = ("skills", "commands", "agents", "hooks", "servers")
_SHOWN = 120
_MOST_ENTRIES = 200
_RUNS = "Its hooks and servers run as you, outside of the sandbox, without being asked about again."


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto plugins`."""
    parser = Parser(
        prog="tenuto plugins",
        description="Plugins bring skills, commands, agents, hooks and MCP servers. add copies a folder or fetches a "
        "git repository, shows what is in it and asks once; of a marketplace it lists the plugins, and SOURCE#NAME "
        "adds one.",
    )
    parser.add_argument("act", nargs="?", choices=ACTS, default="list", help="default: list")
    parser.add_argument(
        "what", nargs="?", default="", metavar="SOURCE|NAME", help="with add: PATH, URL or OWNER/REPOSITORY, and #NAME"
    )
    parser.add_argument("--ref", default="", metavar="REF", help="with add: a branch, tag or commit")
    parser.add_argument("--yes", action="store_true", help="do not ask: it is agreed to")
    parser.add_argument("--json", action="store_true", help="with list: as one JSON object")
    add_directory(parser, "the directory that a PATH is seen from")
    return parser


def run_plugins(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto plugins …`; returns the exit code: 0 done, 1 it cannot be done, 2 bad usage."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    cwd = working_directory(parsed.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    if bool(parsed.what) == (parsed.act == "list"):
        return complain(
            "list takes nothing more" if parsed.what else f"{parsed.act} what? tenuto plugins --help shows it"
        )
    changing = _Changing(home, environ, agreed=parsed.yes)
    try:
        match parsed.act:
            case "list":
                return _list(home, as_json=parsed.json)
            case "add":
                return changing.add(read_wanted(parsed.what, parsed.ref, cwd))
            case _:
                return changing.change(parsed.act, parsed.what)
    except MarketplaceFound as found:
        return _list_marketplace(found, parsed.what)
    except (PluginError, PluginsError) as error:
        source = shorten(parsed.what.partition("#")[0], _SHOWN)
        return complain(str(error) if source in str(error) else f"{source}: {error}", FAILED)
    except OSError as error:
        return complain(f"nothing was changed: {error.filename or home}: {error.strerror or error}", FAILED)


class _Changing:
    """The acts that change something. `agreed`: nobody is asked."""

    def __init__(self, home: Path, environ: Mapping[str, str], *, agreed: bool) -> None:
        self._home = home
        self._environ = environ
        self._agreed = agreed

    def add(self, wanted: Wanted) -> int:
        """Get a plugin, show it, and keep it where the user agrees."""
        with obtained(wanted, self._home, self._environ) as staged:
            if (there := read_added(self._home).find(staged.name)) is not None:
                way = f"tenuto plugins update {there.name} gets it again, remove makes room"
                raise PluginError(f"there is a plugin {there.name} already, from {there.record.source}; {way}")
            rows = parts_of(staged.home, staged.name)
            _show(staged.added, rows)
            if not self._may(f"Add {staged.name}?"):
                return FAILED
            self._put(staged)
        say(f"Added {staged.name}. It holds in new sessions; skills and commands at once, hooks after /reload.")
        return OK

    def change(self, act: str, name: str) -> int:
        """Update, enable, disable or remove one that was added."""
        found = read_added(self._home)
        if found.problem:
            raise PluginsError(found.problem)
        added = found.find(name)
        if added is None:
            return complain(
                f"there is no plugin {name}{did_you_mean(name, [one.name for one in found.added])}", BAD_USAGE
            )
        match act:
            case "update":
                return self._update(added)
            case "enable":
                return self._enable(added)
            case "disable":
                self._keep(added, enabled=False)
                say(f"{name} is off; tenuto plugins enable {name} uses it again.")
            case _:
                self._remove(added)
                say(f"Removed {name}, with what its programs kept.")
        return OK

    def _update(self, added: Added) -> int:
        record = added.record
        wanted = Wanted(source=record.source, entry=record.entry, ref=record.ref)
        with obtained(wanted, self._home, self._environ) as staged:
            if staged.name != added.name:
                raise PluginError(f"it is called {staged.name} there now; remove {added.name} and add it again")
            if staged.added.record.digest == record.digest and added.state in ("used", "off"):
                say(f"{added.name} is up to date.")
                return OK
            _show(staged.added, parts_of(staged.home, staged.name), parts_of(self._home, added.name))
            if not self._may(f"Update {added.name}?"):
                return FAILED
            self._put(staged, enabled=record.enabled)
        say(f"Updated {added.name}.")
        return OK

    def _enable(self, added: Added) -> int:
        if added.plugin is None:
            raise PluginError(added.problem)
        if added.state == "changed":
            with obtained(Wanted(source=str(added.root)), self._home, self._environ) as staged:
                _show(staged.added, parts_of(staged.home, staged.name))
                if not self._may(f"Use {added.name} as it is now?"):
                    return FAILED
                self._keep(added, enabled=True, digest=staged.added.record.digest)
        else:
            self._keep(added, enabled=True)
        say(f"{added.name} is used.")
        return OK

    def _may(self, question: str) -> bool:
        """Ask the user, where there is one."""
        if self._agreed:
            return True
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            complain("nothing was changed: nobody can be asked here; --yes agrees to what is shown")
            return False
        if agrees(question):
            return True
        say("Nothing was changed.")
        return False

    def _put(self, staged: Staged, *, enabled: bool = True) -> None:
        """Put the files that were shown in their place, and note what was agreed to."""
        name, target = staged.name, plugin_folder(self._home, staged.name)
        old = staged.home / "old"
        with changing_records(self._home) as records:
            make_directory(data_folder(self._home, name))
            if os.path.lexists(target):
                target.rename(old)
            plugin_folder(staged.home, name).rename(target)
            records[name] = msgspec.structs.replace(staged.added.record, enabled=enabled)

    def _keep(self, added: Added, *, enabled: bool, digest: str = "") -> None:
        with changing_records(self._home) as records:
            record = records.get(added.name, added.record)
            records[added.name] = msgspec.structs.replace(record, enabled=enabled, digest=digest or record.digest)

    def _remove(self, added: Added) -> None:
        gone = added.root.with_name(f".old-{os.urandom(6).hex()}")
        with changing_records(self._home) as records:
            records.pop(added.name, None)
            if os.path.lexists(added.root):
                added.root.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        shutil.rmtree(data_folder(self._home, added.name), ignore_errors=True)


def parts_of(home: Path, name: str) -> list[Found]:
    """Return what a plugin brings, read as a session reads it; nothing where it does not count."""
    path = {"PATH": os.environ.get("PATH", os.defpath)}
    around = Around(home=home, cwd=home, environ=path, settings=Settings())
    return in_plugin(find_everything(around, PARTS), name)


def _show(added: Added, rows: Sequence[Found], before: Sequence[Found] | None = None) -> None:
    """Show a plugin item by item; with `before`, what of it is new and what is gone."""
    plugin = added.plugin
    if plugin is None:
        return
    head = " ".join(
        word for word in (plugin.name, plugin.version, f"({plugin.license})" if plugin.license else "") if word
    )
    say(f"{head}{f': {shorten(plugin.description, _SHOWN)}' if plugin.description else ''}")
    commit = f" at {added.record.commit[:12]}" if added.record.commit else ""
    say(f"from {added.record.source}{commit}, {_size(added.root)}")
    was = None if before is None else Counter(describe_found(row) for row in before)
    for row in rows:
        said = describe_found(row)
        mark = "+ " if was is not None and not was[said] else "  "
        where = os.path.relpath(row.file, added.root) if row.file else ""
        left = f": left out: {row.left_out}" if row.left_out else ""
        say(f"{mark}{said}{f' ({where})' if where else ''}{left}")
    now = {describe_found(row) for row in rows}
    for row in before or ():
        if (said := describe_found(row)) not in now:
            say(f"- {said}")
    for problem in plugin.problems:
        say(f"  left out: {problem}")
    if not rows:
        say("  It brings nothing that is used here.")
    if any(row.kind in ("hooks", "servers") and row.is_used for row in rows):
        say(_RUNS)


def _size(root: Path) -> str:
    files = [Path(place, name) for place, _, names in os.walk(root) for name in names]
    programs = sum(os.access(file, os.X_OK) for file in files)
    size = sum(file.lstat().st_size for file in files)
    return f"{plural(len(files), 'file')}, {format_bytes(size)}{f', {programs} of them programs' if programs else ''}"


def _list(home: Path, *, as_json: bool) -> int:
    found = read_added(home)
    rows = {one.name: parts_of(home, one.name) for one in found.added}
    if as_json:
        say_json({"plugins": [_plain(one, rows[one.name]) for one in found.added], "problem": found.problem})
        return OK
    if found.problem:
        return complain(found.problem, FAILED)
    for one in found.added:
        version = f" {one.plugin.version}" if one.plugin is not None and one.plugin.version else ""
        state = one.problem or count_parts(rows[one.name])
        say(f"{one.name}{version}: {state}")
        say(f"  from {one.record.source}{f'#{one.record.entry}' if one.record.entry else ''}")
        for problem in one.plugin.problems if one.plugin is not None else ():
            say(f"  left out: {problem}")
    if not found.added:
        say("There are no plugins. tenuto plugins add PATH or URL adds one.")
    return OK


def count_parts(rows: Sequence[Found]) -> str:
    """Return how many things of each kind are used, in words."""
    counts = Counter(row.kind for row in rows if row.is_used)
    said = [plural(counts[kind], kind.removesuffix("s")) for kind in PARTS if counts[kind]]
    left = sum(not row.is_used for row in rows)
    return ", ".join(said or ["nothing that is used here"]) + (f"; {left} left out" if left else "")


def _plain(one: Added, rows: Sequence[Found]) -> dict[str, object]:
    plugin = one.plugin
    return {
        "name": one.name,
        "version": plugin.version if plugin is not None else "",
        "description": plugin.description if plugin is not None else "",
        "license": plugin.license if plugin is not None else "",
        "state": one.state,
        "problem": one.problem,
        "folder": str(one.root),
        "source": one.record.source,
        "entry": one.record.entry,
        "ref": one.record.ref,
        "commit": one.record.commit,
        "parts": rows,
        "left_out": plugin.problems if plugin is not None else (),
    }


def _list_marketplace(found: MarketplaceFound, written: str) -> int:
    """List the plugins that can be chosen from."""
    market = found.market
    say(f"{market.name} is a marketplace with {plural(len(market.entries), 'plugin')}:")
    for entry in market.entries[:_MOST_ENTRIES]:
        name = f"{entry.name} {entry.version}".strip()
        left = f"cannot be added: {entry.problem}" if entry.problem else shorten(entry.description, _SHOWN)
        say(f"  {name}{f': {left}' if left else ''}")
    return complain(f"which one? tenuto plugins add {written}#NAME")
