"""Renders items for a screen, remembering the answers that still grow: each look costs what is new."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.text.packed import Packed
from tenuto.tui.render.frame import frame_for
from tenuto.tui.render.items import interruption, render_item
from tenuto.tui.render.line import EMPTY, Line, indent, link_addresses, wrap
from tenuto.tui.render.markdown import (
    GUTTER_SPAN,
    LIST_TYPES,
    BlockRenderer,
    Document,
    Extent,
    References,
    parse,
    render_markdown,
    renderer_for,
)
from tenuto.tui.render.options import DEFAULT, RenderOptions
from tenuto.tui.state.item import AssistantItem, Item

FENCE_PIECE = 24
CHEAP = 8_000
"""Characters of a tail that are drawn at every look."""
PATIENCE = 64
"""A longer one, a table or paragraph of which nothing settles, is drawn when it grew by one of so many parts."""
AT_ONCE = 16_000
"""Characters that are parsed together, and of a finished answer above which it is drawn piece by piece."""
MAX_NUMBER = 999_999_999
"""The highest number that CommonMark takes as a list item's."""


class Rest(NamedTuple):
    """What of a block is still to be drawn, when its beginning is settled."""

    continues: bool = False
    item: int = 0
    """The first list item to draw."""
    blank: bool = False
    """Whether an empty row stands before that item."""
    code: int = 0
    """How many lines of code are drawn already."""


class Cut(NamedTuple):
    """Where the tail begins from now on (a line of the source), what is put before it, and what is left to draw."""

    line: int
    opener: str = ""
    here: Rest = Rest()
    later: Rest = Rest()


class _Look(Struct, frozen=True):
    """One parse of the opener and the tail. Lines that a newline ends are complete."""

    document: Document
    renderer: BlockRenderer
    source: str

    def last_fixed(self, extents: Sequence[Extent]) -> int:
        """Return the last of the blocks that surely begins where it does, 0 when none does.

        No rule looks further ahead than the line after a block's first: both have to be complete.
        """
        complete = self.source.count("\n")
        index = len(extents) - 1
        while index > 0 and self.document.first_line(extents[index]) + 2 > complete:
            index -= 1
        return max(index, 0)


class StreamRenderer:
    """Renders one growing text. `feed` costs nothing, `lines` what has come since the last look."""

    def __init__(self, width: int, options: RenderOptions = DEFAULT) -> None:
        self.width = width
        self.options = options
        self.settled = 0
        """How many of the lines stay the same objects, except for the colours of code until its fence is closed."""
        self.length = 0
        """Characters that have been fed."""
        self._fed = bytearray()
        self._fresh: list[str] = []
        self._lines = Packed(Line)
        self._references: References = {}
        self._ambiguous = False
        self._opener = ""
        self._tail = ""
        self._rest = Rest()
        self._fence_start = 0
        self._fence_code: list[str] = []

    @property
    def text(self) -> str:
        """Everything that has been fed."""
        return self._fed.decode("utf-8", "surrogatepass")

    def begins(self, text: str) -> bool:
        """Say whether a text begins with all that has been fed."""
        return self._fed == bytearray(text[: self.length], "utf-8", "surrogatepass")

    def feed(self, text: str) -> None:
        """Add to the text."""
        if text:
            self._fresh.append(text)
            self._fed += text.encode("utf-8", "surrogatepass")  # a text with one emoji has four bytes for each letter
            self.length += len(text)

    def lines(self, *, everything: bool = False) -> Packed[Line]:
        """Return the lines of what has been fed, of `everything` although that is not worth drawing yet.

        They are the renderer's own and change with the next call.
        """
        if self._fresh and (everything or not self._can_wait()):
            self._draw_fresh()
        return self._lines

    def finish(self) -> Packed[Line]:
        """Return the lines of the whole text, the same that `render_markdown` gives; nothing may be fed after it."""
        look = self._look()
        rest = self._rest
        for block in look.document.blocks:
            self._draw_settled(look, block, rest)
            rest = Rest()
        if self._ambiguous:
            self._lines = Packed(Line, render_markdown(self.text, self.width, self.options))
        self.settled = len(self._lines)
        self._lines.pack(self.settled)
        self._opener = self._tail = ""
        return self._lines

    def _can_wait(self) -> bool:
        """Say whether what is new is too little to draw a long tail for again; a finished block is never waited for."""
        fresh = sum(map(len, self._fresh))
        return fresh * PATIENCE < len(self._tail) - CHEAP and not any("\n\n" in text for text in self._fresh)

    def _draw_fresh(self) -> None:
        """Draw what has come, a little at a time: what it is parsed to takes a hundred times its own room."""
        fresh = "".join(self._fresh)
        self._fresh.clear()
        for begin in range(0, len(fresh), AT_ONCE):
            self._fresh.append(fresh[begin : begin + AT_ONCE])
            look = self._look()
            cut = self._draw_growing(look)
            if cut is not None:
                self._cut(look, cut)
            self._lines.pack(self.settled)

    def _look(self) -> _Look:
        self._tail += "".join(self._fresh)
        self._fresh.clear()
        self._lines.cut(self.settled)
        source = self._opener + self._tail
        document = parse(sanitize_for_terminal(source), self._references)
        self._ambiguous = self._ambiguous or bool(document.references)
        return _Look(document, renderer_for(document, self.width, self.options), source)

    def _draw_growing(self, look: _Look) -> Cut | None:
        """Draw everything; return where the tail may be cut because what stands before is settled."""
        blocks, rest = look.document.blocks, self._rest
        cut: Cut | None = None
        fixed = look.last_fixed(blocks)
        if fixed:
            for block in blocks[:fixed]:
                self._draw_settled(look, block, rest)
                rest = Rest()
            cut = Cut(look.document.first_line(blocks[fixed]))
            self.settled = len(self._lines)
            blocks = blocks[fixed:]
        if len(blocks) == 1:
            further = self._settle_part(look, blocks[0], rest)
            if further is not None:
                cut, rest = further, further.here
                self.settled = len(self._lines)
        for block in blocks:
            self._draw(look, block, rest)
            rest = Rest()
        return cut

    def _cut(self, look: _Look, cut: Cut) -> None:
        self._references = {
            label: reference for label, reference in look.document.references.items() if reference["map"][1] <= cut.line
        } | self._references
        self._tail = look.source.split("\n", cut.line)[-1]
        self._opener, self._rest = cut.opener, cut.later

    def _settle_part(self, look: _Look, block: Extent, rest: Rest) -> Cut | None:
        kind = look.document.tokens[block[0]].type
        if kind in LIST_TYPES:
            return self._settle_items(look, block, rest)
        return self._settle_code(look, block, rest) if kind == "fence" else None

    def _settle_items(self, look: _Look, block: Extent, rest: Rest) -> Cut | None:
        renderer = look.renderer
        items = renderer.items(block)
        last = look.last_fixed(items)
        number = renderer.number(block, last)
        if last <= rest.item or number > MAX_NUMBER:
            return None
        self._draw_items(look, block, rest, last)
        markup = look.document.tokens[items[last][0]].markup
        marker = f"{number - 1}{markup}" if markup in (".", ")") else markup
        # The stand-in for the items before has its text as far in as it may be, so that none becomes a part of it.
        blank = renderer.blank_before(items[last])
        return Cut(
            look.document.first_line(items[last]),
            f"{marker}    x\n\n",
            Rest(continues=True, item=last, blank=blank),
            Rest(continues=True, item=1, blank=blank),
        )

    def _settle_code(self, look: _Look, block: Extent, rest: Rest) -> Cut | None:
        token, opening = look.document.tokens[block[0]], look.document.first_line(block)
        code = token.content.split("\n")
        complete = min(len(code) - 1, look.source.count("\n") - opening - 1)
        count = complete - complete % FENCE_PIECE
        if count <= 0:
            return None
        if not rest.continues:
            self._gap()
            self._fence_start = len(self._lines)
        for start in range(0, count, FENCE_PIECE):
            self._add(look.renderer.code("\n".join(code[start : start + FENCE_PIECE]), token.info))
        self._fence_code.extend(code[:count])
        opener = look.source.split("\n", opening + 1)[opening]
        return Cut(opening + 1 + count, f"{opener}\n", Rest(continues=True, code=count), Rest(continues=True))

    def _draw_settled(self, look: _Look, block: Extent, rest: Rest) -> None:
        if not self._fence_code:
            self._draw(look, block, rest)
            return
        token = look.document.tokens[block[0]]
        whole = "\n".join([*self._fence_code, token.content]).removesuffix("\n")
        self._lines.cut(self._fence_start)
        self._fence_code = []
        self._add(look.renderer.code(whole, token.info))

    def _draw(self, look: _Look, block: Extent, rest: Rest) -> None:
        token = look.document.tokens[block[0]]
        if token.type in LIST_TYPES:
            self._draw_items(look, block, rest, None)
        elif not rest.continues:
            self._gap()
            self._add(look.renderer.render(block))
        elif code := token.content.split("\n", rest.code)[-1]:
            self._add(look.renderer.code(code.removesuffix("\n"), token.info))

    def _draw_items(self, look: _Look, block: Extent, rest: Rest, end: int | None) -> None:
        for index, item in enumerate(look.renderer.items(block)[:end]):
            if index < rest.item:
                continue
            if index > rest.item:
                blank = look.renderer.blank_before(item)
            else:
                blank = rest.blank if rest.continues else bool(self._lines)
            if blank:
                self._lines.append(EMPTY)
            self._add(look.renderer.item(item, look.renderer.marker(block, index)))

    def _gap(self) -> None:
        if self._lines:
            self._lines.append(EMPTY)

    def _add(self, lines: list[Line]) -> None:
        self._lines.extend(indent(lines, GUTTER_SPAN, GUTTER_SPAN))


Lines = list[Line] | Packed[Line]
"""Of one item: packed where there are many."""
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

    def __call__(self, item: Item, width: int) -> Lines:
        """Return an item's lines on a screen of `width` cells.

        An item that cannot be drawn costs its own lines and not the screen: what went wrong goes to standard error.
        """
        try:
            return self._render(item, width, self._options())
        except Exception:  # noqa: BLE001 - one block must not take the session's screen away
            traceback.print_exc()
            self._streams.pop(item.id, None)
            return wrap([("This block cannot be drawn; the session has all of it.", "error")], width)

    def _render(self, item: Item, width: int, options: RenderOptions) -> Lines:
        if not isinstance(item, AssistantItem):
            return link_addresses(render_item(item, width, options))
        return self._finished(item, width, options) if item.final else self._growing(item, width, options)

    def settled(self, item_id: int) -> int:
        """Return how many of an item's lines stay as they are while it grows; 0 for one that does not."""
        stream = self._streams.get(item_id)
        return stream.settled if stream is not None else 0

    def stream_of(self, item_id: int) -> StreamRenderer | None:
        """Return what draws an answer that grows: while it is the same, so is what is settled."""
        return self._streams.get(item_id)

    def _growing(self, item: AssistantItem, width: int, options: RenderOptions) -> Lines:
        stream = self._streams.get(item.id)
        if stream is None or not _serves(stream, item, width, options):
            # Only one answer streams at a time; of its pieces the last one may still have to be finished.
            stream = StreamRenderer(width, options)
            self._streams = dict([*self._streams.items()][-1:]) | {item.id: stream}
        stream.feed(item.text[stream.length :])
        return stream.lines(everything=item.pausing).copy()

    def _finished(self, item: AssistantItem, width: int, options: RenderOptions) -> Lines:
        stream = self._streams.pop(item.id, None)
        if stream is None or not _serves(stream, item, width, options) or not stream.begins(item.text):
            if len(item.text) <= AT_ONCE:
                return render_item(item, width, options)
            stream = StreamRenderer(width, options)
        stream.feed(item.text[stream.length :])
        stream.lines(everything=True)
        lines = stream.finish()
        if item.interrupted:
            lines.extend(interruption(frame_for(item, width, options)))
        return lines


def _serves(stream: StreamRenderer, item: AssistantItem, width: int, options: RenderOptions) -> bool:
    same = stream.width == width and stream.options.ascii == options.ascii
    return same and stream.length <= len(item.text)
