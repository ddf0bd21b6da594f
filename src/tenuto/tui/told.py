"""What a command asks of the screen, as the intent that its machine takes."""

from __future__ import annotations

from tenuto.command.outcome import Choose, Copy, Edit, EditFile, Page, RowChanged, Say, SetMouse, ShowContext
from tenuto.tui.machine import intent as intents
from tenuto.tui.machine.intent import Intent


def intent_of(outcome: Say | Choose | RowChanged | ShowContext | Edit | EditFile | Copy | Page | SetMouse) -> Intent:
    """Return the intent for an outcome that needs nothing but the machine."""
    match outcome:
        case Say(text=text, level=level):
            return intents.Said(text, level)
        case Choose(title=title, command=command, choices=choices):
            return intents.ChoiceOffered(title, command, choices, outcome.filters, outcome.in_order, acts=outcome.acts)
        case RowChanged(command=command, value=value, row=row):
            return intents.RowReplaced(command, value, row)
        case ShowContext(report=report):
            return intents.ContextShown(report)
        case Edit(text=text, images=images):
            return intents.TextOffered(text, images)
        case EditFile(path=path):
            return intents.FileOffered(path)
        case Copy(text=text):
            return intents.CopyOffered(text)
        case Page(path=path):
            return intents.PageOffered(path)
        case SetMouse(mode=mode):
            return intents.MouseChosen(mode)
