"""What is printed and when: each item once, in the order of the transcript, as soon as it cannot change. Pure.

An answer is printed while it streams, as far as its beginning is settled. What came before an item that still changes
waits for it, so that the scrollback has the order that a resumed session has.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import TodoView
from tenuto.tui.render.items import gap_before, render_item
from tenuto.tui.render.line import EMPTY, Line, fit_lines, link_addresses, plain
from tenuto.tui.render.live import ItemRenderer, Lines, StreamRenderer
from tenuto.tui.render.options import GUTTER, RenderOptions, glyphs_for
from tenuto.tui.state.item import Item, ToolItem

RESUMED_ROWS = 300
"""So much of a session that is gone on with is printed; the rest stays in it."""
MOST_ROWS = 1_000
"""Rows of a growing answer that are printed with one frame: as objects and escapes they take some forty times the text.
"""
UNFOLDABLE = 200
"""How many printed items can be printed again, unfolded."""


class Begun(Struct):
    """An answer whose beginning is printed: at which width, by what it was drawn, and the hashes of its rows' texts."""

    item: Item
    width: int
    stream: StreamRenderer | None
    rows: array[int] = field(default_factory=lambda: array("q"))


class PrintedList(Struct):
    """The todo list that was printed last, and how many rows have been printed from its first one on."""

    items: Sequence[TodoItem] = ()
    rows: int = 0

    def note(self, item: Item, height: int, printed: int) -> None:
        """An item of that height ends the rows that are printed next; so many are those."""
        views = item.result.ui if isinstance(item, ToolItem) and item.result else ()
        for view in views:
            if isinstance(view, TodoView):
                self.items, self.rows = view.items, height - printed

    def move_up(self, rows: int) -> None:
        """So many rows are printed."""
        self.rows += rows


class Printer:
    """`take` gives the lines to print now, `live` shows the rest. `options` says how to render at this moment."""

    def __init__(self, options: Callable[[], RenderOptions]) -> None:
        self._options = options
        self._render = ItemRenderer(options)
        self._pending: dict[int, Item] = {}
        self._begun: Begun | None = None
        self._last: Item | None = None
        self._lines: list[Line] = []
        self._printed: list[Item] = []
        self._unfold_at = 0
        self._list = PrintedList()
        self.is_behind = False
        """Whether more can be printed than the last frame has."""

    # --- what comes in ---

    def add(self, item: Item) -> None:
        """An item was put at the end of the transcript. One that is printed stays where it is."""
        if not any(printed is item for printed in self._printed):
            self._pending[item.id] = item

    def remove(self, item_id: int) -> None:
        """An item is no longer where it was. What is printed of it cannot be taken back."""
        self._pending.pop(item_id, None)

    def say(self, lines: Sequence[Line]) -> None:
        """Print these lines next."""
        self._lines.extend(lines)

    def reset(self, items: Iterable[Item], title: str, width: int) -> None:
        """Another transcript: print its end, below a line with its title."""
        everything = list(items)
        glyphs = glyphs_for(self._options())
        self._note_withdrawn({})
        had_printed = self._last is not None
        self._pending, self._begun, self._last, self._printed = {}, None, None, []
        if not everything and not had_printed:
            return
        first = self._first_to_print(everything, width)
        rule = glyphs.rule * 2
        if had_printed:
            self._lines.extend((EMPTY, plain(f"{rule} {title} {rule}", "dim"), EMPTY))
        if first:
            self._lines.append(plain(f"{glyphs.ellipsis} {first:,} earlier items are in the session", "dim"))
            self._lines.append(EMPTY)
        self._pending = {item.id: item for item in everything[first:]}

    def _first_to_print(self, items: Sequence[Item], width: int) -> int:
        options = self._options()
        rows = 0
        for place in range(len(items) - 1, -1, -1):
            rows += len(render_item(items[place], width, options)) + 1
            if rows > RESUMED_ROWS and place < len(items) - 1:
                return place + 1
        return 0

    # --- what goes out ---

    def take(self, width: int) -> list[Line]:
        """Return what is to be printed now, on a screen of `width` cells; it counts as printed afterwards."""
        self._note_withdrawn(self._pending)
        self.is_behind = False
        while self._pending:
            item = next(iter(self._pending.values()))
            if not item.final:
                self._take_settled(item, width)
                break
            self._take_final(item, width)
            del self._pending[item.id]
        lines, self._lines = self._lines, []
        self._list.move_up(len(lines))
        return lines

    def may_show(self, todo: Sequence[TodoItem]) -> bool:
        """Say whether this todo list was the last that was printed, and has not been out of sight since."""
        return self._list.items == todo

    def shows(self, todo: Sequence[TodoItem], rows: int) -> bool:
        """Say whether this todo list stands whole in the last printed `rows`; one that did not is out of sight."""
        if self._list.rows > rows:
            self._list = PrintedList()
        return self.may_show(todo)

    def take_rest(self, width: int) -> list[Line]:
        """Return everything that is not printed yet, as it is now: at the end."""
        lines = self.take(width)
        for item in self._pending.values():
            self._take_final(item, width)
        self._pending = {}
        rest, self._lines = self._lines, []
        return lines + rest

    def live(self, width: int, rows: int) -> list[Line]:
        """Return the last rows, at most `rows`, of what still changes, and of what waits for it."""
        lines: list[Line] = []
        last, left_out = self._last, 0
        for item in self._pending.values():
            rendered, known = self._lines_of(item, width)
            if len(rendered) <= known:
                continue
            first = max(known, len(rendered) - max(rows, 1))
            lines += [EMPTY] * (gap_before(last, item) if not known else 0)
            lines += rendered[first:]
            left_out += first - known
            last = item
        if rows <= 0:
            return []
        if len(lines) + left_out > rows:
            hidden = f"{glyphs_for(self._options()).ellipsis} +{len(lines) + left_out - rows + 1} rows"
            lines = [plain(f"{'':{GUTTER}}{hidden}", "faint"), *lines[len(lines) - rows + 1 :]]
        return fit_lines(lines, width)

    def whole(self, item: Item, width: int) -> list[Line]:
        """Return all of an item, to be shown or printed again."""
        return link_addresses(render_item(item, width, replace(self._options(), detail="expanded")))

    def unfold(self, width: int) -> list[Line]:
        """Return the last printed item that has more to show, unfolded; the next call goes further back.

        An empty list when there is none (any more); then it begins at the end again.
        """
        options = self._options()
        whole = replace(options, detail="expanded")
        while self._unfold_at < len(self._printed):
            self._unfold_at += 1
            item = self._printed[-self._unfold_at]
            unfolded = render_item(item, width, whole)
            if [line.text for line in unfolded] != [line.text for line in render_item(item, width, options)]:
                return [EMPTY, *unfolded]
        self._unfold_at = 0
        return []

    # --- helpers ---

    def _take_final(self, item: Item, width: int) -> None:
        lines, known = self._lines_of(item, width)
        if lines[known:] and not known:
            self._lines += [EMPTY] * gap_before(self._last, item)
        self._lines += lines[known:]
        self._begun = None if known or (self._begun and self._begun.item is item) else self._begun
        if lines:
            self._list.note(item, len(lines), len(self._lines))
            self._last = item
            self._printed.append(item)
            del self._printed[:-UNFOLDABLE]
            self._unfold_at = 0

    def _take_settled(self, item: Item, width: int) -> None:
        lines, known = self._lines_of(item, width)
        settled = min(self._render.settled(item.id), known + MOST_ROWS)
        if settled <= known:
            return
        self.is_behind = settled < self._render.settled(item.id)
        if self._begun is None or self._begun.item is not item:
            self._begun = Begun(item, width, self._render.stream_of(item.id))
            self._lines += [EMPTY] * gap_before(self._last, item)
            self._last = item
        self._lines += lines[known:settled]
        self._begun.rows.extend(hash(line.text) for line in lines[known:settled])

    def _lines_of(self, item: Item, width: int) -> tuple[Lines, int]:
        """Return an item's lines, and how many of them are printed: as many as still are what was printed."""
        begun = self._begun
        if begun is None or begun.item is not item:
            return self._render(item, width), 0
        lines = self._render(item, begun.width)
        if begun.stream is not None and self._render.stream_of(item.id) is begun.stream:
            return lines, len(begun.rows)  # what was settled is
        same = 0
        for row, line in zip(begun.rows, lines, strict=False):
            if row != hash(line.text):
                break
            same += 1
        return lines, same

    def _note_withdrawn(self, present: dict[int, Item]) -> None:
        """Say below an answer that was half printed that it does not count."""
        if self._begun is not None and self._begun.item.id not in present:
            glyphs = glyphs_for(self._options())
            self._lines.append(plain(f"{glyphs.stopped:<{GUTTER}}withdrawn: the answer begins anew", "warning"))
            self._begun = None
