"""What was typed before there was a prompt."""

from __future__ import annotations

import pytest

from tenuto.tui.first_paint.reader import Handover
from tests.tui.inline.support import running_app

INPUT = "漢x\x1b[D😀\x1b[200~é b\x1b[201~".encode()


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 6, 8, 9, 10, 14, 19, 20, 24])
async def test_the_hand_over_may_part_a_character_or_a_sequence(cut: int) -> None:
    typed = Handover("ab", 1, INPUT[:cut]), INPUT[cut:]
    async with running_app(typed=typed) as session:
        await session.until(lambda: session.app.editor.text == "a漢😀é bxb", "the text")


async def test_bytes_that_are_no_utf_8_are_replacement_characters() -> None:
    async with running_app(typed=(Handover(rest=b"a\xff"), b"b\xe9c")) as session:
        await session.until(lambda: session.app.editor.text == "a�b�c", "the text")
