"""What the settings change in the requests of one model: fields and headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenuto.model.wire.client import Field
from tenuto.protocol.model import ModelError, ModelRequest
from tenuto.text import json_access

OURS = frozenset(
    (
        "model",
        "stream",
        "messages",
        "input",
        "instructions",
        "contents",
        "system",
        "systemInstruction",
        "tools",
        "store",
    )
)
"""Fields that nobody else can make."""


def with_quirks(request: ModelRequest, fields: Sequence[Field], one_call: Field) -> list[Field]:
    """Return the fields of a request with what the settings add to them; the last one stays the last.

    `one_call` is how the wire asks for one call at a time. Raises `ModelError` for a field that is not the user's.
    """
    quirks = request.model.quirks
    given: dict[str, bytes] = {}
    if quirks.one_call and request.tools:
        given[one_call[0]] = one_call[1] if isinstance(one_call[1], bytes) else b"".join(one_call[1])
    for name, value in (("temperature", quirks.temperature), ("top_p", quirks.top_p)):
        if value is not None:
            given[name] = json_access.encode(value)
    for name, text in quirks.body:
        if name in OURS:
            hint = f'take it out of body under [models."{request.model.id}"]'
            raise ModelError("invalid", f"the field {name} of a request is made by Tenuto alone", hint=hint)
        given[name] = text.encode()
    if not given:
        return list(fields)
    *head, last = fields
    return [*(field for field in head if field[0] not in given), *given.items(), last]


def quirky_headers(request: ModelRequest, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request with those that the settings add; one of the same name is replaced."""
    own = dict(request.model.quirks.headers)
    named = {name.lower() for name in own}
    return {**{name: value for name, value in headers.items() if name.lower() not in named}, **own}
