"""Images of drafts: kept beside the sessions, given to the session that they are sent in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.core.agent import attachments
from tenuto.core.agent.attachments import LOST_IMAGE, Attachments, ImageTooLargeError, NotAnImageError
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import ImagePart, TextPart
from tests.core.harness import PROTOCOLS, agent
from tests.core.test_mentions import png
from tests.server import Reply


def test_an_image_is_kept_by_its_content_and_is_private(tmp_path: Path) -> None:
    store = Attachments(tmp_path)
    part = store.keep(png(), "shot.png")
    assert (part.media_type, part.width, part.height, part.name) == ("image/png", 4, 3, "shot.png")
    assert store.load(part.sha256) == png()
    (file,) = (tmp_path / "attachments" / "blobs").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_no_image_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnImageError):
        Attachments(tmp_path).keep(b"text")
    with pytest.raises(ImageTooLargeError):
        Attachments(tmp_path).keep(png() + b"\0" * 4_000_000)


def test_the_oldest_images_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(attachments, "MAX_KEPT_BYTES", 3 * len(png()))
    store = Attachments(tmp_path)
    parts = []
    for width in range(1, 7):
        parts.append(store.keep(png(width)))
        os.utime(tmp_path / "attachments" / "blobs" / parts[-1].sha256, (width, width))
    assert store.load(parts[-1].sha256) == png(6)
    with pytest.raises(FileNotFoundError):
        store.load(parts[0].sha256)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_sent_image_is_the_session_s_own(tmp_path: Path, protocol: str) -> None:
    async with agent(tmp_path, [Reply("nice")], model=f"{protocol}/test") as running:
        part = Attachments(running.runtime.home).keep(png(), "shot.png")
        await running.runtime.submit_prompt((TextPart(text="look"), part))
        settled = await running.runtime.wait_settled()
        assert settled.outcome == "completed", settled.error
        assert running.session.store.load_bytes(part.sha256) == png()
        assert not running.server.requests[0].refused


async def test_a_lost_image_is_told_and_stops_nothing(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("nice")]) as running:
        lost = ImagePart(sha256="ab" * 32, media_type="image/png")
        await running.runtime.submit_prompt((TextPart(text="look"), lost))
        assert (await running.runtime.wait_settled()).outcome == "completed"
        (user,) = [entry for entry in running.session.entries() if isinstance(entry, UserMessage)]
        assert user.parts[-1] == TextPart(text=LOST_IMAGE)
