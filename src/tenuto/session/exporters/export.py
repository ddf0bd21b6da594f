"""An export from beginning to end, from an open session or from a folder that nobody has to have open, and its file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import msgspec

from tenuto.guard.secrets import mask_secrets
from tenuto.private_files import open_private
from tenuto.protocol.entry import HeaderEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.errors import SessionError, SessionUnreadable
from tenuto.session.exporters.atif import Told, has_steps, write_trajectory
from tenuto.session.exporters.html import write_page
from tenuto.session.exporters.markdown import write_markdown
from tenuto.session.exporters.source import Source, Tell, format_day, read_outline, tell_nobody
from tenuto.session.library.meta import current_meta
from tenuto.session.log.log import LOG_NAME, Damage, read_log
from tenuto.session.log.record import encode
from tenuto.session.session import Session
from tenuto.session.store import AGENTS, Store
from tenuto.session.view.state import SessionState

Format = Literal["html", "md", "jsonl", "atif"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "atif",
}
_ENDINGS: dict[Format, str] = {"html": "html", "md": "md", "jsonl": "jsonl", "atif": "atif.json"}
_NAME_BYTES = 80
_BUFFER_BYTES = 1 << 18
MEGABYTES = "MB written"


class ExportRefused(SessionError):  # noqa: N818 (it is a user's request that does not fit)
    """An export was asked for that cannot be made as asked; the text says what to do instead."""


class ExportFailed(SessionError):  # noqa: N818
    """The file could not be written; the reason is the system's own."""


def default_name(state: SessionState, session_id: str, form: Format) -> str:
    """Return a file name from the title, or how the session began, and its day: `repair-the-roof-2026-01-31.html`."""
    words = "".join(letter if letter.isalnum() else " " for letter in state.title or state.first_text).split()
    name = "-".join(words).lower().encode("utf-8", "ignore")[:_NAME_BYTES].decode("utf-8", "ignore").strip("-")
    return (
        "-".join(part for part in (name or f"session-{session_id[:8]}", format_day(state.created)) if part)
        + f".{_ENDINGS[form]}"
    )


def choose_format(wanted: str, given: str, cwd: Path) -> Format:
    """Return the format that was named, else the one of the file's name, else HTML. Raises `ExportRefused`."""
    for form in FORMATS:
        if form == wanted:
            return form
    if wanted:
        raise ExportRefused(f"“{wanted}” is not a format; there are {', '.join(FORMATS)}")
    suffix = Path(given).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix and not _find(given, cwd).is_dir():
        raise ExportRefused(f"{suffix} does not tell the format; end the name in .html, .md, .jsonl or .json")
    return "html"


def choose_target(given: str, cwd: Path, name: str, session: Path) -> Path:
    """Return the file to write: `name` in `cwd`, or in the folder that was given, or the file that was given.

    Raises `ExportRefused` for a place inside the session's own folder: nothing may stand in the log's place.
    """
    target = _find(given, cwd)
    try:
        if target.is_dir() or given.endswith(("/", os.sep)):
            target /= name
        if not target.suffix:
            target = target.with_name(f"{target.name}{Path(name).suffix}")
        real = target.parent.resolve() / target.name
    except (ValueError, OSError) as error:
        raise ExportRefused(f"“{given}” cannot be the name of a file: {error}") from error
    if real.is_relative_to(session.resolve()):
        raise ExportRefused(f"{target} lies inside the session itself; name a file elsewhere")
    return target


def _find(given: str, cwd: Path) -> Path:
    try:
        return cwd / Path(given).expanduser()
    except RuntimeError as error:  # ~ of a user that is not there
        raise ExportRefused(f"“{given}” cannot be the name of a file: {error}") from error


def write_export(target: Path, chunks: Iterable[bytes], *, force: bool) -> int:
    """Write the chunks to a private file that is there as a whole or not at all; return its size in bytes.

    Raises `ExportRefused` when the file exists and `force` is not given, `ExportFailed` when it cannot be written.
    """
    if not force and os.path.lexists(target):
        raise _exists(target)
    temporary = target.with_name(f".tenuto-{os.urandom(6).hex()}")
    try:
        try:
            size = _write(temporary, chunks)
            _put(temporary, target, force=force)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except FileExistsError as error:
        raise _exists(target) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ExportFailed(f"cannot write {target}: {reason}") from error
    return size


def _exists(target: Path) -> ExportRefused:
    return ExportRefused(f"{target} exists already; add --force to replace it, or name another file")


def _write(path: Path, chunks: Iterable[bytes]) -> int:
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
        for chunk in chunks:
            file.write(chunk)
        return file.tell()


def _put(temporary: Path, target: Path, *, force: bool) -> None:
    """Give the finished file its name; without `force` never in the place of another one."""
    if not force:
        try:
            target.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(target):
                raise FileExistsError from None
        else:
            return
    temporary.replace(target)


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


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
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
    """A session about to be exported. `read` returns all of it; `unsaved` are entries that the disk did not take.

    What the methods `tell` raises, they raise: whoever hears how far it is can end it.
    """

    id: str
    directory: Path
    state: SessionState
    read: Callable[[Tell], Source]
    unsaved: tuple[HistoryEvent, ...] = ()

    @classmethod
    def of_session(cls, session: Session) -> Export:
        """Take what an open session holds now; it may go on meanwhile. Its log is read by `read`, not yet here."""
        whole, waiting = session.length, session.unsaved.entries if session.unsaved else 0

        def read(tell: Tell) -> Source:
            entries, load_blob = session.entries(0, whole), session.store.load_bytes
            source = Source.read(entries, load_blob, session_id=session.id, whole=whole, tell=tell)
            return msgspec.structs.replace(source, damage=session.damage)  # reading may have found some

        return cls(
            id=session.id,
            directory=session.directory,
            state=session.state,
            read=read,
            unsaved=tuple(session.entries(whole - waiting, whole)),
        )

    @classmethod
    def of_directory(cls, directory: Path) -> Export:
        """Read a session's folder, also while another process writes to it. Raises `SessionUnreadable`."""
        try:
            meta = current_meta(directory)
        except OSError as error:
            raise SessionUnreadable(directory, error.strerror or str(error)) from error
        return cls(id=directory.name, directory=directory, state=meta.state, read=lambda tell: _read(directory, tell))

    def write(self, wish: ExportRequest, cwd: Path, tell: Tell = tell_nobody) -> Exported:
        """Write the file. Raises `ExportRefused`, `ExportFailed` and `SessionUnreadable`."""
        form = choose_format(wish.format, wish.output, cwd)
        name = default_name(self.state, self.id, form)
        target = choose_target(wish.output, cwd, name, self.directory)
        return Exported(target, write_export(target, self.chunks(form, wish, tell), force=wish.force))

    def chunks(self, form: Format, wish: ExportRequest, tell: Tell = tell_nobody) -> Iterator[bytes]:
        """Yield the file's bytes. Raises `ExportRefused` at once, `SessionUnreadable` while reading."""
        if wish.active_path and form != "jsonl":
            raise ExportRefused(f"only jsonl can be cut to the active path; {form} shows every branch")
        match form:
            case "jsonl":
                return _mask_lines(self._lines(wish, tell))
            case "html":
                text = write_page(self.read(tell))
            case "md":
                text = write_markdown(self.read(tell))
            case "atif":
                text = self._trajectory(tell)
        return (chunk.encode("utf-8", "replace") for chunk in text)

    def _trajectory(self, tell: Tell) -> Iterator[str]:
        told = Told(self.read(tell), _agents_of(self.directory, tell))
        if not has_steps(told.source):
            raise ExportRefused("nothing was said in this session yet; a trajectory has at least one step")
        return write_trajectory(told)

    def _lines(self, wish: ExportRequest, tell: Tell) -> Iterator[bytes]:
        done = 0
        try:
            with (self.directory / LOG_NAME).open("rb") as log:
                whole = os.fstat(log.fileno()).st_size
                for piece in (copy_path if wish.active_path else copy_log)(log, self.unsaved):
                    yield piece
                    done += len(piece)
                    tell(MEGABYTES, done // 1_000_000, whole // 1_000_000)
        except OSError as error:
            raise SessionUnreadable(self.directory, error.strerror or str(error)) from error


def _mask_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines without what is a secret or looks like one: an export goes to other eyes."""
    rest = b""
    for block in blocks:
        lines, newline, rest = (rest + block).rpartition(b"\n")
        yield _masked(lines + newline)
    yield _masked(rest)


def _masked(data: bytes) -> bytes:
    # Damaged lines stay as they are: every byte has a character in this form, and gets it back.
    return mask_secrets(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _agents_of(directory: Path, tell: Tell) -> Callable[[str], Told | None]:
    """Return what finds the sub-agents of the session in a folder, each with its own; what cannot be read is none."""

    def find(name: str) -> Told | None:
        place = directory / AGENTS / name
        if Path(name).name != name:  # a log can hold any text
            return None
        try:
            return Told(_read(place, tell), _agents_of(place, tell))
        except SessionUnreadable:
            return None

    return find


def _read(directory: Path, tell: Tell) -> Source:
    damage: list[Damage] = []
    try:
        with (directory / LOG_NAME).open("rb") as log:
            entries = (record.entry for record in read_log(log, damage))
            source = Source.read(entries, Store(directory).load_bytes, session_id=directory.name, tell=tell)
    except OSError as error:
        raise SessionUnreadable(directory, error.strerror or str(error)) from error
    return msgspec.structs.replace(source, damage=tuple(damage))
