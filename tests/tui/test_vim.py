"""vi's keys: the same as vim does, where there is one; and what holds for whatever is typed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.keys.motions import resting
from tenuto.tui.keys.vim import Vim

SCRIPT = """
set nocompatible nojoinspaces noautoindent nosmartindent backspace=indent,eol,start whichwrap= nostartofline&
set startofline cpoptions&vim encoding=utf-8 formatoptions= textwidth=0 undolevels=1000 matchpairs=(:),{:},[:],<:>
let cases = json_decode(join(readfile('IN'), ''))
let made = []
for case in cases
  enew!
  call setline(1, split(case.text, "\\n", 1))
  let [&l:undolevels, old] = [-1, &l:undolevels]
  exe "normal! a \\<BS>\\<Esc>"
  let &l:undolevels = 1000
  call cursor(case.line, case.column)
  call setcharsearch({'char': 'Z', 'forward': 1, 'until': 0})
  call setreg('"', '')
  for keys in case.keys
    let &l:undolevels = &l:undolevels
    exe 'normal! ' . keys
  endfor
  call add(made, {'text': join(getline(1, '$'), "\\n"), 'line': line('.'), 'column': charcol('.')})
endfor
call writefile([json_encode(made)], 'OUT')
qall!
"""
PIECES = (
    "foo",
    "bar_9",
    " ",
    "  ",
    "\n",
    "\n\n",
    ".",
    ", ",
    "((ab) c)",
    "f(x, y)",
    '"a b"',
    "'",
    "[d]",
    "{ }",
    "-",
    "é",
    "ab",
)
MOTIONS = ("h", "l", "w", "b", "e", "W", "B", "E", "0", "^", "$", "j", "k", "gg", "G", "fa", "Fo", "t,", "Tb", ";", ",")
OBJECTS = ("iw", "aw", "iW", "aW", 'i"', 'a"', "i(", "a(", "ib", "i[", "a]", "i{")
INSERTS = ("ixyz", "aq", "Ihi", "Aend", "onew", "Oold")
CHANGES = ("x", "X", "D", "p", "P", "J", "~", "rz", "dd", "yy", "Y", ".", "sw", "Sline", "Cto", "ccall")


VISUAL_MOTIONS = ("h", "l", "w", "b", "e", "W", "B", "0", "^", "$", "j", "k", "gg", "G", "fa", "t,", ";", "o", "v", "V")
VISUAL_CHANGES = ("d", "x", "cnew", "sq", "y", "~", "u", "U", "rz", "J", "p", "P", "D", "Y", "Cto", "Send")


def random_visual_keys(random: random.Random) -> list[str]:
    """Return a selection and what is done to it, and sometimes that again elsewhere."""
    begin = random.choice(("v", "V", "V"))
    moves = [random.choice(("", "", "2")) + random.choice(VISUAL_MOTIONS[:-3]) for _ in range(random.randint(0, 2))]
    turn = random.choice(("", "", "o", "v", "V"))
    ending = random.choice(VISUAL_CHANGES)
    selected = begin + "".join(moves) + (turn if turn != begin else "") + ending
    again = (
        [random.choice(MOTIONS[:15]), "."]
        if ending not in "pPyY" and "$" not in selected and random.random() < 0.4
        else []
    )
    put = [random.choice("pP")] if not again and random.random() < 0.4 else []
    return [random.choice(MOTIONS[:13]), random.choice(("yiw", "yy", "x")), selected, *put, *again]


def random_keys(random: random.Random) -> list[str]:
    """Return some commands as typed, each whole."""
    keys: list[str] = []
    for _ in range(random.randint(1, 5)):
        count = random.choice(("", "", "", "2", "3"))
        match random.randint(0, 5):
            case 0 | 1:
                keys.append(count + random.choice(MOTIONS))
            case 2:
                keys.append(
                    random.choice("dy") + random.choice((count + random.choice(MOTIONS), random.choice(OBJECTS)))
                )
            case 3:
                keys.append(f"c{random.choice(MOTIONS[:14] + OBJECTS)}new")
            case 4:
                keys.append(random.choice(INSERTS))
            case _:
                command = random.choice(CHANGES)
                keys.append((count if command not in ("Sline", "ccall", "sw", "Cto", ".", "J") else "") + command)
    return keys


class Elsewhere(Exception):
    """A word is looked for behind the last one of a line, a bracket among odd ones: vim has ways of its own there."""


def is_balanced(text: str) -> bool:
    open_ones = []
    for one in text:
        if one in "([{<":
            open_ones.append(one)
        elif one in ")]}>" and (not open_ones or open_ones.pop() + one not in ("()", "[]", "{}", "<>")):
            return False
    return not open_ones


def type_keys(vim: Vim, keys: list[str], text: str, cursor: int) -> tuple[str, int]:
    """Type commands; what is inserted ends with Esc, as does a command that was not whole."""
    for command in keys:
        if command[1:3] in OBJECTS[:4] and not text[cursor:].partition("\n")[0].strip():
            raise Elsewhere
        if command[1:3] in OBJECTS[6:] and not is_balanced(text):
            raise Elsewhere
        for key in (*command, "escape"):
            before = vim.is_selecting, cursor
            step = vim.press(key, key if len(key) == 1 else None, text, cursor)
            stays = before == (vim.is_selecting, cursor if step is None else step.cursor)
            if stays and vim.is_selecting and not vim.keys and key not in "ovV":
                raise Elsewhere  # a motion that fails ends all that is typed, one that stays does not
            if vim.is_selecting and key in "wWeEbB" and not 0 < step.cursor < len(text) - 1:
                raise Elsewhere  # at the ends of the text these fail, or not
            if step is not None:
                text, cursor = step.text, step.cursor
            elif vim.mode == "insert" and len(key) == 1:
                text, cursor = text[:cursor] + key + text[cursor:], cursor + 1
            if vim.mode == "normal" and not vim.keys:
                break  # vim drops what is typed behind a command that could not be done
    return text, cursor


def place_of(text: str, cursor: int) -> tuple[int, int]:
    """Return line and column, counted from 1."""
    return text.count("\n", 0, cursor) + 1, cursor - (text.rfind("\n", 0, cursor) + 1) + 1


def make_case(random: random.Random, keys_of: Callable[[random.Random], list[str]]) -> dict:
    text = "".join(random.choice(PIECES) for _ in range(random.randint(1, 12)))
    cursor = resting(text, random.randint(0, len(text)))
    line, column = place_of(text, cursor)
    return {"text": text, "cursor": cursor, "line": line, "column": column, "keys": keys_of(random)}


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not here")
def test_the_keys_do_what_vim_does(tmp_path):
    cases = [make_case(random.Random(seed), random_keys) for seed in range(2_000)]
    cases += [make_case(random.Random(seed), random_visual_keys) for seed in range(2_000)]
    lines = [len(case["text"].split("\n")[case["line"] - 1][: case["column"] - 1].encode()) + 1 for case in cases]
    given_to = [case | {"column": column} for case, column in zip(cases, lines, strict=True)]
    (tmp_path / "in").write_text(json.dumps(given_to, ensure_ascii=False))
    script = SCRIPT.replace("IN", str(tmp_path / "in")).replace("OUT", str(tmp_path / "out"))
    (tmp_path / "script.vim").write_text(script)
    subprocess.run(
        ["vim", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", str(tmp_path / "script.vim")], timeout=120, check=False
    )
    if not (tmp_path / "out").exists():
        pytest.skip("this vim has no scripts")
    wrong = []
    for case, told in zip(cases, json.loads((tmp_path / "out").read_text()), strict=True):
        try:
            text, cursor = type_keys(Vim(mode="normal", found=("f", "Z")), case["keys"], case["text"], case["cursor"])
        except Elsewhere:
            continue
        if (text, *place_of(text, cursor)) != (told["text"], told["line"], told["column"]):
            wrong.append((case["text"], case["cursor"], case["keys"], text, place_of(text, cursor), told))
    assert not wrong, f"{len(wrong)}: " + "\n".join(map(repr, wrong[:12]))


KEYS = st.one_of(
    st.sampled_from([*MOTIONS, *OBJECTS, *INSERTS, *CHANGES, *"dcyvVugfr123.p", "escape", "ctrl+r"]),
    st.text(max_size=3),
)


@given(st.text(max_size=60), st.integers(0, 60), st.lists(KEYS, max_size=12))
def test_whatever_is_typed_the_cursor_stays_in_the_text_and_undo_and_redo_lead_back_and_forth(text, at, keys):
    vim = Vim(mode="normal")
    cursor = resting(text, at)
    first = text
    for word in keys:
        for key in [word] if word in ("escape", "ctrl+r") else word:
            step = vim.press(key, key if len(key) == 1 else None, text, cursor)
            if step is not None:
                text, cursor = step.text, step.cursor
            elif vim.mode == "insert" and len(key) == 1:
                text, cursor = text[:cursor] + key + text[cursor:], cursor + 1
            assert 0 <= cursor <= len(text)
            if vim.mode == "normal":
                assert cursor == resting(text, cursor)
            begin, end = vim.selected(text, cursor)
            assert 0 <= begin <= end <= len(text)
    for _ in range(3):
        step = vim.press("escape", None, text, cursor)
        text, cursor = (step.text, step.cursor) if step is not None else (text, cursor)
    last = text
    for _ in range(100):
        step = vim.press("u", "u", text, cursor)
        text, cursor = step.text, step.cursor
    assert text == first
    for _ in range(100):
        step = vim.press("ctrl+r", None, text, cursor)
        text, cursor = step.text, step.cursor
    assert text == last


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["viwd"], " two three"),
        (["w", "ved"], "one  three"),
        (["w", "vey", "$", "p"], "one two threetwo"),
        (["vwrx"], "xxxxxwo three"),
        (["v$c."], "."),
        (["vo$~"], "ONE TWO THREE"),
        (["yiw", "w", "viwp"], "one one three"),
    ],
)
def test_what_is_selected_is_acted_on(keys, text):
    assert type_keys(Vim(mode="normal"), keys, "one two three", 0)[0] == text


def test_the_mark_of_a_paste_is_never_taken_apart():
    text = "see [Pasted text #1 +30 lines] there"
    assert type_keys(Vim(mode="normal"), ["dw"], text, 4)[0] == "see  there"
    assert type_keys(Vim(mode="normal"), ["x"], text, 4)[0] == "see  there"
    assert type_keys(Vim(mode="normal"), ["db"], text, len(text) - 8)[0] == "see  there"


def test_a_new_prompt_begins_in_insert_mode_with_nothing_to_undo():
    vim = Vim(mode="normal")
    _text, _cursor = type_keys(vim, ["ihello"], "", 0)
    vim.start_over()
    assert (vim.mode, vim.label) == ("insert", "INSERT")
    vim.press("escape", None, "", 0)
    assert vim.press("u", "u", "", 0).text == ""
