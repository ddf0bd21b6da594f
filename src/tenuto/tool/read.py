"""The `read` tool: text with line numbers, the text of PDF files and notebooks, images, directory listings."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import FileUse, LinesView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import cut_head, cut_tail
from tenuto.tool.documents.notebook import Notebook, notebook_lines, parse_notebook
from tenuto.tool.documents.pdf import is_pdf, pdf_text_of
from tenuto.tool.edits.encoding import decode_file, to_lf
from tenuto.tool.edits.files import present_bytes, read_subject, resolve, resolve_allowed, show_path, similar_paths
from tenuto.tool.image import MAX_IMAGE_BYTES, ImageFacts, image_facts
from tenuto.tool.output import ToolOutput, clean_text, format_size
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError, digest_of

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import ReadArguments
    from tenuto.tool.search.search import Stop

_WHOLE_BYTES = 32_000_000
"""Larger files are read in pieces, as UTF-8, and not tracked: nothing here could edit them."""
_LINE_HEAD = 1_500
_LINE_TAIL = 500
"""Characters that are shown of a line longer than both together."""
_MAX_ENTRIES = 500
_PIECE = 1_000_000
_NOTICE_ROOM, _NOTICE_LINES = 300, 5


class ReadTool(BuiltinTool):
    """Reads. Several at a time."""

    name = "read"

    def subject(self, arguments: ReadArguments, context: ToolContext) -> ApprovalSubject:
        """Return the real path."""
        path = resolve(arguments.path, context)
        summary = show_path(path, context)
        if arguments.offset > 1 or arguments.limit:
            last = f"{arguments.offset + arguments.limit - 1}" if arguments.limit else ""
            summary += f":{arguments.offset}-{last}"
        return read_subject(self.name, path, summary, context)

    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        """Read off the loop; nothing is written but an image's copy."""
        limits = context.settings.max_output_lines, context.max_read_chars
        wanted = Wanted(arguments.offset, arguments.limit or limits[0], *limits)
        found = await asyncio.to_thread(_read, arguments.path, wanted, context)
        if isinstance(found, ToolOutput):
            return msgspec.structs.replace(found, max_chars=wanted.max_chars)
        from tenuto.tool.search.search import run_stoppable

        output = await run_stoppable(lambda stop: _show_pdf(found, wanted, context, stop))
        return msgspec.structs.replace(output, max_chars=wanted.max_chars)


class Wanted(NamedTuple):
    """Which lines are wanted, from 1, and how many lines and characters a result may have."""

    offset: int
    limit: int
    max_lines: int
    max_chars: int


class FoundPdf(NamedTuple):
    """A PDF file: its text takes a process, and so something that can stop it."""

    path: Path
    data: bytes


def _read(name: str, wanted: Wanted, context: ToolContext) -> ToolOutput | FoundPdf:
    path = resolve_allowed(name, context)
    try:
        facts = path.stat()
    except FileNotFoundError:
        raise ToolError(f"{show_path(path, context)} does not exist.{similar_paths(path, context)}") from None
    except OSError as error:
        raise ToolError(f"{show_path(path, context)} cannot be read: {error.strerror or error}") from None
    if stat.S_ISDIR(facts.st_mode):
        return _list_directory(path, context)
    if stat.S_ISREG(facts.st_mode) and facts.st_size > _WHOLE_BYTES:
        return _show_huge(path, facts.st_size, wanted, context)
    data = present_bytes(path, context, _WHOLE_BYTES)
    image = image_facts(data)
    if image is not None:
        return _show_image(path, data, image, context)
    if is_pdf(data):
        return FoundPdf(path, data)
    notebook = parse_notebook(path, data)
    if notebook is not None:
        return _show_notebook(path, data, notebook, wanted, context)
    return _show_text(path, data, wanted, context)


def _show_text(path: Path, data: bytes, wanted: Wanted, context: ToolContext) -> ToolOutput:
    content = decode_file(data)
    if content is None:
        size = format_size(len(data))
        raise ToolError(
            f"{show_path(path, context)} is a binary file of {size}. Use bash (file, xxd, strings) to look at it."
        )
    use = context.files.record(FileUse(path=str(path), op="read", sha256=digest_of(data)), data)
    lines = to_lf(content.text).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return ToolOutput(parts=(TextPart(text="(the file is empty)"),), files=(use,))
    page = _page_of(lines, wanted, show_path(path, context))
    notices = [f"Encoding: {content.description}; edits keep it."] if content.description else []
    return _page_output(page, path, len(data), use, notices)


class Page(NamedTuple):
    """Numbered lines as they are shown: `shown` of them up to line `last` of `total`, `cut` of them not whole."""

    text: str
    shown: int
    last: int
    total: int
    cut: int

    @property
    def is_part(self) -> bool:
        """Whether there is more than is shown."""
        return self.last < self.total or self.cut > 0


def _page_of(lines: Sequence[str], wanted: Wanted, name: str) -> Page:
    """Return the wanted ones of at least one line. Raises `ToolError` past their end."""
    if wanted.offset > len(lines):
        raise ToolError(f"{name} has {len(lines)} lines; offset {wanted.offset} is past its end.")
    text, shown, cut = _number(map(_shown_line, lines[wanted.offset - 1 :]), wanted)
    return Page(text, shown, wanted.offset + shown - 1, len(lines), cut)


def _page_output(page: Page, path: Path, size: int, use: FileUse, notices: Sequence[str] = ()) -> ToolOutput:
    said = [*notices, *_notices(path, page.last, page.total, page.cut)]
    return _text_output(page.text, path, size, (use,), said, shown=page.shown, truncated=page.is_part)


def _show_notebook(path: Path, data: bytes, book: Notebook, wanted: Wanted, context: ToolContext) -> ToolOutput:
    page = _page_of(notebook_lines(book), wanted, f"The text of {show_path(path, context)}")
    use = context.files.record(FileUse(path=str(path), op="read", sha256=digest_of(data)))
    return _page_output(page, path, len(data), use)


def _show_pdf(found: FoundPdf, wanted: Wanted, context: ToolContext, stop: Stop) -> ToolOutput:
    """Show a part of a PDF file's text; where there is more, the text is kept, to be read on in and searched."""
    name, digest = show_path(found.path, context), digest_of(found.data)
    kept = context.outputs / f"pdf-{digest[:32]}.txt"
    try:
        text = kept.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        text = clean_text(pdf_text_of(found.data, name, stop.watch))
    page = _page_of(text.split("\n"), wanted, f"The text of {name}")
    use = context.files.record(FileUse(path=str(found.path), op="read", sha256=digest))
    if not page.is_part:
        return _page_output(page, found.path, len(found.data), use)
    if not kept.is_file():
        try:
            kept = context.store_output(kept.name, text)
        except OSError:  # a full disk: the next read takes the text out of the file again
            return _page_output(page, found.path, len(found.data), use)
    return _page_output(page, kept, len(text.encode()), use, [f"All of its text is in {kept}: grep it."])


class ShownLine(NamedTuple):
    """A line as it is shown; `cut`: its middle is left out."""

    text: str
    cut: bool = False


def _shown_line(line: str) -> ShownLine:
    """Return a line, of a long one head and tail and the exact count of what is between them (R-097)."""
    if len(line) <= _LINE_HEAD + _LINE_TAIL:
        return ShownLine(line)
    head, tail = cut_head(line, _LINE_HEAD), cut_tail(line, _LINE_TAIL)
    omitted = len(line) - len(head) - len(tail)
    return ShownLine(f"{head} [… {omitted:,} more characters in this line …] {tail}", cut=True)


def _number(lines: Iterator[ShownLine], wanted: Wanted) -> tuple[str, int, int]:
    """Return numbered lines within the limits, how many they are, and how many of them were cut."""
    most = min(wanted.limit, wanted.max_lines - _NOTICE_LINES)
    room = wanted.max_chars - _NOTICE_ROOM
    out: list[str] = []
    cut = 0
    for number, line in enumerate(lines, wanted.offset):
        row = f"{number}\t{line.text}"
        room -= len(row) + 1
        if len(out) >= most or (room < 0 and out):
            break
        cut += line.cut
        out.append(row)
    return "\n".join(out), len(out), cut


def _notices(path: Path, last: int, total: int, cut: int) -> list[str]:
    notices: list[str] = []
    if last < total:
        notices.append(f"{total - last:,} more lines of {total:,}; go on with offset={last + 1}.")
    if cut:
        what = "1 long line is" if cut == 1 else f"{cut} long lines are"
        notices.append(f"{what} not shown whole; bash (cut -c, jq) shows more of {path}.")
    return notices


def _text_output(
    text: str, path: Path, size: int, files: tuple[FileUse, ...], notices: list[str], *, shown: int, truncated: bool
) -> ToolOutput:
    if notices:
        text += f"\n[{' '.join(notices)}]"
    return ToolOutput(
        parts=(TextPart(text=text),),
        ui=(LinesView(count=shown),),
        files=files,
        truncated=truncated,
        output_path=str(path) if truncated else "",
        output_size=size if truncated else 0,
    )


def _show_huge(path: Path, size: int, wanted: Wanted, context: ToolContext) -> ToolOutput:
    """Read a window of a file that is too large to hold; long lines are skipped over in pieces."""
    with path.open("rb") as file:
        head = file.read(65_536)
        if b"\0" in head or is_pdf(head):
            raise ToolError(
                f"{show_path(path, context)} is a binary file of {format_size(size)}. Use bash to look at it."
            )
        file.seek(0)
        for _ in range(wanted.offset - 1):
            if not _skip_line(file.readline(_PIECE), file):
                raise ToolError(f"{show_path(path, context)} has fewer than {wanted.offset} lines.")
        text, shown, cut = _number(_huge_lines(file), wanted)
    notices = [f"A file of {format_size(size)}; go on with offset={wanted.offset + shown}, or grep it."]
    return _text_output(text, path, size, (), [*notices, *_notices(path, 0, 0, cut)], shown=shown, truncated=True)


def _huge_lines(source: BinaryIO) -> Iterator[ShownLine]:
    """Yield lines; a line longer than a piece is never held as a whole."""
    while piece := source.readline(_PIECE):
        if piece.endswith(b"\n") or len(piece) < _PIECE:
            yield _shown_line(piece.decode("utf-8", "replace").rstrip("\r\n"))
        else:
            yield _endless_line(piece, source)


def _endless_line(piece: bytes, source: BinaryIO) -> ShownLine:
    """Read the line that `piece` begins to its end; return its head, its tail, and the bytes between them."""
    head = cut_head(piece.decode("utf-8", "replace"), _LINE_HEAD)
    size, end = len(piece), piece
    while not end.endswith(b"\n") and (piece := source.readline(_PIECE)):
        size += len(piece)
        end = (end + piece)[-_LINE_TAIL * 8 :]
    # The cut may have split a character; what is left of it is none.
    text = end.rstrip(b"\r\n")
    tail = cut_tail(text.decode("utf-8", "ignore"), _LINE_TAIL)
    omitted = size - (len(end) - len(text)) - len(head.encode()) - len(tail.encode())
    return ShownLine(f"{head} [… {omitted:,} more bytes in this line …] {tail}", cut=True)


def _skip_line(piece: bytes, source: BinaryIO) -> bool:
    """Read on to the end of the line that `piece` begins; `False` at the end of the file."""
    if not piece:
        return False
    while piece and not piece.endswith(b"\n"):
        piece = source.readline(_PIECE)
    return True


def _show_image(path: Path, data: bytes, image: ImageFacts, context: ToolContext) -> ToolOutput:
    shown = show_path(path, context)
    if len(data) > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{shown} is an image of {format_size(len(data))}, {image.width}×{image.height}; at most "
            f"{format_size(MAX_IMAGE_BYTES)} can be shown. Make a smaller copy with bash (magick, sips, ffmpeg)."
        )
    part = context.store_image(data, image, path.name)
    text = f"{shown}: {image.media_type}, {image.width}×{image.height} pixels, {format_size(len(data))}"
    use = context.files.record(FileUse(path=str(path), op="read", sha256=digest_of(data)))
    return ToolOutput(parts=(TextPart(text=text), part), files=(use,))


def _list_directory(path: Path, context: ToolContext) -> ToolOutput:
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    except OSError as error:
        raise ToolError(f"{show_path(path, context)} cannot be listed: {error.strerror or error}") from None
    shown = names[:_MAX_ENTRIES]
    more = f"\n[… {len(names) - _MAX_ENTRIES:,} more; glob finds files by pattern]" if len(names) > _MAX_ENTRIES else ""
    return ToolOutput.of_text(f"{path}/\n" + ("\n".join(shown) or "(empty)") + more)
