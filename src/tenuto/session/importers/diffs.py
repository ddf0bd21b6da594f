"""The diffs that Claude Code stores beside its edits, as ours. Pure."""

from __future__ import annotations

from tenuto.protocol.message import DiffView, ResultView
from tenuto.session.importers.json_access import Fields, as_fields, items, text, texts, tokens


def patch_views(details: Fields) -> tuple[ResultView, ...]:
    """Return the diff that the details of a result carry, if they carry one."""
    path, hunks = text(details, "filePath"), items(details, "structuredPatch")
    if not path:
        return ()
    if not hunks and details.get("type") == "create" and text(details, "content"):
        lines = [f"+{line}" for line in text(details, "content").removesuffix("\n").split("\n")]
        diff = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *lines]) + "\n"
        return (DiffView(path=path, diff=diff, added=len(lines), created=True),)
    shown: list[str] = []
    for value in hunks:
        hunk = as_fields(value)
        starts = [tokens(hunk, name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        shown.append(f"@@ -{starts[0]},{starts[1]} +{starts[2]},{starts[3]} @@")
        shown += texts(hunk, "lines")
    if not shown:
        return ()
    added = sum(line.startswith("+") for line in shown)
    removed = sum(line.startswith("-") for line in shown)
    return (DiffView(path=path, diff="\n".join(shown) + "\n", added=added, removed=removed),)
