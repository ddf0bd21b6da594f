"""What was found here, as lines for a user: what counts, by kind, and each thing that is left out with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.command.registry import built_in_names
from tenuto.core.runtime import Runtime
from tenuto.core.state.found import FINDERS, Around, Found
from tenuto.guard.terminal import sanitize_line
from tenuto.text.bounding import shorten

NAMED_AT_MOST = 6
_LEFT_AT_MOST = 12
_LINE = 200


def around(runtime: Runtime) -> Around:
    """Return where is looked in a session."""
    return Around(
        home=runtime.home,
        cwd=runtime.live.session.cwd,
        environ=runtime.start.environ,
        settings=runtime.settings,
        built_in=built_in_names(),
    )


def say_row(row: Found) -> str:
    """Return one thing on one line: what it is, whose place it stands in, why it is left out and what to do."""
    kind = row.kind if row.kind in ("instructions", "settings") else row.kind.removesuffix("s")
    left = f" · {'left out' if row.in_part else 'not used'}: {row.left_out}" if row.left_out else ""
    do = f" → {row.do}" if row.left_out and row.do else ""
    return shorten(sanitize_line(f"{kind} {_named(row)}{left}{do}"), _LINE)


def _named(row: Found) -> str:
    """Return its name with whose place it stands in; names of plugins' things say that themselves."""
    return row.name if row.origin == "plugin" else f"{row.name} ({row.product})"


def say_used(rows: Sequence[Found], most: int = NAMED_AT_MOST) -> list[str]:
    """Return a line for each kind with the names of what is used, so many of them."""
    lines: list[str] = []
    for kind in FINDERS:
        used = [row for row in rows if row.kind == kind and row.is_used]
        more = f" and {len(used) - most} more" if used[most:] else ""
        if used:
            lines.append(sanitize_line(f"{kind}: {', '.join(map(_named, used[:most]))}{more}"))
    return lines


def say_found(found: Sequence[Found]) -> str:
    """Return what was found: a line for each kind, then a line for each thing that is left out."""
    lines = say_used(found)
    left = [row for row in found if not row.is_used]
    lines += [say_row(row) for row in left[:_LEFT_AT_MOST]]
    if left[_LEFT_AT_MOST:]:
        lines.append(f"{len(left) - _LEFT_AT_MOST} more are not used: tenuto doctor names them")
    return "\n".join(lines)
