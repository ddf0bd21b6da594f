"""Rung 7: a summary without any model, from data alone (DESIGN section 6, R-003). Pure.

The headings are those of every summary, so that a later round can update it. It is marked as what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenuto.compaction.entries import Visible
from tenuto.compaction.files import with_file_lists
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.prompts import JOIN_LABEL
from tenuto.compaction.serialize import clip
from tenuto.compaction.summary import add_identifiers, find_identifiers, shorten
from tenuto.compaction.view import PERSON_ORIGINS, Surroundings, surrounding_blocks
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import text_of
from tenuto.text.estimate import estimate_text

MARK = "(Compiled from the session's data without a model; details are in the history.)"
MAX_ERRORS = 3
MAX_STEPS = 12
_TEXT = 600
_ERROR_TEXT = 400
_LONG_TEXT = 1_500
_LAST_REQUEST, _LAST_ANSWER = "Last request in this part", "The last answer in this part"
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

    What the `previous` summary says under a heading is carried over. Without file lists.
    """
    earlier = sections_of(previous)
    sections = (
        ("## Goal", _goal(entries, earlier)),
        ("## Constraints & Preferences", earlier.get("Constraints & Preferences", "")),
        ("## Progress", _progress(entries, surroundings, earlier)),
        ("## Key Decisions", earlier.get("Key Decisions", "")),
        ("## Next Steps", _next_steps(surroundings)),
        ("## Critical Context", _critical(entries, earlier)),
    )
    text = "\n\n".join([MARK, *(f"{heading}\n{body}" for heading, body in sections if body)])
    return shorten(add_identifiers(shorten(text, limit), _names(entries, text, limit)), limit)


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
    said = [
        text_of(entry.parts).strip()
        for entry in entries
        if isinstance(entry, UserMessage) and entry.origin in PERSON_ORIGINS
    ]
    goal = earlier.get("Goal", "")
    if said:
        goal = _without_item(goal, _LAST_REQUEST)  # the newest one counts; the others are among the person's own words
    lines = [goal] if goal else []
    if said and not lines:
        lines.append(_item("First request", clip(said.pop(0), _TEXT, 200)))
    if said:
        lines.append(_item(_LAST_REQUEST, clip(said[-1], _TEXT, 200)))
    return "\n".join(lines)


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
    steps = [_describe_step(entry) for entry in entries if isinstance(entry, AssistantMessage) and entry.tool_calls]
    done = before.get("Done", []) + _lines(earlier.get("Progress So Far", ""))
    done += [line for text in todo["done"] if (line := f"- [x] {text}") not in done]
    if len(steps) > MAX_STEPS:
        done.append(f"- ({len(steps) - MAX_STEPS} earlier steps)")
    done += [f"- {step}" for step in steps[-MAX_STEPS:]]
    under_way = [f"- [ ] {text}" for text in todo["in_progress"]]
    if not surroundings.todo:
        under_way = before.get("In Progress", [])  # where there is a list, only the list knows what is open
    lists = (("### Done", done), ("### In Progress", under_way), ("### Blocked", _last_errors(entries)))
    return "\n".join("\n".join((heading, *lines)) for heading, lines in lists if lines)


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


def _describe_step(message: AssistantMessage) -> str:
    """Return one line that says what a step called."""
    calls = (f"{call.name}({_one_line(call.arguments, 80)})" for call in message.tool_calls[:3])
    return "; ".join(calls)


def _one_line(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def _last_errors(entries: Sequence[Visible]) -> list[str]:
    """Return the last errors word for word, oldest first."""
    errors: list[str] = []
    for entry in reversed(entries):
        if isinstance(entry, ToolResultMessage) and entry.is_error:
            text = text_of(entry.parts).strip()
            errors.append(_item(f"{entry.name} failed", clip(text, _ERROR_TEXT // 4, _ERROR_TEXT)))
            if len(errors) == MAX_ERRORS:
                break
    return errors[::-1]


def _next_steps(surroundings: Surroundings) -> str:
    due = [item.text for item in surroundings.todo if item.status in {"in_progress", "pending"}]
    return "\n".join(f"{number}. {text}" for number, text in enumerate(due, 1)) or "1. Go on with the last request."


def _critical(entries: Sequence[Visible], earlier: dict[str, str]) -> str:
    lines = [text for name in ("Critical Context", "Context Needed to Continue") if (text := earlier.get(name))]
    for entry in reversed(entries):
        if isinstance(entry, AssistantMessage) and (text := text_of(entry.parts).strip()):
            lines = [_without_item(line, _LAST_ANSWER) for line in lines]
            lines.append(_item(_LAST_ANSWER, clip(text, _LONG_TEXT, _TEXT)))
            break
    return "\n".join(filter(None, lines))


def _names(entries: Sequence[Visible], text: str, limit: int) -> list[str]:
    """Return exact names of the last answers and calls that the digest lacks, a tenth of its budget at most."""
    latest: list[str] = []
    for entry in entries[-8:]:
        if isinstance(entry, AssistantMessage):
            latest += [text_of(entry.parts), *(call.arguments for call in entry.tool_calls)]
    names = [name for name in find_identifiers("\n".join(latest)) if name not in text]
    kept: list[str] = []
    for name in names[:24]:
        limit -= 10 * estimate_text(name)
        if limit < 0:
            break
        kept.append(name)
    return kept
