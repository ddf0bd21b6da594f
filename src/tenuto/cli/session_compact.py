"""`tenuto sessions compact`: compact a stored session without a front-end, or show what that would do."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tenuto.api.agent import Agent
from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, complain, find_directory, parse, say_json
from tenuto.compaction.ways.preview import PlanDescription
from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.start import Start
from tenuto.exit_codes import BAD_USAGE, FAILED, INTERRUPTED
from tenuto.frontend.headless import HeadlessRun, run_headless
from tenuto.frontend.print import EventOutput
from tenuto.guard.terminal import write_text
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, NoticeEvent
from tenuto.protocol.operation import CompactSessionOperation
from tenuto.session.errors import SessionLocked
from tenuto.session.library.meta import current_meta
from tenuto.text.figures import describe_rung, format_change, format_seconds, format_spending, plural
from tenuto.text.writable import text_path


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto sessions compact`."""
    parser = Parser(
        prog="tenuto sessions compact",
        description="Make room in a session that is not open: what the model is sent becomes shorter, nothing is lost.",
    )
    parser.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    parser.add_argument("focus", nargs="*", metavar="FOCUS", help="what the summary should stress")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done; no model is asked")
    parser.add_argument("--json", action="store_true", help="the plan as JSON, or every event as one JSON line")
    return parser


def run_compact(arguments: tuple[str, ...], home: Path) -> int:
    """Compact one session, or show the plan; returns the exit code: 0 done, 1 failed, 2 bad usage, 130 interrupted."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    directory = find_directory(home, parsed.id)
    if isinstance(directory, int):
        return directory
    run = HeadlessRun(Start(cwd=_working_directory(directory), home=home, resume=directory.name, interactive=False))
    focus = " ".join(parsed.focus)

    async def work(agent: Agent) -> int:
        if parsed.dry_run:
            return await _show_plan(agent, focus, json=parsed.json)
        return await _compact(run, focus, json=parsed.json)

    try:
        return run_headless(run, work)
    except EXPECTED_FAILURES as error:
        complain(describe_failure(error))
        return FAILED if isinstance(error.__cause__, SessionLocked) else BAD_USAGE


def _working_directory(directory: Path) -> Path:
    """Return where the session works, whose settings hold for it; here, if that is gone."""
    cwd = text_path(current_meta(directory).cwd or os.curdir)
    if cwd.is_dir():
        return cwd
    here = working_directory("")
    return here if isinstance(here, Path) else directory


async def _show_plan(agent: Agent, focus: str, *, json: bool) -> int:
    await agent.runtime.opener.wait_for_facts()
    plan = await agent.preview(focus)
    if json:
        say_json(plan)
    else:
        write_text("\n".join(describe_plan_rows(plan)))
    return 0


async def _compact(run: HeadlessRun, focus: str, *, json: bool) -> int:
    runtime = run.agent.runtime
    output = EventOutput() if json else _TextOutput()
    run.show_to(output.show)  # only now: what the session's entries say of earlier compactions is not news
    for problem in runtime.problems:
        complain(problem)
    await runtime.opener.wait_for_facts()
    operation = CompactSessionOperation(session_id=runtime.session_id, focus=focus or None)
    finished = await runtime.wait_for(await runtime.submit(operation))
    if finished is None or finished.outcome == "failed":
        return FAILED
    return INTERRUPTED if finished.outcome == "interrupted" else 0


class _TextOutput:
    """One line on standard output for what was done, warnings on standard error."""

    def show(self, event: AnyEvent) -> None:
        """Take note of one event."""
        match event:
            case CompactionEndEvent(entry=entry) if entry is not None:
                facts = [describe_rung(entry.rung, entry.from_extension), format_seconds(entry.duration)]
                if entry.usage is not None and entry.usage.total:
                    facts.append(format_spending(entry.usage.total, entry.usage.cost))
                before, after = entry.tokens_before or 0, entry.tokens_after or 0
                sizes = format_change(before, after, rough=entry.rough, short=False)
                write_text(f"compacted: {sizes} tokens ({', '.join(facts)})")
            case CompactionEndEvent(aborted=True):
                complain("the compaction was cancelled; nothing has changed")
            case NoticeEvent(level="warning" | "error"):
                complain(event.text)
            case _:
                pass
        if isinstance(event, CompactionEndEvent) and event.error:
            complain(event.error)


def describe_plan_rows(plan: PlanDescription) -> list[str]:
    """Return a plan as lines of two columns."""
    rows = [("now", f"{plan.tokens_before:,} of {plan.window:,} tokens; compacts over {plan.trigger:,}")]
    if plan.nothing:
        rows.append(("nothing to do", plan.nothing))
    else:
        turn = f", inside the turn that began at #{plan.turn_start}" if plan.is_split_turn else ""
        rows += [
            ("cut", f"#{plan.cut}{turn}"),
            ("summarised", f"{plural(plan.entries_summarised, 'entry')}, ~{plan.tokens_summarised:,} tokens"),
            ("kept", f"{plural(plan.entries_kept, 'entry')} word for word, ~{plan.tokens_kept:,} tokens"),
            ("files", f"{len(plan.read_files)} read, {len(plan.modified_files)} modified"),
        ]
    if plan.edited_results:
        rows.append(("shortened", plural(plan.edited_results, "large result")))
    if plan.strategy:
        rows.append(("strategy", plan.strategy))
    for place, request in enumerate(plan.requests):
        size = f": ~{request.tokens:,} tokens in {plural(request.parts, 'request')} to {request.model}"
        text = describe_rung(request.rung) + (size if request.tokens else "")
        rows.append(("would try" if place == 0 else "else", text))
    width = max(len(name) for name, _ in rows) + 2
    return [f"{name:<{width}}{text}" for name, text in rows]
