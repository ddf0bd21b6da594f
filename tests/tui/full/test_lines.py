"""Status, panels, caches: the pure parts of the screen."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.message import DiffView
from tenuto.protocol.usage import Usage
from tenuto.tui.chrome import footer_line, home_relative
from tenuto.tui.full.transcript import LineCache
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.launch import resume_hint
from tenuto.tui.panels.approval import approval_panel
from tenuto.tui.panels.lists import completion_panel, help_panel, picker_panel, side_panel
from tenuto.tui.panels.panel import Panel, editor_spans, status_line
from tenuto.tui.render.line import plain
from tenuto.tui.render.options import UNICODE
from tenuto.tui.state.item import UserItem
from tenuto.tui.state.state import (
    Choice,
    CompletionItem,
    CompletionPopup,
    Picker,
    QueueRow,
    Retry,
    SpinnerLayer,
    UiState,
)
from tests.tui.kinds import kinds

WORDS = st.text(st.sampled_from("abc /.-字é😀\x1b\n"), max_size=60)


def busy_state() -> UiState:
    state = UiState()
    status = state.status
    status.model, status.effort, status.mode = "anthropic/claude-sonnet-4", "high", "edits"
    status.cwd, status.branch = "/home/me/code/some/deep/project", "feature/long-name"
    status.tokens, status.window, status.total = 182_000, 200_000, Usage(input=1, cost=1.25)
    state.queue.append(QueueRow(5, "later"))
    return state


def test_the_footer_says_what_fits_and_drops_the_least_first() -> None:
    state = busy_state()
    wide = footer_line(state, 160, "/home/me").text
    assert "edits · anthropic/claude-sonnet-4:high · ~/code/some/deep/project · feature/long-name" in wide
    assert wide.endswith("~182k/200k 91%")
    assert "━" in wide
    narrow = footer_line(state, 70, "/home/me").text
    assert "━" not in narrow
    assert "claude-sonnet-4" in narrow
    assert "91%" in narrow


@given(st.integers(8, 200), WORDS, WORDS, WORDS)
def test_no_status_line_is_wider_than_the_screen(width: int, model: str, cwd: str, toast: str) -> None:
    state = busy_state()
    state.status.model, state.status.cwd, state.status.branch = model, cwd, toast
    state.spinner.layers["agent"] = SpinnerLayer("agent", model, 0.0, cwd)
    for line in (footer_line(state, width, ""), status_line(state, 9.0, width, 3, (toast, "dim"))):
        assert line.width <= width
        assert "\x1b" not in line.text


def test_the_status_line_counts_down_a_retry() -> None:
    state = busy_state()
    state.spinner.layers["agent"] = SpinnerLayer("agent", "Working", 0.0)
    assert status_line(state, 75.0, 100, None, None).text == "● Working · 1m 15s · esc to interrupt"
    state.retry = Retry(2, 5, 80.0, "overloaded")
    line = status_line(state, 75.0, 100, None, None).text
    assert line == "● Retrying in 5s · attempt 2 of 5 · 1m 15s · esc to interrupt · overloaded"


def test_an_open_question_has_the_only_line_on_what_esc_does() -> None:
    state = busy_state()
    state.spinner.layers["agent"] = SpinnerLayer("agent", "Waiting for you", 0.0)
    state.approvals.requests.append(request("make"))
    assert "esc to interrupt" in status_line(state, 5.0, 100, None, None).text
    state.approvals.opened_at = 0.0
    assert status_line(state, 5.0, 100, None, None).text == "● Waiting for you"


def test_home_relative_leaves_neighbours_alone() -> None:
    assert home_relative("/home/me/x", "/home/me") == "~/x"
    assert home_relative("/home/me", "/home/me") == "~"
    assert home_relative("/home/meow", "/home/me") == "/home/meow"


def request(detail: str = "", diff: DiffView | None = None) -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        session_id="s", request_id="r", call_id="c", tool="bash", summary=detail[:30], detail=detail,
        diffs=(diff,) if diff else (), reason="because", kinds=kinds("x *"),
    )  # fmt: skip


@given(st.integers(20, 160), st.integers(4, 50), WORDS, st.integers(0, 90), st.booleans())
def test_panels_fit_the_screen(width: int, rows: int, text: str, scroll: int, full: bool) -> None:
    state = busy_state()
    line = LineEditor(text.replace("\n", ""), 0)
    state.approvals.requests.append(request(f"{text}\n" * 30))
    state.approvals.opened_at = 0.0
    state.picker = Picker(text, "model", tuple(Choice("v", text, text) for _ in range(20)), shown=list(range(20)))
    state.completion = CompletionPopup(0, 1, tuple(CompletionItem("x", text, text) for _ in range(20)), 12)
    state.todo = tuple(TodoItem(text=text or "x") for _ in range(12))
    shown: list[Panel] = [
        approval_panel(state, width, rows, UNICODE, line, full=full, scroll=scroll),
        picker_panel(state, width, rows, line),
        completion_panel(state, width, rows),
        help_panel(state, width, rows, scroll, line),
        side_panel(state, width, UNICODE),
    ]
    for panel in shown:
        for row in panel.lines:
            assert row.width <= width, row
            assert "\x1b" not in row.text
        assert all(0 <= row < len(panel.lines) for row in panel.choices)
    assert len(shown[0].lines) <= max(rows, 8)
    assert len(shown[2].lines) <= rows


def test_every_row_of_a_long_change_can_be_reached() -> None:
    state = busy_state()
    diff = "@@ -1,60 +1,60 @@\n" + "".join(f"-old {n}\n+new {n}\n" for n in range(60))
    state.approvals.requests.append(request("", DiffView(path="a.py", diff=diff, added=60, removed=60)))
    state.approvals.opened_at = 0.0
    seen: set[str] = set()
    scroll = 0
    for _ in range(60):
        panel = approval_panel(state, 80, 20, UNICODE, LineEditor(), full=True, scroll=scroll)
        seen |= {row.text.split("+ ")[-1].rstrip() for row in panel.lines}
        scroll = panel.scrolled + 5
    assert {f"new {n}" for n in range(60)} <= seen


def test_b10_every_file_of_a_patch_can_be_read_before_it_is_allowed() -> None:
    state = busy_state()
    diffs = [
        DiffView(path=f"src/file{n}.py", diff="@@ -1,1 +1,1 @@\n" + f"-old {n}\n+new {n}\n", added=1, removed=1)
        for n in range(20)
    ]
    diffs.append(DiffView(path="gone.py", diff="@@ -1,1 +0,0 @@\n-x", removed=1, deleted=True))
    diffs.append(DiffView(path="to.py", diff="", moved_from="from.py"))
    asked = msgspec.structs.replace(request(), tool="apply_patch", summary="23 files: a", diffs=tuple(diffs))
    state.approvals.requests.append(asked)
    state.approvals.opened_at = 0.0
    seen: list[str] = []
    scroll = 0
    for _ in range(30):
        panel = approval_panel(state, 80, 20, UNICODE, LineEditor(), full=True, scroll=scroll)
        seen += [row.text for row in panel.lines]
        scroll = panel.scrolled + 5
    text = "\n".join(seen)
    assert "Apply patch 23 files: a +20 −21" in text
    for n in range(20):
        assert f"src/file{n}.py +1 −1" in text
        assert f"new {n}" in text
    assert "gone.py +0 −1 deleted" in text
    assert "to.py +0 −0 moved from from.py" in text


def test_b10_the_first_rows_of_a_patch_say_which_file_they_change() -> None:
    state = busy_state()
    diffs = [
        DiffView(path=f"new{n}.py", diff="@@ -0,0 +1,30 @@\n" + "+line\n" * 30, added=30, created=True)
        for n in range(3)
    ]
    asked = msgspec.structs.replace(request(), tool="apply_patch", summary="3 files", diffs=tuple(diffs))
    state.approvals.requests.append(asked)
    state.approvals.opened_at = 0.0
    panel = approval_panel(state, 80, 20, UNICODE, LineEditor(), full=False, scroll=0)
    assert any("new0.py +30 −0" in row.text for row in panel.lines)


def test_the_todo_panel_is_five_rows_until_it_is_opened() -> None:
    state = UiState()
    state.todo = tuple(
        TodoItem(text=f"step {n}", status="done" if n < 6 else "in_progress" if n == 6 else "pending")
        for n in range(12)
    )
    lines = side_panel(state, 80, UNICODE).lines
    assert len(lines) == 5
    assert "step 6" in lines[0].text
    assert "6 of 12 done" in lines[-1].text
    state.todo_open = True
    assert len(side_panel(state, 80, UNICODE).lines) == 12
    state.todo_open = False
    state.todo = (TodoItem(text="all", status="done"),)
    assert side_panel(state, 80, UNICODE).lines == []


def test_the_one_line_editor_shows_its_cursor() -> None:
    assert editor_spans(LineEditor("abc", 1), 20) == [("a", "text"), ("b", "reverse"), ("c", "text")]
    spans = editor_spans(LineEditor("x" * 100, 100), 20)
    assert sum(len(text) for text, _ in spans) <= 20


def test_the_cache_keeps_few_lines_and_knows_versions() -> None:
    rendered: list[int] = []
    cache = LineCache(lambda item, _width: rendered.append(item.id) or [plain("x")] * 40, max_lines=100)
    items = [UserItem(id=number, text="x") for number in range(10)]
    for item in items:
        assert len(cache.lines(item, 80, 1)) == 41
        cache.trim()
    assert len(cache) <= 100
    cache.lines(items[-1], 80, 1)
    assert rendered == list(range(10))
    items[-1].version += 1
    cache.lines(items[-1], 80, 1)
    assert rendered[-2:] == [9, 9]


def test_two_giants_on_one_screen_are_rendered_once_each() -> None:
    rendered: list[int] = []
    cache = LineCache(lambda item, _width: rendered.append(item.id) or [plain("x")] * 400, max_lines=100)
    items = [UserItem(id=number, text="x") for number in range(2)]
    for _frame in range(5):
        for item in items:
            cache.lines(item, 80, 0)
        cache.trim()
    assert rendered == [0, 1]


def test_the_hint_how_to_come_back() -> None:
    assert resume_hint("abc", spoken=True, temporary=False).endswith("tenuto --resume abc")
    assert resume_hint("abc", spoken=False, temporary=False) == ""
    assert resume_hint("abc", spoken=True, temporary=True) == ""
