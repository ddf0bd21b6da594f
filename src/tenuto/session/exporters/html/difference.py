"""A change to a file: rows with both line numbers."""

from __future__ import annotations

import re

from tenuto.protocol.message import DiffView
from tenuto.session.exporters.html.markup import Markup, element, fold, join, line, text
from tenuto.text.figures import plural

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def difference(view: DiffView) -> Markup:
    """Return a folded diff, its path and counts in the line that opens it."""
    head = join(
        element("span", line(view.path), class_="path"),
        Markup(" "),
        element("span", Markup(f"+{view.added}"), class_="plus"),
        Markup(" "),
        element("span", Markup(f"−{view.removed}"), class_="minus"),
        element("span", Markup(" new file"), class_="dim") if view.created else Markup(""),
    )
    rows = diff_rows(view.diff)
    if not rows:
        return element("div", head, element("span", Markup(" no lines changed"), class_="dim"), class_="diff")
    table = element("pre", Markup("\n"), *rows, class_="rows")
    size = element("span", Markup(" · "), line(plural(len(rows), "row")), class_="dim")
    return fold(join(head, size), table, class_="diff")


def diff_rows(diff: str) -> list[Markup]:
    """Return the rows of a unified diff without its `---` and `+++` head."""
    rows: list[Markup] = []
    old = new = 1
    for row in diff.removesuffix("\n").split("\n") if diff else ():
        sign = row[:1]
        if match := _HUNK.match(row):
            old, new = _number(match[1]), _number(match[2])
            rows.append(_row("hunk", 0, 0, row))
        elif sign == "+":
            rows.append(_row("added", 0, new, row))
            new += 1
        elif sign == "-":
            rows.append(_row("removed", old, 0, row))
            old += 1
        elif sign == " " or not row:
            rows.append(_row("same", old, new, row or " "))
            old, new = old + 1, new + 1
        else:
            rows.append(_row("hunk", 0, 0, row))
    return rows


def _number(digits: str) -> int:
    return int(digits[:12])


def _row(kind: str, old: int, new: int, row: str) -> Markup:
    numbers = f"{old or '':>5} {new or '':>5} "
    return element("span", element("i", text(numbers)), text(row), Markup("\n"), class_=f"row {kind}")
