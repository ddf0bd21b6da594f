"""A compaction whose summary somebody else wrote: an extension (seed 003). Frame, lists and pins are added as usual."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import msgspec

from tenuto.compaction.data.files import with_file_lists
from tenuto.compaction.errors import RungError, StrategyError
from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.summary.digest import list_room
from tenuto.compaction.summary.view import build_replacement
from tenuto.compaction.ways.environment import BoundContext, accept
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.hooks import SuppliedCompaction
from tenuto.protocol.message import MESSAGE_TYPES, Message


def take_supplied(ctx: BoundContext, supplied: SuppliedCompaction, extension: str) -> CompactionOutcome:
    """Return the outcome of a supplied compaction. Raises `RungError` with why it must not be written."""
    environment = ctx.environment
    if not supplied.summary.strip():
        raise RungError("its summary is empty")
    if supplied.first_kept_index < 1:
        raise RungError(f"first_kept_index is {supplied.first_kept_index}, which is no entry")
    plan = environment.plan(manual=ctx.is_manual, first_kept=supplied.first_kept_index)
    if isinstance(plan, NothingToCompact):
        raise RungError(plan.reason)
    lists = list_room(plan, environment.surroundings)
    summary = with_file_lists(supplied.summary, plan.file_operations, lists)
    outcome = CompactionOutcome(
        summary=summary,
        replacement=build_replacement(plan, summary, environment.surroundings, environment.prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=msgspec.structs.replace(plan.file_operations.details(), extension=supplied.details),
        rung="extension",
        from_extension=extension,
    )
    accept(ctx, outcome)
    return outcome


_UNFIT = (msgspec.MsgspecError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What encoding and decoding of anything at all can raise."""
_INSTEAD = {
    "replacement": "a tuple of messages, as `Message(role=…, content=…)` makes them",
    "first_kept_index": "the `seq` of the first message that stays, or 0 where only `edits` apply",
    "edits": "a tuple of `ViewEdit`",
    "summary": "a text",
    "details": "`CompactionDetails`, with plain JSON as its `extension`, or None",
    "usage": "a `Usage` or None",
    "rung": "a short text",
    "provider_items": "`ProviderItems` or None",
    "from_extension": "a text",
    "notes": "a tuple of texts",
}
"""What to write into each field of an outcome."""


def convert_output(output: object, history: Collection[Message]) -> Sequence[Message] | CompactionOutcome | None:
    """Return what a strategy returned as plain data; messages of `history` are taken over as they are.

    Raises `StrategyError` that names what does not fit and what to write instead.
    """
    if output is None:
        return None
    if isinstance(output, CompactionOutcome):
        return _convert_outcome(output)
    if isinstance(output, Sequence) and not isinstance(output, str | bytes | bytearray):
        known = {id(message) for message in history}
        items = list(cast("Sequence[object]", output))
        return [_convert_message(place, item, known) for place, item in enumerate(items)]
    raise StrategyError(f"it returned {type(output).__name__}, and not messages, an outcome or None")


def _convert_outcome(outcome: CompactionOutcome) -> CompactionOutcome:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(CompactionOutcome):
        try:
            values[field.name] = _plain(getattr(outcome, field.name), field.type)
        except _UNFIT as error:
            raise StrategyError(
                f"its outcome cannot be used: {field.name} has to be {_INSTEAD[field.name]} ({_reason(error)})"
            ) from error
    # A message that stands before the kept tail is no entry any more, and a `seq` would say that it is.
    values["replacement"] = tuple(msgspec.structs.replace(message, seq=0, ts=0.0) for message in values["replacement"])
    return CompactionOutcome(**values)


def _convert_message(place: int, item: object, known: Collection[int]) -> Message:
    if id(item) in known:
        return cast("Message", item)
    if not isinstance(item, MESSAGE_TYPES):
        raise StrategyError(f"a strategy returns messages, and not {type(item).__name__} (at place {place})")
    try:
        return cast("Message", _plain(item, Message))
    except _UNFIT as error:
        raise StrategyError(
            f"the message at place {place} that it returned cannot be used ({_reason(error)}); "
            "make new ones with Message(role=…, content=…)"
        ) from error


def _plain(value: object, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
