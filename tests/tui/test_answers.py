"""Answers of the terminal among the keys: whole or in pieces, early, late or never, no key is lost and none made."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.first_paint.colours import QUERY, is_light, may_ask, read_colour
from tenuto.tui.first_paint.editor import EarlyEditor
from tenuto.tui.full.driver import BackgroundHeard, InputReader
from tenuto.tui.inline.keys import KeyParser, Press
from tenuto.tui.terminal.answers import PATIENCE, AnswerFilter

DARK, LIGHT = "\x1b]11;rgb:1616/1818/1d1d\x07", "\x1b]11;rgb:fafa/f8f8/f0f0\x1b\\"
FENCE = "\x1b[?62;22;52c"
CHANGES = {"\x1b[?997;1n": False, "\x1b[?997;2n": True}
MEANING = {DARK: [False], LIGHT: [True], FENCE: [], "\x1b]11;\x07": []} | {
    one: [light] for one, light in CHANGES.items()
}
KEYS = [
    "a",
    "é",
    "漢",
    "😀",
    "]",
    "[",
    "1",
    "c",
    ";",
    "\r",
    "\x7f",
    "\x1b[A",
    "\x1b[1;5D",
    "\x1bOQ",
    "\x1bb",
    "\x1b[97;5u",
]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def filtered(pieces: list[str], clock: Clock | None = None, wait: float = 0.0) -> tuple[str, list[bool]]:
    heard: list[bool] = []
    clock = clock or Clock()
    answers = AnswerFilter(heard.append, clock)
    kept = ""
    for piece in pieces:
        clock.now += wait
        kept += answers.feed(piece)
    clock.now += 2 * PATIENCE
    return kept + answers.give_up(), heard


def split(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


def split_with_escapes(text: str, cuts: list[int]) -> list[str]:
    """In front of the filter there is one who holds an ESC until it is known to be a key."""
    pieces, held = [], ""
    for piece in split(text, cuts):
        held += piece
        if not held.endswith(("\x1b", "\x1b[")):
            pieces.append(held)
            held = ""
    return [*pieces, held]


INPUT = st.lists(st.sampled_from(KEYS) | st.sampled_from(sorted(MEANING)), max_size=12)
CUTS = st.lists(st.integers(0, 400), max_size=12)


@given(INPUT, CUTS)
def test_the_keys_are_those_that_were_pressed_and_the_answers_those_that_were_given(
    tokens: list[str], cuts: list[int]
) -> None:
    kept, heard = filtered(split_with_escapes("".join(tokens), cuts))
    assert kept == "".join(token for token in tokens if token not in MEANING)
    assert heard == [light for token in tokens for light in MEANING.get(token, [])]


@given(st.text(alphabet="\x1b]1;[?c#rgb:/0a997n\x07\\ é", max_size=60), CUTS)
def test_whatever_comes_in_whatever_pieces_the_same_is_kept(text: str, cuts: list[int]) -> None:
    whole, heard = filtered([text])
    pieces, heard_in_pieces = filtered(split_with_escapes(text, cuts))
    assert heard == heard_in_pieces
    assert whole == pieces


@pytest.mark.parametrize("answer", [DARK, LIGHT, FENCE, *CHANGES])
def test_an_answer_byte_by_byte_with_keys_before_and_behind(answer: str) -> None:
    kept, heard = filtered(split_with_escapes(f"ab{answer}cd", list(range(60))))
    assert kept == "abcd"
    assert heard == MEANING[answer]


@pytest.mark.parametrize("answer", [DARK, FENCE])
def test_an_escape_that_was_taken_for_a_key_does_not_make_the_rest_of_the_answer_text(answer: str) -> None:
    for cut in range(1, 6):
        kept, heard = filtered(["a\x1b", answer[1 : 1 + cut], answer[1 + cut :] + "b"])
        assert kept == "a\x1bb"
        assert heard == MEANING[answer]
    kept, _ = filtered(["a\x1b", "]x"])
    assert kept == "a\x1b]x"


def test_the_rest_of_an_answer_that_never_comes_takes_no_key_with_it() -> None:
    assert filtered(["a\x1b]11;rgb:1616/18", "hello"]) == ("ahello", [])
    assert filtered(["a\x1b]11;rgb:1616/18", "bad"], wait=2 * PATIENCE) == ("abad", [])


def test_alt_and_a_bracket_is_a_key_when_no_answer_is_due() -> None:
    clock = Clock()
    answers = AnswerFilter(lambda _light: pytest.fail("nothing was said"), clock)
    assert answers.feed("\x1b]") == ""
    assert answers.holding
    assert answers.give_up() == ""
    clock.now += 2 * PATIENCE
    assert answers.give_up() == "\x1b]"
    closed = AnswerFilter(lambda _light: None, Clock())
    assert closed.feed(FENCE) == ""
    assert closed.feed("\x1b]") + closed.give_up() == "\x1b]"
    assert closed.feed("\x1b]") + closed.feed("x") == "\x1b]x"


@given(INPUT, CUTS)
def test_the_full_screens_reader_makes_the_same_keys_with_answers_and_without(
    tokens: list[str], cuts: list[int]
) -> None:
    tokens = [token for token in tokens if token not in ("]", "[")]
    plain, mixed = InputReader(), InputReader()
    wanted = [str(key) for token in tokens if token not in MEANING for key in plain.feed(token.encode())]
    messages = [one for piece in split("".join(tokens), cuts) for one in mixed.feed(piece.encode())]
    assert [str(one) for one in messages if not isinstance(one, BackgroundHeard)] == wanted
    heard = [one.light for one in messages if isinstance(one, BackgroundHeard)]
    assert heard == [light for token in tokens for light in MEANING.get(token, [])]


@given(INPUT, CUTS)
def test_the_inline_parser_makes_the_same_keys_with_answers_and_without(tokens: list[str], cuts: list[int]) -> None:
    def names(pieces: list[str]) -> tuple[list[str], list[bool]]:
        pressed: list[str] = []
        heard: list[bool] = []

        def press(key: object) -> None:
            assert isinstance(key, Press)
            pressed.append(key.name)

        parser = KeyParser(press, lambda _: None, lambda _: None, heard.append)
        for piece in pieces:
            parser.feed(piece)
        parser.give_up()
        return pressed, heard

    pressed, heard = names(split("".join(tokens), cuts))
    assert pressed == names([token for token in tokens if token not in MEANING])[0]
    assert heard == [light for token in tokens for light in MEANING.get(token, [])]


def test_a_lone_answer_does_not_end_the_input() -> None:
    reader = InputReader()
    for answer in (FENCE, DARK, "\x1b]52;c;\x07"):
        reader.feed(answer.encode())
    assert [str(getattr(one, "key", "")) for one in reader.feed(b"a")] == ["a"]


@given(INPUT, CUTS)
def test_the_early_editor_types_no_answer(tokens: list[str], cuts: list[int]) -> None:
    tokens = [token for token in tokens if token in MEANING or token in "aé漢😀1c;"]
    editor = EarlyEditor(200)
    data = "".join(tokens).encode()
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    for begin, end in itertools.pairwise(places):
        editor.feed(data[begin:end])
    assert not editor.frozen
    assert editor.text == "".join(token for token in tokens if token not in MEANING)
    said = [token for token in tokens if token in (DARK, LIGHT)]
    assert bool(editor.background) == bool(said)
    if said:
        assert is_light(editor.background) == (said[-1] == LIGHT)
    assert editor.answered == (FENCE in tokens)


def test_alt_and_a_bracket_freezes_the_early_editor() -> None:
    editor = EarlyEditor()
    editor.feed(b"a\x1b]x")
    assert (editor.text, editor.frozen, editor.rest) == ("a", True, b"\x1b]x")


@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("rgb:1616/1818/1d1d", "#16181d"),
        ("rgb:ff/80/00", "#ff8000"),
        ("rgb:f/8/0", "#ff8800"),
        ("rgb:fff/800/000", "#ff8000"),
        ("rgba:ffff/ffff/ffff/8080", "#ffffff"),
        ("#fdf6e3", "#fdf6e3"),
        ("#fdfdf6f6e3e3", "#fdf6e3"),
        ("", ""),
        ("?", ""),
        ("rgb:ff/ff", ""),
        ("rgb:xx/ff/ff", ""),
        ("rgb:fffff/ff/ff", ""),
        ("cmyk:1/2/3", ""),
    ],
)
def test_colours_are_read_as_terminals_write_them(value: str, colour: str) -> None:
    assert read_colour(value) == colour


@pytest.mark.parametrize(
    ("colour", "light"),
    [
        ("#16181d", False),
        ("#000000", False),
        ("#002b36", False),
        ("#282a36", False),
        ("#fdf6e3", True),
        ("#ffffff", True),
    ],
)
def test_a_background_is_light_when_dark_text_reads_better_on_it(colour: str, light: bool) -> None:
    assert is_light(colour) == light


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color", "TMUX": "x"}, True),
        ({"TERM": "screen-256color", "TMUX": "x"}, True),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "xterm-256color", "STY": "1.pts"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
        ({"TERM": "vt100"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_the_question_is_not_asked_where_it_does_harm(environ: dict[str, str], expected: bool) -> None:
    assert may_ask(environ) == expected
    assert QUERY.endswith("\x1b[c")
