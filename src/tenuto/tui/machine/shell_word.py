"""Tab in a `!command`: what goes in at once, and what opens the popup. Elsewhere completion opens by itself."""

from __future__ import annotations

import os

from tenuto.tui.complete.paste import mark_at
from tenuto.tui.effects import Complete
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.draft import unfold_paste
from tenuto.tui.machine.intent import CompleteShell, CompletionOffered, UnfoldPaste

TABLE = HandlerTable()


@TABLE.on(CompleteShell)
def complete_shell(change: Change, _intent: CompleteShell) -> None:
    """Look for what the word can be; at the mark of a paste show all of it, as elsewhere."""
    state = change.state
    if mark_at(state.draft.text, state.draft.cursor) is not None:
        unfold_paste(change, UnfoldPaste())
        return
    state.completion_generation += 1
    change.emit(Complete(state.completion_generation, state.draft.text, state.draft.cursor, in_shell=True))


def put_common(change: Change, intent: CompletionOffered) -> bool:
    """Put in what all completions begin with, as a shell does; say whether that was more than what stood there."""
    draft = change.state.draft
    inserts = [item.insert for item in intent.items]
    common = os.path.commonprefix(inserts)  # noqa: RUF071 - characters are what is to be compared
    if len(inserts) > 1 and (len(common) - len(common.rstrip("\\"))) % 2:
        common = common[:-1]  # half of an escaped character is none
    if not common.startswith(draft.text[intent.start : intent.end]) or len(common) <= intent.end - intent.start:
        return False
    rest = draft.text[intent.end :]
    if len(inserts) == 1 and rest[:1].isspace():
        common = common.rstrip(" ")
    change.state.completion_generation += 1
    change.set_draft(f"{draft.text[: intent.start]}{common}{rest}", intent.start + len(common))
    return True
