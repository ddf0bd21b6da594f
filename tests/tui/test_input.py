"""The grammar of what a terminal sends: whole or in any pieces, early, late or never, no key is lost and none made."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.events import Key

from tenuto.tui.first_paint.editor import EarlyEditor
from tenuto.tui.full.driver import BackgroundHeard, InputReader
from tenuto.tui.inline.keys import KeyReader, Press
from tenuto.tui.terminal.colours import QUERY, is_light, may_ask, read_colour
from tenuto.tui.terminal.input import ANSWER_SECONDS, BURST_GAP, PASTE_BEGIN, PASTE_END, Paste, TerminalInput, size_of

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


class Read:
    """A terminal's input, and what was heard in it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.heard: list[bool] = []
        self.input = TerminalInput(self.heard.append, self.clock)

    def feed(self, *pieces: str) -> list[str]:
        """Return what the pieces are: characters, sequences, pastes."""
        parts = [part for piece in pieces for part in self.input.feed(piece)]
        return [one for part in parts for one in ([part] if isinstance(part, Paste) or part[0] == "\x1b" else part)]

    def end(self) -> list[str]:
        """Nothing comes for long."""
        self.clock.now += 2 * ANSWER_SECONDS
        return self.input.give_up()


def split(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


def is_paste(parts: list[str]) -> list[bool]:
    return [isinstance(part, Paste) for part in parts]


CUTS = st.lists(st.integers(0, 400), max_size=12)
INPUT = st.lists(st.sampled_from(KEYS) | st.sampled_from(sorted(MEANING)), max_size=12)
PASTES = ["", "one\rtwo", "\x1b[31mred\x1b[0m\x1b\x1b[20"]
OTHERS = ["\x1b[I", "\x1b[<35;4;5M", "\x1b[<0;-1;3m", "\x1b[M !!", "\x1b\x1b[A", "\x1b[?2026;2$y", "\x1bOM", "\x1b[3$"]
SILENT = ["\x1b]10;rgb:0/0/0\x07", "\x1b[<35;NaN;NaNM", "\x1bP>|kitty\x1b\\"]


WITH_ALT = frozenset(("\x1b[A", "\x1b[1;5D", "\x1bOQ", *(key for key in KEYS if len(key) == 1)))
"""Keys that are one key with an ESC before them: Alt and that key. What else follows an ESC stands by itself."""
EVENT = st.sampled_from([*KEYS, *MEANING, *OTHERS, *SILENT]) | st.sampled_from(PASTES).map(
    lambda text: f"{PASTE_BEGIN}{text}{PASTE_END}"
)


def wanted_of(escapes: int, token: str) -> list[str]:
    """Return the parts that an event is, with so many ESC before it."""
    if token in MEANING or token in SILENT:
        return ["\x1b"] * escapes
    if token.startswith(PASTE_BEGIN):
        text = token[len(PASTE_BEGIN) : -len(PASTE_END)]
        return [*["\x1b"] * escapes, Paste(text.replace("\r", "\n"))]
    return (
        [*["\x1b"] * (escapes - 1), f"\x1b{token}"] if escapes and token in WITH_ALT else ["\x1b"] * escapes + [token]
    )


@given(
    st.lists(
        st.tuples(st.just(0), EVENT) | st.tuples(st.integers(1, 3), EVENT.filter(lambda token: token not in "[]")),
        max_size=12,
    ),
    st.integers(0, 3),
    CUTS,
)
def test_r099_any_split_into_reads_gives_what_was_sent(
    events: list[tuple[int, str]], last_escapes: int, cuts: list[int]
) -> None:
    read = Read()
    sent = "".join("\x1b" * escapes + token for escapes, token in events) + "\x1b" * last_escapes
    parts = read.feed(*split(sent, cuts))
    while read.input.holding:
        parts += read.end()
    wanted = [part for escapes, token in events for part in wanted_of(escapes, token)] + ["\x1b"] * last_escapes
    assert (parts, is_paste(parts)) == (wanted, is_paste(wanted))
    assert read.heard == [light for _, token in events for light in MEANING.get(token, [])]


@given(st.text(alphabet="\x1b]1;[?c#rgb:/0a997n\x07\\ éO<M$P~2", max_size=60), CUTS)
def test_whatever_comes_in_whatever_pieces_it_is_the_same(text: str, cuts: list[int]) -> None:
    whole, pieces = Read(), Read()
    assert whole.feed(text) == pieces.feed(*split(text, cuts))
    assert whole.end() == pieces.end()
    assert whole.heard == pieces.heard


def test_every_sequence_that_textual_knows_is_one() -> None:
    sequences = [sequence for sequence in ANSI_SEQUENCES_KEYS if sequence.startswith("\x1b") and len(sequence) > 2]
    assert len(sequences) > 100
    for sequence in sequences:
        assert [size_of(f"{sequence}x"[:size]) for size in range(1, len(sequence))] == [0] * (len(sequence) - 1)
        assert size_of(f"{sequence}x") == len(sequence), sequence


@pytest.mark.parametrize("answer", [DARK, FENCE])
def test_an_escape_that_was_taken_for_a_key_does_not_make_the_rest_of_the_answer_text(answer: str) -> None:
    for cut in range(1, 6):
        read = Read()
        assert read.feed("a\x1b") + read.input.give_up() == ["a", "\x1b"]
        assert read.feed(answer[1 : 1 + cut]) + read.input.give_up() + read.feed(answer[1 + cut :] + "b") == ["b"]
        assert read.heard == MEANING[answer]
    for typed in ("]x", "[A", "[20"):
        read = Read()
        assert read.feed("\x1b") + read.input.give_up() + read.feed(*typed) + read.end() == ["\x1b", *typed]


def test_the_rest_of_an_answer_that_never_comes_takes_no_key_with_it() -> None:
    assert Read().feed("a\x1b]11;rgb:1616/18", "hello") == [*"ahello"]
    read = Read()
    assert read.feed("a\x1b]11;rgb:1616/18") + read.end() == ["a"]
    assert read.feed("bad") == [*"bad"]


def test_alt_and_a_bracket_is_a_key_when_no_answer_is_due() -> None:
    read = Read()
    assert read.feed("\x1b]") + read.input.give_up() == []
    assert read.input.holding
    assert read.end() == ["\x1b]"]
    for typed in ("x", "5", "11"):
        closed = Read()
        assert closed.feed(FENCE, f"\x1b]{typed}") + closed.input.give_up() == ["\x1b]", typed]


def test_line_ends_of_a_paste_become_line_feeds() -> None:
    assert Read().feed(f"{PASTE_BEGIN}a\rb\r\nc\nd{PASTE_END}") == ["a\nb\nc\nd"]


def test_a_lost_end_mark_does_not_swallow_keys() -> None:
    read = Read()
    assert read.feed(f"{PASTE_BEGIN}text") == []
    assert read.input.inside
    parts = read.input.give_up()
    assert (parts, is_paste(parts)) == (["text"], [True])
    assert read.feed("k") == ["k"]


def test_a_lone_escape_is_held_back_only_until_asked_for() -> None:
    read = Read()
    assert read.feed("a\x1b") == ["a"]
    assert read.input.holding and not read.input.has_sequence
    assert read.input.give_up() == ["\x1b"]
    assert not read.input.holding


def test_a_part_of_a_mark_that_is_no_key_is_waited_for_like_a_paste() -> None:
    for size in range(3, len(PASTE_BEGIN)):
        read = Read()
        assert read.feed(PASTE_BEGIN[:size]) == []
        assert (read.input.holding, read.input.inside) == (False, True)
        assert read.feed(f"{PASTE_BEGIN[size:]}a\rb{PASTE_END}") == ["a\nb"]


def test_a_part_of_a_mark_is_waited_for_behind_an_escape_too() -> None:
    for size in range(3, len(PASTE_BEGIN)):
        read = Read()
        assert read.feed(f"\x1b{PASTE_BEGIN[:size]}") + read.input.give_up() == ["\x1b"]
        assert (read.input.holding, read.input.inside) == (False, True)
        assert read.feed(f"{PASTE_BEGIN[size:]}a\rb{PASTE_END}") == ["a\nb"]


@pytest.mark.parametrize("beginning", ["\x1b", "\x1b["])
def test_a_mark_whose_beginning_was_given_away_as_a_key_begins_a_paste_all_the_same(beginning: str) -> None:
    read = Read()
    assert read.feed(beginning) + read.end() == [beginning]
    assert read.feed(f"{PASTE_BEGIN.removeprefix(beginning)}a\rb{PASTE_END}") == ["a\nb"]


LINE = "a line of text that nobody types in the time of one read, " * 3


@pytest.mark.parametrize(
    ("reads", "parts", "pastes"),
    [
        ([(1.0, f"{LINE}\rsecond\r")], [f"{LINE}\nsecond\n"], [True]),
        # what comes right behind goes on with it
        ([(1.0, f"{LINE}\r\n"), (1.01, "end\r"), (2.0, "\r")], [f"{LINE}\n", "end\n", "\r"], [True, True, False]),
        # one line and a return are text and Enter, for programs that type
        ([(1.0, f"{LINE}\r")], [LINE, "\r"], [True, False]),
        ([(1.0, LINE), (1.0 + BURST_GAP / 2, "\r")], [LINE, "\r"], [True, False]),
    ],
)
def test_a_burst_without_marks_is_a_paste_whose_line_ends_do_not_send(
    reads: list[tuple[float, str]], parts: list[str], pastes: list[bool]
) -> None:
    read, got = Read(), list[str]()
    for read.clock.now, text in reads:
        got += read.input.feed(text)
    assert (got, is_paste(got)) == (parts, pastes)


def test_keys_are_no_burst() -> None:
    for keys in ("x" * 64, "\x7f" * 100, "\x1b[A" * 100, LINE + "\x01", "y\r", f"{LINE}\x1b[A"):
        parts = Read().input.feed(keys)
        assert "".join(parts) == keys
        assert not any(is_paste(parts))


# --- the readers ---


def keys_of(reader: InputReader, *pieces: str) -> list[str]:
    """Return the names of the keys, and the other messages, with what only waited for more."""
    messages = [one for piece in pieces for one in reader.feed(piece.encode())]
    while reader.timeout is not None:
        messages += reader.idle(time.monotonic() + 60)
    return [one.key if isinstance(one, Key) else str(one) for one in messages]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (f"\x1b{PASTE_BEGIN}a\rb{PASTE_END}", ["escape", "Paste(text='a\\nb')"]),
        (f"\x1b\x1b{PASTE_BEGIN}a\rb{PASTE_END}x", ["escape", "escape", "Paste(text='a\\nb')", "x"]),
        ("\x1b\x1b[I", ["escape", "AppFocus()"]),
        (f"\x1b{DARK}x", ["escape", "x", "BackgroundHeard()"]),
        ("\x1b\x1b[?997;1nx", ["escape", "x", "BackgroundHeard()"]),
        ("\x1b\x1b[A", ["alt+up"]),
        ("\x1b\x1b[Z", ["escape", "shift+tab"]),
        ("\x1b[", ["left_square_bracket"]),
        ("\x1bO", ["alt+shift+o"]),
        ("\x1bP", ["alt+shift+p"]),
        ("\x1b\x1b[", ["escape", "left_square_bracket"]),
        ("\x1bX", ["alt+shift+x"]),
        ("\x1b\\x", ["backslash", "x"]),
        ("\x1b\t", ["shift+tab"]),
        ("\x1b\x03x", ["ctrl+c", "x"]),
        ("\x1béx", ["alt+é", "x"]),
        ("\x1b[999xa", ["a"]),
    ],
)
def test_the_full_screens_reader_knows_what_an_escape_begins(sent: str, keys: list[str]) -> None:
    def read(*pieces: str) -> list[str]:
        got = keys_of(InputReader(), *pieces)
        return [key for key in got if "Heard" not in key] + [key for key in got if "Heard" in key]

    assert read(sent) == keys
    assert read(*sent) == keys


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
        heard: list[bool] = []
        reader = KeyReader(lambda _: None, heard.append)
        pressed = [key for piece in pieces for key in reader.feed(piece.encode())] + reader.give_up()
        return [key.name for key in pressed if isinstance(key, Press)], heard

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
