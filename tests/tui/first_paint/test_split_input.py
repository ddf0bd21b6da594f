"""What is typed in the first moments may be parted at any byte: by a read, or by the hand-over to a front-end."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from textual import events
from textual.message import Message

from tenuto.tui.first_paint.editor import EarlyEditor
from tenuto.tui.full.driver import ESCAPE_SECONDS, PASTE_SILENCE, InputReader
from tenuto.tui.inline.keys import ESCAPE_SECONDS as INLINE_ESCAPE_SECONDS
from tenuto.tui.inline.keys import Pasted, Press
from tests.tui.first_paint.model import Prompt
from tests.tui.key_bytes import key_reader

FIRST, SECOND = "one\r\ntwo 漢\r\rthree", "a\r\nb\nc\r\rd\r"
INPUT = (
    f"xé\x1b[D漢\x7f\x1b[200~{FIRST}\x1b[201~\x7f\x1b[200~{SECOND}\x1b[201~"
    "\x1b[3~\x1bOD字\r"  # what was pasted is sent only here
    f"b\x1b[200~{SECOND}\x1b[201~\x1b[200~{FIRST}\x1b[201~\x1b[D!"
).encode()
TOKENS = [
    "type:x",
    "type:é",
    "left",
    "type:漢",
    "backspace",
    "paste:one\ntwo 漢\n\nthree",
    "backspace",
    "paste:a\nb\nc\n\nd\n",
    "delete",
    "left",
    "type:字",
    "enter",
    "type:b",
    "paste:a\nb\nc\n\nd\n",
    "paste:one\ntwo 漢\n\nthree",
    "left",
    "type:!",
]
MARKS = [place for place in range(len(INPUT)) if INPUT.startswith(b"\x1b[200~", place)]
NO_KEYS = [mark + size for mark in MARKS for size in range(3, 6)]
"""Cuts behind which there is a part of a mark that cannot be a key."""

Result = tuple[str, int, list[str]]


def wanted() -> Result:
    model = Prompt()
    for token in TOKENS:
        model.press(token)
    return model.text, model.cursor, model.sent


def begun(editor: EarlyEditor) -> Prompt:
    return Prompt(editor.text, editor.cursor, list(editor.sent))


def press(prompt: Prompt, name: str, character: str | None) -> None:
    printable = character is not None and character.isprintable() and character != ""
    prompt.press(f"type:{character}" if printable else name)


def do_messages(prompt: Prompt, messages: list[Message]) -> None:
    for message in messages:
        if isinstance(message, events.Paste):
            prompt.press(f"paste:{message.text}")
        elif isinstance(message, events.Key):
            press(prompt, message.key, message.character)


def do_presses(prompt: Prompt, keys: list[Press | Pasted]) -> None:
    for key in keys:
        if isinstance(key, Pasted):
            prompt.press(f"paste:{key.text}")
        elif isinstance(key, Press):
            press(prompt, key.name, key.character)


def hand_to_full(editor: EarlyEditor, behind: bytes, silence: Callable[[], None] = lambda: None) -> Result:
    """Return what the full screen makes of the early text, the rest, and what comes behind it after a silence."""
    reader, prompt = InputReader(), begun(editor)
    messages = reader.feed(editor.rest) if editor.rest else []
    silence()
    messages += reader.idle() if reader.timeout is not None else []
    messages += reader.feed(behind) if behind else []
    do_messages(prompt, messages)
    return prompt.text, prompt.cursor, prompt.sent


def hand_to_inline(editor: EarlyEditor, behind: bytes, *, silent: bool = False) -> Result:
    reader = key_reader()
    keys = reader.feed(editor.rest)
    if silent and reader.timeout == INLINE_ESCAPE_SECONDS:
        keys += reader.give_up()
    keys += reader.feed(behind)
    prompt = begun(editor)
    do_presses(prompt, keys)
    return prompt.text, prompt.cursor, prompt.sent


@pytest.mark.parametrize("hand_over", [hand_to_full, hand_to_inline])
@pytest.mark.parametrize("frozen_at", [None, 0, 20])
def test_the_hand_over_may_come_at_any_byte(
    hand_over: Callable[[EarlyEditor, bytes], Result], frozen_at: int | None
) -> None:
    for cut in range(len(INPUT) + 1):
        editor = EarlyEditor(200)
        if frozen_at is None:
            editor.feed(INPUT[:cut])
        else:
            editor.feed(INPUT[: min(cut, frozen_at)])
            editor.frozen = True
            editor.feed(INPUT[min(cut, frozen_at) : cut])
        assert hand_over(editor, INPUT[cut:]) == wanted(), cut


def test_a_read_may_end_at_any_byte_before_the_hand_over() -> None:
    for cut in range(len(INPUT) + 1):
        editor = EarlyEditor(200)
        editor.feed(INPUT[:cut])
        editor.feed(INPUT[cut:])
        assert (editor.text, editor.cursor, editor.sent) == wanted(), cut
        assert editor.rest == b""


def test_every_byte_may_come_alone() -> None:
    for handed_over in range(0, len(INPUT) + 1, 7):
        editor = EarlyEditor(200)
        for place in range(handed_over):
            editor.feed(INPUT[place : place + 1])
        reader, prompt = InputReader(), begun(editor)
        messages = reader.feed(editor.rest) if editor.rest else []
        for place in range(handed_over, len(INPUT)):
            messages += reader.feed(INPUT[place : place + 1])
        do_messages(prompt, messages)
        assert (prompt.text, prompt.cursor, prompt.sent) == wanted(), handed_over


def test_what_came_before_the_terminal_was_raw_may_end_in_any_byte() -> None:
    """The first read changes line feeds into Enter, for that is what they were; in a paste they stay line ends."""
    for cut in range(len(INPUT) + 1):
        editor = EarlyEditor(200)
        # The kernel changes returns into line feeds until the terminal is raw.
        editor.feed(INPUT[:cut].replace(b"\r", b"\n"), cooked=True)
        editor.feed(INPUT[cut:])
        text, _cursor, sent = wanted()
        assert [one.replace("\n", "") for one in editor.sent] == [one.replace("\n", "") for one in sent], cut
        assert editor.text.replace("\n", "") == text.replace("\n", ""), cut


@pytest.mark.parametrize("seconds", [ESCAPE_SECONDS / 2, ESCAPE_SECONDS * 5])
def test_silence_within_the_mark_of_a_paste_loses_no_line_end_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr("tenuto.tui.full.driver.time.monotonic", lambda: now[0])

    def silence() -> None:
        now[0] += seconds

    assert seconds < PASTE_SILENCE
    short = [mark + size for mark in MARKS for size in (1, 2)] if seconds < ESCAPE_SECONDS else []
    for cut in NO_KEYS + short:
        editor = EarlyEditor(200)
        editor.feed(INPUT[:cut])
        assert hand_to_full(editor, INPUT[cut:], silence) == wanted(), cut


@pytest.mark.parametrize("cut", NO_KEYS)
def test_silence_within_the_mark_of_a_paste_is_no_key_inline(cut: int) -> None:
    editor = EarlyEditor(200)
    editor.feed(INPUT[:cut])
    assert hand_to_inline(editor, INPUT[cut:], silent=True) == wanted()
