"""The `glob` tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import FoundView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import shorten
from tenuto.tool.edits.files import read_subject, resolve, resolve_allowed, show_path, similar_paths
from tenuto.tool.output import ToolOutput, clean_text
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.search.patterns import path_matcher
from tenuto.tool.search.ripgrep import choose_source
from tenuto.tool.search.search import SEARCH_SECONDS, Source, Stop, run_stoppable

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import GlobArguments


class GlobTool(BuiltinTool):
    """Finds files by name."""

    name = "glob"

    def subject(self, arguments: GlobArguments, context: ToolContext) -> ApprovalSubject:
        """Return the place that is searched."""
        path = resolve(arguments.path, context)
        summary = f"{shorten(arguments.pattern, 80)} in {show_path(path, context)}"
        return read_subject(self.name, path, summary, context)

    async def run(self, arguments: GlobArguments, context: ToolContext) -> ToolOutput:
        """Search off the loop."""
        source = choose_source()
        return await run_stoppable(lambda stop: _search(arguments, context, source, stop))


def _search(arguments: GlobArguments, context: ToolContext, source: Source, stop: Stop) -> ToolOutput:
    base = resolve_allowed(arguments.path, context)
    if not base.is_dir():
        what = "is not a directory" if base.exists() else f"does not exist.{similar_paths(base, context)}"
        raise ToolError(f"{show_path(base, context)} {what}")
    matches = path_matcher(arguments.pattern)
    names = [name for name in source.files(base, stop) if matches(name)]
    names.sort(key=lambda name: (-_changed(base / name), name))
    prefix = show_path(base, context)
    rows = [name if prefix == "." else f"{prefix}/{name}" for name in names]
    late = f"\n[Stopped after {SEARCH_SECONDS:g} s; there may be more.]" if stop.is_late else ""
    view = FoundView(files=len(rows), partial=len(rows) > arguments.limit or stop.is_late)
    if len(rows) <= arguments.limit:
        text = clean_text("\n".join(rows)) if rows else "No files match."
        return ToolOutput(parts=(TextPart(text=text + late),), ui=(view,))
    whole = clean_text("\n".join(rows)) + "\n"
    stored = context.store_output(context.call_id, whole)
    shown = clean_text("\n".join(rows[: arguments.limit]))
    notice = f"[The {arguments.limit:,} newest of {len(rows):,} files; all of them are in {stored}]"
    return ToolOutput(
        parts=(TextPart(text=f"{shown}\n{notice}{late}"),),
        ui=(view,),
        truncated=True,
        output_path=str(stored),
        output_size=len(whole.encode("utf-8", "replace")),
    )


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
