"""/tree: the session as a tree; go on from any entry of it."""

from __future__ import annotations

from tenuto.command.navigate import go, read_seq
from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, Say
from tenuto.command.tree_rows import FILTERS, tree_choices
from tenuto.core.destination import find_destination, is_anything_left, is_present
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime

WITHOUT, NOTES, OWN = "plain", "summary", "instructions"


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the tree; `SEQ` goes there, `SEQ summary [instructions]` with notes on what is left.

    `ask SEQ` lets the user choose between the two, `before SEQ` shows the part of the tree before an entry.
    """
    words = argument.split(maxsplit=2)
    if words[:1] == ["ask"]:
        words = words[1:]
        if words and words[0] != "before":
            return await _ask(runtime, read_seq(words[0], "tree"))
    if not words or words[0] == "before":
        return [_show(runtime, read_seq(words[1], "tree") if words[1:] else 0)]
    seq = read_seq(words[0], "tree")
    wish, instructions = words[1] if words[1:] else WITHOUT, words[2] if words[2:] else ""
    if wish == OWN:
        return [Edit(f"/tree {seq} {NOTES} {instructions}")]
    if wish not in (WITHOUT, NOTES):
        raise UsageError(f"/tree {seq} takes “{NOTES}” behind it, and then your own instructions for it")
    return await go(runtime, seq, notes=wish == NOTES, focus=instructions)


def _show(runtime: Runtime, before: int) -> CommandOutcome:
    choices = tree_choices(runtime.live.session, before)
    if not choices:
        return Say("Nothing has been said yet.")
    return Choose("Session tree: continue from", "tree ask", choices, FILTERS, in_order=True)


async def _ask(runtime: Runtime, seq: int) -> list[CommandOutcome]:
    """Ask what is to become of the part that is left; where nothing is, go there at once."""
    live = runtime.live
    leaf = find_destination(live, seq).leaf
    if is_present(live, leaf) or not is_anything_left(live, leaf):
        return await go(runtime, seq)
    rows = (
        Choice(WITHOUT, "Without notes", "what is left stays in the tree, out of the model's sight"),
        Choice(NOTES, "With notes on what is left", "a model writes them; interrupted, nothing has moved"),
        Choice(OWN, "With notes by your own instructions", "write them behind the command"),
    )
    return [Choose(f"Go to #{seq}, and what is left?", f"tree {seq}", rows)]
