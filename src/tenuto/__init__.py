"""Tenuto: a terminal coding agent whose sessions go on for ever and lose nothing."""

from __future__ import annotations

from tenuto.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.api import Agent, Answer
    from tenuto.compaction.summary.serialize import convert_to_llm, serialize_conversation
    from tenuto.extension.api import ExtensionApi

__all__ = ["Agent", "Answer", "ExtensionApi", "__version__", "convert_to_llm", "serialize_conversation"]

_HOMES = {
    "Agent": "tenuto.api",
    "Answer": "tenuto.api",
    "ExtensionApi": "tenuto.extension.api",
    "convert_to_llm": "tenuto.compaction.summary.serialize",
    "serialize_conversation": "tenuto.compaction.summary.serialize",
}
"""The module that each public name is resolved from."""


def __getattr__(name: str) -> object:
    """Resolve the public API on first use, so that the command starts without it."""
    home = _HOMES.get(name)
    if home is not None:
        from importlib import import_module

        return getattr(import_module(home), name)
    raise AttributeError(f"module 'tenuto' has no attribute {name!r}")
