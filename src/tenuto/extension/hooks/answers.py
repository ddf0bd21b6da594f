"""What a hook command says: its exit code, the JSON on its standard output, the text on its standard error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tenuto.extension.hooks.files import EventName, HookCommand
from tenuto.text.bounding import cut_head, shorten
from tenuto.text.writable import clean_text

MAX_TEXT = 10_000
"""Characters of a reason or of added context; what is longer is cut."""
BLOCKED = 2
"""The exit code that blocks."""
HALTED = 49
"""The exit code that ends the turn (Crush)."""
CAN_BLOCK = frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"})
PLAIN_CONTEXT = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events at which a plain text on standard output is context for the model."""
FAULT_CHARS = 300


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `problem` says why there is no exit code: it could not start, hung, or flooded."""

    exit_code: int = 0
    output: bytes = b""
    errors: str = ""
    problem: str = ""


class HookFault(Exception):  # noqa: N818 - it names what happened
    """A hook that failed, or whose answer cannot be read; `str(error)` is one line."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook wants. `changed` are the arguments to use in the place of the call's, `laid_over` some of them.

    `ends`: the turn is not to go on. `message` is for the user, `context` for the model. `focus` asks for a compaction,
    with what its summary has to stress; `None`: it asks for none.
    """

    verdict: Literal["", "allow", "ask", "deny"] = ""
    reason: str = ""
    context: str = ""
    changed: dict[str, Any] | None = None
    laid_over: dict[str, Any] | None = None
    ends: bool = False
    message: str = ""
    is_quiet: bool = False
    focus: str | None = None

    def change_of(self, told: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the arguments that it wants for a call that it was told with these; `None`: those that it has."""
        if self.changed is None and self.laid_over is None:
            return None
        return {**(told if self.changed is None else self.changed), **(self.laid_over or {})}


class Heard(msgspec.Struct, frozen=True):
    """What all hooks of one event said, in the order of their files."""

    answers: tuple[tuple[HookCommand, HookAnswer], ...] = ()

    def of(self, verdict: Literal["allow", "ask", "deny"]) -> list[tuple[HookCommand, HookAnswer]]:
        """Return who said that."""
        return [(command, answer) for command, answer in self.answers if answer.verdict == verdict]

    @property
    def denial(self) -> str:
        """Why it may not be, in the words of everybody who is against it; empty where nobody is."""
        return "\n".join(answer.reason for _, answer in self.of("deny"))

    @property
    def ending(self) -> str:
        """Why the turn is not to go on; empty where nobody wants that."""
        return "; ".join(answer.reason or command.name for command, answer in self.answers if answer.ends)


class _Specific(msgspec.Struct, rename="camel"):
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


class _Compact(msgspec.Struct):
    focus: str | None = None


class _Said(msgspec.Struct, rename="camel"):
    """`halt`, `context` and `updated_input`, which is laid over what the call has, are Crush's."""

    decision: Literal["block", "deny", "approve", "allow"] | None = None
    reason: str | None = None
    continue_: bool | None = msgspec.field(default=None, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool | None = None
    additional_context: str | None = None
    hook_specific_output: _Specific | None = None
    compact: bool | _Compact | None = None
    halt: bool | None = None
    context: str | list[str] | None = None
    updated_input: dict[str, Any] | None = msgspec.field(default=None, name="updated_input")


def read_answer(event: EventName, finished: Finished) -> HookAnswer:
    """Return what a command said. Raises `HookFault` for one that failed, and for an answer that is none."""
    if finished.problem:
        raise HookFault(finished.problem)
    if finished.exit_code == BLOCKED:
        said = finished.errors.strip() or finished.output.decode("utf-8", "replace").strip()
        if event not in CAN_BLOCK:
            raise HookFault(_with_words("it cannot block this event", said))
        return HookAnswer(verdict="deny", reason=_bounded(said) or "it gave no reason")
    if finished.exit_code == HALTED:
        return HookAnswer(ends=True, reason=_bounded(finished.errors))
    if finished.exit_code:
        raise HookFault(_with_words(f"it ended with exit code {finished.exit_code}", finished.errors.strip()))
    output = finished.output.strip()
    if not output.startswith(b"{"):
        text = output.decode("utf-8", "replace") if event in PLAIN_CONTEXT else ""
        return HookAnswer(context=_bounded(text))
    try:
        return _understand(event, msgspec.json.decode(output, type=_Said))
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HookFault(f"its answer cannot be read: {' '.join(str(error).split())}") from error


def _understand(event: EventName, said: _Said) -> HookAnswer:
    own = said.hook_specific_output or _Specific()
    verdict, reason = _verdict(event, said, own)
    ends = said.continue_ is False or said.halt is True
    added = said.context if isinstance(said.context, list) else [said.context]
    match said.compact:
        case _Compact(focus=focus):
            wish = focus or ""
        case True:
            wish = ""
        case _:
            wish = None
    return HookAnswer(
        verdict=verdict,
        reason=_bounded((said.stop_reason or "") if ends and not reason else reason)
        or ("it gave no reason" if verdict == "deny" else ""),
        context=_bounded("\n".join(text for text in (own.additional_context, said.additional_context, *added) if text)),
        changed=own.updated_input if event == "PreToolUse" else None,
        laid_over=said.updated_input if event == "PreToolUse" else None,
        ends=ends,
        message=_bounded(said.system_message or ""),
        is_quiet=bool(said.suppress_output),
        focus=wish,
    )


def _verdict(event: EventName, said: _Said, own: _Specific) -> tuple[Literal["", "allow", "ask", "deny"], str]:
    if event == "PreToolUse" and own.permission_decision in ("allow", "ask", "deny"):
        return own.permission_decision, own.permission_decision_reason or said.reason or ""
    if said.decision in ("block", "deny"):
        return "deny" if event in CAN_BLOCK else "", said.reason or ""
    if event == "PreToolUse" and said.decision in ("approve", "allow"):
        return "allow", said.reason or ""
    return "", said.reason or ""


def _bounded(text: str) -> str:
    text = clean_text(text).strip()
    return text if len(text) <= MAX_TEXT else f"{cut_head(text, MAX_TEXT)} … (cut)"


def _with_words(what: str, words: str) -> str:
    """Return a fault with the last line of what the command wrote, where most programs say what is wrong."""
    last = words.splitlines()[-1].strip() if words else ""
    return f"{what}: {shorten(last, FAULT_CHARS)}" if last else what
