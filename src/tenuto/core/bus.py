"""The event bus: from the core to every front-end, in order, on the event loop."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.protocol.event import AnyEvent

Listener = Callable[[AnyEvent], None]


class EventBus:
    """Hands every published event to every listener, synchronously and in the order of publishing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: AnyEvent) -> None:
        """Hand `event` to every listener."""
        for listener in tuple(self._listeners):
            listener(event)
