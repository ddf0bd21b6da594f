"""Rung 7: a summary without any model, from data alone (DESIGN section 6, R-003). Pure.

The headings are those of every summary, so that a later round can update it. It is marked as what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tenuto.compaction.entries import Visible
from tenuto.compaction.failures import error_text, one_line
from tenuto.compaction.files import with_file_lists
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.prompts import JOIN_LABEL
from tenuto.compaction.serialize import clip
from tenuto.compaction.summary import IDENTIFIER_REACH, NAMES_LABEL, add_identifiers, find_identifiers, shorten
from tenuto.compaction.view import PERSON_ORIGINS, Surroundings, surrounding_blocks
from tenuto.compaction.wording import (
    MAX_SENTENCE,
    is_decision,
    is_promise,
    newest_by_topic,
    sentences,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.estimate import estimate_text

MARK = "(Compiled from the session's data without a model; details are in the history.)"
MAX_ERRORS = 8
MAX_CALLS = 6
MAX_DECISIONS = 20
MAX_PROMISES = 12
NAMES_SHARE = 4
"""Exact names take at most a quarter of the digest."""
NAMES_OF_ONE = 10
"""Exact names that are taken from one result or answer."""
MIN_REQUEST = 20
"""Characters; a shorter text ("go on") states no goal."""
CALL = "- Call: "
FAILED = " failed: "
LATEST_REQUEST = "Latest request"
_TEXT = 600
_LONG_TEXT = 1_500
_LAST_ANSWER = "The last answer in this part"
_QUOTED = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def digest(plan: CompactionPlan, surroundings: Surroundings) -> str:
    """Return the summary that the session's data gives: goal, constraints, todo, errors, last answer, files.

    What an earlier summary says under a heading is carried over. At most the plan's summary budget long.
    """
    limit = plan.allowance.summary
    text = digest_entries([*plan.history, *plan.turn_prefix], surroundings, plan.previous_summary, limit)
    return with_file_lists(text, plan.file_operations, list_room(plan, surroundings))


def digest_entries(entries: Sequence[Visible], surroundings: Surroundings, previous: str, limit: int) -> str:
    """Return what the data of some entries gives under the usual headings, within `limit` estimated tokens.

    What the `previous` summary says under a heading is carried over. Rules of the user are not repeated: they stand
    among the user's own words. Without file lists.
    """
    earlier = sections_of(previous)
    sections = (
        ("## Goal", _goal(entries, earlier)),
        ("## Constraints & Preferences", earlier.get("Constraints & Preferences", "")),
        ("## Progress", _progress(entries, surroundings, earlier)),
        ("## Key Decisions", _decisions(entries, earlier)),
        ("## Next Steps", _next_steps(entries, surroundings, earlier)),
        ("## Critical Context", _critical(entries, earlier)),
    )
    text = "\n\n".join([MARK, *(f"{heading}\n{body}" for heading, body in sections if body)])
    names = _names(entries, earlier, text, limit // NAMES_SHARE)
    room = limit - sum(estimate_text(name) + 2 for name in names)
    return shorten(add_identifiers(shorten(text, room), names), limit)


def list_room(plan: CompactionPlan, surroundings: Surroundings) -> int:
    """Return the estimated tokens that the file lists may take beside pins and todo list."""
    taken = sum(estimate_text(block) for block in surrounding_blocks(surroundings))
    return max(60, plan.allowance.extras - taken)


def sections_of(summary: str) -> dict[str, str]:
    """Return the text under each second-level heading of a summary."""
    pieces = _HEADING.split(summary)
    pairs = zip(pieces[1::2], pieces[2::2], strict=True)
    return {name.strip(): body.partition(f"---\n\n{JOIN_LABEL}")[0].strip() for name, body in pairs}


def _goal(entries: Sequence[Visible], earlier: dict[str, str]) -> str:
    """Return the goal: what a model's summary calls it, and the latest request; what came before may be taken back."""
    said = [
        text
        for entry in entries
        if isinstance(entry, UserMessage) and entry.origin in PERSON_ORIGINS and (text := text_of(entry.parts).strip())
    ]
    goal = earlier.get("Goal", "")
    if not said:
        return goal
    latest = next((text for text in reversed(said) if len(text) >= MIN_REQUEST), said[-1])
    item = _item(LATEST_REQUEST, clip(latest, _TEXT, 200))
    return "\n".join(filter(None, (_without_item(goal, LATEST_REQUEST), item)))


def _item(label: str, text: str) -> str:
    """Return a quoted text as one item of a list: its lines are set in, so that none is taken for a heading."""
    return f"- {label}: {text}".replace("\n", "\n  ")


def _without_item(section: str, label: str) -> str:
    """Return a section without the items of that label, their further lines included."""
    kept: list[str] = []
    is_dropped = False
    for line in section.splitlines():
        is_dropped = line.startswith(f"- {label}: ") or (is_dropped and (line.startswith("  ") or not line.strip()))
        if not is_dropped:
            kept.append(line)
    return "\n".join(kept).strip()


def _progress(entries: Sequence[Visible], surroundings: Surroundings, earlier: dict[str, str]) -> str:
    before = _subsections(earlier.get("Progress", ""))
    todo = {
        status: [item.text for item in surroundings.todo if item.status == status] for status in ("done", "in_progress")
    }
    done = [line for line in before.get("Done", []) if not line.startswith(CALL)]
    done += _lines(earlier.get("Progress So Far", ""))
    done += [line for text in todo["done"] if (line := f"- [x] {text}") not in done]
    calls = [call for entry in entries if isinstance(entry, AssistantMessage) for call in entry.tool_calls]
    done += [f"{CALL}{describe_call(call)}" for call in calls[-MAX_CALLS:]]
    under_way = [f"- [ ] {text}" for text in todo["in_progress"]]
    if not surroundings.todo:
        under_way = before.get("In Progress", [])  # where there is a list, only the list knows what is open
    blocked = open_errors(entries, _items(before.get("Blocked", [])))
    lists = (("### Done", done), ("### In Progress", under_way), ("### Blocked", blocked))
    return "\n".join("\n".join((heading, *lines)) for heading, lines in lists if lines)


def _items(lines: Sequence[str]) -> list[str]:
    """Return the items of a list, each with its further lines."""
    items: list[str] = []
    for line in lines:
        if items and line.startswith("  "):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return items


def _subsections(text: str) -> dict[str, list[str]]:
    """Return the lines under each third-level heading."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _lines(text):
        if line.startswith("### "):
            lines = found.setdefault(line.removeprefix("### ").strip(), [])
        else:
            lines.append(line)
    return found


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def describe_call(call: ToolCallPart) -> str:
    """Return a call in one line; two calls that do the same have the same one."""
    return f"{call.name}({one_line(call.arguments, 80)})"


def open_errors(entries: Sequence[Visible], earlier: Sequence[str]) -> list[str]:
    """Return the errors that no later success of the same call has answered, word for word, oldest first."""
    calls = {
        call.id: describe_call(call)
        for entry in entries
        if isinstance(entry, AssistantMessage)
        for call in entry.tool_calls
    }
    found = {line.removeprefix("- ").partition(FAILED)[0]: line for line in earlier}
    for entry in entries:
        if not isinstance(entry, ToolResultMessage):
            continue
        call = calls.get(entry.call_id, entry.name)
        found.pop(call, None)
        if entry.is_error and not entry.interrupted:
            found[call] = f"- {call}{FAILED}{error_text(entry)}".replace("\n", "\n  ")
    return list(found.values())[-MAX_ERRORS:]


def _told(entries: Sequence[Visible], is_meant: Callable[[str], bool]) -> list[str]:
    """Return the sentences of answers that are meant, as items of a list, oldest first."""
    return [
        f"- {sentence}"
        for entry in entries
        if isinstance(entry, AssistantMessage) and (text := text_of(entry.parts))
        for span in sentences(text)
        if is_meant(sentence := one_line(text[span.start : span.end].lstrip("-*# "), MAX_SENTENCE)) and sentence
    ]


def _decisions(entries: Sequence[Visible], earlier: dict[str, str]) -> str:
    before = _items(_lines(earlier.get("Key Decisions", "")))
    return "\n".join(newest_by_topic(before, _told(entries, is_decision), MAX_DECISIONS))


def _next_steps(entries: Sequence[Visible], surroundings: Surroundings, earlier: dict[str, str]) -> str:
    """Return what is open by the todo list, then what answers said was still to be done."""
    due = [item.text for item in surroundings.todo if item.status in {"in_progress", "pending"}]
    steps = [f"{number}. {text}" for number, text in enumerate(due, 1)] or ["1. Go on with the latest request."]
    before = [line for line in _items(_lines(earlier.get("Next Steps", ""))) if line.startswith("- ")]
    promised = _told(entries, lambda sentence: is_promise(sentence) and not is_decision(sentence))
    return "\n".join((*steps, *newest_by_topic(before, promised, MAX_PROMISES)))


def _critical(entries: Sequence[Visible], earlier: dict[str, str]) -> str:
    lines = [text for name in ("Critical Context", "Context Needed to Continue") if (text := earlier.get(name))]
    lines = [
        "\n".join(line for line in text.splitlines() if not line.startswith(NAMES_LABEL)) for text in lines if text
    ]
    for entry in reversed(entries):
        if isinstance(entry, AssistantMessage) and (text := text_of(entry.parts).strip()):
            lines = [_without_item(line, _LAST_ANSWER) for line in lines]
            lines.append(_item(_LAST_ANSWER, clip(text, _LONG_TEXT, _TEXT)))
            break
    return "\n".join(filter(None, lines))


def _names(entries: Sequence[Visible], earlier: dict[str, str], text: str, limit: int) -> list[str]:
    """Return exact names of results and answers that the digest lacks, within `limit` tokens.

    The newest come first, then those that the earlier digest had.
    """
    kept: dict[str, None] = {}
    for name in _names_newest_first(entries, earlier):
        if name in kept or name in text:
            continue
        limit -= estimate_text(name) + 2
        if limit < 0:
            break
        kept[name] = None
    return list(kept)


def _names_newest_first(entries: Sequence[Visible], earlier: dict[str, str]) -> Iterator[str]:
    for entry in reversed(entries):
        if isinstance(entry, ToolResultMessage | AssistantMessage):
            said = text_of(entry.parts)
            yield from find_identifiers(said)[:NAMES_OF_ONE]
            if len(said) > IDENTIFIER_REACH:
                yield from find_identifiers(said[:IDENTIFIER_REACH])[:NAMES_OF_ONE]
    for line in earlier.get("Critical Context", "").splitlines():
        if line.startswith(NAMES_LABEL):
            yield from _QUOTED.findall(line)
