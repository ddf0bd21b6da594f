"""What extensions under test saw; they import this module."""

from __future__ import annotations

from typing import Any

seen: list[tuple[str, Any]] = []


def note(hook: str, event: Any) -> None:
    seen.append((hook, event))


def of(hook: str) -> list[Any]:
    return [event for name, event in seen if name == hook]
