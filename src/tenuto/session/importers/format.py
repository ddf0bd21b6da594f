"""What a format of session files is to the rest: how its lines are told, read and found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tenuto.protocol.entry import ExtensionEntry
from tenuto.protocol.part import ImagePart, OpaquePart, TextPart
from tenuto.session.importers.builder import EXTENSION, Piece
from tenuto.session.importers.json_access import (
    Fields,
    KeepImage,
    Kind,
    Report,
    base64_image,
    data_image,
    image_type,
    raw_json,
    text,
)
from tenuto.text.json_access import as_dict

MAX_KIND = 40


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
    `kept` collects what is to be written behind the pieces of a line.
    """

    keep_image: KeepImage
    report: Report
    load_image: Callable[[str], bytes | None] = lambda path: None
    heading: Heading = field(default_factory=Heading)
    kept: list[ExtensionEntry] = field(default_factory=list[ExtensionEntry])

    def unknown_part(self, value: object) -> TextPart:
        """Return what stands for a part of a message that we do not know; the part is kept as it was, out of view."""
        self.kept.append(self.aside("unknown", value))
        kind = text(as_dict(value), "type")[:MAX_KIND] or "something"
        return TextPart(text=f"[{kind}: not shown here]")

    def unknown_block(self, provider: str, value: object) -> OpaquePart:
        """Return a model's block that we do not know as it was; the made-up `provider` has no client to send it to."""
        self.report.count("unknown")
        return OpaquePart(provider=provider, block=raw_json(value))

    def base64_image(self, body: str, media_type: str) -> ImagePart | None:
        """Return an image in base64, stored; `None`, and counted, when it is none."""
        return self._counted(base64_image(body, media_type, self.keep_image))

    def data_image(self, url: str) -> ImagePart | None:
        """Return the image of a `data:` URL, stored; `None`, and counted, when there is none."""
        return self._counted(data_image(url, self.keep_image))

    def file_image(self, path: str) -> ImagePart | None:
        """Return the image in a file that the source names, stored; `None`, and counted, when there is none."""
        data = self.load_image(path) if path else None
        kind = image_type(data) if data is not None else ""
        return self._counted(self.keep_image(data, kind) if data is not None and kind else None)

    def _counted(self, found: ImagePart | None) -> ImagePart | None:
        if found is None:
            self.report.count("image")
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
    variables and the home directory; `main_files` are names of the session file in a directory that stands for it.
    `earlier_files` returns files that were put aside before a session file, the oldest first; a reader is given
    `next_file` between two files. Raises `OSError`.
    """

    name: str
    label: str
    is_line: Callable[[Fields], bool]
    describe: Callable[[Heading, Fields], None]
    reader: Callable[[Context], Reader]
    find: Callable[[Mapping[str, str], Path], Iterator[Path]]
    main_files: tuple[str, ...] = ()
    surround: Callable[[Heading, Path], None] = lambda heading, path: None
    earlier_files: Callable[[Path], list[Path]] = lambda path: []
    next_file: Fields = field(default_factory=dict[str, Any])


def read_json(path: Path) -> Fields:
    """Return the object of a small JSON file beside a session; an empty one when it cannot be read."""
    try:
        return as_dict(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def home_of(environ: Mapping[str, str], variable: str, home: Path, usual: str) -> Path:
    """Return an agent's folder: where its variable points, else its usual place in the home directory."""
    return Path(environ[variable]).expanduser() if environ.get(variable) else home / usual
