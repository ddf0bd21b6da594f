"""The prompt of the inline screen: images, marks, completion, bursts, the same as on the full one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.outcome import Choice
from tenuto.protocol.part import ImagePart
from tests.tui.full.fake_runtime import opened
from tests.tui.images_of import png
from tests.tui.inline.support import Session, running_app

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"


def paste(session: Session, text: str) -> None:
    session.type(f"{PASTE_BEGIN}{text}{PASTE_END}")


async def test_a_dropped_image_is_a_chip_and_goes_along(tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(png(820, 600))
    async with running_app() as session:
        session.type("look ")
        paste(session, f"file://{tmp_path}/my%20shot.png")
        await session.shows("[image 1 my shot.png 820x600")
        session.type("\r")
        await session.until(lambda: session.runtime.sent)
        images = [part for part in session.runtime.sent[0] if isinstance(part, ImagePart)]
        assert [(image.width, image.height) for image in images] == [(820, 600)]
        await session.gone("at the start removes it")


async def test_a_chip_is_taken_out_by_backspace_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    async with running_app() as session:
        paste(session, f"{tmp_path}/a.png")
        await session.shows("[image 1 a.png")
        session.type("\x7f")
        await session.gone("[image 1 a.png")


async def test_an_empty_paste_and_ctrl_v_look_on_the_clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "xclip"
    tool.write_text(f"#!/bin/sh\ncase \"$*\" in *TARGETS*) echo image/png;; *) cat '{tmp_path}/clip.png';; esac\n")
    tool.chmod(0o755)
    (tmp_path / "clip.png").write_bytes(png(20, 10))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    async with running_app() as session:
        paste(session, "")
        await session.shows("[image 1 20x10")
        session.type("\x16")
        await session.shows("[image 2 20x10")


async def test_a_mark_is_deleted_as_one_undone_and_unfolded() -> None:
    async with running_app() as session:
        editor = session.app.editor
        session.type("see ")
        paste(session, "line\r" * 20)
        await session.until(lambda: editor.text == "see [Pasted text #1 +21 lines]")
        session.type("\x7f")
        await session.until(lambda: editor.text == "see ")
        session.type("\x1f")
        await session.until(lambda: editor.text.endswith("]"))
        session.type("\x1b[D")
        await session.until(lambda: editor.cursor == 4)
        session.type("\x1b[C\t")
        await session.until(lambda: editor.text == "see " + "line\n" * 20)
        session.type("\r")
        await session.until(lambda: session.runtime.prompts)
        assert session.runtime.prompts == ["see " + "line\n" * 20]


async def test_a_burst_without_marks_is_a_paste_and_does_not_send() -> None:
    async with running_app() as session:
        text = "\r".join(f"line {number} of a text that a host wrote as it was" for number in range(10))
        session.type(f"{text}\r")
        await session.until(lambda: session.app.editor.text.count("\n") == 10)
        assert session.runtime.prompts == []


async def test_r100_the_cursor_goes_by_what_people_see_as_a_character() -> None:
    async with running_app() as session:
        editor = session.app.editor
        paste(session, "e\u0301👨‍👩‍👧字")
        await session.until(lambda: editor.text)
        session.type("\x1b[D\x1b[D\x7f")
        await session.until(lambda: editor.text == "👨‍👩‍👧字")
        session.type("\x1b[3~")
        await session.until(lambda: editor.text == "字")


async def test_a_command_shows_what_may_follow_it_and_completes_it() -> None:
    async with running_app() as session:
        session.runtime.arguments = (Choice("ask", "ask", "first"), Choice("auto", "auto", "second"))
        session.type("/mode ")
        await session.shows("/mode [ask|edits|auto|plan]")
        session.type("au")
        await session.shows("second")
        session.type("\r")
        await session.until(lambda: session.runtime.commands)
        assert session.runtime.commands == ["/mode auto"]


async def test_the_prompt_grows_to_a_third_of_the_screen() -> None:
    async with running_app(size=(80, 60)) as session:
        for _ in range(40):
            session.type("row\x1b\r")
        await session.until(lambda: session.app.editor.text.count("\n") == 40)
        await session.settle()
        assert session.app.bottom.rows.prompt == 20


async def test_words_are_readlines_a_second_ctrl_r_goes_on_and_typing_takes_back_half_a_quit() -> None:
    async with running_app() as session:
        editor = session.app.editor
        session.type("cat src/a-b.py\x1b\x7f")
        await session.until(lambda: editor.text == "cat src/a-b.")
        session.type("\x1bb\x1b[1;5D")
        await session.until(lambda: editor.cursor == 8)
        session.type("\x05\x17")
        await session.until(lambda: editor.text == "cat ")
        session.type("\x03one\r")
        await session.until(lambda: session.runtime.sent)
        session.type("two\r")
        await session.until(lambda: len(session.runtime.sent) == 2)
        session.type("\x12\x12\r")
        await session.until(lambda: editor.text == "one")
        session.type("\x03\x03")
        await session.shows("Press Ctrl+C again to quit")
        session.type("x")
        await session.gone("Press Ctrl+C again to quit")
        session.type("\x03\x03")
        await session.shows("Press Ctrl+C again to quit")


async def test_tab_in_a_shell_command_completes_as_a_shell_does(tmp_path: Path) -> None:
    for name in ("src one/a.py", "src two/b.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    async with running_app(opened(cwd=str(tmp_path))) as session:
        editor = session.app.editor
        session.type("!cat s\t")
        await session.until(lambda: editor.text == "!cat src\\ ")
        session.type("\t")
        await session.shows("src one/", "src two/")
        session.type("\x1b[B\t")
        await session.until(lambda: editor.text == "!cat src\\ two/")
        session.type("\t")
        await session.until(lambda: editor.text == "!cat src\\ two/b.py ")


async def test_the_rest_of_a_key_that_came_while_nobody_could_read_belongs_to_it() -> None:
    """On a busy machine the time after which ESC is a key may be over before the program has its turn."""
    async with running_app() as session:
        session.type("ab\x1bO")
        await session.until(lambda: session.app.application._waiting)
        session.type("D")  # the left key
        session.app.application._give_up()
        session.type("x")
        await session.shows("❯ axb")
