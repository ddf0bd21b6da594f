"""The event bus: from the core to every front-end, in order, on the event loop."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.guard.secrets import KNOWN, masked_copy
from tenuto.protocol.event import AnyEvent

Listener = Callable[[AnyEvent], None]


class EventBus:
    """Hands every published event to every listener, synchronously and in the order of publishing.

    A failing listener keeps no event from the others and does not stop the publisher: `note_failure` is called
    with its error, once for each kind of error of each listener.
    """

    def __init__(self, note_failure: Callable[[Exception], None]) -> None:
        self._note_failure = note_failure
        self._listeners: list[Listener] = []
        self._told: set[tuple[int, type[Exception]]] = set()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: AnyEvent) -> None:
        """Hand `event` to every listener, without known secrets."""
        if KNOWN:
            event = masked_copy(event, KNOWN.mask)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a front-end's fault must not end what it only watches
                self._tell(listener, error)

    def _tell(self, listener: Listener, error: Exception) -> None:
        fault = (id(listener), type(error))
        if fault not in self._told:
            self._told.add(fault)  # before it is told: the word of it may fail in the same way
            self._note_failure(error)
