"""File patterns: `*.py` at any depth, `src/**/*.{ts,tsx}` from the top. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from tenuto.tool.run.base import ToolError

_BRACES = re.compile(r"\{([^{}]*)\}")
_MAX_ALTERNATIVES = 200
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


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


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a relative path (with `/`) matches. Raises `ToolError` for a pattern that leads elsewhere."""
    pattern = pattern.strip().removeprefix("./")
    if not pattern:
        raise ToolError("The pattern is empty.")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ToolError(f"The pattern {pattern[:80]} must be relative; name the directory to search in path.")
    rules = [_translate(choice) for choice in expand_braces(pattern)]
    whole = re.compile("|".join(f"(?:{rule})" for rule in rules), re.DOTALL)
    return lambda path: whole.fullmatch(path) is not None


def _translate(pattern: str) -> str:
    """Return the regular expression of one pattern; one without a slash matches names at any depth."""
    if pattern.endswith("/"):
        pattern += "**"
    prefix = "" if "/" in pattern else "(?:.*/)?"
    out: list[str] = []
    for token in _TOKEN.findall(pattern):
        if token == "**/":
            out.append("(?:.*/)?")
        elif token == "**":
            out.append(".*")
        elif token == "*":
            out.append("[^/]*")
        elif token == "?":
            out.append("[^/]")
        elif len(token) > 2 and token[0] == "[":
            inner = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
        else:
            out.append(re.escape(token))
    return prefix + "".join(out)
