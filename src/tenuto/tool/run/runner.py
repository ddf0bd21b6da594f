"""One call from the model's JSON to its result. Every call gets a result; no exception of a tool goes further."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tenuto.guard.foreign import disarm_notes
from tenuto.guard.secrets import mask_likely
from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import FileUse, ToolResultMessage
from tenuto.protocol.part import ContentPart, TextPart, ToolCallPart
from tenuto.session.plans import CLOSE_TAG, OPEN_TAG, PLAN_CALL
from tenuto.text.bounding import shorten
from tenuto.text.matching import nearest
from tenuto.tool.output import ToolOutput, bound_output, clean_text
from tenuto.tool.run.context import PlacedTool, ToolContext, ToolError
from tenuto.tool.run.registry import ToolRegistry

if TYPE_CHECKING:
    from tenuto.tool.run.context import Tool

_ECHO_CHARS = 300
WRITE_IN_PARTS = "for a long file, write the first part, then write each further part with append"
PATCH_IN_PARTS = (
    "one file a patch; for a long file, add its first part, then update it with a hunk of + lines alone, which are put "
    "at its end"
)


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose arguments are good; `subject` is what the guard judges."""

    call: ToolCallPart
    tool: Any
    arguments: Any
    subject: ApprovalSubject


async def prepare(
    call: ToolCallPart,
    registry: ToolRegistry,
    context: ToolContext,
    may_look: Callable[[ApprovalSubject], bool] = lambda _place: True,
) -> PreparedCall | ToolResultMessage:
    """Return the call ready to be judged and run, or the result that says why it cannot be.

    A call whose place `may_look` turns down is known by its path alone, so that its refusal tells nothing of the file.

    Calls that change files must be prepared after the ones before them have run: the subject shows the difference to
    the file as it is.
    """
    if call.cut_at is not None:
        return _error(call, _cut_off(call, call.cut_at))
    if call.fault:
        return _error(call, _unreadable(call, call.fault))
    tool = registry.get(call.name)
    if tool is None:
        return _error(call, _unknown(call.name, registry.names()))
    try:
        arguments = tool.parse(_decode(call))
        if isinstance(tool, PlacedTool):
            place = await asyncio.to_thread(tool.place, arguments, context)
            if not may_look(place):
                return PreparedCall(call=call, tool=tool, arguments=arguments, subject=place)
        subject = await asyncio.to_thread(tool.subject, arguments, context)
    except ToolError as error:
        return _error(call, str(error), error.files)
    except Exception as error:  # noqa: BLE001 - a fault of a tool ends here and becomes a result
        return _error(call, _crash_text(call.name, error))
    return PreparedCall(call=call, tool=tool, arguments=arguments, subject=subject)


async def run_call(
    prepared: PreparedCall,
    context: ToolContext,
    *,
    emit: Callable[[str], None],
) -> ToolResultMessage:
    """Run a call that was allowed and return its result within the limits of one result.

    Only a cancellation goes further up, and not that where the tool has something to show of what it did: then the
    result is an interrupted one.
    """
    call, started = prepared.call, time.monotonic()
    tool = cast("Tool", prepared.tool)
    own = context.for_call(call.id, emit, prepared.subject)
    try:
        output = await tool.run(prepared.arguments, own)
    except ToolError as error:
        return _error(call, str(error), error.files)
    except Exception as error:  # noqa: BLE001 - a fault of a tool ends here and becomes a result
        return _error(call, _crash_text(call.name, error))
    return _result(call, output, own, time.monotonic() - started)


def _result(call: ToolCallPart, output: ToolOutput, context: ToolContext, duration: float) -> ToolResultMessage:
    limits = context.settings
    output = msgspec.structs.replace(output, parts=tuple(_clean(part, limits.mask_sent) for part in output.parts))
    most = output.max_chars or context.max_chars
    output = bound_output(output, most, limits.max_output_lines, call.id, context.store_output)
    return ToolResultMessage(
        call_id=call.id,
        name=call.name,
        parts=output.parts,
        is_error=output.is_error,
        ui=output.ui,
        files=output.files,
        truncated=output.truncated,
        output_path=output.output_path,
        output_size=output.output_size,
        interrupted=output.interrupted,
        duration=max(0.0, duration - output.waited),
    )


def _clean(part: ContentPart, mask_sent: bool) -> ContentPart:
    if not isinstance(part, TextPart):
        return part
    text = disarm_notes(clean_text(part.text))
    return TextPart(text=mask_likely(text) if mask_sent else text)


def _decode(call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments as an object. Raises `ToolError` (R-094)."""
    import json

    try:
        values = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(_unreadable(call, f"they are not valid JSON: {error}")) from None
    if not isinstance(values, dict):
        raise ToolError(_unreadable(call, f"they must be one JSON object, not {type(values).__name__}"))
    return cast("dict[str, Any]", values)


def _unreadable(call: ToolCallPart, why: str) -> str:
    echo = shorten(clean_text(call.arguments), _ECHO_CHARS)
    return (
        f"The arguments of this {call.name} call could not be read; nothing was run. {shorten(why, _ECHO_CHARS)}\n"
        f"Received: {echo}\nCall {call.name} again with one complete JSON object."
    )


def _cut_off(call: ToolCallPart, tokens: int) -> str:
    limit = f" after {tokens:,} tokens" if tokens else ""
    got = shorten(clean_text(call.fault.partition("written was: ")[2]), _ECHO_CHARS)
    return (
        f"Your answer was cut off at its output limit{limit}, in the middle of this {call.name} call; nothing was run."
        + (f"\nWritten by then: {got}" if got else "")
        + f"\nDo it in smaller calls: {PATCH_IN_PARTS if call.name == 'apply_patch' else WRITE_IN_PARTS}."
    )


def _unknown(name: str, names: tuple[str, ...]) -> str:
    if name == PLAN_CALL:
        return (
            f"There is no tool named {name} any more. In plan mode the finished plan stands in the answer itself, "
            f"between a line {OPEN_TAG} and a line {CLOSE_TAG}, without a call. Answer again with it."
        )
    near = nearest(name, names)
    hint = f" Did you mean {near}?" if near else ""
    return f"There is no tool named {shorten(name, 80)}.{hint} The tools are: {', '.join(names)}."


def _crash_text(name: str, error: Exception) -> str:
    what = str(error) or type(error).__name__
    return f"The {name} call failed: {shorten(what, 500)} ({type(error).__name__})"


def _error(call: ToolCallPart, text: str, files: tuple[FileUse, ...] = ()) -> ToolResultMessage:
    part = TextPart(text=disarm_notes(clean_text(text)))
    return ToolResultMessage(call_id=call.id, name=call.name, parts=(part,), is_error=True, files=files)
