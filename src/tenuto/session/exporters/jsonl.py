"""JSON lines: the log itself, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tenuto.protocol.entry import HeaderEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.exporters.outline import read_outline
from tenuto.session.log import read_log
from tenuto.session.record import encode

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
