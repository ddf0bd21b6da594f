"""Tool calls as a model wrote them, made safe to store and to send back (R-094, R-095)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

import msgspec
from msgspec import Struct, field

from tenuto.model import json_access
from tenuto.protocol.message import Message, ToolResultMessage
from tenuto.protocol.part import ToolCallPart

MAX_ECHO = 200
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class CallDraft(Struct):
    """A call while it is streamed."""

    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The arguments so far, as the model wrote them."""
        return "".join(self.fragments)


def finish_call(draft: CallDraft, taken: set[str], *, cut_off: bool) -> ToolCallPart:
    """Return the call as it is stored; its id is unique and goes into `taken`.

    `cut_off`: the answer ended at its token limit right in this call, so even arguments that parse are not trusted
    when they are empty.
    """
    arguments, fault = check_arguments(draft.arguments)
    if cut_off and not draft.arguments.strip():
        fault = "the answer reached its token limit before the arguments were written"
    if not draft.name:
        fault = fault or "the call has no tool name"
    call_id = unique_id(draft.id, f"{draft.name}{draft.arguments}", taken)
    taken.add(call_id)
    return ToolCallPart(id=call_id, name=draft.name or "unknown", arguments=arguments, fault=fault)


def check_arguments(text: str) -> tuple[str, str]:
    """Return valid JSON text of one object, and why the model's text was not that (empty: it was)."""
    stripped = text.strip()
    if not stripped or stripped == "null":
        return "{}", ""
    try:
        _OBJECT.decode(stripped)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        found = json_access.decode_object(stripped)
        if found is not None:
            return json_access.encode(found).decode(), ""
        return "{}", _fault(stripped, error)
    if "\\ud" in stripped or "\\uD" in stripped or "\\u0000" in stripped:
        found = json_access.decode_object(stripped)
        return ("{}", "") if found is None else (json_access.encode(found).decode(), "")
    return json_access.clean_text(stripped), ""


def _fault(text: str, error: Exception) -> str:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as reason:
        why = f"the arguments are not valid JSON ({reason or error})"
    else:
        why = f"the arguments are {type(value).__name__} where a JSON object is needed"
    echo = text if len(text) <= MAX_ECHO else f"{text[: MAX_ECHO // 2]} … {text[-MAX_ECHO // 2 :]}"
    return f"{why}; written was: {json_access.clean_text(echo)}"


def unique_id(wanted: str, content: str, taken: Collection[str]) -> str:
    """Return `wanted` if nobody has it, else one made from the content, always the same for the same history."""
    candidate, number = json_access.clean_text(wanted).strip(), 0
    while not candidate or candidate in taken:
        seed = f"{wanted}\n{content}\n{number}\n{len(taken)}".encode("utf-8", "replace")
        candidate = f"call_{hashlib.sha256(seed).hexdigest()[:24]}"
        number += 1
    return candidate


def taken_ids(messages: Iterable[Message]) -> set[str]:
    """Return the call ids that results of the conversation carry."""
    return {message.call_id for message in messages if isinstance(message, ToolResultMessage)}


def arguments_object(arguments: str) -> bytes:
    """Return stored arguments as JSON bytes of an object, whatever an imported session has there."""
    valid, _ = check_arguments(arguments)
    return valid.encode()


_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME = 64


def wire_name(name: str) -> str:
    """Return a tool name that every provider takes; what a model made up may not be one."""
    return _NAME.sub("_", name)[:MAX_NAME] or "unknown"


def wire_call_id(call_id: str, longest: int) -> str:
    """Return a call id of letters, digits, `_` and `-`, at most `longest` characters, always the same for the same."""
    if call_id and len(call_id) <= longest and not _NAME.search(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"
