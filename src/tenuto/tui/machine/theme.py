"""The colours that the user has chosen."""

from __future__ import annotations

from tenuto.tui.effects import ThemeChanged
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import ThemeChosen


@on(ThemeChosen)
def choose_theme(change: Change, intent: ThemeChosen) -> None:
    """Show everything in this theme from now on."""
    change.state.theme = intent.name
    change.emit(ThemeChanged(intent.name))
    change.toast(f"Theme: {intent.name}")
