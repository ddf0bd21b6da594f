"""Patterns of paths: `*`, `?` and `[ab]` within a name, `**` for any folders, `{a,b}` for a choice. Pure.

Patterns come from models and repositories: the work for a path is at most the product of both lengths. Between the
slashes `fnmatch` does the matching, whose regular expressions take back nothing; folders are counted, not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from tenuto.text.late import late
from tenuto.tool.run.context import ToolError

_BRACES = late(r"\{([^{}]*)\}")
_MAX_ALTERNATIVES = 200


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a relative path (with `/`) matches. Raises `ToolError` for a pattern that leads elsewhere."""
    pattern = pattern.strip().removeprefix("./")
    if not pattern:
        raise ToolError("The pattern is empty.")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ToolError(f"The pattern {pattern[:80]} must be relative; name the directory to search in path.")
    choices = split_pattern(pattern)

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(fits(parts, names) for parts in choices)

    return matches


def split_pattern(pattern: str) -> list[list[str]]:
    """Return what stands between the slashes, for each choice in braces; one without a slash is at any depth.

    Raises `ToolError` when there are too many choices.
    """
    named = [f"{choice}**" if choice.endswith("/") else choice for choice in expand_braces(pattern.removeprefix("./"))]
    return [(choice if "/" in choice else f"**/{choice}").lstrip("/").split("/") for choice in named]


def fits(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a path matches a pattern, both split at their slashes."""
    last = len(parts) - 1
    places = {0}
    """How many names the parts so far can stand for."""
    for index, part in enumerate(parts):
        if part == "**":
            first = min(places, default=len(names) + 1) + (index == last)  # a last one stands for something
            places = set(range(first, len(names) + 1))
            continue
        if index == last:
            places &= {len(names) - 1}
        places = {place + 1 for place in places if place < len(names) and fnmatchcase(names[place], part)}
    return len(names) in places


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that `{a,b}` stands for. Raises `ToolError` when there are too many."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        if len(pending) + len(done) > _MAX_ALTERNATIVES:
            raise ToolError(f"The pattern {pattern[:80]} has too many alternatives in braces.")
        present = pending.pop()
        found = _BRACES.search(present)
        if found is None:
            done.append(present)
        else:
            pending += [present[: found.start()] + choice + present[found.end() :] for choice in found[1].split(",")]
    return done
