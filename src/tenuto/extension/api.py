"""What an extension's `setup(tenuto)` is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypeVar, overload

from tenuto.protocol.entry import Level
from tenuto.protocol.hooks import (
    HOOKS,
    BeforeCompactAnswer,
    BeforeTreeAnswer,
    HookName,
    SessionBeforeCompact,
    SessionBeforeTree,
    SessionCompact,
    SessionCompactFailed,
    SessionTree,
)

E = TypeVar("E")
A = TypeVar("A")
Given: TypeAlias = A | dict[str, Any] | None
Asked: TypeAlias = Callable[[E], Given[A] | Awaitable[Given[A]]]
"""A handler that may answer; plain or `async`."""
Told: TypeAlias = Callable[[E], object]
"""A handler whose answer means nothing; plain or `async`."""
Handler: TypeAlias = Callable[[Any], object]
H = TypeVar("H", bound=Handler)


class ExtensionApi:
    """One extension's way into Tenuto. `name` is what it is called in settings and messages."""

    def __init__(
        self,
        name: str,
        notify: Callable[[str, Level], None],
        ask_compaction: Callable[[str], None] = lambda _focus: None,
    ) -> None:
        self.name = name
        self._notify = notify
        self._ask_compaction = ask_compaction
        self._handlers: dict[HookName, list[Handler]] = {hook: [] for hook in HOOKS}

    @overload
    def on(
        self, hook: Literal["session_before_compact"], handler: Asked[SessionBeforeCompact, BeforeCompactAnswer]
    ) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_compact"], handler: Told[SessionCompact]) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_compact_failed"], handler: Told[SessionCompactFailed]) -> Handler: ...
    @overload
    def on(
        self, hook: Literal["session_before_tree"], handler: Asked[SessionBeforeTree, BeforeTreeAnswer]
    ) -> Handler: ...
    @overload
    def on(self, hook: Literal["session_tree"], handler: Told[SessionTree]) -> Handler: ...
    @overload
    def on(self, hook: HookName) -> Callable[[H], H]: ...

    def on(self, hook: HookName, handler: Handler | None = None) -> Handler | Callable[[H], H]:
        """Have `handler(event)` called at `hook`; without a handler, a decorator for one.

        Several handlers are called in the order in which they were added. Raises `ValueError` for a hook that does
        not exist and `TypeError` for something that cannot be called.
        """
        if hook not in self._handlers:
            raise ValueError(f"there is no hook {hook!r}; there are: {', '.join(self._handlers)}")
        if handler is not None:
            return self._add(hook, handler)

        def add(function: H) -> H:
            self._add(hook, function)
            return function

        return add

    def notify(self, text: str, level: Level = "info") -> None:
        """Show the user a line. From any thread."""
        self._notify(text, level)

    def request_compaction(self, focus: str = "") -> None:
        """Ask for a compaction whose summary stresses `focus`; made at the end of the present or next step.

        Nothing comes of it where there is nothing to compact. From any thread.
        """
        self._ask_compaction(focus)

    def handlers(self, hook: HookName) -> tuple[Handler, ...]:
        """Return what was added for a hook, in order."""
        return tuple(self._handlers[hook])

    def _add(self, hook: HookName, handler: Handler) -> Handler:
        if not callable(handler):
            raise TypeError(f"the handler of {hook} has to be a function, not {type(handler).__name__}")
        self._handlers[hook].append(handler)
        return handler
