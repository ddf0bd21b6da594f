"""One step in the making: the state, the time, and the effects so far; and the table of handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from msgspec import Struct, field

from tenuto.protocol.entry import Level
from tenuto.text.titles import title_of
from tenuto.tui.render.width import cell_width
from tenuto.tui.state.effects import (
    DraftSet,
    Effect,
    ItemAdded,
    ItemChanged,
    ItemRemoved,
    PanelChanged,
    StatusChanged,
    Title,
    Toast,
)
from tenuto.tui.state.item import Item, NoticeItem, TimedItem, ToolItem, UserItem
from tenuto.tui.state.state import Hint, UiState

Input = TypeVar("Input")
TOAST_MARGIN = 2
"""Cells before a toast."""
TITLE_ROOM = 40
"""Characters of how a conversation began that stand in the terminal's title, for want of one."""
Handler = Callable[["Change", Any], None]


class Change(Struct):
    """What a handler works with. `now` is seconds of the caller's clock, `columns` the screen's width in cells."""

    state: UiState
    now: float
    columns: int
    effects: list[Effect] = field(default_factory=list[Effect])

    def emit(self, effect: Effect) -> None:
        """Add an effect, once, and none at all while a session is being replayed."""
        if not self.state.replaying and effect not in self.effects:
            self.effects.append(effect)

    def status(self) -> None:
        """Say that the status line, the spinner or a hint changed."""
        self.emit(StatusChanged())

    def panel(self) -> None:
        """Say that something around the editor changed."""
        self.emit(PanelChanged())

    def toast(self, text: str, level: Level = "info") -> None:
        """Show a line for a few seconds; a warning that no line has room for stays, whole, in the transcript."""
        if level != "info" and cell_width(text) + TOAST_MARGIN > self.columns:
            self.notice(text, level)
        else:
            self.emit(Toast(text, level))

    def hint(self, text: str, seconds: float, *, on_task: bool = False, again: bool = False) -> None:
        """Show a line near the editor for so many seconds; `on_task`: while something runs; `again`: see `Hint`."""
        self.state.hint = Hint(text, self.now + seconds, on_task, again)
        self.status()

    def set_draft(self, text: str, cursor: int | None = None) -> None:
        """Put a text into the editor, with the cursor at `cursor` or at the end."""
        draft = self.state.draft
        draft.text = text
        draft.cursor = len(text) if cursor is None else cursor
        self.state.completion = None
        self.state.completion_closed_at = None
        self.state.completion_generation += 1  # what was asked for is an answer to another text
        self.emit(DraftSet(draft.text, draft.cursor))
        self.panel()

    # --- the transcript ---

    def add(self, item: Item) -> None:
        """Put a new item at the end of the transcript."""
        transcript = self.state.transcript
        item.id = transcript.next_id
        transcript.next_id += 1
        item.folded = self.state.detail == "folded"
        transcript.items[item.id] = item
        self.emit(ItemAdded(item.id))

    def touch(self, item: Item) -> None:
        """Say that the item changed."""
        item.version += 1
        if ItemAdded(item.id) not in self.effects:
            self.emit(ItemChanged(item.id))

    def remove(self, item_id: int) -> None:
        """Take an item out of the transcript."""
        if self.state.transcript.items.pop(item_id, None) is None:
            return
        self.state.timed.discard(item_id)
        added = ItemAdded(item_id)
        if added in self.effects:
            self.effects.remove(added)
        else:
            self.emit(ItemRemoved(item_id))

    def start_clock(self, item: TimedItem) -> None:
        """Let the item's seconds count from now."""
        item.started = self.now
        item.seconds = 0.0
        self.state.timed.add(item.id)

    def stop_clock(self, item: TimedItem, seconds: float | None = None) -> None:
        """Stop the item's seconds, at `seconds` where the history knows them."""
        if seconds is not None:
            item.seconds = seconds
        elif item.id in self.state.timed:
            item.seconds = self.now - item.started
        item.started = 0.0
        self.state.timed.discard(item.id)

    def settle(self, ids: Collection[int]) -> None:
        """Move the items to the end if a final item came after them.

        Items become entries in the order in which they become final; a resumed transcript has that order (DESIGN 2).
        """
        items = self.state.transcript.items
        missing = len(ids)
        overtaken = False
        for item_id in reversed(items):
            if item_id in ids:
                missing -= 1
                if missing <= 0:
                    break
            elif items[item_id].final:
                overtaken = True
                break
        if overtaken:
            for item_id in ids:
                self._move_to_end(item_id)

    def _move_to_end(self, item_id: int) -> None:
        items = self.state.transcript.items
        items[item_id] = items.pop(item_id)
        added = ItemAdded(item_id)
        if added in self.effects:
            self.effects.remove(added)
        else:
            self.emit(ItemRemoved(item_id))
        self.effects = [effect for effect in self.effects if effect != ItemChanged(item_id)]
        if not self.state.replaying:
            self.effects.append(added)

    def notice(self, text: str, level: Level = "info", kind: str = "") -> None:
        """Add a notice to the transcript, unless the last item says just that.

        What is still being written comes behind it, as in a resumed transcript, and does not count.
        """
        items, streaming = self.state.transcript.items, self.state.streaming
        last = next((item for item in reversed(items.values()) if item.final and item.id not in streaming), None)
        if isinstance(last, NoticeItem) and (last.text, last.level) == (text, level):
            return
        self.add(NoticeItem(text=text, level=level, kind=kind, final=True))

    def title(self) -> None:
        """Set the terminal's title, when it changed: what goes on, and where."""
        status = self.state.status
        folder = status.cwd.rstrip("/").rpartition("/")[2] or status.cwd
        task = status.title or title_of(status.began, TITLE_ROOM) or "tenuto"
        name = " — ".join(part for part in (task, folder) if part)
        text = "".join(character for character in name if character.isprintable())
        if self.state.running:
            text = f"✳ {text}"
        if text != self.state.terminal_title and not self.state.replaying:
            self.state.terminal_title = text
            self.emit(Title(text))


HANDLERS: dict[type[Any], Handler] = {}
"""What takes each type of event and of intent; the modules of the topics put it in."""


def on(kind: type[Input]) -> Callable[[Callable[[Change, Input], None]], Callable[[Change, Input], None]]:
    """Register a handler for inputs of type `kind`. Raises `TypeError` when there is one already."""

    def register(handler: Callable[[Change, Input], None]) -> Callable[[Change, Input], None]:
        if kind in HANDLERS:
            raise TypeError(f"two handlers for {kind.__name__}")
        HANDLERS[kind] = handler
        return handler

    return register


def feed(state: UiState, input: object, now: float, columns: int) -> list[Effect]:
    """Let the handler of an event or intent change the state; return what is to be done."""
    change = Change(state, now, columns)
    HANDLERS[type(input)](change, input)
    return change.effects


def check_handlers(expected: Collection[type[Any]]) -> None:
    """Raise `TypeError` unless every expected type has a handler and nothing else has one."""
    missing = sorted(kind.__name__ for kind in set(expected) - HANDLERS.keys())
    surplus = sorted(kind.__name__ for kind in HANDLERS.keys() - set(expected))
    if missing or surplus:
        raise TypeError(f"the state machine has no handler for {missing}, and handlers for unknown {surplus}")


def pass_verdict(change: Change) -> None:
    """Mark the calls that the present turn ends with in failure: after them, nothing of it went well.

    A turn can go on after it settled (an interrupt, Enter): then the verdict of before is taken back.
    """
    unresolved = True
    for item in reversed(change.state.transcript.items.values()):
        if isinstance(item, UserItem) and item.seq:
            return
        if not isinstance(item, ToolItem):
            continue
        unresolved = unresolved and item.state == "failed"
        if item.unresolved != unresolved:
            item.unresolved = unresolved
            change.touch(item)
