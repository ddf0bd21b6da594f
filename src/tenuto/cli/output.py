"""Standard output and standard error, where they take no more.

What standard output does not take ends the program in one line, and is told from errors of other files. What standard
error does not take is lost, and changes nothing.
"""

from __future__ import annotations

import io
import os
import sys

from tenuto.exit_codes import BAD_USAGE, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn, TextIO


_replaced: list[TextIO] = []
"""One that nobody has any more closes what it wrote to."""


class OutputFailedError(Exception):
    """Standard output takes no more. The message says why; it is empty when the reader is gone."""


class Output(io.TextIOWrapper):
    """Standard output. Every method that writes raises `OutputFailedError`."""

    def write(self, text: str) -> int:
        """Write a text, or keep it to be written."""
        try:
            return super().write(text)
        except OSError as error:
            _fail(error)

    def flush(self) -> None:
        """Write what was kept."""
        try:
            super().flush()
        except OSError as error:
            _fail(error)


class Diagnostics(io.TextIOWrapper):
    """Standard error. A terminal gets nothing that it would obey, also of tracebacks and of what libraries say."""

    def write(self, text: str) -> int:
        """Write a text, if it is taken."""
        from tenuto.guard.secrets import KNOWN

        safe = KNOWN.mask(self._made_safe(text))
        try:
            super().write(safe)
        except OSError:
            return len(text)
        return len(text)

    def _made_safe(self, text: str) -> str:
        if not self.isatty():
            return text
        from tenuto.guard.terminal import sanitize_keeping_colour

        return sanitize_keeping_colour(text)

    def flush(self) -> None:
        """Write what was kept, if it is taken."""
        try:
            super().flush()
        except OSError:
            return


def shield_errors() -> None:
    """Have standard error write nothing that a terminal would obey, for the rest of the program."""
    if sys.stderr is not None and sys.stderr.isatty() and not isinstance(sys.stderr, Diagnostics):  # pyright: ignore[reportUnnecessaryComparison] - it was closed
        sys.stderr = _like(sys.stderr, Diagnostics)


def write_bytes(chunks: Iterable[bytes]) -> None:
    """Write UTF-8 to standard output; a terminal gets it as text. Raises `OutputFailedError`."""
    if sys.stdout.isatty():
        from tenuto.guard.terminal import write_text

        text = b"".join(chunks).decode("utf-8", "replace")
        write_text(text.removesuffix("\n"))
        return
    binary = sys.stdout.buffer
    for chunk in chunks:
        try:
            binary.write(chunk)
        except OSError as error:
            _fail(error)
    sys.stdout.flush()


def _fail(error: OSError) -> NoReturn:
    reason = "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
    raise OutputFailedError(reason) from error


def watch_output(answer: Callable[[], int]) -> int:
    """Return the exit code of `answer`, which writes to both, or that of an output that takes no more."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - descriptor 1 is closed
        return _complain(" is closed", BAD_USAGE)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _like(sys.stdout, Output), _like(sys.stderr, Diagnostics)
    try:
        code = answer()
        sys.stdout.flush()
        return code
    except OutputFailedError as error:
        # What is left is not to be written again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(f": {error}", FAILED) if str(error) else FAILED
    finally:
        for watched in (sys.stdout, sys.stderr):
            if isinstance(watched, (Output, Diagnostics)):
                watched.detach()  # or it would close what it is made of
        sys.stdout, sys.stderr = before


def _like(ready: TextIO, kind: type[io.TextIOWrapper]) -> TextIO:
    _replaced.append(ready)
    binary = ready.buffer
    if not isinstance(ready, io.TextIOWrapper):
        return ready
    return kind(
        binary,
        encoding=ready.encoding,
        errors=ready.errors,
        line_buffering=ready.line_buffering,
        write_through=ready.write_through,
    )


def _complain(reason: str, code: int) -> int:
    from tenuto.guard.terminal import write_text

    write_text(f"tenuto: standard output{reason}", to_errors=True)
    return code
