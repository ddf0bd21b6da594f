"""Optional request fields that a server does not know: left out once it said so, and remembered.

A field counts as refused only where the refusal names that field: in the error object (`param`, or the place that a
validator gives), else by the grammar of a sentence around its name. A name in a list of what is supported is advice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tenuto.protocol.model import ModelError

_KIND = r"(?:parameters?|arguments?|fields?|propert(?:y|ies)|keys?|inputs?|options?|headers?|values?)(?:\(s\))?"
_UNKNOWN = r"(?:unsupported|unrecogni[sz]ed|unknown|unexpected|extra|additional|disallowed)"
_NOT = (
    r"(?:(?:is|are|was|were) )?(?:not (?:currently )?(?:supported|permitted|allowed|recogni[sz]ed|known|available|"
    r"enabled)|unsupported|unknown|unrecogni[sz]ed|unexpected|forbidden)|cannot be used|can't be used|must be verified"
)
_QUOTE = r"[\s:\[({'\"`]*"
_FORMS = (
    # Unsupported parameter: 'X' · unknown field `X` · Unrecognized request argument supplied: X
    rf"{_UNKNOWN} (?:\w+ ){{0,2}}?{_KIND}(?: (?:supplied|provided|found|received|passed))?{_QUOTE}"
    rf"(?:[\w.]+['\"`]*, ?['\"`]?){{0,6}}(?:FIELD)(?![\w-])",
    # 'X' is not supported · X: Extra inputs are not permitted · X cannot be used with this model
    rf"(?<![\w.-])(?:FIELD)(?:\.\w+)*['\"`)\]]*:? ?(?:{_KIND} )?(?:[\w ]{{0,12}} )?"
    rf"(?:{_NOT}|extra inputs are not permitted)",
    # does not support X · Argument not supported on this model: X
    rf"(?:does not|doesn't|do not) support (?:the |parameter |field |setting )*{_QUOTE}(?:FIELD)(?![\w-])",
    rf"not supported (?:\w+ ){{0,4}}?\w*:{_QUOTE}(?:FIELD)(?![\w-])",
    # 'X' does not support 'minimal': the value is refused, and nothing tells another one
    r"(?<![\w.-])(?:FIELD)(?:\.\w+)*['\"`]* (?:does not|doesn't) support",
    # Your organization must be verified to generate reasoning summaries
    r"must be verified[^.]{0,60}(?:FIELD)(?![\w-])",
    # no such parameter: X
    rf"no such {_KIND}{_QUOTE}(?:FIELD)(?![\w-])",
)
_ADVICE = re.compile(
    r"\b(?:please )?(?:use|try)\b|\bsupported (?:values|parameters|fields|types)\b|\bexpected one of\b"
    r"|\bmust be one of\b|\b(?:allowed|valid|available) (?:values|options|fields|parameters)\b|\bmoved to\b",
    re.IGNORECASE,
)
"""What comes after is what may be sent."""


class Negotiation:
    """Which of a client's optional fields its server has refused.

    `optional` gives for each field the words (a regular expression) by which a refusal names it. Of `alternatives` one
    takes the place of the other, so that nothing is missing when one is refused.
    """

    def __init__(self, optional: Mapping[str, str], alternatives: frozenset[str] = frozenset()) -> None:
        self._optional = optional
        self._alternatives = alternatives
        self._refused: set[str] = set()

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields that are left out from now on and that nothing stands for, in the order of their names."""
        return tuple(sorted(self._refused - self._alternatives))

    def allows(self, field: str) -> bool:
        """Whether the field may be sent."""
        return field not in self._refused

    def ignored(self, field: str, wanted: bytes) -> str:
        """Return the field's name if a value for it is wanted and the server has refused it, else an empty text."""
        return field if wanted and not self.allows(field) else ""

    def learn(self, error: ModelError, *, is_value: bool = False) -> frozenset[str]:
        """Note the fields that an error refuses, and return those that are new.

        `is_value`: the names are values (kinds of items), so that a refused value is what is looked for.
        """
        if error.kind not in {"invalid", "not_found", "unknown"}:
            return frozenset()
        new = frozenset(field for field in self._named(error, is_value=is_value) if field not in self._refused)
        self._refused |= new
        return new

    def forget(self, fields: frozenset[str]) -> None:
        """Take back what was noted: leaving the fields out has changed nothing."""
        self._refused -= fields

    def _named(self, error: ModelError, *, is_value: bool) -> set[str]:
        complaint = " ".join(_ADVICE.split(error.text, maxsplit=1)[0].split())
        if is_value and re.search(rf"invalid|{_SAYS_NO.pattern}", complaint, re.IGNORECASE):
            return {field for field, words in self._optional.items() if re.search(words, complaint)}
        if not error.param:
            return {field for field, words in self._optional.items() if _is_refused(words, complaint)}
        at = {field for field, words in self._optional.items() if _is_at(words, error.param)}
        return at if _SAYS_NO.search(complaint) else set()


_SAYS_NO = re.compile(
    rf"{_UNKNOWN}|{_NOT}|(?:does not|doesn't) support|no such|not a valid|invalid value|extra inputs", re.IGNORECASE
)


def _is_at(words: str, place: str) -> bool:
    """Say whether the place that an error object names is the field, or within it."""
    return re.match(rf"(?:{words})(?:$|[.\[])", place, re.IGNORECASE) is not None


def _is_refused(words: str, complaint: str) -> bool:
    return any(re.search(form.replace("FIELD", words), complaint, re.IGNORECASE) for form in _FORMS)
