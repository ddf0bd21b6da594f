"""What a key makes the full screen paint: the editor's row, at once, and nothing else with it."""

from typing import Any

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tenuto.protocol.event import AssistantTextDeltaEvent, TaskStartedEvent
from tenuto.tui.full.resizing import ResizingScreen
from tests.tui.full.fake_runtime import SESSION, opened, user
from tests.tui.full.support import running_app


def _watch(widget: Widget, monkeypatch: Any) -> list[Region]:
    rendered: list[Region] = []
    render = widget.render_lines

    def watched(crop: Region) -> list[Strip]:
        rendered.append(crop)
        return render(crop)

    monkeypatch.setattr(widget, "render_lines", watched)
    return rendered


async def test_a_key_renders_the_editors_row_and_no_other_widget(monkeypatch) -> None:
    async with running_app(opened(), user("hello")) as screen:
        await screen.burst("a")
        transcript = _watch(screen.app.transcript, monkeypatch)
        composer = _watch(screen.app.composer, monkeypatch)
        await screen.burst("b")
        assert [crop.height for crop in composer] == [1]
        assert not transcript


async def test_what_else_is_to_be_painted_stays_so_when_a_key_is_painted_first(monkeypatch) -> None:
    async with running_app(opened(), TaskStartedEvent(session_id=SESSION, submission_id="one", kind="agent")) as screen:
        app = screen.app
        assert isinstance(app.screen, ResizingScreen)
        screen.clock.now += 1
        screen.runtime.emit(AssistantTextDeltaEvent(session_id=SESSION, text="streamed"))
        app.transcript._check_refresh()
        app.screen._dirty_widgets.add(app.transcript)
        transcript = _watch(app.transcript, monkeypatch)
        app.screen.paint_now(app.composer)
        assert not transcript
        await screen.settle()
        assert transcript
        assert "streamed" in screen.text()


async def test_of_keys_that_wait_only_the_last_paints(monkeypatch) -> None:
    async with running_app() as screen:
        composer = _watch(screen.app.composer, monkeypatch)
        await screen.burst("abcdefgh")
        assert len(composer) < 4
        assert "abcdefgh" in screen.text()


def _caret(composer: Widget) -> bool:
    (row,) = composer.render_lines(Region(0, 0, composer.size.width, 1))
    return any(style is not None and style.reverse for _, style, _ in row)


async def test_looking_away_takes_the_caret_and_matches_no_style_again(monkeypatch) -> None:
    async with running_app() as screen:
        app = screen.app
        await screen.burst("hello")
        assert _caret(app.composer)
        matched: list[object] = []
        monkeypatch.setattr(app, "update_styles", matched.append)
        app.post_message(events.AppBlur())
        await screen.settle()
        assert not _caret(app.composer)
        app.post_message(events.AppFocus())
        await screen.settle()
        assert _caret(app.composer)
        assert app.composer not in matched
