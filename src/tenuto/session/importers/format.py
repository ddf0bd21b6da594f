"""What a format of session files is to the rest: how its lines are told, read and found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from tenuto.protocol.entry import ExtensionEntry
from tenuto.protocol.part import ImagePart
from tenuto.session.importers.fields import Fields, KeepImage, as_fields, image_type, raw_json
from tenuto.session.importers.importing import EXTENSION, Piece
from tenuto.session.importers.report import Kind, Report


class Heading(msgspec.Struct, kw_only=True):
    """What is known of a source session beside its messages. `started` is seconds since the epoch."""

    session_id: str = ""
    cwd: str = ""
    title: str = ""
    first_text: str = ""
    model: str = ""
    started: float = 0.0
    is_subagent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a reader is given: where images go, where it counts, and how it gets at a file that the source names.

    `load_image` returns the bytes of an image file by its path (relative: beside the source), `None` for all others.
    """

    keep_image: KeepImage
    report: Report
    load_image: Callable[[str], bytes | None] = lambda path: None
    heading: Heading = field(default_factory=Heading)

    def image(self, found: object) -> None:
        """Count an image that could not be kept."""
        if found is None:
            self.report.count("image")

    def file_image(self, path: str) -> ImagePart | None:
        """Return the image in a file that the source names, stored; `None` when there is none."""
        data = self.load_image(path) if path else None
        kind = image_type(data) if data is not None else ""
        found = self.keep_image(data, kind) if data is not None and kind else None
        self.image(found)
        return found

    def aside(self, kind: Kind, value: object) -> ExtensionEntry:
        """Return an entry that keeps something as it was, out of the view, and count it."""
        self.report.count(kind)
        return ExtensionEntry(extension=EXTENSION, state=raw_json(value))


class Reader(Protocol):
    """Turns the objects of one file, in order, into pieces. Never raises, whatever they hold."""

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces that an object completes."""
        ...

    def finish(self) -> Iterable[Piece]:
        """Return what was still waiting for more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One agent's session files.

    `is_line` tells an object of such a file. `describe` adds what an object says to a heading. `surround` adds what the
    files beside a session file say. `find` yields the session files in the agent's usual places, by the environment's
    variables and the home directory; `main_file` returns the session file that a directory stands for.
    """

    name: str
    label: str
    is_line: Callable[[Fields], bool]
    describe: Callable[[Heading, Fields], None]
    reader: Callable[[Context], Reader]
    find: Callable[[Mapping[str, str], Path], Iterator[Path]]
    main_files: tuple[str, ...] = ()
    surround: Callable[[Heading, Path], None] = lambda heading, path: None


def read_json(path: Path) -> Fields:
    """Return the object of a small JSON file beside a session; an empty one when it cannot be read."""
    try:
        return as_fields(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def home_of(environ: Mapping[str, str], variable: str, home: Path, usual: str) -> Path:
    """Return an agent's folder: where its variable points, else its usual place in the home directory."""
    return Path(environ[variable]).expanduser() if environ.get(variable) else home / usual
