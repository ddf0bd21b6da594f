"""Kinds of calls for panels under test."""

from __future__ import annotations

from tenuto.protocol.event import ApprovalKind


def kinds(*covers: str, note: str = "") -> tuple[ApprovalKind, ...]:
    """Return a kind for each text; an empty one gives none."""
    return tuple(ApprovalKind(rules=(f"bash({each})",), covers=each, note=note) for each in covers if each)
