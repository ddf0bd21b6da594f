"""Command files: Markdown that is sent as a prompt when the user types `/name`, with what stands behind it put in.

Read as they are written for other agents: sub-folders are namespaces (`git/sync.md` is `/git:sync`) where that is so in
the place they lie in.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from tenuto.config.front_matter import Fault, read_front_matter
from tenuto.config.places import Layout, Origin, Place, Wanted, Where, find_files, find_named, stamp_of
from tenuto.config.programs import ProjectTrust, describe_wishes
from tenuto.config.project import RefusedFileError, read_text
from tenuto.text.bounding import shorten
from tenuto.text.late import late

LAYOUT = Layout(
    project=(".tenuto/commands", ".claude/commands", ".codex/prompts", ".pi/prompts"),
    own="commands",
    user=(".claude/commands", ".codex/prompts", ".pi/agent/prompts"),
)
MAX_COMMANDS = 500
MAX_BYTES = 200_000
"""Bytes of one file."""
DEPTH = 4
DESCRIPTION_CHARS = 200
_FLAT = "prompts"
"""Places of this name have no namespaces."""
_NAME = late(r"[A-Za-z0-9][\w.-]*(?::[\w.-]+)*")
SHELL = late(r"(?<![\w!`])!`([^`\n]+)`")
"""A shell command in a file; its output takes its place."""
_LINE_CHARS = 80


class CommandFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `faults` has what is wrong with it; one that is fatal leaves nothing that could be sent.

    `waits`: it is a project's, has shell commands in it, and the user does not trust it. `allowed_tools`, `model` and
    `effort` are asked for its turn; `is_withheld`: they do not count, because the user does not trust a project's file.
    """

    name: str
    path: str
    origin: Origin
    description: str = ""
    argument_hint: str = ""
    model: str = ""
    effort: str = ""
    allowed_tools: tuple[str, ...] = ()
    body: str = ""
    faults: tuple[Fault, ...] = ()
    shadowed_by: str = ""
    waits: bool = False
    is_withheld: bool = False

    @property
    def wishes(self) -> tuple[str, ...]:
        """What it asks for its turn, in words."""
        return describe_wishes(self.allowed_tools, self.model, self.effort)

    @property
    def shell(self) -> tuple[str, ...]:
        """The commands in it, as they are written."""
        return tuple(match[1].strip() for match in SHELL.finditer(self.body))

    @property
    def is_usable(self) -> bool:
        """Whether it can be sent."""
        return not self.shadowed_by and not self.waits and not any(fault.fatal for fault in self.faults)


class CommandFiles(msgspec.Struct, frozen=True):
    """What there is: every file, and a line on each place that cannot be looked at as a whole."""

    files: tuple[CommandFile, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[CommandFile, ...]:
        """The files that count, one a name."""
        return tuple(file for file in self.files if file.is_usable)

    def find(self, name: str) -> CommandFile | None:
        """Return the file of a name, also one that cannot be sent where there is no other."""
        named = [file for file in self.files if file.name == name and not file.shadowed_by]
        there = next((file for file in named if not file.waits), named[0] if named else None)
        return there if there is not None else find_named(self.usable, name)

    def lines(self) -> tuple[str, ...]:
        """Return a line for each file that cannot be sent, and for each place."""
        said = [
            f"{file.path} is no command that can be used: line {fault.line}: {fault.text}"
            for file in self.files
            for fault in file.faults
            if fault.fatal
        ]
        return (*self.problems, *said)


_WANTED = Wanted(
    kind="commands",
    most=MAX_COMMANDS,
    counts=lambda path: path.suffix == ".md" and path.name != "README.md",
    depth=lambda place: 0 if place.folder.name == _FLAT else DEPTH,
)


def find_commands(where: Where) -> CommandFiles:
    """Return all command files that are there. Files that did not change are not read again."""
    files: list[CommandFile] = []
    problems: list[str] = []
    counted: dict[str, str] = {}
    trust = ProjectTrust(where)
    for path, place in find_files(where, LAYOUT, _WANTED, problems):
        file = _read_command(path, place, stamp_of(path))
        if file.origin == "project" and not trust.covers_command(file.name, path, file.shell, file.wishes):
            file = msgspec.structs.replace(file, waits=bool(file.shell), is_withheld=True)
        if file.is_usable:
            by = counted.setdefault(file.name, file.path)
            file = msgspec.structs.replace(file, shadowed_by=by if by != file.path else "")
        files.append(file)
    return CommandFiles(tuple(files), tuple(problems))


@lru_cache(maxsize=1_024)
def _read_command(path: Path, place: Place, stamp: tuple[int, int, int]) -> CommandFile:
    """Return what stands in a file. `stamp` is another one when the file has changed."""
    del stamp
    below = path.relative_to(place.folder if path != place.folder else path.parent)
    name = place.named(":".join(below.with_suffix("").parts))
    scope = place.scope
    try:
        text = read_text(path, scope.inside, scope.apart, limit=MAX_BYTES)
    except (FileNotFoundError, RefusedFileError) as refused:
        faults = (Fault(1, str(refused), fatal=True),)
        return CommandFile(name=name, path=str(path), origin=place.origin, faults=faults)
    return check_command(name, path, place.origin, place.expand(text))


def check_command(name: str, path: Path, origin: Origin, text: str) -> CommandFile:
    """Return what a command file with this text is, with everything that is wrong with it."""
    head = read_front_matter(text)
    faults = list(head.faults)
    body = head.body.strip()
    if not _NAME.fullmatch(name):
        faults.append(Fault(1, f"“{name}” cannot be typed as a command; rename the file", fatal=True))
    if not body:
        faults.append(Fault(1, "there is nothing to send", fatal=True))
    first = next((line for line in body.splitlines() if line.strip()), "")
    description = head.text("description") or shorten(first.lstrip("# ").strip(), _LINE_CHARS)
    return CommandFile(
        name=name,
        path=str(path),
        origin=origin,
        description=shorten(description, DESCRIPTION_CHARS),
        argument_hint=head.text("argument-hint"),
        model=head.text("model"),
        effort=head.text("effort").lower(),
        allowed_tools=head.words("allowed-tools"),
        body=body,
        faults=tuple(faults),
    )
