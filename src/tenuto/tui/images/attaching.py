"""From a paste to an image of the draft. Everything here runs beside the loop; what comes of it is an intent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from tenuto.protocol.part import ImagePart
from tenuto.tui.images.clipboard import Clip, read_clipboard
from tenuto.tui.images.dropped import dropped_images
from tenuto.tui.images.fitting import ImageProblemError, fit_image, read_image
from tenuto.tui.machine.intent import ImageAttached, ImageRefused, Intent

Insert = Callable[[str], None]


class Attacher:
    """Finds images and hands them to the machine. `spawn` runs work beside everything else.

    `keep` puts an image with its name on the disk; it runs in a thread, and raises `OSError`.
    """

    def __init__(
        self,
        keep: Callable[[bytes, str], ImagePart],
        handle: Callable[[Intent], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._keep_image = keep
        self._handle = handle
        self._spawn = spawn
        self._environ = os.environ if environ is None else environ
        self._turn = asyncio.Lock()

    def take_dropped(self, text: str, insert: Insert) -> bool:
        """Attach the images that a pasted text names; `False` when it is text. `insert` gets it if it is, after all."""
        paths = dropped_images(text)
        if paths:
            self._spawn(self._attach_files(paths, text, insert), "image")
        return bool(paths)

    def take_clipboard(self, insert: Insert, otherwise: str = "") -> None:
        """Attach the image on the clipboard, or insert its text; `otherwise` is what was copied here last."""
        self._spawn(self._attach_clipboard(insert, otherwise), "image")

    async def _attach_files(self, paths: list[Path], text: str, insert: Insert) -> None:
        async with self._turn:
            if not await asyncio.to_thread(_all_there, paths):
                insert(text)
                return
            for path in paths:
                try:
                    await self._keep(await read_image(path, self._environ), path.name)
                except OSError as error:
                    self._handle(ImageRefused(f"{path.name} could not be read: {error.strerror or error}"))
                except ImageProblemError as error:
                    self._handle(ImageRefused(str(error)))

    async def _attach_clipboard(self, insert: Insert, otherwise: str) -> None:
        async with self._turn:
            clip = await read_clipboard(self._environ)
            if clip.image:
                await self._attach_clip(clip)
                return
        text = clip.text or otherwise
        if not text:
            self._handle(ImageRefused(clip.problem))
        elif not self.take_dropped(text, insert):
            insert(text)

    async def _attach_clip(self, clip: Clip) -> None:
        try:
            await self._keep(await fit_image(clip.image, "The image on the clipboard", self._environ), "")
        except OSError as error:
            self._handle(ImageRefused(f"The image could not be kept: {error.strerror or error}"))
        except ImageProblemError as error:
            self._handle(ImageRefused(str(error)))

    async def _keep(self, data: bytes, name: str) -> None:
        self._handle(ImageAttached(await asyncio.to_thread(self._keep_image, data, name)))


def _all_there(paths: list[Path]) -> bool:
    """Whether a pasted text can have meant files: what names one that is not there is a text."""
    return all(path.exists() for path in paths)
