"""A tool with a look of its own, and a word in the footer: how many lines the project has, by kind of file."""

from collections import Counter
from pathlib import Path
from typing import Annotated

from tenuto.extension import Extension, Result, ToolCall

SKIPPED = {".git", ".venv", "node_modules", "__pycache__"}
CHANGING = {"write", "edit", "apply_patch", "bash"}


def count_lines(folder: Path, ending: str) -> Counter[str]:
    """Return the lines of all text files below a folder, by the ending of their names."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.rglob(f"*{ending}")):
        if path.is_file() and not SKIPPED & set(path.relative_to(folder).parts):
            try:
                counts[path.suffix or path.name] += len(path.read_text(encoding="utf-8").splitlines())
            except (OSError, UnicodeDecodeError):
                continue
    return counts


def setup(tenuto: Extension) -> None:
    @tenuto.tool(read_only=True)
    def line_counts(call: ToolCall, ending: Annotated[str, "only files that end so, like .py"] = "") -> Result:
        """Count the lines of the project's text files, by kind of file."""
        counts = count_lines(call.cwd, ending)
        lines = [f"{kind}: {lines}" for kind, lines in counts.most_common()]
        return Result(text="\n".join(lines) or "There are no text files.", details=dict(counts))

    @tenuto.renderer("line_counts")
    def draw(arguments, result):
        counts = Counter(result.details)
        most = max(counts.values(), default=1) or 1
        return [
            [(f"{kind:<12}", "path"), ("█" * max(1, lines * 20 // most), "accent"), (f" {lines:,}", "dim")]
            for kind, lines in counts.most_common()
        ]

    def show() -> None:
        tenuto.show_status(f"{count_lines(tenuto.cwd, '').total():,} lines")

    @tenuto.on("session_opened")
    def at_the_start(event):
        show()

    @tenuto.on("tool_result")
    def after_a_change(event):
        if event.message.name in CHANGING:
            show()
