"""Tenuto: a terminal coding agent whose sessions go on for ever and lose nothing."""

from __future__ import annotations

from tenuto.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.api.agent import Agent, AgentBusyError, AgentClosedError
    from tenuto.api.approving import Allow, Deny
    from tenuto.api.result import Answer, AnswerError
    from tenuto.api.scripting import SyncAgent, run
    from tenuto.compaction.summary.serialize import convert_to_llm, serialize_conversation
    from tenuto.core.errors import TenutoError, UsageError
    from tenuto.extension.api import ExtensionApi
    from tenuto.protocol.event import ApprovalRequestedEvent
    from tenuto.protocol.model import ModelError

__all__ = [
    "Agent",
    "AgentBusyError",
    "AgentClosedError",
    "Allow",
    "Answer",
    "AnswerError",
    "ApprovalRequestedEvent",
    "Deny",
    "ExtensionApi",
    "ModelError",
    "SyncAgent",
    "TenutoError",
    "UsageError",
    "__version__",
    "convert_to_llm",
    "run",
    "serialize_conversation",
]

_HOMES = {
    "Agent": "tenuto.api.agent",
    "AgentBusyError": "tenuto.api.agent",
    "AgentClosedError": "tenuto.api.agent",
    "Allow": "tenuto.api.approving",
    "Answer": "tenuto.api.result",
    "AnswerError": "tenuto.api.result",
    "ApprovalRequestedEvent": "tenuto.protocol.event",
    "Deny": "tenuto.api.approving",
    "ExtensionApi": "tenuto.extension.api",
    "ModelError": "tenuto.protocol.model",
    "SyncAgent": "tenuto.api.scripting",
    "TenutoError": "tenuto.core.errors",
    "UsageError": "tenuto.core.errors",
    "convert_to_llm": "tenuto.compaction.summary.serialize",
    "run": "tenuto.api.scripting",
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
