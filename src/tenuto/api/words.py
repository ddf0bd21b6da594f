"""What a slash command says, and what a compaction proposes or did, in words: for whoever has no screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.text.figures import describe_rung, format_change

if TYPE_CHECKING:
    from tenuto.command.outcome import Choice, CommandOutcome
    from tenuto.protocol.event import CompactionEndEvent, CompactionProposedEvent


def describe_outcome(outcome: CommandOutcome) -> str:
    """Return what a command's outcome says where nothing can be picked or cleared. A file for the pager is used up."""
    from tenuto.command import outcome as asked  # imported when a command is run

    match outcome:
        case asked.Edit(sent=sent) if sent:
            return ""  # the model's answer is what is said
        case asked.Say() | asked.Edit() | asked.ShowContext() | asked.Copy():
            return outcome.text
        case asked.Choose():
            kinds = outcome.filters[0].kinds if outcome.filters else ()
            choices = [choice for choice in outcome.choices if not kinds or choice.kind in kinds]
            width = max((len(choice.value) for choice in choices), default=0)
            rows = [f"{choice.value:<{width}}  {_describe_choice(choice)}".rstrip() for choice in choices]
            return "\n".join([f"{outcome.title}:", *rows])
        case asked.EditFile(path=path):
            return path
        case asked.Page(path=path):
            return _read_page(Path(path))
        case asked.ShowKeys() | asked.EditKeys():
            return "Keys are for the screen; tenuto without -p has one."
        case asked.ChangeTheme():
            return "Themes are for the screen; tenuto without -p has one."
        case _:
            return ""


def _read_page(path: Path) -> str:
    """Return what a pager would show; the file was made for it."""
    try:
        return sanitize_for_terminal(path.read_text(encoding="utf-8", errors="replace"))
    finally:
        path.unlink(missing_ok=True)


def _describe_choice(choice: Choice) -> str:
    mark = f"{choice.mark} " if choice.mark else ""
    return f"{mark}{'  ' * choice.indent}{choice.label}  {choice.detail}"


def describe_compaction(event: CompactionEndEvent) -> str:
    """Return one line: what a compaction did, or why it did not."""
    if event.aborted:
        return (
            "cancelled; nothing has moved"
            if event.reason == "branch"
            else "the compaction was cancelled; nothing has changed"
        )
    if event.error is not None:
        return event.error
    if event.reason == "branch":
        return "notes stand for the part that was left"
    rough = event.entry is None or event.entry.rough
    sizes = format_change(event.tokens_before or 0, event.tokens_after or 0, rough=rough, short=False)
    return f"compacted ({event.reason}): {sizes} tokens"


def describe_proposal(event: CompactionProposedEvent) -> str:
    """Return what would be written if the user accepted; where nobody can, it is only shown."""
    entry = event.entry
    details = entry.details
    sizes = format_change(entry.tokens_before or 0, entry.tokens_after or 0, rough=entry.rough, short=False)
    rows = [
        f"proposed, not written: {sizes} tokens, {describe_rung(entry.rung)}",
        f"entry {entry.first_kept_index} and what follows stay word for word (~{event.kept_tokens:,} tokens)"
        if entry.first_kept_index
        else f"{len(entry.edits)} results would be shortened or hidden",
    ]
    if details is not None:
        rows.append(f"files: {len(details.read_files)} read, {len(details.modified_files)} modified")
    return "\n".join([*rows, "", entry.summary]).rstrip()
