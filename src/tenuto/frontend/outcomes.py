"""What slash commands say where nothing can be picked or cleared; imported when one is run."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import (
    ChangeTheme,
    Choice,
    Choose,
    CommandOutcome,
    Copy,
    Edit,
    EditFile,
    EditKeys,
    Page,
    Say,
    ShowContext,
    ShowKeys,
)
from tenuto.guard.terminal import sanitize_for_terminal


def describe_outcome(outcome: CommandOutcome) -> str:
    """Return what a command's outcome says where nothing can be picked or cleared."""
    match outcome:
        case Say() | Edit() | ShowContext() | Copy():
            return outcome.text
        case Choose():
            kinds = outcome.filters[0].kinds if outcome.filters else ()
            choices = [choice for choice in outcome.choices if not kinds or choice.kind in kinds]
            width = max((len(choice.value) for choice in choices), default=0)
            rows = [f"{choice.value:<{width}}  {_describe_choice(choice)}".rstrip() for choice in choices]
            return "\n".join([f"{outcome.title}:", *rows])
        case EditFile(path=path):
            return path
        case Page(path=path):
            return _read_page(Path(path))
        case ShowKeys() | EditKeys():
            return "Keys are for the screen; tenuto without -p has one."
        case ChangeTheme():
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
