from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.usage import Usage
from tenuto.tui.chrome.footer import ITEMS, RENDERERS, footer_line, unknown_items
from tenuto.tui.machine.state import QueueRow, UiState


def busy_state() -> UiState:
    state = UiState()
    status = state.status
    status.model, status.effort, status.mode = "anthropic/claude-sonnet-4", "high", "edits"
    status.cwd, status.branch, status.dirty = "/home/me/code/shop", "feature/cart", True
    status.tokens, status.window, status.trigger, status.estimated = 50_000, 200_000, 160_000, False
    status.total = Usage(input=10_000, cache_read=90_000, output=4_200, cost=1.25)
    status.jobs = 2
    state.queue.append(QueueRow(5, "later"))
    return state


def text(width: int, items=(), command=()) -> str:
    return footer_line(busy_state(), width, "/home/me", items, command).text


def test_everything_shows_where_there_is_room():
    shown = text(200)
    assert shown.startswith("edits · anthropic/claude-sonnet-4:high · ~/code/shop · feature/cart*")
    assert "1 queued · 2 jobs · ↑100k ↓4.2k 90% cached · $1.25 · " in shown
    assert shown.endswith("━━━━━━━━┿━ 50k/200k 25%")


def test_what_matters_least_goes_first_and_nothing_overlaps():
    seen = [text(width) for width in range(200, 7, -1)]
    for shown, narrower in pairwise(seen):
        assert len(shown.split(" · ")) >= len(narrower.split(" · ")) - 1
    assert "cached" not in text(120) and "━" not in text(120) and "$1.25" in text(120)
    narrow = text(40)
    assert narrow.startswith("edits · ") and len(narrow) <= 40
    assert text(12).startswith("edits")


def test_the_mark_of_compaction_and_the_colours_of_seventy_and_ninety():
    state = busy_state()
    for tokens, style in ((100_000, "meter.low"), (141_000, "meter.middle"), (181_000, "meter.high")):
        state.status.tokens = tokens
        spans = footer_line(state, 200, "").spans
        assert any(name == style and "━" in piece for piece, name in spans)
        assert sum(piece.count("┿") for piece, _name in spans) == 1
    state.status.trigger = None
    assert "┿" not in footer_line(state, 200, "").text


def test_the_order_is_the_users():
    assert text(80, ("context", "gap", "mode", "nonsense")).split() == ["━━━━━━━━┿━", "50k/200k", "25%", "edits"]
    assert text(80, ("branch", "model")) == "feature/cart* · anthropic/claude-sonnet-4:high"
    assert unknown_items(("context", "gap", "nonsense")) == ["nonsense"]


def test_the_line_of_the_users_command_shows_and_can_be_all():
    command = [("on call: ", "status"), ("RED", "status fg=1")]
    assert "feature/cart* · on call: RED " in text(220, (), command)
    assert text(60, ("command",), command) == "on call: RED"
    line = footer_line(busy_state(), 60, "", ("command",), command)
    assert ("RED", "status fg=1") in line.spans


@given(
    st.integers(1, 200),
    st.lists(st.sampled_from([*ITEMS, *RENDERERS, "x"]), max_size=12),
    st.text(st.sampled_from("ab 字é😀"), max_size=80),
)
def test_no_footer_is_wider_than_the_screen(width, items, word):
    state = busy_state()
    state.status.cwd = state.status.branch = word
    line = footer_line(state, width, "", items, [(word, "status")])
    assert line.width <= width
