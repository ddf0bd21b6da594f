"""Notebooks (`.ipynb`) as text: their cells in order, what they printed shortened, images named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.guard.terminal import sanitize_output
from tenuto.text.bounding import bound_middle, replace_surrogates
from tenuto.text.json_access import as_dict
from tenuto.tool.output import format_size

SUFFIX = ".ipynb"
OUTPUT_CHARS, OUTPUT_LINES = 2_000, 40
"""What is shown of one output of a cell."""

Json = dict[str, Any]


class Notebook(msgspec.Struct, frozen=True):
    """A notebook's cells, of format 4 or, from its worksheets, of format 3."""

    cells: tuple[Json, ...]
    language: str = ""


def parse_notebook(path: Path, data: bytes) -> Notebook | None:
    """Return the notebook that a file is by its name and content, `None` for every other file."""
    if path.suffix.lower() != SUFFIX:
        return None
    try:
        found: object = json.loads(data.decode("utf-8-sig"))  # takes NaN, which notebooks have
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    book = cast("Json", found)
    if "nbformat" not in book:
        return None
    if "cells" in book:
        cells = _objects(book["cells"])
    elif "worksheets" in book:
        cells = [cell for sheet in _objects(book["worksheets"]) for cell in _objects(sheet.get("cells"))]
    else:
        return None
    facts = as_dict(as_dict(book.get("metadata")).get("kernelspec"))
    return Notebook(tuple(cells), _text(facts.get("language") or facts.get("name")))


def notebook_lines(book: Notebook) -> list[str]:
    """Return the lines of a notebook as they are read."""
    count = len(book.cells)
    language = f", {_line(book.language)}" if book.language else ""
    lines = [f"(notebook: {count} cell{'s'[: count != 1]}{language}; outputs shortened, images left out)"]
    for number, cell in enumerate(book.cells, 1):
        kind = _line(_text(cell.get("cell_type"))) or "unknown"
        executed = cell.get("execution_count", cell.get("prompt_number"))
        ran = f" [{executed}]" if isinstance(executed, int) else ""
        lines.append(f"--- cell {number} of {count}: {kind}{ran} ---")
        source = _text(cell.get("source", cell.get("input")))
        lines += _split(source) or ["(empty)"]
        for output in _objects(cell.get("outputs")):
            lines.append(f"--- output of cell {number} ---")
            lines += _output_lines(output)
    return lines


def _output_lines(output: Json) -> Iterator[str]:
    kind = _text(output.get("output_type"))
    if kind in ("error", "pyerr"):
        trace = output.get("traceback")
        said = "\n".join(map(_text, cast("list[object]", trace))) if isinstance(trace, list) and trace else ""
        yield from _shortened(said or f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}")
        return
    if kind == "stream":
        yield from _shortened(_text(output.get("text")))
        return
    bundle = as_dict(output.get("data")) or _bundle_of_format_3(output)
    if "text/plain" in bundle:
        yield from _shortened(_text(bundle["text/plain"]))
    for media, value in bundle.items():
        if media.startswith("image/"):
            yield f"[image {_line(media)}, {format_size(_size(media, value))}: not shown]"
        elif media != "text/plain":
            yield f"[{_line(media)}, {format_size(_size(media, value))}: not shown]"


_MEDIA_OF_FORMAT_3 = {
    "text": "text/plain",
    "html": "text/html",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "latex": "text/latex",
    "json": "application/json",
    "javascript": "application/javascript",
}


def _bundle_of_format_3(output: Json) -> Json:
    return {media: output[key] for key, media in _MEDIA_OF_FORMAT_3.items() if key in output}


def _size(media: str, value: object) -> int:
    """Return the bytes of an output, of a picture in base64 the bytes that it stands for."""
    text = _text(value)
    if not text:
        return len(json.dumps(value))
    encoded = media.startswith("image/") and media != "image/svg+xml"
    return len(text.strip()) * 3 // 4 if encoded else len(text.encode("utf-8", "replace"))


def _shortened(text: str) -> list[str]:
    """Return the lines of an output: what a terminal would make of it, and of a long one both ends."""
    shown = sanitize_output(text)
    bounded = bound_middle(shown, OUTPUT_CHARS, OUTPUT_LINES)
    if bounded is not None:
        lines = f"{bounded.omitted_lines:,} lines, " if bounded.omitted_lines else ""
        shown = bounded.joined(f"[… {lines}{bounded.omitted_chars:,} characters of this output left out …]")
    return _split(shown) or ["(empty)"]


def _split(text: str) -> list[str]:
    text = replace_surrogates(text).replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return text.split("\n") if text else []


def _line(text: str) -> str:
    return " ".join(text.split())[:80]


def _text(value: object) -> str:
    """Return a text that may be stored as a list of its lines."""
    if isinstance(value, list):
        return "".join(part for part in cast("list[object]", value) if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _objects(value: object) -> list[Json]:
    return (
        [cast("Json", item) for item in cast("list[object]", value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )
