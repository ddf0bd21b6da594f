"""The editor that the prompt is written in.

Textual inserts printable keys at once but runs binding keys only after they have bubbled to the app, so keys of one
burst change places. Here every key is done in `_on_key`, in the order in which it came, and none bubbles.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.document._document import Document, EditResult, Location
from textual.document._edit import Edit
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from tenuto.command.registry import Command
from tenuto.guard.terminal import BLANK, blank_for_terminal
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.keys.bindings import typed_by
from tenuto.tui.keys.line_editor import CutTexts, blank_before, stop_after, stop_before, word_after, word_before
from tenuto.tui.render.width import cell_width, split_graphemes

JOINER = "\u200d"


def keep_whole(strip: Strip) -> Strip:
    """Return the strip with each character in the style that its beginning has."""
    text = strip.text
    if text.isascii() or _is_cut_between(strip, text):
        return strip
    bounds = [*(start for start, _end, _cells in split_graphemes(text)), len(text)]
    segments: list[Segment] = []
    begin = end = 0
    for piece, style, _control in strip:
        end += len(piece)
        to = bounds[bisect_left(bounds, end)]
        if to > begin:
            segments.append(Segment(text[begin:to], style))
        begin = max(begin, to)
    return Strip(segments).adjust_cell_length(strip.cell_length)


def _is_cut_between(strip: Strip, text: str) -> bool:
    """Say whether each piece surely begins with a character of its own: to part the whole row took a key's tenth."""
    end = 0
    for piece, _style, _control in strip:
        first = text[end : end + 1]
        if end and first:
            alone = first.isascii() or (unicodedata.category(first)[0] in "LNPZ" and cell_width(first) > 0)
            if not alone or text[end - 1] == JOINER:
                return False
        end += len(piece)
    return True


MAX_SHARE = 3
"""The editor takes at most one of so many parts of the screen, and scrolls then."""


class Composer(TextArea):
    """A multi-line editor with readline's keys. `route` does what a key means, or returns one to edit with.

    `paint_now` paints what has changed here, without the way that messages go; `hint_style` is what the words have that
    stand where nothing is typed.
    """

    BINDINGS: list[BindingType] = [  # noqa: RUF012 - Textual's own name and shape
        Binding("ctrl+b", "cursor_left"),
        Binding("ctrl+f", "cursor_right"),
        Binding("alt+b,alt+left", "cursor_word_left"),
        Binding("alt+f,alt+right", "cursor_word_right"),
        Binding("alt+d,alt+delete", "kill_word_right"),
        Binding("ctrl+backspace,alt+backspace", "kill_word_left"),
        Binding("ctrl+w", "kill_blank_left"),
        Binding("ctrl+u,super+backspace", "kill_line_left"),
        Binding("ctrl+k", "kill_line_right"),
        Binding("ctrl+y", "yank"),
        Binding("alt+y", "yank_older"),
        Binding("ctrl+h", "delete_left"),
        Binding("ctrl+underscore,ctrl+z,super+z", "undo"),
        Binding("ctrl+shift+z", "redo"),
    ]

    def __init__(
        self,
        route: Callable[[str, str | None], str | None],
        paste: Callable[[str], None],
        changed: Callable[[str, int], None],
        placeholder: str,
        *,
        paint_now: Callable[[Widget], None],
        hint_style: Callable[[], Style],
        own_commands: Callable[[], Sequence[Command]],
    ) -> None:
        super().__init__(
            id="composer", compact=True, highlight_cursor_line=False, placeholder=placeholder, max_checkpoints=100
        )
        self.cursor_blink = False
        self._route = route
        self._paste_text = paste
        self._changed = changed
        self._cuts = CutTexts()
        self._cutting = False
        self._paint_now = paint_now
        self._hint_style = hint_style
        self._own_commands = own_commands
        self._styled: object = None
        self._has_caret = True
        self._marked: tuple[int, int] | None = None

    def invite(self, placeholder: str, has_caret: bool) -> None:
        """Say this while there is no text; show the caret, or leave it to what has the keyboard."""
        self.placeholder = placeholder
        if has_caret != self._has_caret:
            self._has_caret = has_caret
            self._line_cache.clear()  # pyright: ignore[reportUnknownMemberType]
            self.refresh()

    @property
    def _draw_cursor(self) -> bool:
        return self._has_caret and super()._draw_cursor

    # --- the draft ---

    @property
    def _document(self) -> Document:
        return cast(Document, self.document)

    @property
    def cursor(self) -> int:
        """The cursor as an offset in characters."""
        return self._document.get_index_from_location(self.cursor_location)

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text in, the cursor at `cursor`. Can be undone, unless it is empty."""
        text = text.replace("\r\n", "\n")
        if text != self.text:
            if text:
                self.replace(text, (0, 0), self.document.end)
            else:
                self.load_text("")
        self.move_cursor(self._location(cursor))
        self.update_suggestion()
        self.fit()

    def insert_text(self, text: str) -> None:
        """Insert at the cursor, in place of what is selected."""
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)
        self.tell()

    def mark(self, span: tuple[int, int] | None) -> None:
        """Show these characters as selected, wherever the cursor is, which stays."""
        self._marked = span
        self._line_cache.clear()  # pyright: ignore[reportUnknownMemberType]
        self.refresh()

    @property
    def chosen(self) -> str:
        """The text that is marked, or selected with the mouse or Shift."""
        return self.text[slice(*self._marked)] if self._marked is not None else self.selected_text

    def unselect(self) -> None:
        """Let go of what is selected; the cursor stays."""
        self.mark(None)
        self.move_cursor(self.cursor_location)

    def update_suggestion(self) -> None:
        """Show what a command that has been typed out may be followed by."""
        self.suggestion = ghost_hint(self.text, self.cursor, self._own_commands())

    def tell(self) -> None:
        """Say what the draft is now."""
        self.update_suggestion()
        self.fit()
        self._changed(self.text, self.cursor)

    def fit(self) -> None:
        """Be as high as the text, up to a third of the screen."""
        most = max(1, self.screen.size.height // MAX_SHARE)
        rows = max(1, min(most, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def edit(self, edit: Edit) -> EditResult:
        """Change the text. Nothing here has line numbers or colours of a language; hints come when it is told."""
        result = edit.do(self)
        self.history.record(edit)
        self.wrapped_document.wrap_range(edit.top, edit.bottom, result.end_location)
        edit.after(self)
        self._line_cache.clear()  # pyright: ignore[reportUnknownMemberType]
        self.post_message(self.Changed(self))
        if self.wrapped_document.height != self.virtual_size.height:
            self._refresh_size()
        return result

    @property
    def on_first_row(self) -> bool:
        """Whether Up has nowhere to go."""
        return self.navigator.is_first_wrapped_line(self.cursor_location)

    @property
    def on_last_row(self) -> bool:
        """Whether Down has nowhere to go."""
        return self.navigator.is_last_wrapped_line(self.cursor_location)

    # --- keys ---

    async def take(self, event: events.Event, *, paints: bool) -> None:
        """Do a key or a paste here and now, without the way by a queue of our own.

        A key that does not paint is one of several that came together: the last of them does.
        """
        if not self.is_mounted:
            self.post_message(event)
            return
        with self._context():
            if isinstance(event, events.Key):
                await self._on_key(event)
                if paints:
                    self._paint_now(self)
            elif isinstance(event, events.Paste):
                await self._on_paste(event)

    async def _on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        typed = typed_by(event.key, event.character)
        key = self._route(event.key, typed)
        if key is not None:
            await self.press(key, typed)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._paste_text(event.text)

    async def press(self, key: str, character: str | None) -> None:
        """Do an editing key: insert what it types, else run the binding, here and now."""
        self._cutting = False
        self.suggestion = ""  # it is a hint: Right must not insert it
        with self.prevent(TextArea.SelectionChanged):  # it is told below
            if character is not None:
                self._replace_via_keyboard(character, *self.selection)
            else:
                for binding in self._bindings.key_to_bindings.get(key, ())[-1:]:
                    await self.run_action(binding.action)
        if not self._cutting:
            self._cuts.rest()
        self.tell()

    def on_text_area_selection_changed(self) -> None:
        """The mouse moved the cursor."""
        self.tell()

    def on_resize(self) -> None:
        """Another width wraps otherwise."""
        self.call_after_refresh(self._fit_and_show_cursor)

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        """The caret has moved. No bracket has a partner here, and the app asks where the caret is when it paints."""
        if self.is_mounted:
            self.scroll_cursor_visible()
            if selection != previous_selection:
                self.post_message(self.SelectionChanged(selection, self))

    def _watch_show_vertical_scrollbar(self) -> None:
        """The bar takes no room: nothing wraps otherwise, and undo gets here while the cursor is in what is gone."""

    def _fit_and_show_cursor(self) -> None:
        self.fit()
        self.call_after_refresh(self.scroll_cursor_visible)

    def on_blur(self) -> None:
        """Keys always come here: dialogs are contexts, not widgets with a focus of their own."""
        if self.app.app_focus:  # pyright: ignore[reportUnknownMemberType]
            self.call_after_refresh(self.focus)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor; where everything is seen there is nothing to work out at every key."""
        if self.wrapped_document.height > self.size.height or self.scroll_offset.y:
            return super().scroll_cursor_visible(center, animate)
        self._recompute_cursor_offset()
        return Offset()

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is painted: what was pasted may have what must not reach the terminal (R-088)."""
        line = Text(blank_for_terminal(self.document.get_line(line_index)), end="", no_wrap=True)
        style = self._theme.selection_style
        if self._marked is not None and style is not None:
            start = self._document.get_index_from_location((line_index, 0))
            begin, end = (max(0, place - start) for place in self._marked)
            line.stylize(style, begin, end)
        return line

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show or take the caret. No style depends on the focus here, and to match all rules again costs 5 ms."""
        self._line_cache.clear()  # pyright: ignore[reportUnknownMemberType]

    def notify_style_update(self) -> None:
        """Other styles hold from now on."""
        self._styled = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows; the styles are worked out when they change, and not for every row of every key.

        There is nothing around them: no border, no room, no tint. What Textual does for those was a tenth of a key.
        """
        if self._styled is None or self._styled is not self._theme:
            self._styled = self._theme
            return super().render_lines(crop)
        rows = [self._typed_row(y) for y in crop.line_range]
        strips = [row for row in rows if row is not None]
        if len(strips) < len(rows) or self.get_line_filters():
            return super(TextArea, self).render_lines(crop)
        whole = crop.column_span == (0, self.size.width)
        return strips if whole else [strip.crop(*crop.column_span) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """Return a row, hints as the theme has them, without the blanks: some terminals give them room."""
        typed = self._typed_row(y)
        if typed is not None:
            return typed
        strip = keep_whole(super().render_line(y))
        if self.suggestion or not self.text:
            strip = _colour_hints(strip, self._hint_style())
        if BLANK not in strip.text:
            return strip
        return Strip([Segment(text.replace(BLANK, ""), style) for text, style, _ in strip], strip.cell_length)

    def _typed_row(self, y: int) -> Strip | None:
        """Return a row that has nothing but text and the caret, as Textual draws it in ten times as many calls."""
        theme, (start, end) = self._theme, self.selection
        wrapped, place = self.wrapped_document, y + self.scroll_offset.y
        base, caret = theme.base_style, theme.cursor_style
        marks = start != end or self._marked is not None or self.suggestion
        if marks or base is None or caret is None or place >= wrapped.height:
            return None
        index, section = wrapped._offset_to_line_info[place]  # pyright: ignore[reportPrivateUsage]
        line = self._document.get_line(index)
        text = f"{blank_for_terminal(line)} "
        if "\t" in text or BLANK in text or (not line and self._document.line_count == 1):
            return None
        begin, stop = [0, *wrapped.get_offsets(index), len(text)][section : section + 2]
        cut = min(max(begin, end[1]), stop) if end[0] == index and self._draw_cursor else stop
        pieces = (text[begin:cut], base), (text[cut : min(cut + 1, stop)], base + caret), (text[cut + 1 : stop], base)
        strip = Strip([Segment(piece, style) for piece, style in pieces if piece])
        return keep_whole(strip).adjust_cell_length(self.size.width, base)

    def get_cursor_left_location(self) -> Location:
        """Return where Left goes: over a whole character as people see it, or the mark of a paste."""
        return self._location(stop_before(self.text, self.cursor))

    def get_cursor_right_location(self) -> Location:
        """Return where Right goes."""
        return self._location(stop_after(self.text, self.cursor))

    def get_cursor_word_left_location(self) -> Location:
        """Return where a word back is."""
        return self._location(word_before(self.text, self.cursor))

    def get_cursor_word_right_location(self) -> Location:
        """Return where a word on is."""
        return self._location(word_after(self.text, self.cursor))

    # --- readline ---

    def action_kill_word_left(self) -> None:
        """Cut back to the beginning of the word."""
        self._kill(word_before(self.text, self.cursor), self.cursor)

    def action_kill_blank_left(self) -> None:
        """Cut back to a blank."""
        self._kill(blank_before(self.text, self.cursor), self.cursor)

    def action_kill_word_right(self) -> None:
        """Cut on to the end of the word."""
        self._kill(self.cursor, word_after(self.text, self.cursor))

    def action_kill_line_left(self) -> None:
        """Cut to the beginning of the line; there, the line end before it."""
        cursor = self.cursor
        start = self.text.rfind("\n", 0, cursor) + 1
        self._kill(start if start < cursor else max(0, cursor - 1), cursor)

    def action_kill_line_right(self) -> None:
        """Cut to the end of the line; there, the line end itself."""
        cursor = self.cursor
        end = self.text.find("\n", cursor)
        self._kill(cursor, len(self.text) if end < 0 else max(end, cursor + 1))

    def action_yank(self) -> None:
        """Insert what was cut last."""
        self._cutting = True
        text = self._cuts.yank()
        if text:
            self._replace_via_keyboard(text, *self.selection)

    def action_yank_older(self) -> None:
        """Put what was cut before that in its place."""
        self._cutting = True
        present, older = self._cuts.yank_older()
        if present:
            self._replace_via_keyboard(older, self._location(self.cursor - len(present)), self.cursor_location)

    def _kill(self, begin: int, end: int) -> None:
        self._cutting = True
        if begin < end:
            self._cuts.cut(self.text[begin:end], before=end == self.cursor)
            self.delete(self._location(begin), self._location(end))
            self.move_cursor(self._location(begin))

    def _location(self, index: int) -> Location:
        return self._document.get_location_from_index(max(0, min(index, len(self.text))))


def _colour_hints(strip: Strip, hint: Style) -> Strip:
    """Return a row whose dim pieces have a style of the theme: dim black is black in some terminals."""
    caret = Style(reverse=True)
    pieces: list[Segment] = []
    for text, style, control in strip:
        if style is not None and style.dim:
            style = caret if style.reverse else hint
        pieces.append(Segment(text, style, control))
    return Strip(pieces, strip.cell_length)
