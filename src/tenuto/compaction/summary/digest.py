"""Rung 7: a summary without any model, from data alone (DESIGN section 6, R-003). Pure.

The headings are those of every summary, so that a later round can update it. It is marked as what it is. Each section
has a share of the room: where there is too little, the one that is most over its share loses what is needed least.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from tenuto.compaction.data.calls import describe_call, open_errors, set_in
from tenuto.compaction.data.files import FileOperations, with_file_lists
from tenuto.compaction.data.told import is_decided, is_noted, newest_by_topic, replaces, told
from tenuto.compaction.data.wording import is_promise
from tenuto.compaction.plan.entries import Visible
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.prompts import JOIN_LABEL
from tenuto.compaction.summary.serialize import clip, searched
from tenuto.compaction.summary.summary import NAMES_LABEL, add_identifiers, exact_names, names_in, shorten
from tenuto.compaction.summary.view import SessionData, session_blocks
from tenuto.protocol.entry import USER_ORIGINS
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import searches_in, text_of
from tenuto.text.estimate import estimate_text

MARK = "(Compiled from the session's data without a model; details are in the history.)"
MAX_CALLS = 6
MAX_NAMES = 120
"""Exact names of a digest."""
MIN_REQUEST = 20
"""Characters; a shorter text ("go on") states no goal."""
CALL = "- Call: "
NOTED = "- Said: "
LAST_ANSWER = "The last answer in this part"
GO_ON = "Go on with the latest request."
LATEST_REQUEST = "Latest request"
_LEAST_LINE = 100
"""Characters that a line of an error has in the smallest digest."""
_TEXT = 600
_LONG_TEXT = 1_500
_COMMAND = re.compile(r"/\S+")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_GOAL, _RULES = "## Goal", "## Constraints & Preferences"
_DONE, _UNDER_WAY, _BLOCKED = (f"## Progress\n### {name}" for name in ("Done", "In Progress", "Blocked"))
_DECISIONS, _NEXT, _CONTEXT = "## Key Decisions", "## Next Steps", "## Critical Context"
_KNOWN = frozenset(
    {"Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps", "Critical Context"}
    | {"Original Request", "Progress So Far", "Context Needed to Continue"}
)


class _Part(msgspec.Struct):
    """Items under a heading, the one that is needed least first unless `drops_last`.

    `weight` is their share of the room, in relation to the other parts; the last `keeps` items stay whatever happens.
    """

    heading: str
    items: list[str]
    weight: float
    keeps: int = 0
    drops_last: bool = False

    def drop(self) -> str:
        """Take away what is needed least, and return it."""
        return self.items.pop(-1 if self.drops_last else 0)


def digest(plan: CompactionPlan, session_data: SessionData) -> str:
    """Return the summary that the session's data gives: goal, constraints, todo, errors, last answer, files.

    What an earlier summary says under a heading is carried over. At most the plan's summary budget long.
    """
    limit = plan.allowance.summary
    files = plan.file_operations
    text = digest_entries([*plan.history, *plan.turn_prefix], session_data, plan.previous_summary, limit, files)
    return with_file_lists(text, files, list_room(plan, session_data))


def digest_entries(
    entries: Sequence[Visible],
    session_data: SessionData,
    previous: str,
    limit: int,
    files: FileOperations | None = None,
) -> str:
    """Return what the data of some entries gives under the usual headings, within `limit` estimated tokens.

    What the `previous` summary says under a heading is carried over. Rules of the user are not repeated: they stand
    among the user's own words. Without file lists; names that are in the lists of `files` are not named.
    """
    earlier = sections_of(previous)
    names = _names(entries, previous, files or FileOperations())
    text, _ = _fill(_parts(entries, session_data, earlier, limit), names, limit)
    # A name that stands in what fits needs no second place, and leaves its room to others.
    names = [name for name in names if name not in text]
    text, kept = _fill(_parts(entries, session_data, earlier, limit), names, limit)
    return shorten(add_identifiers(text, kept), limit)


def _fill(parts: list[_Part], names: Sequence[str], limit: int) -> tuple[str, Sequence[str]]:
    """Return what fits of the parts as a text, and what fits of the names."""
    named = _Part(_CONTEXT, [f"`{name}`" for name in names], 4, drops_last=True)
    _fit([*parts, named], limit - estimate_text(f"{MARK}\n{NAMES_LABEL}"))
    return _render(parts), names[: len(named.items)]


def _parts(entries: Sequence[Visible], session_data: SessionData, earlier: dict[str, str], limit: int) -> list[_Part]:
    """Return everything but exact names; `limit` bounds what is quoted at length.

    The view has the todo list anyway, so it and the last calls go first.
    """
    done, calls, under_way, blocked = _progress(entries, session_data, earlier, limit)
    due, promises = _next_steps(entries, session_data, earlier)
    decisions, noted = _decisions(entries, earlier)
    carried, answer = _critical(entries, earlier, limit)
    rules = list_items(_lines(earlier.get("Constraints & Preferences", "")))
    return [
        _Part(_GOAL, _goal(entries, earlier, limit), 3, keeps=1),
        _Part(_RULES, rules, 3),
        _Part(_DONE, done, 0.2),
        _Part(_DONE, calls, 0.2),
        _Part(_UNDER_WAY, under_way, 0.5),
        _Part(_BLOCKED, blocked, 3, keeps=1),
        _Part(_DECISIONS, decisions, 5, keeps=1),
        _Part(_NEXT, due, 0.5, drops_last=True),
        _Part(_NEXT, promises, 3, keeps=1),
        _Part(_CONTEXT, carried, 3),
        _Part(_CONTEXT, noted, 3),
        _Part(_CONTEXT, answer, 0.5),
    ]


def _fit(parts: Sequence[_Part], limit: int) -> None:
    """Take from the part that is most over its share of the room, until all of it is within `limit` tokens."""
    sizes = [sum(map(_cost, part.items)) for part in parts]
    headings = sum(estimate_text(heading) + 1 for heading in {part.heading for part in parts if part.items})
    while sum(sizes) + headings > limit:
        over = [
            (size / part.weight, place)
            for place, (part, size) in enumerate(zip(parts, sizes, strict=True))
            if len(part.items) > part.keeps
        ]
        if not over:
            return
        place = max(over)[1]
        sizes[place] -= _cost(parts[place].drop())


@lru_cache(maxsize=4_096)
def _cost(item: str) -> int:
    return estimate_text(item) + 1


def _render(parts: Iterable[_Part]) -> str:
    lines = [MARK]
    shown: set[str] = set()
    for part in parts:
        if not part.items:
            continue
        new = [line for line in part.heading.splitlines() if line not in shown]
        shown.update(new)
        lines += [f"\n{line}" if line.startswith("## ") else line for line in new]
        lines += part.items
    return "\n".join(lines)


def list_room(plan: CompactionPlan, session_data: SessionData) -> int:
    """Return the estimated tokens that the file lists may take beside pins and todo list."""
    taken = sum(estimate_text(block) for block in session_blocks(session_data))
    return max(60, plan.allowance.extras - taken)


def sections_of(summary: str) -> dict[str, str]:
    """Return the text under each second-level heading of a summary."""
    return dict(sections_in(summary))


def sections_in(summary: str) -> list[tuple[str, str]]:
    """Return each second-level heading of a summary and the text under it; one of two parts may have one twice."""
    pieces = _HEADING.split(summary)
    pairs = zip(pieces[1::2], pieces[2::2], strict=True)
    return [(name.strip(), body.partition(f"---\n\n{JOIN_LABEL}")[0].strip()) for name, body in pairs]


def _goal(entries: Sequence[Visible], earlier: dict[str, str], limit: int) -> list[str]:
    """Return the goal: what a model's summary calls it, and the latest request; what came before may be taken back."""
    said = [
        text
        for entry in entries
        if isinstance(entry, UserMessage) and entry.origin in USER_ORIGINS and (text := text_of(entry.parts).strip())
    ]
    before = list_items(_lines(earlier.get("Goal", "")))
    if not said:
        return before
    latest = next((text for text in reversed(said) if _states_a_goal(text)), said[-1])
    item = _item(LATEST_REQUEST, clip(latest, min(_TEXT, limit), min(_TEXT // 3, limit // 3)))
    return [*_without_item(before, LATEST_REQUEST), item]


def _states_a_goal(text: str) -> bool:
    """Say whether a text is more than "go on" or the name of a command; in scripts without spaces less is enough."""
    if _COMMAND.fullmatch(text):
        return False
    return len(text) + sum(letter > "\u2e7f" for letter in text) >= MIN_REQUEST


def _item(label: str, text: str) -> str:
    """Return a quoted text as one item of a list: its lines are set in, so that none is taken for a heading."""
    return set_in(f"- {label}: {text}")


def _without_item(items: Sequence[str], label: str) -> list[str]:
    return [item for item in items if not item.startswith(f"- {label}: ")]


def _progress(
    entries: Sequence[Visible], session_data: SessionData, earlier: dict[str, str], limit: int
) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return what is done, the last calls, what is under way, and what is in the way."""
    before = subsections_of(earlier.get("Progress", ""))
    todo = {
        status: [item.text for item in session_data.todo if item.status == status] for status in ("done", "in_progress")
    }
    done = [line for line in before.get("Done", []) if not line.startswith(CALL)]
    done += _lines(earlier.get("Progress So Far", ""))
    done += [line for text in todo["done"] if (line := f"- [x] {text}") not in done]
    last = [f"{CALL}{said}" for said in _last_calls(entries)]
    under_way = [f"- [ ] {text}" for text in todo["in_progress"]]
    if not session_data.todo:
        under_way = before.get("In Progress", [])  # where there is a list, only the list knows what is open
    return (
        list_items(done),
        last,
        list_items(under_way),
        open_errors(entries, list_items(before.get("Blocked", [])), max(_LEAST_LINE, limit // 4)),
    )


def _last_calls(entries: Sequence[Visible]) -> list[str]:
    """Return the last calls that did not fail, oldest first, each once."""
    failed = {entry.call_id for entry in entries if isinstance(entry, ToolResultMessage) and entry.is_error}
    last: list[str] = []
    for entry in reversed(entries):
        for said in _said_by(entry, failed) if isinstance(entry, AssistantMessage) else ():
            if said not in last:
                last.insert(0, said)
            if len(last) == MAX_CALLS:
                return last
    return last


def _said_by(answer: AssistantMessage, failed: Collection[str]) -> Iterator[str]:
    """Yield what an answer called that did not fail, the newest first; a web search brings its pages along."""
    calls = (call for call in reversed(answer.tool_calls) if call.id not in failed)
    yield from (said for call in calls if (said := describe_call(call)) != call.name)
    searches = reversed(searches_in(answer.parts))
    yield from (set_in(shorten(f"[Searched]: {searched(search)}", _TEXT)) for search in searches)


def list_items(lines: Sequence[str]) -> list[str]:
    """Return the items of a list, each with its further lines."""
    items: list[str] = []
    for line in lines:
        if items and line.startswith("  "):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return items


def subsections_of(text: str) -> dict[str, list[str]]:
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


def _decisions(entries: Sequence[Visible], earlier: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return what was decided, and what else answers said of things that they named."""
    before = list_items(_lines(earlier.get("Key Decisions", "")))
    decided = [f"- {sentence}" for sentence in told(entries, is_decided, announced=True)]
    noted = [f"{NOTED}{sentence}" for sentence in told(entries, is_noted)]
    known = [item for item in list_items(_lines(earlier.get("Critical Context", ""))) if item.startswith(NOTED)]
    decisions = [
        item
        for item in newest_by_topic(before, decided)
        if item in decided or not any(replaces(later, item) for later in noted)
    ]
    return decisions, newest_by_topic(known, noted)


def _next_steps(
    entries: Sequence[Visible], session_data: SessionData, earlier: dict[str, str]
) -> tuple[list[str], list[str]]:
    """Return what is open by the todo list, and what answers said was still to be done."""
    due = [item.text for item in session_data.todo if item.status in {"in_progress", "pending"}]
    steps = [f"{number}. {text}" for number, text in enumerate(due, 1)] or [f"1. {GO_ON}"]
    before = [line for line in list_items(_lines(earlier.get("Next Steps", ""))) if line.startswith("- ")]
    promised = told(entries, lambda sentence: is_promise(sentence) and not is_decided(sentence))
    return steps, newest_by_topic(before, [f"- {sentence}" for sentence in promised])


def _critical(entries: Sequence[Visible], earlier: dict[str, str], limit: int) -> tuple[list[str], list[str]]:
    """Return what an earlier summary has, under headings that are not ours too, and the last answer."""
    names = ("Critical Context", "Context Needed to Continue", *(name for name in earlier if name not in _KNOWN))
    carried = list_items([line for name in names for line in _lines(earlier.get(name, ""))])
    answers = [item for item in carried if item.startswith(f"- {LAST_ANSWER}: ")]
    carried = [item for item in carried if item not in answers and not item.startswith((NAMES_LABEL, NOTED))]
    for entry in reversed(entries):
        if isinstance(entry, AssistantMessage) and (text := text_of(entry.parts).strip()):
            answers = [_item(LAST_ANSWER, clip(text, min(_LONG_TEXT, limit), min(_TEXT, limit // 3)))]
            break
    return carried, answers


def _names(entries: Sequence[Visible], previous: str, files: FileOperations) -> list[str]:
    """Return exact names of results and answers, the newest first, then those of the previous summary.

    Without those that stand in a file list.
    """
    listed = "\n".join((*files.read, *files.modified, files.directory))
    kept: dict[str, None] = {}
    for name in _names_newest_first(entries, previous):
        if len(kept) == MAX_NAMES:
            break
        if name not in listed:
            kept[name] = None
    return list(kept)


def _names_newest_first(entries: Sequence[Visible], previous: str) -> Iterator[str]:
    for entry in reversed(entries):
        if isinstance(entry, ToolResultMessage | AssistantMessage):
            yield from exact_names(text_of(entry.parts))
    yield from names_in(previous)
