"""/label: a name for a place in the session, which the tree and exports show."""

from __future__ import annotations

import re

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import LabelEntry
from tenuto.session.describe import Place, is_shown, line_of
from tenuto.text.bounding import shorten

MAX_CHARACTERS = 200
_PLACED = re.compile(r"#(\d+)(?:\s+(.*))?\Z", re.DOTALL)


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Label the present place; `#SEQ TEXT` another one, `#SEQ` alone takes its label away, nothing lists all."""
    session = runtime.live.session
    if not argument:
        rows = [f"#{seq}  {text}" for seq, text in sorted(session.state.labels.items())]
        return [Say("\n".join(rows) or "No labels. /label TEXT labels this point of the session.")]
    placed = _PLACED.match(argument)
    target = int(placed[1]) if placed else next((e.seq for e in reversed(session.path()) if is_shown(e, Place.TREE)), 0)
    entry = session.find(target)
    if entry is None or not is_shown(entry, Place.TREE):
        raise TaskFailedError("there is nothing to label there; /tree shows the entries")
    text = shorten((placed[2] or "") if placed else argument, MAX_CHARACTERS)
    if not text and target not in session.state.labels:
        raise TaskFailedError(f"entry {target} has no label")
    session.append(LabelEntry(target=target, text=text))
    name = shorten(line_of(entry), 60)
    return [Say(f"Label “{text}” set on #{target} ({name})." if text else f"Label removed from #{target} ({name}).")]
