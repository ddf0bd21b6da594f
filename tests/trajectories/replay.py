"""A recording played through our tools: what they take, where edits land, what results cost."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.text.estimate import estimate_text
from tests.tool.support import Bench, make_bench
from tests.trajectories.calls import (
    Create,
    Edit,
    Find,
    Lines,
    Look,
    Other,
    Patch,
    Recorded,
    Replace,
    Search,
    Sed,
    Several,
    Shell,
)
from tests.trajectories.scratch import Scratch, after_lines, after_sed, is_filler

TOOLS = {
    Look: "read", Create: "write", Replace: "edit", Several: "edit", Lines: "edit", Sed: "edit", Patch: "apply_patch",
    Search: "grep", Find: "glob", Shell: "bash",
}  # fmt: skip


SLIPS: dict[str, Callable[[str], str]] = {
    "blanks at the ends of lines": lambda text: re.sub(r"(?<=\S)$", "  ", text, flags=re.MULTILINE),
    "no blanks at the ends of lines": lambda text: re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE),
    "tabs for blanks": lambda text: text.replace("    ", "\t"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "typographic quotes": lambda text: text.replace('"', "\u201d").replace("'", "\u2019"),
}
"""How models misquote what they have read."""
NUMBERS = (
    *("calls", "other", "landed", "confirmed", "elsewhere", "unchecked", "unseen"),
    *("refused_by_both", "refused_by_them", "linted"),
)


@dataclass
class Tally:
    """Counts of calls. `taken` are accepted by ours, of `asked`, which are those that worked for them."""

    calls: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    landed: int = 0
    confirmed: int = 0
    """Of those that landed: a later answer shows the file, before any command could have changed it."""
    elsewhere: int = 0
    unchecked: int = 0
    """Edits whose result no later answer shows."""
    unseen: int = 0
    """Edits of text, and looks at places, that the recording never shows; they are not played."""
    refused_by_both: int = 0
    refused_by_them: int = 0
    """What failed for them and works with ours, but for what a linter of theirs refused."""
    linted: int = 0
    other: int = 0
    theirs: Counter[str] = field(default_factory=Counter)
    """Tokens of results, by our tool."""
    ours: Counter[str] = field(default_factory=Counter)
    slips: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What became of edits whose old text had a slip: (slip, "landed", "refused" or "elsewhere")."""
    faults: list[str] = field(default_factory=list)

    def add(self, more: Tally) -> None:
        for name in ("asked", "taken", "theirs", "ours", "slips"):
            getattr(self, name).update(getattr(more, name))
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.faults += more.faults


async def replay(recording: Sequence[Recorded]) -> Tally:
    """Play a recording in a folder that goes away afterwards. No command of it is run."""
    with tempfile.TemporaryDirectory() as folder:
        bench = make_bench(Path(folder))
        player = _Player(bench, Scratch(bench.work))
        try:
            for call in recording:
                await player.play(call)
        finally:
            await bench.context.close()
            bench.session.close()
        player.forget()
        return player.tally


class _Player:
    def __init__(self, bench: Bench, scratch: Scratch) -> None:
        self.bench = bench
        self.scratch = scratch
        self.tally = Tally()
        self.pending: dict[Path, tuple[str, bool]] = {}
        """Edits that nothing has shown yet, by their file; and whether their bytes are those that theirs makes."""
        self.stale: set[Path] = set()
        """Files that a command may have changed, as long as no answer shows all of them."""

    async def play(self, call: Recorded) -> None:
        self.tally.calls += 1
        wanted = call.wanted
        if isinstance(wanted, Other):
            self.tally.other += 1
        elif isinstance(wanted, Edit):
            await self._edit(call)
        elif isinstance(wanted, Look):
            await self._look(call, wanted)
        elif not call.failed or isinstance(wanted, Shell):
            await self._prepare(call)
        if isinstance(wanted, Shell):  # it may have changed any file
            self.forget()
            self.stale.update(path for path in self.scratch.folder.rglob("*") if path.is_file())

    def forget_one(self, place: Path) -> None:
        """A further edit of a file: nothing will show what the one before it came to."""
        self.tally.unchecked += place in self.pending and not self.pending.pop(place)[1]

    def forget(self) -> None:
        """Expect nothing more of the edits so far."""
        self.tally.unchecked += sum(not compared for _, compared in self.pending.values())
        self.pending.clear()

    async def _prepare(self, call: Recorded) -> None:
        """Have the arguments read and judged, and nothing run: files and programs are theirs."""
        name, arguments = _request(call.wanted, self.scratch)
        prepared = await self.bench.prepare(name, **arguments)
        self._count(name, call, prepared if isinstance(prepared, ToolResultMessage) else None)

    def _count(self, name: str, call: Recorded, result: ToolResultMessage | None) -> bool:
        self.tally.asked[name] += 1
        if result is None or not result.is_error:
            self.tally.taken[name] += 1
            return True
        self.tally.faults.append(f"{name}: {text_of(result.parts)[:300]!r} for {str(call.wanted)[:300]}")
        return False

    def _weigh(self, name: str, call: Recorded, result: ToolResultMessage) -> None:
        self.tally.theirs[name] += estimate_text(call.answer)
        self.tally.ours[name] += estimate_text(text_of(result.parts))

    async def _look(self, call: Recorded, wanted: Look) -> None:
        if call.failed or not call.shown:
            return
        for shown in call.shown:
            place = self.scratch.find(shown.path)
            self._check(place, self.scratch.learn(shown))
            if shown.total == len(shown.lines):
                self.stale.discard(place)
        if not self.scratch.find(wanted.path).exists():  # a place behind the end of a file that was never shown
            self.tally.unseen += 1
            return
        name, arguments = _request(wanted, self.scratch)
        result = await self.bench.call(name, **arguments)
        if self._count(name, call, result):
            self._weigh(name, call, result)

    def _check(self, place: Path, differences: list[str]) -> None:
        """An answer showed a file: the edit before it landed, or it did not."""
        edit, compared = self.pending.pop(place, ("", False))
        if not edit or (differences and compared and place in self.stale):
            return
        if differences:
            self.tally.elsewhere += 1
            self.tally.landed -= compared
            self.tally.faults.append(f"landed elsewhere: {edit[:200]}: {'; '.join(differences[:3])[:300]}")
        else:
            self.tally.landed += not compared
            self.tally.confirmed += 1

    async def _edit(self, call: Recorded) -> None:
        if call.refused == "the linter":
            self.tally.linted += 1
            return
        planned = _as_ours(call.wanted, self.scratch, _shown_insert(call))
        if planned is None:
            self.tally.unseen += 1
            self._learn_after(call)
            return
        name, arguments, place = planned
        before = place.read_bytes() if place.is_file() else None
        if before is not None:
            await self.bench.call("read", path=str(place))  # they had it before them
        result = await self.bench.call(name, **arguments)
        if call.failed:
            self.tally.refused_by_both += result.is_error
            self.tally.refused_by_them += not result.is_error
            _restore(place, before)
            return
        if before is not None and name == "edit" and not result.is_error:
            await self._slip(arguments, place, before)
        if self._count(name, call, result):
            self._weigh(name, call, result)
            expected = _expected(call.wanted, self.scratch, before)
            if expected is not None and place.read_text(encoding="utf-8") != expected:
                self.tally.elsewhere += 1
                self.tally.faults.append(f"other bytes than theirs: {str(call.wanted)[:300]}")
                place.write_text(expected, encoding="utf-8")
            else:
                self.tally.landed += expected is not None
                if isinstance(call.wanted, Create):
                    self.stale.discard(place)
                self.forget_one(place)
                self.pending[place] = str(call.wanted), expected is not None
        self._learn_after(call)

    async def _slip(self, arguments: dict[str, Any], place: Path, before: bytes) -> None:
        """Make the same edit as a model would that quotes the file not quite as it is. Leaves the file as it was."""
        right = place.read_bytes()
        for name, slip in SLIPS.items():
            old = slip(arguments.get("old_string", ""))
            if old == arguments.get("old_string", ""):
                continue
            place.write_bytes(before)
            await self.bench.call("read", path=str(place))
            result = await self.bench.call("edit", **{**arguments, "old_string": old})
            landed = "landed" if place.read_bytes() == right else "elsewhere"
            self.tally.slips[name, "refused" if result.is_error else landed] += 1
            if landed == "elsewhere" and not result.is_error:
                self.tally.faults.append(f"{name}: other bytes than without the slip: {old[:200]!r}")
        place.write_bytes(right)
        await self.bench.call("read", path=str(place))

    def _learn_after(self, call: Recorded) -> None:
        for shown in call.shown:
            self._check(self.scratch.find(shown.path), self.scratch.learn(shown))


def _restore(place: Path, before: bytes | None) -> None:
    if before is not None:
        place.write_bytes(before)
    elif place.is_file():
        place.unlink()


def _shown_insert(call: Recorded) -> int:
    """Return the line where text was put in without a number: the answer shows it there. 0: it does not."""
    first = call.wanted.text.split("\n")[0] if isinstance(call.wanted, Lines) else ""
    found = [number for shown in call.shown for number, text in shown.lines.items() if text == first]
    return found[0] if len(found) == 1 else 0


def _request(wanted: Any, scratch: Scratch) -> tuple[str, dict[str, Any]]:
    """Return the call of our tool that asks for the same."""
    match wanted:
        case Look(path, first, count):
            bounds = {} if count is None else {"limit": count}
            return "read", {"path": str(scratch.find(path)), **({"offset": first} if first > 1 else {}), **bounds}
        case Search(pattern, path):
            place = scratch.find(path)
            return "grep", {"pattern": pattern, "path": str(place if place.exists() else scratch.folder)}
        case Find(pattern, path):
            place = scratch.find(path)
            return "glob", {"pattern": pattern, "path": str(place if place.exists() else scratch.folder)}
        case _:
            return "bash", {"command": wanted.command}


def _as_ours(wanted: Any, scratch: Scratch, inserted: int) -> tuple[str, dict[str, Any], Path] | None:
    """Return the call of our tool that makes the same change, and its file; `None` where its text was never shown."""
    if isinstance(wanted, Patch):
        return None
    place = scratch.find(wanted.path)
    match wanted:
        case Create(_, text):
            return "write", {"path": str(place), "content": text}, place
        case Replace(_, old, new, everywhere):
            if not place.is_file() or (_has_fillers(place) and old.strip() not in place.read_text(encoding="utf-8")):
                return None
            more = {"replace_all": True} if everywhere else {}
            return "edit", {"path": str(place), "old_string": old, "new_string": new, **more}, place
        case Several(_, parts):
            edits = [{"old_string": part.old, "new_string": part.new, "replace_all": part.everywhere} for part in parts]
            return ("edit", {"path": str(place), "edits": edits}, place) if place.is_file() else None
        case Lines() | Sed():
            before, after = scratch.lines(place), _lines_after(wanted, scratch, inserted)
            if after is None or not before:
                return None
            if before == after:
                return None
            edits = hunks(before, after)
            if any(is_filler(line) for edit in edits for line in edit["old_string"].split("\n")):
                return None
            if edits[0]["old_string"] == "".join(f"{line}\n" for line in before):
                return "write", {"path": str(place), "content": edits[0]["new_string"]}, place
            return "edit", {"path": str(place), **(edits[0] if len(edits) == 1 else {"edits": edits})}, place
    return None


def _has_fillers(place: Path) -> bool:
    return any(is_filler(line) for line in place.read_text(encoding="utf-8").split("\n"))


def _lines_after(wanted: Lines | Sed, scratch: Scratch, inserted: int) -> list[str] | None:
    if isinstance(wanted, Sed):
        return after_sed(scratch, wanted)
    if wanted.first == -1:  # put in where the cursor was, which only the answer shows
        wanted = Lines(wanted.path, inserted, inserted - 1, wanted.text)
    return after_lines(scratch.lines(scratch.find(wanted.path)), wanted) if wanted.first > 0 else None


NEAR = 3
"""Changes with no more lines between them are one: so models write them."""


def hunks(before: list[str], after: list[str]) -> list[dict[str, str]]:
    """Return the changes as a model would write them, to be made in this order: each old text is there once by then.

    Where changes stand so close that one has the lines of another around it, they are one.
    """
    changes = _changes(before, after)
    whole = (changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])
    for chosen in (changes, [whole]):
        made = [_hunk(before, after, change) for change in chosen]
        text = "".join(f"{line}\n" for line in before)
        for hunk in made:
            text = text.replace(hunk["old_string"], hunk["new_string"]) if text.count(hunk["old_string"]) == 1 else ""
        if text == "".join(f"{line}\n" for line in after):
            return made
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    return [{"old_string": old, "new_string": new}]


def _hunk(before: list[str], after: list[str], change: tuple[int, int, int, int]) -> dict[str, str]:
    """Return one change: the old lines with as many around them as make them unique."""
    start, end, new_start, new_end = change
    text = "".join(f"{line}\n" for line in before)
    above = below = 0
    while True:
        low, high = max(0, start - above), min(len(before), end + below)
        old = "".join(f"{line}\n" for line in before[low:high])
        if (old and text.count(old) == 1) or (low == 0 and high == len(before)):
            break
        above, below = (above + 1, below) if above <= below and low > 0 else (above, below + 1)
    new = [*before[low:start], *after[new_start:new_end], *before[end:high]]
    return {"old_string": old, "new_string": "".join(f"{line}\n" for line in new)}


def _changes(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    found: list[tuple[int, int, int, int]] = []
    for tag, *place in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        start, end, new_start, new_end = place
        if found and start - found[-1][1] <= NEAR:
            start, new_start = found[-1][0], found.pop()[2]
        found.append((start, end, new_start, new_end))
    return found


def _expected(wanted: Any, scratch: Scratch, before: bytes | None) -> str | None:
    """Return what their tool makes of the file, where that is beyond doubt; else a later answer has to show it."""
    match wanted:
        case Create(_, text):
            return text
        case Replace(_, old, new, everywhere) if before is not None:
            known = before.decode()
            return known.replace(old, new) if old in known and (everywhere or known.count(old) == 1) else None
        case Several(_, parts) if before is not None:
            known = before.decode()
            for part in parts:
                known = known.replace(part.old, part.new)
            return known
        case Sed():
            if before is None:
                return None
            now = scratch.find(wanted.path).read_bytes()
            scratch.find(wanted.path).write_bytes(before)
            made = after_sed(scratch, wanted)
            scratch.find(wanted.path).write_bytes(now)
            return None if made is None else "\n".join(made) + "\n"
        case _:
            return None
