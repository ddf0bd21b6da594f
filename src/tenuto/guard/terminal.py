"""The one way in which text gets to standard output and standard error; screens have drivers of their own (R-088).

A test holds that nobody else prints.
"""

from __future__ import annotations

import sys

from tenuto.guard.sanitize import sanitize_for_terminal


def write_text(
    text: str, *, to_errors: bool = False, data: bool = False, painted: bool = False, flush: bool = False
) -> None:
    """Write a text and the end of its line, free of what a terminal would obey.

    `data`: a file or a pipe gets it as it is. `painted`: it comes from a screen's painter, which has made it safe, and
    stays as it is. Raises what the stream raises.
    """
    stream = sys.stderr if to_errors else sys.stdout
    if not painted and not (data and not stream.isatty()):
        text = sanitize_for_terminal(text)
    stream.write(f"{text}\n")
    if flush:
        stream.flush()
