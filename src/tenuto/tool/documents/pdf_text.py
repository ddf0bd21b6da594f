"""A program of its own that takes the text out of a PDF file.

A hostile file can keep the parser busy for ever or make it take all memory; this process can be killed and has limits
of its own. It imports nothing of ours. Standard input: the file. Standard output, one JSON object a line: `{"pages"}`,
then for each page `{"text"}`, or `{"problem", "detail"}` with the problem `encrypted` or `damaged`, and at its end
`{"done"}`.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys

MAX_PAGES = 1_000
"""More are counted and not read."""
_MAX_CHARS = 20_000_000
"""Of all pages together."""
_CPU_SECONDS = 30
"""What is left of the process ends by itself, should nobody be there to end it."""
_MEMORY_BYTES = 1_500_000_000
_OUTPUT_BYTES = 130_000_000


def main() -> None:
    """Write what is in the file; whatever goes wrong with it is a line too."""
    logging.disable()
    _limit()
    # What a parser raises on files that somebody made to break it is without end.
    try:
        _write_pages(sys.stdin.buffer.read())
    except RecursionError:
        _say({"problem": "damaged", "detail": "nested too deeply"})
    except MemoryError:
        _say({"problem": "damaged", "detail": "it takes too much memory"})
    except Exception as error:  # noqa: BLE001 - see above
        _say({"problem": "damaged", "detail": f"{type(error).__name__}: {error}"[:300]})


def _write_pages(data: bytes) -> None:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    reader = PdfReader(io.BytesIO(data))
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            _say({"problem": "encrypted"})
            return
        count = len(reader.pages)
    except DependencyError:
        _say({"problem": "encrypted"})
        return
    _say({"pages": count})
    room = _MAX_CHARS
    for number in range(min(count, MAX_PAGES)):
        try:
            text = reader.pages[number].extract_text()
        except (RecursionError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - one damaged page does not hide the others
            text = f"(this page cannot be read: {type(error).__name__})"
        room -= len(text)
        if room < 0:
            return
        _say({"text": text})
    _say({"done": True})


def _limit() -> None:
    """Bound time, memory and output, where the system can."""
    try:
        import resource
    except ImportError:
        return
    for name, most in (("CPU", _CPU_SECONDS), ("AS", _MEMORY_BYTES), ("FSIZE", _OUTPUT_BYTES), ("CORE", 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
