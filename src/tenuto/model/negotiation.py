"""Optional request fields that a server does not know: left out once it said so, and remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tenuto.protocol.model import ModelError

_REFUSAL = (
    r"(?i:unsupported|unrecognized|unknown|unexpected|extra|not (?:permitted|supported|allowed)|invalid|does"
    r"(?:n't| not) support"
    r"|not a valid|must be verified|no such|cannot be used)"
)


class Negotiation:
    """Which of a client's optional fields its server has refused.

    `optional` gives for each field the words (a regular expression) by which a refusal names it.
    """

    def __init__(self, optional: Mapping[str, str]) -> None:
        self._optional = optional
        self._refused: set[str] = set()

    def allows(self, field: str) -> bool:
        """Whether the field may be sent."""
        return field not in self._refused

    def ignored(self, field: str, wanted: bytes) -> str:
        """Return the field's name if a value for it is wanted and the server has refused it, else an empty text."""
        return field if wanted and not self.allows(field) else ""

    def learn(self, error: ModelError) -> bool:
        """Note the fields that an error refuses; whether there is a new one, so that it is worth asking again."""
        if error.kind not in {"invalid", "not_found", "unknown"} or not re.search(_REFUSAL, error.text):
            return False
        # What comes after "use" is advice: "… is not supported. Use 'max_completion_tokens' instead."
        complaint = re.split(r"\buse\b", error.text, maxsplit=1, flags=re.IGNORECASE)[0]
        named = {field for field, words in self._optional.items() if _is_named(words, complaint)}
        new = named - self._refused
        self._refused |= new
        return bool(new)


def _is_named(words: str, complaint: str) -> bool:
    return re.search(rf"(?<![\w-])(?:{words})(?![\w-])", complaint) is not None
