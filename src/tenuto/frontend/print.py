"""Print mode: no screen. The answer goes to standard output, reasons and progress to standard error.

The formats of the output: text, one JSON object at the end, lines of JSON in the shape of other agents, or Tenuto's own
events. Exit codes: `exit_codes.py` (DESIGN section 9; R-081, R-082).
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Struct

from tenuto.api.result import RunResult
from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.runtime import Runtime
from tenuto.core.start import Start
from tenuto.exit_codes import BAD_USAGE, FAILED, INTERRUPTED, LIMIT_REACHED, OK
from tenuto.frontend.headless import HeadlessRun, run_headless
from tenuto.frontend.result import Ended, describe_result, exit_code
from tenuto.guard.terminal import escape_json, sanitize_for_terminal, write_status, write_text
from tenuto.protocol.entry import MOVED_KIND, RESTORED_KIND, WAITING_KIND, Mode
from tenuto.protocol.event import (
    AnyEvent,
    CallRefusedEvent,
    CommandProgressEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionProposedEvent,
    NoticeEvent,
    PromptReturnedEvent,
    RetryEvent,
    TaskSettledEvent,
    ToolStartedEvent,
)
from tenuto.protocol.operation import InterruptOperation
from tenuto.protocol.part import TextPart
from tenuto.text.figures import describe_rung, format_change, plural
from tenuto.text.writable import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.api.schema import OutputSchema
    from tenuto.command.outcome import Choice, CommandOutcome
    from tenuto.core.state.live import LiveSession
    from tenuto.frontend.stream import Interrupt

OutputFormat = Literal["text", "json", "stream-json", "events"]
TOLD_KINDS = frozenset({MOVED_KIND, RESTORED_KIND, WAITING_KIND})
"""Notices that say what becomes of a command: they are told although nothing is wrong."""


class PrintOptions(Struct, frozen=True):
    """How a run prints and what it takes. `reads_messages`: prompts come as lines of JSON on standard input."""

    output: OutputFormat = "text"
    reads_messages: bool = False
    timeout: float | None = None
    """Seconds after which the run is stopped."""
    schema: OutputSchema | None = None


def run_print(start: Start, prompt: str, options: PrintOptions) -> int:
    """Answer `prompt` and return the exit code."""
    output = make_output(options.output)
    try:
        run = HeadlessRun(start, timeout=options.timeout)
        run.show_to(output.show)
        return run_headless(run, lambda runtime: Talk(run, runtime, output, options).hold(prompt))
    except EXPECTED_FAILURES as error:
        output.finish(Ended(code=BAD_USAGE, error=describe_failure(error)))
        return BAD_USAGE


def _say(text: str) -> None:
    write_text(f"tenuto: {text}", to_errors=True)


def _write_json(value: object) -> None:
    write_text(escape_json(to_json(value).decode()), flush=True)


class TextOutput:
    """The last answer's text on standard output; progress on standard error when that is a terminal."""

    def __init__(self) -> None:
        self.result = RunResult()
        self._last_said = ""
        self._show_progress = sys.stderr.isatty()

    def show(self, event: AnyEvent) -> None:
        """Take note of one event; what an earlier run did is not said again."""
        self.result.take(event)
        if self.result.is_replaying:
            return
        match event:
            case NoticeEvent() if event.level != "info" or event.kind in TOLD_KINDS:
                self._say(event.text)
            case CommandProgressEvent():
                write_status(event.text)
            case CompactionEndEvent():
                self._say(describe_compaction(event))
            case CompactionProposedEvent():
                self.result.text = describe_proposal(event)
            case PromptReturnedEvent() if event.reason:
                self._say(event.reason)
            case RetryEvent():
                self._say(f"{event.reason}; trying again in {event.wait:.0f} s ({event.attempt}/{event.attempts})")
            case ToolStartedEvent() if self._show_progress:
                self._say(f"{event.name} {event.summary}")
            case _:
                pass

    def say_outcomes(self, outcomes: list[CommandOutcome]) -> None:
        """Print what a slash command says or would let one choose from; remarks go to standard error.

        Why one did not do what was asked is the error of the run.
        """
        from tenuto.command.outcome import Say, refusal_of

        warnings = [outcome for outcome in outcomes if isinstance(outcome, Say) and outcome.level != "info"]
        self.result.text = "\n".join(describe_outcome(outcome) for outcome in outcomes if outcome not in warnings)
        if not refusal_of(outcomes):
            for warning in warnings:
                self._say(warning.text)

    def finish(self, end: Ended) -> None:
        """Print the answer, and the reason when there is none."""
        if self.result.text:
            write_text(self.result.text.rstrip("\n"), data=True, flush=True)
        self.explain(end.error)

    def explain(self, error: str) -> None:
        """Say why the run failed, if it did and nothing said it before."""
        if error and error != self._last_said:
            self._say(error)

    def _say(self, text: str) -> None:
        self._last_said = text
        _say(text)


class ResultOutput(TextOutput):
    """One JSON object at the end, on one line; standard error as with text."""

    def finish(self, end: Ended) -> None:
        """Print what the run came to."""
        _write_json(describe_result(self.result, end))
        self.explain(end.error)


class StreamOutput(ResultOutput):
    """Lines of JSON in the shape of other agents (`frontend/stream.py`); the last line is the result."""

    def show(self, event: AnyEvent) -> None:
        """Print one event, if this shape has a word for it."""
        from tenuto.frontend.stream import describe_event

        super().show(event)
        described = None if self.result.is_replaying and self.result.turns else describe_event(event)
        if described is not None:
            _write_json(described)


class EventOutput:
    """Every event as one JSON line on standard output; the reason of a failure on standard error as well."""

    def __init__(self) -> None:
        self.result = RunResult()

    def show(self, event: AnyEvent) -> None:
        """Print one event; a summary stands in the end of its compaction, so its pieces would only say it twice."""
        self.result.take(event)
        if isinstance(event, CompactionProgressEvent):
            event = msgspec.structs.replace(event, text=UNSET)
        _write_json(event)

    def say_outcomes(self, outcomes: list[CommandOutcome]) -> None:
        """Print what a slash command says, as one JSON line each."""
        for outcome in outcomes:
            _write_json({"outcome": describe_outcome(outcome)})

    def finish(self, end: Ended) -> None:
        """Say why the run failed, if it did."""
        if end.error:
            _say(end.error)


AnyOutput = TextOutput | EventOutput


def make_output(kind: OutputFormat) -> AnyOutput:
    """Return what prints in a format."""
    match kind:
        case "text":
            return TextOutput()
        case "json":
            return ResultOutput()
        case "stream-json":
            return StreamOutput()
        case "events":
            return EventOutput()


def is_command(prompt: str, live: LiveSession | None = None) -> bool:
    """Say whether a prompt is a slash command; a path that begins with a slash is none.

    With a session, also one that users or projects bring there.
    """
    name = prompt[1:].split(maxsplit=1)[:1] if prompt.startswith("/") else []
    if not name:
        return False
    from tenuto.command.registry import find_command

    if live is None or find_command(name[0]) is not None:
        return find_command(name[0]) is not None
    from tenuto.command.own_commands import find_extension_command, find_own

    return find_extension_command(live, name[0]) is not None or find_own(live, name[0]) is not None


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


class Talk:
    """What a run without a screen does with its session: one prompt, or the ones that come on standard input."""

    def __init__(self, run: HeadlessRun, runtime: Runtime, output: AnyOutput, options: PrintOptions) -> None:
        self._run = run
        self._runtime = runtime
        self._output = output
        self._options = options
        self._began = time.monotonic()
        self._spent = runtime.live.session.state.usage
        self._is_sending = self._is_stopped = False
        runtime.subscribe(_say_refusal)

    async def hold(self, prompt: str) -> int:
        """Answer what is asked and return the exit code. Raises `UsageError`.

        A run that is ended while no task runs has a result too.
        """
        try:
            return await self._hold(prompt)
        except asyncio.CancelledError:
            if self._run.has_failed:
                raise
            code, error = (LIMIT_REACHED, self._run.overtime) if self._run.timed_out else (INTERRUPTED, "interrupted")
            return self._finish(self._ended(code, error))

    async def _hold(self, prompt: str) -> int:
        await self._runtime.require_price()
        if self._options.reads_messages:
            return await self._hold_with(prompt)
        return self._finish(await self._ask(prompt))

    async def _hold_with(self, prompt: str) -> int:
        """Answer the prompts of standard input, one after the other, each with a result of its own, until it ends."""
        from tenuto.frontend.stream import Inbox

        left_out = 0

        def leave_out(why: str) -> None:
            nonlocal left_out
            left_out += 1
            _say(f"a line on standard input was left out: {why}")

        code = OK
        inbox = Inbox(self._stop, leave_out)
        if prompt:
            inbox.put(prompt)
        async with aclosing(inbox.prompts()) as prompts:
            async for message in prompts:
                self._output.result.begin()
                code = self._finish(await self._ask(message))
                if self._run.is_over:
                    break
        if inbox.waiting:
            verb = "was" if inbox.waiting == 1 else "were"
            _say(f"{plural(inbox.waiting, 'prompt')} of standard input {verb} not sent")
        return code or (BAD_USAGE if left_out else OK)

    async def _stop(self, interrupt: Interrupt) -> None:
        """Stop what runs; of a prompt that is just being sent, what it begins."""
        if self._is_sending:
            self._is_stopped = True
        else:
            await self._runtime.submit(InterruptOperation(session_id=self._runtime.session_id))
        if interrupt.request_id:
            _write_json(interrupt.answer(self._runtime.session_id))

    async def _ask(self, prompt: str) -> Ended:
        """Send a prompt, and say what is wrong with the answer where a schema asks for another one."""
        self._began, self._spent = time.monotonic(), self._runtime.live.session.state.usage
        from tenuto.api.schema import ask

        asked = await ask(self._send, prompt, self._options.schema, self._output.result)
        return self._end(asked.settled, asked.value, asked.problem)

    async def _send(self, prompt: str) -> TaskSettledEvent:
        """Send a prompt, or run the command that it is, and wait until nothing is left to do."""
        self._is_sending, self._is_stopped, refusal = True, False, ""
        try:
            if prompt.startswith("/"):
                await self._runtime.live.extensions.host()  # it may be a command of theirs
            if is_command(prompt, self._runtime.live):
                refusal = await self._run_command(prompt)
            else:
                await self._runtime.submit_prompt((TextPart(text=prompt),))
        finally:
            self._is_sending = False
        if self._is_stopped:
            await self._runtime.submit(InterruptOperation(session_id=self._runtime.session_id))
        settled = await self._settle()
        if refusal and settled.outcome == "completed":
            return msgspec.structs.replace(settled, outcome="failed", error=refusal)
        return settled

    async def _run_command(self, line: str) -> str:
        """Run a slash command and print what it says; return why it did not do what was asked, empty where it did."""
        from tenuto.command.outcome import refusal_of
        from tenuto.command.registry import run_command

        refused: list[str] = []

        def note(event: AnyEvent) -> None:  # an operation that the command asked for and that was not carried out
            if isinstance(event, NoticeEvent) and event.submission_id and event.level != "info":
                refused.append(event.text)

        unsubscribe = self._runtime.subscribe(note)
        try:
            outcomes = await run_command(self._runtime, line)
        finally:
            unsubscribe()
        self._output.say_outcomes(outcomes)
        return refusal_of(outcomes) or "\n".join(refused)

    async def _settle(self) -> TaskSettledEvent:
        settled = await self._runtime.wait_settled()
        await self._runtime.opener.wait_for_checks()
        return settled

    def _end(self, settled: TaskSettledEvent, value: Any = None, error: str = "") -> Ended:
        code = FAILED if error else exit_code(settled)
        error = error or settled.error
        if settled.outcome == "interrupted":
            code, error = (LIMIT_REACHED, self._run.overtime) if self._run.timed_out else (code, "interrupted")
        return self._ended(code, error, value)

    def _ended(self, code: int, error: str, value: Any = None) -> Ended:
        used = self._runtime.live.session.state.usage - self._spent
        return Ended(code=code, error=error, usage=used, seconds=time.monotonic() - self._began, value=value)

    def _finish(self, end: Ended) -> int:
        self._output.finish(end)
        refused = self._output.result.refused
        if refused:
            _say(describe_refusals(refused, self._runtime.live.mode))
        return end.code


def _say_refusal(event: AnyEvent) -> None:
    if isinstance(event, CallRefusedEvent):
        _say(describe_refusal(event))


def describe_refusal(event: CallRefusedEvent) -> str:
    """Return one line on a call that was refused."""
    return f"refused: {' '.join(filter(None, (event.name, event.summary)))} ({event.reason})"


NAMED_RULES = 3
"""Rules that would allow refused calls and are named on standard error."""


def describe_refusals(events: Sequence[CallRefusedEvent], mode: Mode) -> str:
    """Return one line on all of them, with what would allow them."""
    modes = [event.allowed_by for event in events]
    ways = {"edits": "edits or auto", "auto": "auto"}
    mildest = "auto" if "auto" in modes else "edits"
    count = f"{plural(len(events), 'call')} {'was' if len(events) == 1 else 'were'} refused (mode: {mode})"
    if mode == "plan":
        return f"{count}; --mode edits or auto lets the work begin"
    rules = list(dict.fromkeys(rule for event in events for rule in event.rules))
    named = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules[:NAMED_RULES])
    if not any(modes):
        said = f"{count}; no mode allows {'it' if len(events) == 1 else 'them'} without a user"
        return f"{said}, the rule does: {named}" if named else said
    allowed = sum(one is not None for one in modes)
    whom = ("it" if len(events) == 1 else "them") if allowed == len(events) else f"{allowed} of them"
    verb = "allow" if mildest == "edits" else "allows"  # of two modes, or of one
    return f"{count}; --mode {ways[mildest]} {verb} {whom}" + (f", or {named}" if named else "")


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
