"""A page that is written while it is read: a named pipe, so that the first screenful waits for nothing behind it."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tenuto.session.errors import SessionError

READER_PATIENCE = 60.0
"""Seconds after which nobody will read any more."""
_LOOK_AGAIN = 0.005
"""Seconds between two looks whether somebody reads."""


def open_stream(chunks: Iterator[bytes], suffix: str) -> str:
    """Return the path of a pipe that gives the chunks to whoever opens it; they are made as they are read.

    The reader removes it. Raises `OSError`.
    """
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=suffix)
    os.close(handle)
    Path(path).unlink()
    os.mkfifo(path, 0o600)
    threading.Thread(target=_write, args=(path, chunks), name="page", daemon=True).start()
    return path


def _write(path: str, chunks: Iterator[bytes]) -> None:
    descriptor = _wait_for_reader(path)
    if descriptor is None:
        return
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as file:
        try:
            for chunk in chunks:
                file.write(chunk)
        except SessionError as error:
            file.write(f"\n{error}\n".encode())


def _wait_for_reader(path: str) -> int | None:
    """Return the pipe's end to write to once somebody reads, `None` where nobody does."""
    deadline = time.monotonic() + READER_PATIENCE
    while time.monotonic() < deadline:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return None  # it was removed unread
            time.sleep(_LOOK_AGAIN)
            continue
        os.set_blocking(descriptor, True)
        return descriptor
    Path(path).unlink(missing_ok=True)
    return None
