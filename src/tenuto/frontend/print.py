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
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Struct

from tenuto.api.result import RunResult
from tenuto.core.errors import EXPECTED_FAILURES, describe_failure
from tenuto.core.start import Start
from tenuto.exit_codes import BAD_USAGE, FAILED, INTERRUPTED, LIMIT_REACHED, OK
from tenuto.frontend.headless import HeadlessRun, run_headless
from tenuto.frontend.result import Ended, describe_result, exit_code
from tenuto.guard.terminal import escape_json, write_status, write_text
from tenuto.model.registry import OFFLINE_MODEL
from tenuto.protocol.entry import MOVED_KIND, RESTORED_KIND, WAITING_KIND, Mode
from tenuto.protocol.event import (
    AnyEvent,
    CallRefusedEvent,
    CommandProgressEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    NoticeEvent,
    PromptReturnedEvent,
    RetryEvent,
    ToolStartedEvent,
)
from tenuto.text.figures import plural
from tenuto.text.writable import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.api.result import Answer
    from tenuto.api.schema import OutputSchema
    from tenuto.command.outcome import CommandOutcome
    from tenuto.frontend.stream import Interrupt

OutputFormat = Literal["text", "json", "stream-json", "events"]
NO_MODEL = (
    "no model was asked: there is no key and no local model server, and the offline model knows six verbs alone; set "
    "ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name a model with --model"
)
"""Why a prompt has failed that nothing but the offline model could answer: a script goes by the exit code."""
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
        output.result = run.agent.result
        run.show_to(output.show)
        return run_headless(run, lambda _agent: Talk(run, output, options).hold(prompt))
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
        self._said: set[str] = set()
        """The lines that were said on standard error."""
        self._show_progress = sys.stderr.isatty()

    def show(self, event: AnyEvent) -> None:
        """Take note of one event; what an earlier run did is not said again."""
        if self.result.is_replaying:
            return
        match event:
            case NoticeEvent() if event.level != "info" or event.kind in TOLD_KINDS:
                self._say(event.text)
            case CommandProgressEvent():
                write_status(event.text)
            case CompactionEndEvent():
                from tenuto.api.words import describe_compaction  # few runs have one

                self._say(describe_compaction(event))
            case PromptReturnedEvent() if event.reason:
                self._say(event.reason)
            case RetryEvent():
                self._say(f"{event.reason}; trying again in {event.wait:.0f} s ({event.attempt}/{event.attempts})")
            case ToolStartedEvent() if self._show_progress:
                self._say(f"{event.name} {event.summary}")
            case _:
                pass

    def say_outcome(self, text: str, outcome: CommandOutcome) -> None:
        """Say on standard error what a slash command remarks, or why it did not do what was asked."""
        from tenuto.command.outcome import is_warning

        if is_warning(outcome):
            self._say(text)

    def finish(self, end: Ended) -> None:
        """Print the answer, and the reason when there is none."""
        if self.result.text:
            write_text(self.result.text.rstrip("\n"), data=True, flush=True)
        self.explain(end.error)

    def explain(self, error: str) -> None:
        """Say why the run failed, if it did and nothing said it before."""
        if not self._said.issuperset(error.splitlines()):
            self._say(error)

    def _say(self, text: str) -> None:
        self._said.update(text.splitlines())
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
        if isinstance(event, CompactionProgressEvent):
            event = msgspec.structs.replace(event, text=UNSET)
        _write_json(event)

    def say_outcome(self, text: str, _outcome: object) -> None:
        """Print what a slash command says, as one JSON line."""
        _write_json({"outcome": text})

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


class Talk:
    """What a run without a screen does with its session: one prompt, or the ones that come on standard input."""

    def __init__(self, run: HeadlessRun, output: AnyOutput, options: PrintOptions) -> None:
        self._run = run
        self._agent = run.agent
        self._output = output
        self._options = options
        self._began = time.monotonic()
        self._spent = run.agent.usage
        self._is_stopped = False
        run.agent.subscribe(_say_refusal)
        run.agent.hear_commands(output.say_outcome)

    async def hold(self, prompt: str) -> int:
        """Answer what is asked and return the exit code. Raises `UsageError`.

        A run that is ended while no task runs has a result too.
        """
        try:
            return await self._hold_with(prompt) if self._options.reads_messages else await self._answer(prompt)
        except asyncio.CancelledError:
            if self._run.has_failed:
                raise
            code, error = (LIMIT_REACHED, self._run.overtime) if self._run.timed_out else (INTERRUPTED, "interrupted")
            return self._finish(self._ended(code, error))

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
                code = await self._answer(message)
                if self._run.is_over:
                    break
        if inbox.waiting:
            verb = "was" if inbox.waiting == 1 else "were"
            _say(f"{plural(inbox.waiting, 'prompt')} of standard input {verb} not sent")
        return code or (BAD_USAGE if left_out else OK)

    async def _stop(self, interrupt: Interrupt) -> None:
        """Stop what runs, and a prompt that is not on its way yet."""
        self._is_stopped = True
        await self._agent.interrupt()
        if interrupt.request_id:
            _write_json(interrupt.answer(self._agent.session_id))

    async def _answer(self, prompt: str) -> int:
        """Send a prompt, or run the command that it is, and print what came of it; returns the exit code."""
        self._began, self._spent, self._is_stopped = time.monotonic(), self._agent.usage, False
        self._agent.result.begin()
        is_command = await self._agent.is_command(prompt)
        if self._is_stopped:
            return self._finish(self._ended(INTERRUPTED, "interrupted"))
        send = self._agent.command if is_command else self._agent.run
        answer = await send(prompt, schema=self._options.schema)
        await self._agent.runtime.opener.wait_for_checks()
        return self._finish(self._end(answer))

    def _end(self, answer: Answer[Any]) -> Ended:
        settled = self._agent.result.settled
        code, error = exit_code(answer.outcome, settled.refused if settled is not None else 0), answer.error
        if self._has_no_model() and _only_helps(answer):
            code, error = FAILED, NO_MODEL
        if answer.outcome == "interrupted":
            code, error = (LIMIT_REACHED, self._run.overtime) if self._run.timed_out else (code, "interrupted")
        return self._ended(code, error, answer.value)

    def _has_no_model(self) -> bool:
        """Whether the offline model answers because there is no other, and nobody has named it."""
        runtime = self._agent.runtime
        return self._agent.model == OFFLINE_MODEL and not (runtime.start.model or runtime.live.settings.model)

    def _ended(self, code: int, error: str, value: Any = None) -> Ended:
        used = self._agent.usage - self._spent
        return Ended(code=code, error=error, usage=used, seconds=time.monotonic() - self._began, value=value)

    def _finish(self, end: Ended) -> int:
        self._output.finish(end)
        refused = self._agent.result.refused
        if refused:
            _say(describe_refusals(refused, self._agent.mode))
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


def _only_helps(answer: Answer[Any]) -> bool:
    """Whether the offline model could not do what it was asked."""
    from tenuto.model.offline import HELP

    return answer.text == HELP
