"""Renders items for a screen, remembering the answers that still grow: each look costs what is new."""

from __future__ import annotations

from tenuto.tui.machine.item import AssistantItem, Item
from tenuto.tui.render.frame import frame_for
from tenuto.tui.render.items import interruption, render_item
from tenuto.tui.render.line import Line
from tenuto.tui.render.options import DEFAULT, RenderOptions
from tenuto.tui.render.stream import StreamRenderer


class ItemRenderer:
    """The same lines as `render_item`, cheaply for a streaming answer. Change `options` as the screen's change."""

    def __init__(self, options: RenderOptions = DEFAULT) -> None:
        self.options = options
        self._streams: dict[int, StreamRenderer] = {}

    def render(self, item: Item, width: int) -> list[Line]:
        """Return an item's lines on a screen of `width` cells: a new list whose settled lines are the same objects."""
        if not isinstance(item, AssistantItem):
            return render_item(item, width, self.options)
        return self._finished(item, width) if item.final else self._growing(item, width)

    def settled(self, item_id: int) -> int:
        """Return how many of an item's lines stay as they are while it grows; 0 for one that does not."""
        stream = self._streams.get(item_id)
        return stream.settled if stream is not None else 0

    def forget(self) -> None:
        """Forget the answers that still grow (another session, a withdrawn answer)."""
        self._streams.clear()

    def _growing(self, item: AssistantItem, width: int) -> list[Line]:
        stream = self._streams.get(item.id)
        if stream is None or not self._serves(stream, item, width):
            stream = self._streams[item.id] = StreamRenderer(width, self.options)
        stream.feed(item.text[stream.length :])
        return [*stream.lines()]

    def _finished(self, item: AssistantItem, width: int) -> list[Line]:
        stream = self._streams.pop(item.id, None)
        if stream is None or not self._serves(stream, item, width) or not item.text.startswith(stream.text):
            return render_item(item, width, self.options)
        stream.feed(item.text[stream.length :])
        lines = [*stream.finish()]
        if item.interrupted:
            lines.extend(interruption(frame_for(item, width, self.options)))
        return lines

    def _serves(self, stream: StreamRenderer, item: AssistantItem, width: int) -> bool:
        same = stream.width == width and stream.options.ascii == self.options.ascii
        return same and stream.length <= len(item.text)
