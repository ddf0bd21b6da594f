"""Tenuto: a terminal coding agent whose sessions go on for ever and lose nothing."""

from __future__ import annotations

from tenuto.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.api import Agent, Answer

__all__ = ["Agent", "Answer", "__version__"]


def __getattr__(name: str) -> object:
    """Resolve the public API on first use, so that the command starts without it."""
    if name in ("Agent", "Answer"):
        from tenuto import api

        return getattr(api, name)
    raise AttributeError(f"module 'tenuto' has no attribute {name!r}")
