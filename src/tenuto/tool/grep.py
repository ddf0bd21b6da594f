"""The `grep` tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import FoundView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import boundary_after, boundary_before, shorten
from tenuto.tool.edits.files import read_subject, resolve, resolve_allowed, show_path, similar_paths
from tenuto.tool.output import ToolOutput, clean_text, format_size
from tenuto.tool.process.process import Collector
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.search.ripgrep import choose_source
from tenuto.tool.search.search import SEARCH_SECONDS, Found, Query, Source, Stop, run_stoppable

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import GrepArguments

_LINE_CHARS = 400
"""Characters of one line that are shown, around its match."""
_KEPT_BYTES = 32_000_000
"""A search whose answers are longer than this stops: it was the wrong question."""
_REPORT_ROOM = 1_000


class GrepTool(BuiltinTool):
    """Searches contents."""

    name = "grep"

    def subject(self, arguments: GrepArguments, context: ToolContext) -> ApprovalSubject:
        """Return the place that is searched."""
        path = resolve(arguments.path, context)
        summary = f"{shorten(arguments.pattern, 80)} in {show_path(path, context)}"
        return read_subject(self.name, path, summary, context)

    async def run(self, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        """Search off the loop."""
        source = choose_source()
        return await run_stoppable(lambda stop: _search(arguments, context, source, stop))


def _search(arguments: GrepArguments, context: ToolContext, source: Source, stop: Stop) -> ToolOutput:
    path = resolve_allowed(arguments.path, context)
    if not path.exists():
        raise ToolError(f"{show_path(path, context)} does not exist.{similar_paths(path, context)}")
    if not path.is_file() and not path.is_dir():
        raise ToolError(f"{show_path(path, context)} is not a regular file (a device, pipe or socket).")
    query = Query(
        pattern=arguments.pattern,
        base=path if path.is_dir() else path.parent,
        only="" if path.is_dir() else path.name,
        glob=arguments.glob if path.is_dir() else "",
        context=arguments.context,
        ignore_case=arguments.ignore_case,
        literal=arguments.literal,
    )
    prefix = show_path(query.base, context)
    report = _Report("" if prefix == "." else prefix + "/", arguments.limit, context)
    try:
        is_lines = arguments.output == "lines"
        if is_lines:
            report.take_lines(source.lines(query, stop))
        else:
            report.take_counts(source.counts(query, stop), counts=arguments.output == "count")
        return report.output(is_lines=is_lines, is_late=stop.is_late)
    finally:
        report.close()


class _Report:
    """Builds the answer: what the model sees, within its limits, and everything in a file if that is more."""

    def __init__(self, prefix: str, limit: int, context: ToolContext) -> None:
        self._prefix = prefix
        self._limit = limit
        self._room = context.max_chars - _REPORT_ROOM
        self._rows_left = context.settings.max_output_lines - 10
        self._rows: list[str] = []
        self._whole = Collector(context.new_output_path)
        self._shown_path = ""
        self._matches = self._shown = self._files = self._cut = 0
        self._last_path = ""
        self._is_full = self._is_stopped = False

    def take_lines(self, lines: Iterator[Found | None]) -> None:
        """Take matches and their context."""
        for line in lines:
            if line is None:
                self._whole.add(b"--\n")
                self._show("--")
                continue
            self._note_file(line.path)
            self._matches += line.column is not None
            mark = "-" if line.column is None else ":"
            path = self._prefix + line.path
            self._whole.add(f"{path}{mark}{line.number}{mark}{line.text}\n".encode("utf-8", "replace"))
            self._show_line(path, line, mark)
            if self._whole.size > _KEPT_BYTES:
                self._is_stopped = True
                return

    def take_counts(self, files: Iterator[tuple[str, int]], *, counts: bool) -> None:
        """Take files, with or without how many of their lines match."""
        for name, count in files:
            self._note_file(name)
            self._matches += count
            row = f"{self._prefix}{name}: {count}" if counts else self._prefix + name
            self._whole.add((row + "\n").encode("utf-8", "replace"))
            if self._shown < self._limit and self._show(row):
                self._shown += 1

    def close(self) -> None:
        """Let go of the file."""
        self._whole.close()

    def output(self, *, is_lines: bool, is_late: bool) -> ToolOutput:
        """Return the answer."""
        if not self._matches:
            late = f" in the first {SEARCH_SECONDS:g} seconds" if is_late else ""
            return ToolOutput(parts=(TextPart(text=f"No matches{late}."),), ui=(FoundView(),))
        notices: list[str] = []
        total = f"{self._matches:,} matching lines in {self._files:,} files"
        if self._is_stopped or is_late:
            notices.append(f"The search was stopped early, after {total}; narrow it with path, glob or the pattern.")
        left_out = self._is_full or self._rows_left < 0
        if left_out:
            notices.append(f"Only the first part is shown, of {total}.")
        if self._cut:
            notices.append(f"Long lines cut: {self._cut:,}.")
        path = ""
        if left_out or self._cut:
            spooled = self._whole.spool()
            path = "" if spooled is None else str(spooled)
            notices.append(
                f"Everything found ({format_size(self._whole.size)}) is in {path}: read it in parts, or grep it."
            )
        text = "\n".join(self._rows)
        if notices:
            text += f"\n[{' '.join(notices)}]"
        partial = left_out or self._is_stopped or is_late
        view = FoundView(files=self._files, lines=self._matches if is_lines else 0, partial=partial)
        return ToolOutput(
            parts=(TextPart(text=clean_text(text)),),
            ui=(view,),
            truncated=bool(path) or self._is_stopped or is_late,
            output_path=path,
            output_size=self._whole.size if path else 0,
        )

    def _note_file(self, name: str) -> None:
        if name != self._last_path:
            self._last_path = name
            self._files += 1

    def _show_line(self, path: str, line: Found, mark: str) -> None:
        if self._shown >= self._limit and line.column is not None:
            self._is_full = True
        if self._is_full:
            return
        if path != self._shown_path:
            if self._rows and self._rows[-1] == "--":
                self._rows.pop()
            if not self._show(path):
                return
            self._shown_path = path
        text, was_cut = _cut_line(line.text, line.column or 0)
        if self._show(f"{line.number}{mark}{text}"):
            self._shown += line.column is not None
            self._cut += was_cut

    def _show(self, row: str) -> bool:
        self._room -= len(row) + 1
        self._rows_left -= 1
        if self._room < 0 or self._rows_left < 0:
            self._is_full = True
        if not self._is_full:
            self._rows.append(row)
        return not self._is_full


def _cut_line(text: str, column: int) -> tuple[str, bool]:
    """Return a line no longer than what is shown, with the match in it, and whether anything is missing."""
    if len(text) <= _LINE_CHARS:
        return text, False
    start = boundary_after(text, max(min(column - _LINE_CHARS // 4, len(text) - _LINE_CHARS), 0))
    end = boundary_before(text, start + _LINE_CHARS)
    before = f"[{start:,} more] …" if start else ""
    after = f"… [{len(text) - end:,} more]" if end < len(text) else ""
    return before + text[start:end] + after, True
