"""The prompt of the full screen: images, marks, completion, drafts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style
from textual import events
from textual.strip import Strip

from tenuto.command.outcome import Choice
from tenuto.protocol.operation import RunShellOperation
from tenuto.protocol.part import ImagePart
from tests.tui.full.fake_runtime import opened
from tests.tui.full.support import Screen, running_app
from tests.tui.images_of import png

PATIENCE = 120.0


async def until(screen: Screen, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, screen.text()
        await asyncio.sleep(0.01)
        await screen.settle()


async def paste(screen: Screen, text: str) -> None:
    screen.app.post_message(events.Paste(text))
    await screen.settle()


@pytest.mark.parametrize("emoji", ["⚠️", "👩‍👩‍👧", "🇩🇪", "👍🏽", "1️⃣", "नि"])
async def test_the_caret_covers_a_whole_character_and_nothing_moves_as_it_goes_by(emoji: str) -> None:
    async with running_app(size=(80, 24)) as screen:
        await screen.burst(f"ab{emoji}cd")
        for _ in range(6):
            row = screen.app.composer.render_line(0)
            assert row.text.rstrip() == f"ab{emoji}cd" and row.cell_length == screen.app.composer.size.width
            pieces = [text for text, _style, _control in row]
            assert all(emoji in piece or not set(piece) & set(emoji) for piece in pieces), pieces
            await screen.burst(["left"])


async def test_a_dropped_image_is_a_chip_and_goes_along(tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(png(820, 600))
    async with running_app(size=(80, 24)) as screen:
        await screen.burst("look ")
        await paste(screen, f"'{tmp_path}/my shot.png'")
        await until(screen, lambda: "[image 1 my shot.png 820x600" in screen.text())
        assert screen.app.composer.text == "look "
        await screen.burst(["enter"])
        await until(screen, lambda: screen.runtime.sent)
        images = [part for part in screen.runtime.sent[0] if isinstance(part, ImagePart)]
        assert [(image.width, image.height) for image in images] == [(820, 600)]
        assert "[image 1" not in "\n".join(screen.rows()[-6:]), "the chips went with the prompt"


async def test_a_text_that_names_a_file_that_is_not_there_is_text_alone(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    async with running_app(size=(80, 24)) as screen:
        named = f"{tmp_path}/a.png {tmp_path}/gone.png"
        await paste(screen, named)
        await until(screen, lambda: screen.app.composer.text == named)
        assert not screen.app.runner.state.draft.images


async def test_chips_are_taken_out_by_key_and_by_click(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png())
    async with running_app(size=(80, 24)) as screen:
        await paste(screen, f"{tmp_path}/a.png {tmp_path}/b.png")
        await until(screen, lambda: "[image 2 b.png" in screen.text())
        await screen.burst([*"x", "backspace"])
        assert "[image 2 b.png" in screen.text(), "the text goes first"
        row = next(place for place, text in enumerate(screen.rows()) if "[image 1 a.png" in text)
        await screen.pilot.click(offset=(6, row))
        await until(screen, lambda: "a.png" not in screen.text())
        assert "[image 1 b.png" in screen.text()
        await screen.burst(["backspace"])
        assert "b.png" not in screen.text()


async def test_a_paste_arrives_though_the_terminal_is_not_looked_at() -> None:
    async with running_app() as screen:
        screen.app.post_message(events.AppBlur())
        await screen.settle()
        await paste(screen, "dropped while elsewhere")
        assert screen.app.composer.text == "dropped while elsewhere"
        await screen.burst("!")
        assert screen.app.composer.text == "dropped while elsewhere!"


async def test_a_path_that_is_no_image_stays_a_text(tmp_path: Path) -> None:
    async with running_app() as screen:
        await paste(screen, "/nowhere/at/all.png")
        await until(screen, lambda: screen.app.composer.text == "/nowhere/at/all.png")


async def test_an_empty_paste_looks_for_an_image_on_the_clipboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "wl-paste"
    tool.write_text(f"#!/bin/sh\ncase \"$*\" in *list-types*) echo image/png;; *) cat '{tmp_path}/clip.png';; esac\n")
    tool.chmod(0o755)
    (tmp_path / "clip.png").write_bytes(png(20, 10))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-test")
    async with running_app() as screen:
        await paste(screen, "")
        await until(screen, lambda: "[image 1 20x10" in screen.text())
        await screen.burst(["ctrl+v"])
        await until(screen, lambda: "[image 2 20x10" in screen.text())


async def test_without_a_clipboard_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    async with running_app(size=(100, 24)) as screen:
        await screen.burst(["alt+v"])
        await until(screen, lambda: "install xclip" in screen.text())


async def test_a_mark_is_deleted_as_one_undone_and_unfolded() -> None:
    async with running_app() as screen:
        composer = screen.app.composer
        await screen.burst("see ")
        await paste(screen, "line\n" * 20)
        assert composer.text == "see [Pasted text #1 +21 lines]"
        await screen.burst(["backspace"])
        assert composer.text == "see "
        await screen.burst(["ctrl+underscore"])
        assert composer.text == "see [Pasted text #1 +21 lines]"
        await screen.burst(["left"])
        assert composer.cursor == 4
        await screen.burst(["right", "tab"])
        assert composer.text == "see " + "line\n" * 20
        assert composer.size.height <= screen.app.size.height // 3
        await screen.burst(["enter"])
        assert screen.runtime.prompts == ["see " + "line\n" * 20]


@pytest.mark.parametrize("rows", [24, 45, 60])
async def test_the_prompt_grows_to_a_third_of_the_screen(rows) -> None:
    async with running_app(size=(80, rows)) as screen:
        await screen.burst(["a", *["ctrl+j"] * 40])
        await until(screen, lambda: screen.app.composer.size.height == rows // 3)


async def test_unfolding_a_long_paste_is_undone_and_done_again() -> None:
    async with running_app() as screen:
        composer = screen.app.composer
        await screen.burst("see X")
        await screen.burst(["left"])
        await paste(screen, "line\n" * 40)
        await screen.burst(["tab"])
        assert composer.text == "see " + "line\n" * 40 + "X"
        await screen.burst(["ctrl+underscore"])
        assert composer.text == "see [Pasted text #1 +41 lines]X"
        await screen.burst(["ctrl+shift+z"])
        assert composer.text == "see " + "line\n" * 40 + "X"
        await screen.burst(["ctrl+underscore", "enter"])
        assert screen.runtime.prompts == ["see " + "line\n" * 40 + "X"]


async def test_r100_the_cursor_goes_by_what_people_see_as_a_character() -> None:
    async with running_app() as screen:
        composer = screen.app.composer
        await paste(screen, "e\u0301👨‍👩‍👧字")
        await screen.burst(["left", "left", "backspace"])
        assert composer.text == "👨‍👩‍👧字"
        await screen.burst(["delete"])
        assert composer.text == "字"


async def test_an_emoji_of_several_characters_can_be_typed() -> None:
    async with running_app() as screen:
        for character in "👨\u200d👩\u200d👧":
            key = "zero_width_joiner" if character == "\u200d" else character
            screen.app.composer.post_message(events.Key(key, character))
        await screen.settle()
        assert screen.app.composer.text == "👨\u200d👩\u200d👧"


async def test_older_cuts_come_back() -> None:
    async with running_app() as screen:
        await screen.burst([*"one two", "ctrl+w", "end", "ctrl+u", *"x ", "ctrl+y", "alt+y"])
        assert screen.app.composer.text == "x two"


async def test_a_command_shows_what_may_follow_it_and_completes_it() -> None:
    async with running_app(size=(80, 24)) as screen:
        screen.runtime.arguments = (Choice("ask", "ask", "first"), Choice("auto", "auto", "second"))
        await screen.burst("/mode ")
        assert "/mode [ask|edits|auto|plan]" in screen.text()
        await screen.burst(["right"])
        assert screen.app.composer.text == "/mode ", "a hint is not a text"
        await screen.burst("au")
        await until(screen, lambda: "second" in screen.text())
        await screen.burst(["enter"])
        await until(screen, lambda: screen.runtime.commands)
        assert screen.runtime.commands == ["/mode auto"]


async def test_enter_behind_a_command_takes_nothing_that_was_not_typed() -> None:
    async with running_app() as screen:
        screen.runtime.arguments = (Choice("ask", "ask"),)
        await screen.burst([*"/mode ", "enter"])
        await until(screen, lambda: screen.runtime.commands)
        assert screen.runtime.commands == ["/mode"]


async def test_what_comes_back_from_an_editor_has_the_marks_of_what_was_not_changed() -> None:
    async with running_app() as screen:
        await screen.burst("see ")
        await paste(screen, "line\n" * 20)
        assert screen.app.runner.fold_edited("look " + "line\n" * 20) == "look [Pasted text #1 +21 lines]"
        assert screen.app.runner.fold_edited("line\n" * 19) == "line\n" * 19


async def test_ctrl_c_copies_what_is_selected_once_and_then_clears() -> None:
    async with running_app() as screen:
        await screen.burst([*"some words", "shift+left", "shift+left", "ctrl+c"])
        assert (screen.app.clipboard, screen.app.composer.text) == ("ds", "some words")
        await screen.burst(["ctrl+c"])
        assert screen.app.composer.text == ""


async def test_words_are_readlines_a_second_ctrl_r_goes_on_and_typing_takes_back_half_a_quit() -> None:
    async with running_app() as screen:
        composer = screen.app.composer
        await screen.burst([*"cat src/a-b.py", "alt+backspace"])
        assert composer.text == "cat src/a-b."
        await screen.burst(["alt+b", "ctrl+left"])
        assert composer.cursor == 8
        await screen.burst(["alt+f", "ctrl+right"])
        assert composer.cursor == 11
        await screen.burst(["end", "ctrl+w"])
        assert composer.text == "cat "
        await screen.burst(["ctrl+c", *"one", "enter", *"two", "enter"])
        await screen.burst(["ctrl+r", "ctrl+r", "enter"])
        assert composer.text == "one"
        await screen.burst(["ctrl+c", "ctrl+c"])
        assert "again to quit" in screen.text()
        await screen.burst(["x"])
        assert "again to quit" not in screen.text()
        await screen.burst(["ctrl+c", "ctrl+c"])
        assert "again to quit" in screen.text()


async def test_tab_in_a_shell_command_completes_as_a_shell_does(tmp_path: Path) -> None:
    for name in ("src one/a.py", "src two/b.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    async with running_app(opened(cwd=str(tmp_path))) as screen:
        composer = screen.app.composer
        await screen.burst([*"!cat s", "tab"])
        await until(screen, lambda: composer.text == "!cat src\\ ")
        await screen.burst(["tab"])
        await until(screen, lambda: "src two/" in screen.text())
        await screen.burst(["down", "tab", "tab"])
        await until(screen, lambda: composer.text == "!cat src\\ two/b.py ")
        await screen.burst(["enter"])
        operation = screen.runtime.operations[-1]
        assert isinstance(operation, RunShellOperation) and operation.command == "cat src\\ two/b.py"


async def test_r099_keys_of_a_burst_keep_their_order_though_the_terminal_is_not_looked_at() -> None:
    async with running_app() as screen:
        screen.app.post_message(events.AppBlur())
        await screen.settle()
        assert not screen.app.app_focus
        await screen.burst("abc def")
        assert screen.app.composer.text == "abc def"
        assert screen.app.app_focus


@settings(max_examples=60)
@given(
    st.text(st.sampled_from("ab c漢é\u0301👍🏽\U0001f1e9\U0001f1eaनि\x1b\t\n"), max_size=60),
    st.integers(12, 30),
    st.integers(0, 60),
    st.booleans(),
)
def test_a_row_is_drawn_as_textual_would_draw_it(text: str, columns: int, cursor: int, has_caret: bool) -> None:
    async def compare() -> None:
        async with running_app(size=(columns, 24)) as screen:
            composer = screen.app.composer
            composer.set_draft(text, cursor)
            composer.invite("", has_caret)
            await screen.settle()
            rows = range(composer.size.height)
            ours = [cells(composer.render_line(y)) for y in rows]
            with patch.object(composer, "_typed_row", lambda _y: None):
                assert [cells(composer.render_line(y)) for y in rows] == ours

    asyncio.run(compare())


def cells(strip: Strip) -> list[tuple[str, Style | None]]:
    return [(character, style) for text, style, _control in strip for character in text]
