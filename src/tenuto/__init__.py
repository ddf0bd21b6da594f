"""Tenuto: a terminal coding agent whose sessions go on for ever and lose nothing."""

from __future__ import annotations

__version__ = "0.1.0"
