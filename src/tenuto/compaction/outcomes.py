"""What a strategy of somebody else returns, converted where it comes in (seed 004). Pure.

A strategy's promise is no fact: msgspec does not look at what its structs are made with. So everything is read once as
the log would read it again, and what does not fit is named, with what to write instead. Nothing of the strategy's own
objects goes further than this.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import msgspec

from tenuto.compaction.errors import StrategyError
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.message import MESSAGE_TYPES, Message

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
