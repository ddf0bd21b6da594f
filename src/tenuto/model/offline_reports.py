"""What the offline model says of a tool result: short, from the text and the data of the result alone. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from tenuto.protocol.message import ShellView, ToolResultMessage
from tenuto.protocol.part import text_of

_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|│| ?[|:] ?)")
_NOTICE = re.compile(r"^\s*[\[(].*[\])]\s*$")
_ENDING = re.compile(r"\[(?:Exit code|Stopped after|Something it started) .*\]$")
_EXIT_CODE = re.compile(r"exit(?:ed)?(?: with)?(?: code| status)?:? (-?\d+)", re.IGNORECASE)
_TELLING = re.compile(
    r"error|exception|fail(?:ed|ure)|fatal|panic|traceback|assert|not found|no such|denied|refused|cannot|can't"
    r"|undefined|unexpected|unknown|invalid|missing|timed? ?out|killed|^E\s{2,}",
    re.IGNORECASE,
)
_TEST_SUMMARY = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped|tests?|passing|failing|xfailed)\b", re.IGNORECASE)
_CODE_HEADING = re.compile(
    r"^(?:export\s+)?(?:pub(?:\([a-z]+\))?\s+)?(?:async\s+)?(?:abstract\s+)?"
    r"(?:class|def|fn|func|function|struct|enum|trait|interface|impl|type)\s+(\w+)"
)
_TEXT_HEADING = re.compile(r"^#{1,4}\s+(.+)$")
_SHOWN_HEADINGS = 12
_SHOWN_LINES = 8
_LINE_CHARS = 200


def text_in(result: ToolResultMessage) -> str:
    """Return the text of a result."""
    return text_of(result.parts)


def shown(line: str) -> str:
    """Return one line, shortened."""
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


def fenced(lines: Sequence[str]) -> str:
    """Return the lines as a code block that no line in it can close."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *(shown(line) for line in lines), fence])


def coded(text: str) -> str:
    """Return the text as inline code."""
    one_line = shown(" ".join(text.split()))
    return f"`{one_line}`" if "`" not in one_line else f"`` {one_line} ``"


def plural(count: int, singular: str, many: str = "") -> str:
    """Return a count with its noun."""
    return f"{count} {singular}" if count == 1 else f"{count} {many or singular + 's'}"


def output_lines(result: ToolResultMessage) -> list[str]:
    """Return the lines that a command printed, without blank ones and without what the tool says of its ending."""
    lines = text_in(result).splitlines()
    return [line for line in lines if line.strip() and line != "(no output)" and not _ENDING.match(line)]


def content_lines(result: ToolResultMessage) -> list[str]:
    """Return the lines of a result without blank ones and without notices in brackets."""
    return [line for line in text_in(result).splitlines() if line.strip() and not _NOTICE.match(line)]


def file_lines(result: ToolResultMessage) -> list[str]:
    """Return the lines of a file that was read, without the line numbers that the tool puts before them."""
    lines = text_in(result).splitlines()
    numbered = [line for line in lines if _NUMBERED.match(line)]
    if not numbered:
        return [line for line in lines if not _NOTICE.match(line)]
    return [_NUMBERED.sub("", line, count=1) for line in numbered]


def report_file(path: str, result: ToolResultMessage) -> str:
    """Say how long a file is and what is in it."""
    lines = file_lines(result)
    if not "".join(lines).strip():
        return f"{coded(path)} is empty."
    more = " of it (there is more)" if result.truncated else ""
    said = [f"{coded(path)}: {plural(len(lines), 'line')} read{more}."]
    headings = _headings(path, lines)
    if headings:
        rest = f" and {len(headings) - _SHOWN_HEADINGS} more" if len(headings) > _SHOWN_HEADINGS else ""
        said.append(f"In it: {', '.join(headings[:_SHOWN_HEADINGS])}{rest}.")
    beginning = [line for line in lines if line.strip()][:_SHOWN_LINES]
    said.append(f"It begins:\n\n{fenced(beginning)}")
    return "\n\n".join(said)


def _headings(path: str, lines: Sequence[str]) -> list[str]:
    prose = PurePosixPath(path).suffix.lower() in ("", ".md", ".markdown", ".rst", ".txt")
    pattern = _TEXT_HEADING if prose else _CODE_HEADING
    found = (pattern.match(line) for line in lines)
    return [shown(match[1].strip()) if prose else coded(match[1]) for match in found if match]


def report_files(where: str, paths: Sequence[str], *, cut: bool) -> str:
    """Say what files there are: how many, of what kinds, in which folders."""
    at_least = "At least " if cut else ""
    kinds = Counter(PurePosixPath(path).suffix or PurePosixPath(path).name for path in paths)
    folders = Counter(f"{path.split('/', 1)[0]}/" if "/" in path else path for path in paths)
    listed = [
        f"- {coded(name)}" + (f" ({plural(count, 'file')})" if name.endswith("/") else "")
        for name, count in sorted(folders.items())
    ]
    kind_text = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(6))
    rest = [f"- … and {len(listed) - 25} more"] if len(listed) > 25 else []
    return "\n".join([f"{at_least}{plural(len(paths), 'file')} in {where}: {kind_text}.", "", *listed[:25], *rest])


def report_names(pattern: str, paths: Sequence[str], *, cut: bool) -> str:
    """Say which files match a name."""
    if not paths:
        return f"No file matches {coded(pattern)}."
    at_least = "At least " if cut else ""
    verb = "matches" if len(paths) == 1 else "match"
    rest = [f"- … and {len(paths) - 20} more"] if len(paths) > 20 else []
    names = [f"- {coded(path)}" for path in paths[:20]]
    return "\n".join([f"{at_least}{plural(len(paths), 'file')} {verb} {coded(pattern)}:", "", *names, *rest])


_MATCH = re.compile(r"(?P<line>\d+):(?P<text>.*)")
_CONTEXT = re.compile(r"\d+-|--$")


def matches_in(result: ToolResultMessage) -> list[tuple[str, str, str]]:
    """Return `(path, line number, text)` of each match: a path on a line of its own, its matches below it."""
    found: list[tuple[str, str, str]] = []
    path = ""
    for line in content_lines(result):
        match = _MATCH.match(line)
        if match:
            found.append((path, match["line"], match["text"]))
        elif not _CONTEXT.match(line):
            path = line
    return found


def report_matches(pattern: str, where: str, result: ToolResultMessage) -> str:
    """Say how often a text was found, and in which files."""
    place = f" in {coded(where)}" if where else ""
    found = matches_in(result)
    if not found:
        return f"No match for {coded(pattern)}{place}."
    files = Counter(path for path, _, _ in found)
    cut = "At least " if result.truncated else ""
    lines, many = plural(len(found), "line"), plural(len(files), "file")
    said = f"{cut}{lines} with {coded(pattern)}{place}, in {many}."
    listed = [f"- {coded(path)}: {count}" for path, count in files.most_common(15)]
    listed += [f"- … and {len(files) - 15} more files"] if len(files) > 15 else []
    first = [f"{path}:{number}: {text.strip()}" for path, number, text in found[:5]]
    return "\n".join([said, "", *listed, "", "The first of them:", "", fenced(first)])


def exit_code(result: ToolResultMessage) -> int | None:
    """Return how a command ended: from the result's data, else from its text."""
    for view in result.ui:
        if isinstance(view, ShellView):
            return view.exit_code
    found = _EXIT_CODE.findall(text_in(result))
    return int(found[-1]) if found else None


def has_failed(result: ToolResultMessage) -> bool:
    """Say whether a call did not do what was asked."""
    return result.is_error or (exit_code(result) or 0) != 0


def report_command(command: str, result: ToolResultMessage) -> str:
    """Say how a command ended and the last of what it printed; a failure is explained."""
    if has_failed(result):
        return explain_failure(command, result)
    lines = output_lines(result)
    summary = test_summary(lines)
    if summary:
        return f"{coded(command)} succeeded: {summary}"
    if not lines:
        return f"{coded(command)} succeeded and printed nothing."
    last = lines[-_SHOWN_LINES:]
    which = "It printed" if len(last) == len(lines) else f"It printed {plural(len(lines), 'line')}, the last of them"
    return f"{coded(command)} succeeded. {which}:\n\n{fenced(last)}"


def test_summary(lines: Sequence[str]) -> str:
    """Return the line in which a test runner counts, empty when there is none."""
    found = next((line for line in reversed(lines) if _TEST_SUMMARY.search(line)), "")
    return found.strip("= \t").strip()


def explain_failure(command: str, result: ToolResultMessage) -> str:
    """Name the exit code and the lines that tell most: those that speak of errors, else the last ones."""
    code = exit_code(result)
    lines = output_lines(result)
    ending = f"failed with exit code {code}" if code is not None else "failed"
    meaning = f" ({_MEANINGS[code]})" if code in _MEANINGS else ""
    said = [f"{coded(command)} {ending}{meaning}."]
    summary = test_summary(lines)
    if summary:
        said[0] += f" The tests say: {summary}"
    telling = [line for line in lines if _TELLING.search(line)]
    if telling:
        said.append(f"The lines that matter:\n\n{fenced(telling[-_SHOWN_LINES:])}")
    elif lines:
        said.append(f"Its last lines:\n\n{fenced(lines[-_SHOWN_LINES:])}")
    else:
        said.append("It printed nothing.")
    return "\n\n".join(said)


_MEANINGS = {
    2: "often: wrong usage",
    124: "a time limit was reached",
    126: "the file is there but may not be executed",
    127: "the command was not found",
    130: "interrupted",
    137: "killed, perhaps for lack of memory",
    139: "it crashed: segmentation fault",
    143: "it was told to end",
}
