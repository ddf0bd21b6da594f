"""An export from beginning to end: from an open session, or from a folder that nobody has to have open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.protocol.entry import HeaderEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.errors import SessionUnreadable
from tenuto.session.exporters.html.page import write_page
from tenuto.session.exporters.markdown import write_markdown
from tenuto.session.exporters.outline import read_outline
from tenuto.session.exporters.source import Source
from tenuto.session.exporters.target import (
    ExportRefused,
    Format,
    choose_format,
    choose_target,
    default_name,
    write_export,
)
from tenuto.session.library.meta import current_meta
from tenuto.session.log.log import LOG_NAME, Damage, read_log
from tenuto.session.log.record import encode
from tenuto.session.session import Session
from tenuto.session.store import Store
from tenuto.session.view.state import SessionState

_BLOCK_BYTES = 1 << 20


def copy_log(log: BinaryIO, unsaved: Iterable[HistoryEvent] = ()) -> Iterator[bytes]:
    """Yield the log as it stands, damaged lines and unknown entries included, then what the disk did not take.

    Raises what reading raises.
    """
    last = b"\n"
    while block := log.read(_BLOCK_BYTES):
        yield block
        last = block[-1:]
    for number, entry in enumerate(unsaved):
        if number == 0 and last != b"\n":
            yield b"\n"
        yield encode(entry)[1]


def copy_path(log: BinaryIO, unsaved: Iterable[HistoryEvent] = ()) -> Iterator[bytes]:
    """Yield the header's line and those of the active path, each as it was read. Raises what reading raises.

    A damaged line belongs to no path and is left out; a good entry inside one is yielded by itself.
    """
    entries: list[HistoryEvent] = []
    lines: list[bytes] = []
    for record in read_log(log, []):
        entries.append(record.entry)
        lines.append(record.raw)
    for entry in unsaved:
        entries.append(entry)
        lines.append(encode(entry)[1].rstrip(b"\n"))
    wanted = read_outline(entries).pieces[0].positions
    header = next((at for at, entry in enumerate(entries) if isinstance(entry, HeaderEntry)), None)
    for position in (*(() if header is None else (header,)), *wanted):
        yield lines[position] + b"\n"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for. An empty `format` goes by the name, an empty `output` makes a name in the directory."""

    output: str = ""
    format: str = ""
    force: bool = False
    active_path: bool = False
    """Only the active path; for JSON lines, where everything is the default."""


class Exported(msgspec.Struct, frozen=True):
    """The file that came of it; `size` is bytes."""

    path: Path
    size: int


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """A session about to be exported. `read` returns all of it; `unsaved` are entries that the disk did not take."""

    id: str
    directory: Path
    state: SessionState
    read: Callable[[], Source]
    unsaved: tuple[HistoryEvent, ...] = ()

    @classmethod
    def of_session(cls, session: Session) -> Export:
        """Take what an open session holds now; it may go on meanwhile."""
        history, damage, load_blob = tuple(session.entries()), session.damage, session.store.load_bytes
        waiting = session.unsaved.entries if session.unsaved else 0
        return cls(
            id=session.id,
            directory=session.directory,
            state=session.state,
            read=lambda: Source.read(history, load_blob, session_id=session.id, damage=damage),
            unsaved=history[len(history) - waiting :],
        )

    @classmethod
    def of_directory(cls, directory: Path) -> Export:
        """Read a session's folder, whoever writes to it. Raises `SessionUnreadable`."""
        try:
            meta = current_meta(directory)
        except OSError as error:
            raise SessionUnreadable(directory, error.strerror or str(error)) from error
        return cls(id=directory.name, directory=directory, state=meta.state, read=lambda: _read(directory))

    def write(self, wish: Wish, cwd: Path) -> Exported:
        """Write the file. Raises `ExportRefused`, `ExportFailed` and `SessionUnreadable`."""
        form = choose_format(wish.format, wish.output, cwd)
        name = default_name(self.state, self.id, form)
        target = choose_target(wish.output, cwd, name, self.directory)
        return Exported(target, write_export(target, self.chunks(form, wish), force=wish.force))

    def chunks(self, form: Format, wish: Wish) -> Iterator[bytes]:
        """Yield the file's bytes. Raises `ExportRefused` at once, `SessionUnreadable` while reading."""
        if wish.active_path and form != "jsonl":
            raise ExportRefused(f"only jsonl can be cut to the active path; {form} shows every branch")
        if form == "jsonl":
            return self._lines(wish)
        text = write_page(self.read()) if form == "html" else write_markdown(self.read())
        return (chunk.encode("utf-8", "replace") for chunk in text)

    def _lines(self, wish: Wish) -> Iterator[bytes]:
        try:
            with (self.directory / LOG_NAME).open("rb") as log:
                yield from (copy_path if wish.active_path else copy_log)(log, self.unsaved)
        except OSError as error:
            raise SessionUnreadable(self.directory, error.strerror or str(error)) from error


def _read(directory: Path) -> Source:
    damage: list[Damage] = []
    try:
        with (directory / LOG_NAME).open("rb") as log:
            entries = [record.entry for record in read_log(log, damage)]
    except OSError as error:
        raise SessionUnreadable(directory, error.strerror or str(error)) from error
    return Source.read(entries, Store(directory).load_bytes, session_id=directory.name, damage=tuple(damage))
