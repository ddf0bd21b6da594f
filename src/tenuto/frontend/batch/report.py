"""The report on a batch: `report.md`, made from the results. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from tenuto.engine.display import describe_cost
from tenuto.frontend.batch.conduct import Item, words
from tenuto.frontend.batch.results import OUTCOMES, Result
from tenuto.frontend.batch.tasks import Task
from tenuto.frontend.batch.trial import Trial
from tenuto.guard.terminal import sanitize_line
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_cost, format_seconds, plural

SHOWN_CHARS = 200


def write_report(name: str, tasks: Sequence[Item], latest: dict[str, Result]) -> str:
    """Return the report on the tasks of a file, as Markdown."""
    results = [latest[task.id] for task in tasks if task.id in latest and latest[task.id].task == task.digest]
    seconds = sum(result.duration_ms for result in results) / 1000
    cost = describe_cost([result.total_cost_usd for result in results])
    lines = [
        f"# {_cell(name)}",
        "",
        f"{len(results)} of {plural(len(tasks), 'task')} finished. {cost}, "
        f"{format_seconds(seconds)} of work, {plural(sum(result.num_turns for result in results), 'call')} of a model.",
        "",
    ]
    rewards = [result.reward or 0.0 for result in results if result.trial]
    if rewards:
        lines += [f"Mean reward {sum(rewards) / len(rewards):.3f} over {plural(len(rewards), 'trial')}.", ""]
    counts = Counter(result.outcome for result in results)
    lines += _table(
        ("outcome", "tasks"), [(words(outcome), str(counts[outcome])) for outcome in OUTCOMES if counts[outcome]]
    )
    by_id = {task.id: task for task in tasks}
    heads = ("task", "outcome", "cost", "time", "refused", "files", "open the session", "why")
    lines += ["## Tasks", "", *_table(heads, [_row(result, by_id[result.id]) for result in results])]
    refused = [(result.id, call) for result in results for call in result.permission_denials]
    if refused:
        rows = [
            (name, f"{call.get('tool_name', '')} {call.get('summary', '')}", str(call.get("reason", "")))
            for name, call in refused
        ]
        lines += ["## Refused calls", "", *_table(("task", "call", "why"), rows)]
    changed = [result for result in results if result.changed_files]
    if changed:
        lines += ["## Changed files", ""]
        lines += _table(
            ("task", "files", "patch"), [(one.id, ", ".join(one.changed_files), one.patch) for one in changed]
        )
    waiting = [task.id for task in tasks if task.id not in {result.id for result in results}]
    if waiting:
        lines += ["## Not finished", "", *(f"- {name}" for name in waiting), ""]
    return "\n".join(lines)


def _row(result: Result, task: Item) -> tuple[str, ...]:
    cost = "" if result.total_cost_usd is None else format_cost(result.total_cost_usd)
    opened = f"`{_opening(result, task)}`" if result.session_id else ""
    counts = (str(len(items) or "") for items in (result.permission_denials, result.changed_files))
    why = result.error or ""
    return (result.id, words(result.outcome), cost, format_seconds(result.duration_ms / 1000), *counts, opened, why)


def _opening(result: Result, task: Item) -> str:
    """Return the command that opens the session of a task."""
    match task:
        case Task():
            return f"tenuto -r {result.session_id} -C {shlex.quote(result.worktree or task.cwd or task.repo)}"
        case Trial():
            place = shlex.quote(result.trial)  # its own directory was the container's
            return f"TENUTO_HOME={place}/agent/tenuto tenuto -r {result.session_id} -C {place}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [_line(heads), _line(["---"] * len(heads)), *(_line([_cell(cell) for cell in row]) for row in rows), ""]
    return lines if rows else []


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return shorten(sanitize_line(text), SHOWN_CHARS).replace("|", "\\|")
