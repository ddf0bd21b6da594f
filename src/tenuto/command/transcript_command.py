"""/transcript: the whole conversation in the user's pager."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain

from tenuto.command.outcome import CommandOutcome, Page
from tenuto.command.page_stream import open_stream
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.session.errors import SessionError
from tenuto.session.exporters.export import Export, Wish
from tenuto.session.session import Session


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all of it, whatever is on the screen: its beginning at once, the rest as it is read."""
    del argument
    try:
        chunks = await asyncio.to_thread(_begin, runtime.live.session)
        return [Page(open_stream(chunks, ".md"))]
    except (OSError, SessionError) as error:
        raise UsageError(f"the transcript cannot be written: {error}") from error


def _begin(session: Session) -> Iterator[bytes]:
    """Return the pieces of the page, the first of which is made already: what fails, fails here."""
    chunks = Export.of_session(session).chunks("md", Wish())
    return chain([next(chunks, b"")], chunks)
