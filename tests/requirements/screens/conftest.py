"""Terminals for the tests of this folder."""

from __future__ import annotations

from tests.terminal.conftest import place, tmux

__all__ = ["place", "tmux"]
