"""Optional request fields that a server does not know: left out once it said so, and remembered."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenuto.protocol.model import ModelError

_REFUSAL = re.compile(
    r"unsupported|unrecognized|unknown|unexpected|extra|not (?:permitted|supported|allowed)|invalid|does(?:n't| not) support"
    r"|not a valid|must be verified|no such|cannot be used",
    re.IGNORECASE,
)


class Negotiation:
    """Which of a client's optional fields its server has refused."""

    def __init__(self, optional: Iterable[str]) -> None:
        self._optional = tuple(optional)
        self._refused: set[str] = set()

    def allows(self, field: str) -> bool:
        """Whether the field may be sent."""
        return field not in self._refused

    def learn(self, error: ModelError, sent: Iterable[str]) -> bool:
        """Note which of the fields that were sent the error refuses; whether there is a new one, so that it is worth
        asking again."""
        if error.status not in {400, 404, 422, 501} and error.kind != "invalid":
            return False
        if not _REFUSAL.search(error.text):
            return False
        named = {
            field
            for field in sent
            if field in self._optional and re.search(rf"(?<![\w-]){re.escape(field)}(?![\w-])", error.text)
        }
        new = named - self._refused
        self._refused |= new
        return bool(new)
