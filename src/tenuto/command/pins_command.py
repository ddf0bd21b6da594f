"""/pins: what is pinned."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.pins import PIN_SHARE, pinned_tokens
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all pins with the numbers that `/unpin` takes, and how much of their room they use; or remove one."""
    words = argument.split()
    if words[:1] == ["remove"]:
        from tenuto.command.unpin_command import run as remove

        return await remove(runtime, " ".join(words[1:]))
    live = runtime.live
    pins = live.session.state.pins
    if not pins:
        return [Say("No pins. /pin TEXT pins a text, /pin your last message.")]
    width = len(str(len(pins))) + 2
    rows = [
        f"{f'{number}.':<{width}}{entry.text.replace(chr(10), chr(10) + ' ' * width)}"
        for number, entry in enumerate(pins, 1)
    ]
    most = live.budget().window // PIN_SHARE
    used = f"~{pinned_tokens(pins):,} of at most {most:,} tokens; /pins remove N removes one"
    return [Say("\n".join([*rows, used]))]
