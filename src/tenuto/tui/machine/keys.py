"""The user's own keys, and a chord of two of which the first has been pressed."""

from __future__ import annotations

from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import ChordChanged, KeyboardKnown, KeysLoaded

CHORD_SECONDS = 3.0
"""So long the second key of a chord is waited for."""


@on(KeysLoaded)
def load_keys(change: Change, intent: KeysLoaded) -> None:
    """Every hint and the help name other keys from now on."""
    change.state.keys = intent.keys
    change.status()
    change.panel()


@on(KeyboardKnown)
def know_keyboard(change: Change, intent: KeyboardKnown) -> None:
    """The hint on new lines names a key that works here."""
    change.state.tells_shift_enter = intent.tells_shift_enter
    change.status()


@on(ChordChanged)
def show_chord(change: Change, intent: ChordChanged) -> None:
    """Show the first key of a chord while the second is waited for."""
    if intent.pressed:
        change.hint(f"{intent.pressed} …", CHORD_SECONDS)
    elif change.state.hint is not None:
        change.state.hint = None
        change.status()
