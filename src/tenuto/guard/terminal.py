"""The one way in which text gets to standard output and standard error; screens have drivers of their own (R-088).

A test holds that nobody else prints.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys

from tenuto.guard.secrets import KNOWN
from tenuto.text.late import late

_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls
    "\ufff9-\ufffb"  # interlinear annotation
    "\ud800-\udfff"
)
BLANK = "\u200b"
"""Takes no room: what painters put in the place of what they leave out."""
_ANY = late(f"[{_UNSAFE}]")
# The others are compiled with the first text that needs them: it costs every start 1 ms.
_SGR = r"\x1b\[[0-9;:]*m"
_SEQUENCE = (
    rf"(?P<sgr>{_SGR})"
    # OSC, DCS, SOS, PM, APC: to their end, or to the end of the line where there is none
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # every other escape
    rf"|[{_UNSAFE}]"
)
_REPLACED = "[\ud800-\udfff]"
_CARRIAGE = r"(?m)^[^\n]*\r(?!\n)(?=[^\n])"  # anchored, or a long line costs its square


def sanitize_for_terminal(text: str) -> str:
    """Return `text` without any control sequence, control byte or bidi control; newlines and tabs stay."""
    return text if _ANY.search(text) is None else re.sub(_SEQUENCE, _drop, text)


def sanitize_keeping_colour(text: str) -> str:
    """Like `sanitize_for_terminal`, but plain SGR sequences (colours, bold) stay as they are."""
    return text if _ANY.search(text) is None else re.sub(_SEQUENCE, _drop_all_but_colour, text)


def blank_for_terminal(text: str) -> str:
    """Return `text` safe and exactly as long: what must not reach the terminal is a character without width there.

    For editors, in which a place on the screen is a place in the text. Newlines and tabs stay.
    """
    return text if _ANY.search(text) is None else _ANY.sub(_blank, text)


def sanitize_line(text: str) -> str:
    """Return `text` safe and on one line: for titles, file names, branch names."""
    return " ".join(sanitize_for_terminal(text.replace("\r", " ")).split())


def escape_json(text: str) -> str:
    """Return JSON with what a terminal would obey as escapes: the same value, whatever reads it."""
    return text if _ANY.search(text) is None else _ANY.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def sanitize_output(text: str) -> str:
    """Return a command's output as a terminal would have left it: sequences gone, overwritten lines gone.

    A progress bar redraws its line after a carriage return; only the last state of each line is kept.
    """
    return sanitize_for_terminal(re.sub(_CARRIAGE, "", text) if "\r" in text else text)


def _blank(found: re.Match[str]) -> str:
    return "\ufffd" if re.match(_REPLACED, found[0]) else BLANK  # as wide as what they stand for


def _drop(found: re.Match[str]) -> str:
    return "\ufffd" if re.match(_REPLACED, found[0]) else ""


def _drop_all_but_colour(found: re.Match[str]) -> str:
    return found[0] if found["sgr"] else _drop(found)


def write_text(
    text: str, *, to_errors: bool = False, data: bool = False, painted: bool = False, flush: bool = False
) -> None:
    """Write a text and the end of its line, free of what a terminal would obey and of known secrets.

    `data`: a file or a pipe gets it as it is. `painted`: it comes from a screen's painter, which has made it safe, and
    stays as it is. Raises what the stream raises.
    """
    stream = sys.stderr if to_errors else sys.stdout
    text = KNOWN.mask(text)
    if not painted and not (data and not stream.isatty()):
        text = sanitize_for_terminal(text)
    stream.write(f"{text}\n")
    if flush:
        stream.flush()


def write_status(text: str) -> None:
    """Let one row of standard error's terminal show a text, in the place of the last one; empty takes it away.

    Nothing is written where standard error is no terminal.
    """
    with contextlib.suppress(OSError):
        if os.isatty(2):
            width = os.get_terminal_size(2).columns or 80
            row = sanitize_line(KNOWN.mask(text))[: max(0, width - 1)]
            os.write(2, f"\r{row}\x1b[K".encode(errors="replace"))
