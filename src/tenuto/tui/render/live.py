"""Renders items for a screen, remembering the answers that still grow: each look costs what is new."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from tenuto.tui.machine.item import AssistantItem, Item
from tenuto.tui.render.frame import frame_for
from tenuto.tui.render.items import interruption, render_item
from tenuto.tui.render.line import Line
from tenuto.tui.render.links import link_addresses
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.stream import StreamRenderer
from tenuto.tui.render.wrap import wrap

_WARM_UP = "`a` *b* [c](https://d)\n\n- e\n\n|f|\n|-|\n\n```python\ng = 1\n```\n\n日"


def warm_up() -> None:
    """Import and build what the first answer needs (0.1 s): for a moment when nobody waits."""
    render_markdown(_WARM_UP, 80)


class ItemRenderer:
    """The same lines as `render_item` gives, cheaply for a streaming answer, and at its end too.

    `options` is asked at each look for what the screen shows at that moment.
    """

    def __init__(self, options: Callable[[], RenderOptions]) -> None:
        self._options = options
        self._streams: dict[int, StreamRenderer] = {}

    def __call__(self, item: Item, width: int) -> list[Line]:
        """Return an item's lines on a screen of `width` cells: a new list whose settled lines are the same objects.

        An item that cannot be drawn costs its own lines and not the screen: what went wrong goes to standard error.
        """
        try:
            return self._render(item, width, self._options())
        except Exception:  # noqa: BLE001 - one block must not take the session's screen away
            traceback.print_exc()
            self._streams.pop(item.id, None)
            return wrap([("This block cannot be drawn; the session has all of it.", "error")], width)

    def _render(self, item: Item, width: int, options: RenderOptions) -> list[Line]:
        if not isinstance(item, AssistantItem):
            return link_addresses(render_item(item, width, options))
        return self._finished(item, width, options) if item.final else self._growing(item, width, options)

    def settled(self, item_id: int) -> int:
        """Return how many of an item's lines stay as they are while it grows; 0 for one that does not."""
        stream = self._streams.get(item_id)
        return stream.settled if stream is not None else 0

    def _growing(self, item: AssistantItem, width: int, options: RenderOptions) -> list[Line]:
        stream = self._streams.get(item.id)
        if stream is None or not _serves(stream, item, width, options):
            # Only one answer streams at a time; whatever another one left behind was withdrawn.
            stream = StreamRenderer(width, options)
            self._streams = {item.id: stream}
        stream.feed(item.text[stream.length :])
        return [*stream.lines(everything=item.pausing)]

    def _finished(self, item: AssistantItem, width: int, options: RenderOptions) -> list[Line]:
        stream = self._streams.pop(item.id, None)
        if stream is None or not _serves(stream, item, width, options) or not item.text.startswith(stream.text):
            return render_item(item, width, options)
        stream.feed(item.text[stream.length :])
        lines = [*stream.finish()]
        if item.interrupted:
            lines.extend(interruption(frame_for(item, width, options)))
        return lines


def _serves(stream: StreamRenderer, item: AssistantItem, width: int, options: RenderOptions) -> bool:
    same = stream.width == width and stream.options.ascii == options.ascii
    return same and stream.length <= len(item.text)
