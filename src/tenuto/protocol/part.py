"""The parts that messages are made of.

Every part is a frozen msgspec struct tagged by `type`. Parts of a provider that we do not understand travel as
`OpaquePart` and are handed back to the same provider byte for byte.
"""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all parts."""


class TextPart(Part, frozen=True, kw_only=True, tag="text"):
    """Plain text. `phase` is OpenAI's commentary / final_answer mark, kept because leaving it out costs quality."""

    text: str
    phase: str = ""


class ImagePart(Part, frozen=True, kw_only=True, tag="image"):
    """An image that lies under `blobs/` by its hash, so that the log stays small.

    `sha256` is the hex digest of the file's bytes, `size` their number; width and height are pixels (0: unknown).
    """

    sha256: str
    media_type: str
    size: int = 0
    width: int = 0
    height: int = 0
    name: str = ""


NO_BLOCK = msgspec.Raw(b"")
"""For a part without a provider's block. Only this very object is left out of the log; another empty one is no JSON."""


class ThinkingPart(Part, frozen=True, kw_only=True, tag="thinking"):
    """A model's reasoning.

    `text` is what a user may read (possibly empty: redacted or encrypted). `block` is the provider's own JSON,
    signature or encrypted content included, sent back unchanged or not at all.
    """

    text: str
    provider: str = ""
    block: msgspec.Raw = NO_BLOCK


class ToolCallPart(Part, frozen=True, kw_only=True, tag="tool_call"):
    """A call that the model asks for. `arguments` is JSON text of one object, valid even if the model's was not.

    With `freeform` the model wrote one text, which is the `input` of that object, and no JSON.
    """

    id: str
    name: str
    arguments: str = "{}"
    freeform: bool = False
    fault: str = ""
    """Why the arguments could not be read, if they could not; such a call is never run (R-094)."""
    cut_at: int | None = None
    """Where the output limit ended the answer in the middle of this call: the answer's tokens (0: not counted)."""


class OpaquePart(Part, frozen=True, kw_only=True, tag="opaque"):
    """A provider's block of a kind that we do not know, kept as it came."""

    provider: str
    block: msgspec.Raw


AssistantPart = TextPart | ThinkingPart | ToolCallPart | OpaquePart
ContentPart = TextPart | ImagePart


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text parts joined, everything else left out."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))
