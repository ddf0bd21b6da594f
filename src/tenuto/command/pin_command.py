"""/pin: keep a text word for word through every compaction."""

from __future__ import annotations

import re

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.pins import pin
from tenuto.core.runtime import Runtime
from tenuto.text.bounding import shorten


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Pin the text, the message of that `#seq`, or without either the last message."""
    message = re.fullmatch(r"#(\d+)", argument.strip())
    entry = pin(runtime.live, target=int(message[1])) if message else pin(runtime.live, argument)
    number = len(runtime.live.session.state.pins)
    return [Say(f"Pinned (#{number}): {shorten(entry.text, 100)}")]
