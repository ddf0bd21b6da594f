"""When a summary is good enough, and what is done to its text afterwards: pure (DESIGN section 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from tenuto.compaction.data.files import strip_file_lists
from tenuto.compaction.data.wording import is_opaque
from tenuto.compaction.summary.judge import Expected, Fault, find_weakness
from tenuto.compaction.summary.prompts import JOIN_LABEL
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.estimate import estimate_text

CRITICAL = "## Critical Context"
NAMES_LABEL = "- Exact names from the last part:"
MAX_IDENTIFIERS = 24
IDENTIFIER_REACH = 8_000
"""Characters at the end of the summarised text whose exact names must not be lost."""
LENGTH_TOLERANCE = 1.1
MAX_EXACT_NAMES = 10
"""Names that stay known of an output which is hidden, or of what is left out of one."""
LONGEST_NAME = 80
_MAX_IDENTIFIER = 120
_REFUSAL_LENGTH = 600
_QUOTED = re.compile(r"`([^`]+)`")
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m (?:very )?sorry|sorry|i apologi[sz]e|i (?:can['’]?t|cannot|won['’]?t|am unable|['’]m unable)"
    r"|unfortunately,? i (?:can|am))\b",
    re.IGNORECASE,
)
_THINKING = re.compile(r"\A\s*<(think|thinking|analysis)>.*?</\1>\s*", re.DOTALL)
_WRAPPER = re.compile(r"\A\s*<(summary|notes)>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL)
_FENCE = re.compile(r"\A\s*```(?:markdown|md)?\n(.*?)\n```\s*\Z", re.DOTALL)
_IDENTIFIERS = (
    re.compile(r"https?://[^\s\"'`<>)\]]+[^\s\"'`<>)\].,;:]"),
    re.compile(r"`([^`\n]{2,80})`"),
    re.compile(r"(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w(?::\d+)?"),
    re.compile(
        r"(?<![\w.-])[\w-]+\.(?:py|[cm]?[jt]sx?|rs|go|java|kt|c|h|cc|cpp|hpp|rb|php|toml|json|ya?ml|md|sql|sh)\b"
    ),
    re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])"),
    re.compile(r"(?<![\w-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])"),
    re.compile(r"(?<![\w-])[A-Z][A-Z0-9]+-\d{2,}(?![\w-])"),
    re.compile(r"(?<![\w-])[A-Za-z]{2,}(?:[_-][A-Za-z]+)*[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{6,}(?![\w-])"),
    re.compile(r"\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b"),
    re.compile(r"\bport \d{2,5}\b"),
    re.compile(r"\b(?:E(?!RRORS?\b)[A-Z]{3,}|[A-Z]{1,6}\d{3,6}|[A-Z]{2,}(?:_[A-Z0-9]+)+)\b"),
)
_NO_NAME = re.compile(r"[\s,;:)\]}=]|\d+/\d+$|.*\$\{")
"""What stands between two quotes of code that are no pair, a count of a total, a text with holes to fill in."""


def text_of_summary(answer: AssistantMessage) -> str:
    """Return the summary in an answer, without reasoning, wrappers and file lists that the model added."""
    text = _THINKING.sub("", text_of(answer.parts))
    for wrapper in (_FENCE, _WRAPPER, _FENCE):
        found = wrapper.match(text)
        if found:
            text = found.group(found.re.groups)
    return strip_file_lists(text)


def find_fault(answer: AssistantMessage, replaced_tokens: int, expected: Expected) -> Fault | None:
    """Return what is wrong with a summary; `None` when it can be used (R-010).

    `replaced_tokens` is the estimate of what the summary stands for, `expected` what it has to look like. Length alone
    is no fault: see `shorten`.
    """
    if any(isinstance(part, ToolCallPart) for part in answer.parts):
        return Fault("it called a tool", "notes are text only")
    if answer.stop_reason in {"max_tokens", "window_exceeded", "pause", "interrupted"}:
        return Fault("it was cut off before its end", "be shorter")
    text = text_of_summary(answer)
    if answer.stop_reason == "refusal" or (len(text) < _REFUSAL_LENGTH and _REFUSAL.match(text)):
        return Fault("it was a refusal", "the task is only to report what the transcript says")
    if not text:
        return Fault("it was empty")
    if estimate_text(text) >= replaced_tokens:
        return Fault("it was longer than what it replaces", "keep only what is needed to go on")
    return find_weakness(text, expected)


def is_too_long(summary: str, limit: int) -> bool:
    """Say whether a summary is over its budget of `limit` estimated tokens by more than a tenth."""
    return estimate_text(summary) > limit * LENGTH_TOLERANCE


def shorten(summary: str, limit: int) -> str:
    """Return a summary of at most `limit` estimated tokens (R-009).

    The oldest lines of the longest section go first; every heading, each section's last line and the goal stay as long
    as that is possible.
    """
    if estimate_text(summary) <= limit:
        return summary
    sections = _split_sections(summary)
    total = sum(estimate_text(line) + 1 for section in sections for line in section)
    while total > limit:
        longest = max(sections, key=_spare)
        if _spare(longest) == 0:
            break
        total -= estimate_text(longest.pop(1)) + 1
    text = "\n".join(line for section in sections for line in section).strip()
    while (tokens := estimate_text(text)) > limit:
        text = text[: min(len(text) - 1, len(text) * max(0, limit) // tokens)].rstrip()
    return text


def _split_sections(summary: str) -> list[list[str]]:
    """Split at headings; the heading is each section's first line (an empty one for text before any heading)."""
    sections: list[list[str]] = []
    for line in summary.splitlines():
        if line.startswith("#"):
            sections.append([f"\n{line}" if line.startswith("## ") else line])
        elif line.strip():
            if not sections:
                sections.append([""])
            sections[-1].append(line)
    return sections


def _spare(section: Sequence[str]) -> int:
    """Return the characters that a section could lose; the goal gives up nothing, the others keep their last line."""
    if section[0].strip() == "## Goal" or len(section) <= 2:
        return 0
    return sum(map(len, section[1:])) + 1


def join_summaries(history: str, turn_prefix: str) -> str:
    """Return the summary of a split turn: what came before it, then its first part. Either may be empty."""
    if not turn_prefix:
        return history
    turn = f"{JOIN_LABEL}\n\n{turn_prefix}"
    return f"{history}\n\n---\n\n{turn}" if history else turn


def find_identifiers(text: str) -> list[str]:
    """Return the exact names in the last part of `text`, the latest first: paths, hashes, URLs, ports, error codes."""
    latest = sanitize_for_terminal(text[-IDENTIFIER_REACH:])
    last_seen: dict[str, int] = {}
    for pattern in _IDENTIFIERS:
        for found in pattern.finditer(latest):
            name = (found.group(1) if pattern.groups else found.group()).strip()
            if 2 < len(name) <= _MAX_IDENTIFIER and not _NO_NAME.match(name) and not is_opaque(name):
                last_seen[name] = max(last_seen.get(name, 0), found.start())
    return sorted(last_seen, key=lambda name: -last_seen[name])


def exact_names(text: str) -> list[str]:
    """Return up to ten exact names of an output, the latest first; a part of another name is not named beside it.

    The end is looked at first, where a command says what came of it, and then the beginning. Paths come behind the
    rest: they are found again more easily than a number or a code.
    """
    beginning = text[:-IDENTIFIER_REACH][:IDENTIFIER_REACH]
    found = sorted([*find_identifiers(text), *find_identifiers(beginning)], key=lambda name: "/" in name)
    names: list[str] = []
    for name in dict.fromkeys(found):
        if len(names) == MAX_EXACT_NAMES:
            break
        if len(name) <= LONGEST_NAME and "`" not in name and not any(name in other for other in names):
            names.append(name)
    return names


class Names(msgspec.Struct, frozen=True):
    """The exact names of a text: how many there are, and those that are missing elsewhere, the latest first."""

    found: int
    missing: tuple[str, ...]


def audit_identifiers(text: str, present: Iterable[str]) -> Names:
    """Hold the exact names of the last part of `text` against the `present` texts.

    A name that is only part of another one (the file name of a path) is not counted beside it.
    """
    names = find_identifiers(text)
    everything = "\n".join(names)
    names = [name for name in names if everything.count(name) == 1]
    known = "\n".join(present)
    return Names(len(names), tuple(name for name in names if name not in known))


def add_identifiers(summary: str, names: Sequence[str]) -> str:
    """Return the summary with `names` as one more line under Critical Context."""
    if not names:
        return summary
    return add_context(summary, f"{NAMES_LABEL} " + ", ".join(f"`{name}`" for name in names))


def names_in(summary: str) -> list[str]:
    """Return the names that `add_identifiers` put into a summary, in order."""
    lines = (line for line in summary.splitlines() if line.startswith(NAMES_LABEL))
    return [name for line in lines for name in _QUOTED.findall(line)]


def without_names(summary: str) -> str:
    """Return a summary without the names that `add_identifiers` put into it."""
    return "\n".join(line for line in summary.splitlines() if not line.startswith(NAMES_LABEL))


def add_context(summary: str, line: str) -> str:
    """Return the summary with one more line, or item of several, under Critical Context."""
    return add_item(summary, CRITICAL, line)


def add_item(summary: str, heading: str, item: str) -> str:
    """Return the summary with one more item under a heading, which is added where it is missing."""
    found = list(re.finditer(rf"^{re.escape(heading)}[ \t]*$", summary, re.MULTILINE))
    if not found:
        return f"{summary.rstrip()}\n\n{heading}\n{item}"
    following = re.compile(r"^(?:#{1,2} |---$)", re.MULTILINE).search(summary, found[-1].end())
    end = following.start() if following else len(summary)
    return f"{summary[:end].rstrip()}\n{item}\n\n{summary[end:]}".rstrip()
