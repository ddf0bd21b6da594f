"""Escape, interrupt, quit."""

from __future__ import annotations

from tenuto.tui.machine.intent.base import IntentBase


class Escape(IntentBase, frozen=True):
    """Esc: close the top context; with none open, interrupt; twice when idle, stash the draft, or go back."""


class Cancel(IntentBase, frozen=True):
    """Ctrl+C: clear the draft, else interrupt, else ask to be pressed again to quit."""


class EndOfInput(IntentBase, frozen=True):
    """Ctrl+D on an empty draft: twice to quit."""


class LeaveAsked(IntentBase, frozen=True):
    """The user asked to leave by a command; `word` says how."""

    word: str


class Leave(IntentBase, frozen=True):
    """Quit now (`/quit`, a signal)."""
