"""/transcript: the whole conversation in the person's pager."""

from __future__ import annotations

import asyncio
import os
import tempfile

from tenuto.command.outcome import CommandOutcome, Page
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.session.errors import SessionError
from tenuto.session.exporters.export import Export, Wish


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Write all of it, whatever is on the screen, into a file that the front-end shows and removes."""
    del argument
    export = Export.of_session(runtime.live.session)
    try:
        return [Page(await asyncio.to_thread(_write, export))]
    except (OSError, SessionError) as error:
        raise UsageError(f"the transcript cannot be written: {error}") from error


def _write(export: Export) -> str:
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=".md")
    with os.fdopen(handle, "wb") as file:
        for chunk in export.chunks("md", Wish()):
            file.write(chunk)
    return path
