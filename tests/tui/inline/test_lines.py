"""What is printed, in which colours, and where the bottom begins: the pure parts."""

from __future__ import annotations

import re

import pytest

from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    NoticeEvent,
)
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import TextPart, ThinkingPart
from tenuto.tui.first_paint.paint import reflow_of
from tenuto.tui.inline.output import Painted, rows_above_cursor, synchronises, wrapped_rows
from tenuto.tui.inline.printer import Printer
from tenuto.tui.inline.prompt import PromptEditor
from tenuto.tui.paint import Paint, nearest, sgr_codes
from tenuto.tui.render.line import Line
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.theme import Style, find_theme
from tenuto.tui.state.effects import ItemAdded, ItemRemoved
from tenuto.tui.state.item import AssistantItem, Item, NoticeItem, ToolItem, UserItem
from tenuto.tui.terminal.emulator import Hyperlinks, Reflow
from tests.tui.machine.driving import Driver, started


def notice(number: int, text: str) -> NoticeItem:
    return NoticeItem(id=number, text=text, final=True)


def texts(lines: list[Line]) -> list[str]:
    return [line.text.strip() for line in lines if line.text.strip()]


def printer_of(*items: Item) -> Printer:
    printer = Printer(RenderOptions)
    for item in items:
        printer.add(item)
    return printer


def test_what_is_final_is_printed_once_and_in_order() -> None:
    running = ToolItem(id=2, call_id="c", name="bash", summary="make", state="running")
    printer = printer_of(notice(1, "one"), running, notice(3, "three"))
    assert texts(printer.take(80)) == ["ℹ one"]
    assert texts(printer.live(80, 10)) == ["● Bash make", "ℹ three"]
    assert printer.take(80) == []
    running.state, running.final = "done", True
    assert texts(printer.take(80)) == ["● Bash make", "ℹ three"]
    assert printer.take(80) == [] == printer.live(80, 10)


def test_a_move_keeps_the_order_of_the_transcript() -> None:
    echo, other = UserItem(id=1, text="go"), notice(2, "meanwhile")
    printer = printer_of(echo, other)
    assert printer.take(80) == []
    printer.remove(1)
    printer.add(echo)
    echo.final, echo.seq = True, 5
    assert texts(printer.take(80)) == ["ℹ meanwhile", "▌ go"]


def test_an_answer_is_printed_while_it_streams_also_behind_thinking_that_is_over() -> None:
    driver = Driver()
    printer = Printer(RenderOptions)

    def feed(event: AnyEvent) -> list[str]:
        for effect in driver.feed(event):
            if isinstance(effect, ItemAdded):
                printer.add(driver.state.transcript.items[effect.id])
            elif isinstance(effect, ItemRemoved):
                printer.remove(effect.id)
        return texts(printer.take(80))

    feed(started())
    assert feed(AssistantThinkingDeltaEvent(session_id="s", text="hm")) == []
    begun = feed(AssistantTextDeltaEvent(session_id="s", text="One.\n\nTwo.\n\nThr"))
    assert begun[0].startswith("✻ Thought") and begun[1] == "One."
    feed(NoticeEvent(session_id="s", level="info", text="meanwhile"))  # the answer's entries come behind it
    parts = (ThinkingPart(text="hm"), TextPart(text="One.\n\nTwo.\n\nThree."))
    rest = feed(AssistantMessageEvent(session_id="s", message=AssistantMessage(parts=parts, seq=5)))
    assert sorted(begun[2:] + rest) == sorted(["Two.", "Three.", "ℹ meanwhile"])


def test_the_live_rows_are_bounded_and_the_last() -> None:
    item = AssistantItem(id=1, text="\n".join(f"- point {number}" for number in range(100)))
    printer = printer_of(item)
    printer.take(80)
    live = printer.live(80, 5)
    assert 0 < len(live) <= 5
    assert live[-1].text.endswith("point 99")
    more = printer_of(AssistantItem(id=2, text="word " * 400)).live(40, 5)
    assert len(more) == 5 and "rows" in more[0].text  # what is left out is told


@pytest.mark.parametrize("width", [30, 80])
def test_a_growing_answer_is_the_same_as_a_finished_one(width: int) -> None:
    text = "# Head\n\nSome *prose* that is long enough to be wrapped on narrow screens.\n\n" + "".join(
        f"{number}. item number {number}\n" for number in range(1, 30)
    )
    whole = AssistantItem(id=9, text=text, final=True)
    expected = [line.text for line in printer_of(whole).take(width)]
    item = AssistantItem(id=1)
    printer = printer_of(item)
    printed: list[str] = []
    for start in range(0, len(text), 13):
        item.text += text[start : start + 13]
        printed += [line.text for line in printer.take(width)]
        printer.live(width, 10)
    assert len(printed) > 5
    item.final = True
    printed += [line.text for line in printer.take(width)]
    assert printed == expected


def test_another_width_in_the_middle_of_an_answer_loses_and_repeats_nothing() -> None:
    words = [f"word{number}" for number in range(200)]
    item = AssistantItem(id=1)
    printer = printer_of(item)
    printed: list[str] = []
    for place in range(0, 200, 10):
        item.text += " ".join(words[place : place + 10]) + "\n\n"
        printed += texts(printer.take(80 if place < 100 else 40))
    item.final = True
    printed += texts(printer.take(40))
    assert " ".join(printed).split() == words


def test_a_link_that_is_defined_late_loses_nothing() -> None:
    item = AssistantItem(id=1)
    printer = printer_of(item)
    printed: list[str] = []
    for part in ("See [the notes][n].\n\nMore.\n\n", "Again.\n\n", "[n]: https://example.org\n"):
        item.text += part
        printed += texts(printer.take(80))
    item.final = True
    printed += texts(printer.take(80))
    assert [word for word in ("More.", "Again.") if word not in printed] == []


def test_another_session_begins_below_a_line() -> None:
    printer = printer_of(notice(1, "one"))
    printer.take(80)
    printer.reset([notice(2, "two")], "the title", 80)
    assert texts(printer.take(80)) == ["── the title ──", "ℹ two"]


def test_escape_codes_of_styles() -> None:
    style = Style(foreground="#ff0000", background="4", bold=True)
    assert sgr_codes(style, "true") == "1;38;2;255;0;0;44"
    assert sgr_codes(style, "256") == "1;38;5;196;44"
    assert sgr_codes(Style(foreground="12"), "256") == "94"
    assert nearest(8, 8, 8) == 232


def test_rows_carry_links_and_end_plain() -> None:
    links = Hyperlinks({"TERM": "xterm"}, "/work dir")
    paint = Paint(find_theme("dark"), "true", links=links)
    row = paint.rows([Line((("site", "link @https://example.org"), (" end", "text")))])
    assert re.search(r"\x1b]8;id=[0-9a-f]+;https://example.org\x1b\\", row) and row.endswith("\x1b[0m\r\n")
    assert ";file:///work%20dir/src/a%20b.py\x1b" in paint.row(Line((("s", "@path:src/a%20b.py#12"),)))
    assert "\x1b]8" not in Paint(find_theme("dark"), "true").row(Line((("s", "link @https://e.org"),)))


def test_r088_only_known_kinds_of_links_are_sent_and_nothing_in_them_ends_them() -> None:
    links = Hyperlinks({"TERM": "xterm"}, "/w")
    assert links.target("https://e.org/\x07\x1b\\evil") == "https://e.org/%07%1B%5Cevil"
    assert links.target("https://例え.jp/ä") == "https://%E4%BE%8B%E3%81%88.jp/%C3%A4"
    for refused in ("javascript:alert(1)", "ssh://host", "vscode://x", "", "https://e.org/" + "x" * 3_000):
        assert links.target(refused) == ""
    for environ in ({}, {"TERM": "dumb"}, {"TERM": "linux"}, {"TERM": "screen"}, {"TERM": "xterm", "STY": "1"}):
        assert Hyperlinks(environ).target("https://e.org") == ""
    assert Hyperlinks({"TERM": "screen", "TMUX": "x"}).target("https://e.org")
    assert Hyperlinks({"TERM": "xterm-kitty"}, "/w").target("path:a.py#12") == "file:///w/a.py#12"


def test_a_row_with_a_ground_of_its_own_has_it_to_the_edge() -> None:
    paint = Paint(find_theme("dark"), "true")
    ground = sgr_codes(find_theme("dark").resolve("diff.added"), "true")
    added = [Line((("+ a", "diff.added"),), fill="diff.added")]
    assert paint.rows(added).startswith(f"\x1b[{ground}m\x1b[K\x1b[0m\x1b[{ground}m+ a")
    plain = Paint(find_theme("dark").without_colour(), "true")
    assert plain.rows(added).startswith("\x1b[K") and plain.rows(added).endswith("+ a\x1b[0m\r\n")


def test_a_row_is_erased_before_it_is_written_and_not_behind_its_last_character() -> None:
    """Behind a row without room most terminals have the cursor on its last cell: what they erase is that."""
    for line in (Line((("x" * 80, "text"),)), Line((("+" * 80, "diff.added"),), fill="diff.added")):
        row = Paint(find_theme("dark"), "true").rows([line])
        assert row.index("\x1b[K") < row.index(line.text) and row.count("\x1b[K") == 1
        assert "\x1b[K" not in Paint(find_theme("dark"), "true").page([Line((("x", "text"),))])


def test_no_colour_is_no_colour() -> None:
    paint = Paint(find_theme("dark").without_colour(), "true")
    assert "38;" not in paint.row(Line((("x", "accent"), ("y", "error"))))
    assert "38;" not in paint.codes("accent")


@pytest.mark.parametrize(
    ("rows", "column", "columns", "habit", "up"),
    [
        ([5], 5, 80, "wraps", 0),
        ([80, 10, 0, 4], 4, 80, "wraps", 3),
        ([80, 10, 0, 4], 4, 40, "wraps", 4),
        ([100, 81, 50], 50, 40, "wraps", 7),
        ([100, 81, 50], 50, 40, "cuts", 2),
        ([100, 81, 50], 50, 40, "clears", 2),
        ([0, 20, 98], 98, 45, "wraps", 4),
        ([0, 20, 98], 98, 45, "counts", 2),  # the row of the cursor is cut
        ([0, 98, 98], 98, 45, "wraps-above", 4),
    ],
)
def test_where_the_bottom_begins_after_a_change_of_width(
    rows: list[int], column: int, columns: int, habit: Reflow, up: int
) -> None:
    painted = Painted([[1] * cells for cells in rows], len(rows) - 1, column)
    assert rows_above_cursor(painted, [max(rows), columns], habit) == up


def test_a_wide_character_is_not_parted_where_a_row_is_wrapped() -> None:
    row = [2] * 45
    assert wrapped_rows(row, 45) == 3 and wrapped_rows(row, 46) == 2 and wrapped_rows([], 20) == 1
    assert rows_above_cursor(Painted([row, [1]], 1, 0), [90, 45], "wraps") == 3
    assert rows_above_cursor(Painted([row], 0, 44), [90, 45], "wraps") == 1


@pytest.mark.parametrize(
    ("rows", "cursor", "widths", "up"),
    [
        # As xterm.js 6 was seen to do it; rows below the cursor move it too.
        ([0, 22, 98, 100], (2, 97), [100, 45], 6),
        ([0, 22, 98, 40], (2, 97), [100, 45], 2),
        ([99, 50], (0, 16), [100, 115, 91, 32], 3),  # cut at 91, then wrapped: the row below had moved the cursor
        ([99, 50], (0, 16), [100, 60, 100], 0),
    ],
)
def test_where_the_bottom_begins_in_xterm_js(
    rows: list[int], cursor: tuple[int, int], widths: list[int], up: int
) -> None:
    assert rows_above_cursor(Painted([[1] * cells for cells in rows], *cursor), widths, "counts") == up


def test_terminals_that_wrap_again_and_that_show_frames_at_once() -> None:
    assert reflow_of({"TERM": "xterm-256color"}) == "wraps"
    assert reflow_of({"TMUX": "x", "XTERM_VERSION": "XTerm(390)"}) == "wraps"
    assert reflow_of({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(390)"}) == "cuts"
    assert reflow_of({"TERM": "linux"}) == reflow_of({"TERM": "rxvt-unicode-256color"}) == "cuts"
    assert reflow_of({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}) == "counts"
    assert reflow_of({"TERM": "xterm-256color", "KONSOLE_VERSION": "221203"}) == "wraps-above"
    assert synchronises({"TERM": "xterm-kitty"})
    assert not synchronises({"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM_VERSION": "3.3a"})
    assert synchronises({"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM_VERSION": "3.7"})
    assert not synchronises({"TERM": "linux"})


class Draft:
    def __init__(self, text: str, cursor: int, width: int = 10) -> None:
        self.told: list[tuple[str, int]] = []
        self.editor = PromptEditor(lambda text, cursor: self.told.append((text, cursor)), lambda: width)
        self.editor.set_draft(text, cursor)

    def press(self, *keys: str) -> tuple[str, int]:
        for key in keys:
            self.editor.press(key, key if len(key) == 1 else None)
        return self.editor.text, self.editor.cursor


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("left",), ("one two\nthree", 6)),
        (("ctrl+left",), ("one two\nthree", 4)),
        (("home", "x"), ("xone two\nthree", 1)),
        (("end", "x"), ("one twox\nthree", 8)),
        (("ctrl+w",), ("one \nthree", 4)),
        (("ctrl+u",), ("\nthree", 0)),
        (("ctrl+k",), ("one twothree", 7)),
        (("ctrl+w", "ctrl+a", "ctrl+y"), ("twoone \nthree", 3)),
        (("backspace", "a", "b", "ctrl+underscore", "ctrl+underscore"), ("one two\nthree", 7)),
        (("ctrl+underscore", "ctrl+shift+z"), ("one two\nthree", 7)),
        (("delete",), ("one twothree", 7)),
        (("alt+d",), ("one two", 7)),
        (("f7",), ("one two\nthree", 7)),
    ],
)
def test_editing_keys(keys: tuple[str, ...], expected: tuple[str, int]) -> None:
    assert Draft("one two\nthree", 7).press(*keys) == expected


def test_up_and_down_go_by_rows_of_the_screen() -> None:
    draft = Draft("0123456789abcdefghij宽xyz\nend", 13)
    assert not draft.editor.on_first_row and not draft.editor.on_last_row
    draft.press("up")
    assert draft.editor.cursor == 3 and draft.editor.on_first_row
    draft.press("down", "down", "down")
    assert draft.editor.on_last_row
    assert draft.editor.cursor == len("0123456789abcdefghij宽xyz\nend")
