"""Images of drafts: a draft belongs to no session until it is sent, so its images wait beside the sessions, by hash.

They lie under `$TENUTO_HOME/attachments` (0600). Sending gives the session its own copy. The oldest go when the
folder is too large: what is in a session stays there, only an old draft or prompt of the history loses its image.
"""

from __future__ import annotations

from pathlib import Path

from tenuto.core.state.live import SessionServices
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.session.store import Store
from tenuto.tool.image import MAX_IMAGE_BYTES, image_facts

FOLDER = "attachments"
MAX_KEPT_BYTES = 200_000_000
LOST_IMAGE = "[An image stood here; its file is gone.]"


class NotAnImageError(ValueError):
    """These bytes are no image of a format that models read."""


class ImageTooLargeError(ValueError):
    """The image has more bytes than a provider takes."""


class Attachments:
    """The images that wait, under `home`. Those of a temporary session go into its own store at once."""

    def __init__(self, home: Path) -> None:
        self._store = Store(home / FOLDER)

    def keep(self, data: bytes, name: str = "") -> ImagePart:
        """Keep an image and return the part that stands for it. Raises what `keep_image` does."""
        self._make_room(len(data))
        return keep_image(self._store, data, name)

    def load(self, sha256: str) -> bytes:
        """Return an image's bytes. Raises `FileNotFoundError`."""
        return self._store.load_bytes(sha256)

    def _make_room(self, wanted: int) -> None:
        """Let the oldest images go until there is room for another one."""
        if not self._store.blobs.is_dir():
            return
        files = sorted(((file.stat().st_mtime, file) for file in self._store.blobs.iterdir()), reverse=True)
        room = MAX_KEPT_BYTES - wanted
        for _, file in files:
            room -= file.stat().st_size
            if room < 0:
                file.unlink(missing_ok=True)


def keep_image(store: Store, data: bytes, name: str = "") -> ImagePart:
    """Put an image into a store and return the part that stands for it.

    Raises `NotAnImageError`, `ImageTooLargeError` (over `MAX_IMAGE_BYTES`) and `OSError`.
    """
    facts = image_facts(data)
    if facts is None:
        raise NotAnImageError(name or "the clipboard")
    if len(data) > MAX_IMAGE_BYTES:
        raise ImageTooLargeError(name)
    return store.save_image(data, facts.media_type, name=name, width=facts.width, height=facts.height)


def adopt_images(services: SessionServices, parts: tuple[ContentPart, ...]) -> tuple[ContentPart, ...]:
    """Give the session its own copy of every image in `parts`; one that is nowhere any more becomes a text."""
    if not any(isinstance(part, ImagePart) for part in parts):
        return parts
    waiting = Attachments(services.home)
    adopted: list[ContentPart] = []
    for part in parts:
        if isinstance(part, ImagePart) and not (services.session.store.blobs / part.sha256).is_file():
            try:
                services.session.store.save_bytes(waiting.load(part.sha256))
            except FileNotFoundError:
                services.notify("An image of this prompt is not there any more; it goes without it.", "warning")
                adopted.append(TextPart(text=LOST_IMAGE))
                continue
        adopted.append(part)
    return tuple(adopted)
