"""Print mode: one prompt, no screen. The answer goes to standard output, reasons and progress to standard error.

Exit codes: 0 settled, 1 failed, 2 bad usage, 5 calls were refused, 130 interrupted (DESIGN section 9; R-081, R-082).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.runtime import Runtime
from tenuto.core.start import Start
from tenuto.exit_codes import BAD_USAGE, CALLS_REFUSED, CUT_OFF, DECLINED, FAILED, INTERRUPTED, LIMIT_REACHED, OK
from tenuto.frontend.headless import HeadlessRun, run_headless
from tenuto.guard.terminal import escape_json, sanitize_for_terminal, write_text
from tenuto.protocol.entry import MOVED_KIND, RESTORED_KIND, SEARCHING_KIND, Mode
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    CallRefusedEvent,
    CompactionEndEvent,
    CompactionProposedEvent,
    NoticeEvent,
    Outcome,
    PromptReturnedEvent,
    ReplayFinishedEvent,
    RetryEvent,
    SessionOpenedEvent,
    TaskSettledEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import PlanView, ToolResultMessage
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.figures import describe_rung, format_change, plural
from tenuto.text.writable import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.command.outcome import Choice, CommandOutcome

EXIT_CODES: dict[Outcome, int] = {
    "completed": OK,
    "failed": FAILED,
    "cut_off": CUT_OFF,
    "limit_reached": LIMIT_REACHED,
    "declined": DECLINED,
    "interrupted": INTERRUPTED,
}
TOLD_KINDS = frozenset({MOVED_KIND, RESTORED_KIND, SEARCHING_KIND})
"""Notices that say what becomes of a command: they are told although nothing is wrong."""


def run_print(start: Start, prompt: str, json: bool) -> int:
    """Answer `prompt` and return the exit code."""
    output = JsonOutput() if json else TextOutput()
    try:
        run = HeadlessRun(start)
        run.show_to(output.show)
        return run_headless(run, lambda runtime: _answer(runtime, prompt, output))
    except EXPECTED_FAILURES as error:
        write_text(f"tenuto: {describe_failure(error)}", to_errors=True)
        return BAD_USAGE


def _say(text: str) -> None:
    write_text(f"tenuto: {text}", to_errors=True)


def _write_json(value: object) -> None:
    write_text(escape_json(to_json(value).decode()), flush=True)


class TextOutput:
    """The last answer's text on standard output; progress on standard error when that is a terminal."""

    def __init__(self) -> None:
        self.answer = ""
        self._is_cut_off = False
        self._last_said = ""
        self._replaying = False
        self._show_progress = sys.stderr.isatty()

    def show(self, event: AnyEvent) -> None:
        """Take note of one event; what an earlier run did is not said again."""
        if isinstance(event, SessionOpenedEvent | ReplayFinishedEvent):
            self._replaying = isinstance(event, SessionOpenedEvent) and event.resumed
        if self._replaying:
            return
        match event:
            case AssistantMessageEvent():
                text = text_of(event.message.parts)
                self.answer = self.answer + text if self._is_cut_off else text or self.answer
                self._is_cut_off = event.message.is_cut_off
            case ToolResultEvent():
                self.answer = _unasked_plan(event.message) or self.answer
            case NoticeEvent() if event.level != "info" or event.kind in TOLD_KINDS:
                self._say(event.text)
            case CompactionEndEvent():
                self._say(describe_compaction(event))
            case CompactionProposedEvent():
                self.answer = describe_proposal(event)
            case PromptReturnedEvent() if event.reason:
                self._say(event.reason)
            case RetryEvent():
                self._say(f"{event.reason}; trying again in {event.wait:.0f} s ({event.attempt}/{event.attempts})")
            case ToolStartedEvent() if self._show_progress:
                self._say(f"{event.name} {event.summary}")
            case _:
                pass

    def say_outcomes(self, outcomes: list[CommandOutcome]) -> None:
        """Print what a slash command says or would let one choose from."""
        self.answer = "\n".join(describe_outcome(outcome) for outcome in outcomes)

    def finish(self, error: str) -> None:
        """Print the answer, and the reason when there is none."""
        if self.answer:
            write_text(self.answer.rstrip("\n"), data=True, flush=True)
        if error and error != self._last_said:
            self._say(error)

    def _say(self, text: str) -> None:
        self._last_said = text
        _say(text)


class JsonOutput:
    """Every event as one JSON line on standard output; the reason of a failure on standard error as well."""

    def show(self, event: AnyEvent) -> None:
        """Print one event."""
        _write_json(event)

    def say_outcomes(self, outcomes: list[CommandOutcome]) -> None:
        """Print what a slash command says, as one JSON line each."""
        for outcome in outcomes:
            _write_json({"outcome": describe_outcome(outcome)})

    def finish(self, error: str) -> None:
        """Say why the run failed, if it did."""
        if error:
            _say(error)


def _unasked_plan(result: ToolResultMessage) -> str:
    """Return the plan that a result stands for where nobody could be asked about it, else nothing."""
    plans = (view for view in result.ui if isinstance(view, PlanView) and view.outcome == "unasked")
    return next((plan.text for plan in plans), "")


def is_command(prompt: str) -> bool:
    """Say whether a prompt is a slash command; a path that begins with a slash is none."""
    name = prompt[1:].split(maxsplit=1)[:1] if prompt.startswith("/") else []
    if not name:
        return False
    from tenuto.command.registry import find_command

    return find_command(name[0]) is not None


def describe_compaction(event: CompactionEndEvent) -> str:
    """Return one line: what a compaction did, or why it did not."""
    if event.aborted:
        return (
            "cancelled; nothing has moved"
            if event.reason == "branch"
            else "the compaction was cancelled; nothing has changed"
        )
    if event.error is not None:
        return event.error
    if event.reason == "branch":
        return "notes stand for the part that was left"
    rough = event.entry is None or event.entry.rough
    sizes = format_change(event.tokens_before or 0, event.tokens_after or 0, rough=rough, short=False)
    return f"compacted ({event.reason}): {sizes} tokens"


def describe_proposal(event: CompactionProposedEvent) -> str:
    """Return what would be written if the user accepted; where nobody can, it is only shown."""
    entry = event.entry
    details = entry.details
    sizes = format_change(entry.tokens_before or 0, entry.tokens_after or 0, rough=entry.rough, short=False)
    rows = [
        f"proposed, not written: {sizes} tokens, {describe_rung(entry.rung)}",
        f"entry {entry.first_kept_index} and what follows stay word for word (~{event.kept_tokens:,} tokens)"
        if entry.first_kept_index
        else f"{len(entry.edits)} results would be shortened or hidden",
    ]
    if details is not None:
        rows.append(f"files: {len(details.read_files)} read, {len(details.modified_files)} modified")
    return "\n".join([*rows, "", entry.summary]).rstrip()


async def _answer(runtime: Runtime, prompt: str, output: TextOutput | JsonOutput) -> int:
    refusals: list[CallRefusedEvent] = []

    def note_refusal(event: AnyEvent) -> None:
        if isinstance(event, CallRefusedEvent):
            refusals.append(event)
            _say(describe_refusal(event))

    runtime.subscribe(note_refusal)
    if is_command(prompt):
        from tenuto.command.registry import run_command

        output.say_outcomes(await run_command(runtime, prompt))
    else:
        await runtime.submit_prompt((TextPart(text=prompt),))
    settled = await runtime.wait_settled()
    await runtime.opener.wait_for_checks()
    output.finish(settled.error if settled.outcome != "interrupted" else "interrupted")
    if refusals:
        _say(describe_refusals(refusals, runtime.live.mode))
    return exit_code(settled)


def exit_code(settled: TaskSettledEvent) -> int:
    """Return the exit code of a run that ended so."""
    return EXIT_CODES[settled.outcome] or (CALLS_REFUSED if settled.refused else OK)


def describe_refusal(event: CallRefusedEvent) -> str:
    """Return one line on a call that was refused."""
    return f"refused: {' '.join(filter(None, (event.name, event.summary)))} ({event.reason})"


def describe_refusals(events: Sequence[CallRefusedEvent], mode: Mode) -> str:
    """Return one line on all of them, with what would allow them."""
    modes = [event.allowed_by for event in events]
    ways = {"edits": "edits or auto", "auto": "auto"}
    mildest = "auto" if "auto" in modes else "edits"
    count = f"{plural(len(events), 'call')} {'was' if len(events) == 1 else 'were'} refused (mode: {mode})"
    if mode == "plan":
        return f"{count}; --mode edits or auto lets the work begin"
    if not any(modes):
        return f"{count}; no mode allows {'it' if len(events) == 1 else 'them'} without a user"
    allowed = sum(one is not None for one in modes)
    whom = ("it" if len(events) == 1 else "them") if allowed == len(events) else f"{allowed} of them"
    verb = "allow" if mildest == "edits" else "allows"  # of two modes, or of one
    return f"{count}; --mode {ways[mildest]} {verb} {whom}"


def describe_outcome(outcome: CommandOutcome) -> str:
    """Return what a command's outcome says where nothing can be picked or cleared."""
    from tenuto.command import outcome as asked  # imported when a command is run

    match outcome:
        case asked.Say() | asked.Edit() | asked.ShowContext() | asked.Copy():
            return outcome.text
        case asked.Choose():
            kinds = outcome.filters[0].kinds if outcome.filters else ()
            choices = [choice for choice in outcome.choices if not kinds or choice.kind in kinds]
            width = max((len(choice.value) for choice in choices), default=0)
            rows = [f"{choice.value:<{width}}  {_describe_choice(choice)}".rstrip() for choice in choices]
            return "\n".join([f"{outcome.title}:", *rows])
        case asked.EditFile(path=path):
            return path
        case asked.Page(path=path):
            return _read_page(Path(path))
        case asked.ShowKeys() | asked.EditKeys():
            return "Keys are for the screen; tenuto without -p has one."
        case asked.ChangeTheme():
            return "Themes are for the screen; tenuto without -p has one."
        case _:
            return ""


def _read_page(path: Path) -> str:
    """Return what a pager would show; the file was made for it."""
    try:
        return sanitize_for_terminal(path.read_text(encoding="utf-8", errors="replace"))
    finally:
        path.unlink(missing_ok=True)


def _describe_choice(choice: Choice) -> str:
    mark = f"{choice.mark} " if choice.mark else ""
    return f"{mark}{'  ' * choice.indent}{choice.label}  {choice.detail}"
