"""Images inside the page, as `data:` addresses."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from tenuto.protocol.part import ImagePart
from tenuto.session.exporters.html.markup import Markup, element, opening, text
from tenuto.session.exporters.labels import image_name

MAX_BYTES = 5_000_000
"""A larger image is named only."""
_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def picture(part: ImagePart, load_blob: Callable[[str], bytes]) -> Markup:
    """Return an image, or its name and why it is not shown."""
    name = image_name(part)
    if part.media_type not in _TYPES:
        return _named(f"{name}: not a kind of image that is shown here")
    if part.size > MAX_BYTES:
        return _named(f"{name}: too large to be put into this page")
    try:
        data = load_blob(part.sha256)
    except (OSError, ValueError):
        return _named(f"{name}: no longer there")
    if len(data) > MAX_BYTES:
        return _named(f"{name}: too large to be put into this page")
    address = Markup(f"data:{part.media_type};base64,{b64encode(data).decode('ascii')}")
    # Not through `opening`: the address is ours, and cleaning megabytes of base64 would take its time.
    return Markup(f'{opening("img", alt=name, title=name)[:-1]} src="{address}">')


def _named(words: str) -> Markup:
    return element("span", text(f"[{words}]"), class_="named")
