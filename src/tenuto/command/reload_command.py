"""/reload: read instruction files, tools and extensions again."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, ReadOwnFiles, Say
from tenuto.core.runtime import Runtime
from tenuto.core.system import reload_system_entry


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Write a new `system` entry from the files as they are now; the next request starts a new cache.

    Extensions are imported anew, so that whoever writes one can try it without leaving the session.
    """
    del argument
    if runtime.executor.tasks.running(runtime.session_id) is not None:
        words = "Only your own keys are read again while something runs; /reload reads the rest when it has ended."
        return [ReadOwnFiles(), Say(words, "warning")]
    changed = reload_system_entry(runtime.live)
    runtime.live.publish_usage()
    names = await runtime.live.extensions.reload() if runtime.live.extensions is not None else ()
    loaded = f" Extensions: {', '.join(names)}." if names else ""
    return [
        ReadOwnFiles(),
        Say(("Instructions and tools are read again." if changed else "Nothing has changed.") + loaded),
    ]
