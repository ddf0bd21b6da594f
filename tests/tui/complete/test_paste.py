from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.complete.paste import FOLD_CHARACTERS, FOLD_LINES, Pastes, is_long


def test_only_long_pastes_are_folded():
    assert not is_long("x" * FOLD_CHARACTERS)
    assert is_long("x" * (FOLD_CHARACTERS + 1))
    assert not is_long("\n" * (FOLD_LINES - 1))
    assert is_long("\n" * FOLD_LINES)
    pastes = Pastes()
    assert pastes.fold("short") == "short"
    assert pastes.fold("a\n" * 20) == "[Pasted text #1 +21 lines]"
    assert pastes.fold("a" * 2_000) == "[Pasted text #2]"


@given(st.lists(st.tuples(st.text(max_size=5), st.text(min_size=1_001, max_size=1_500)), max_size=4))
def test_r099_expanding_gives_back_every_byte(pieces):
    pastes = Pastes()
    draft = "".join(typed + pastes.fold(pasted) for typed, pasted in pieces)
    assert pastes.expand(draft) == "".join(typed + pasted for typed, pasted in pieces)


def test_a_megabyte_with_marks_inside_is_not_expanded_twice():
    pastes = Pastes()
    inner = pastes.fold("x" * 2_000)
    outer = inner * 50_000
    assert pastes.expand(f"{pastes.fold(outer)} {inner}") == f"{outer} {'x' * 2_000}"


def test_a_mark_of_no_paste_is_text():
    assert Pastes().expand("[Pasted text #9 +3 lines]") == "[Pasted text #9 +3 lines]"


def test_only_pastes_that_still_stand_somewhere_are_kept():
    pastes = Pastes()
    first, second = pastes.fold("a" * 2_000), pastes.fold("b" * 2_000)
    pastes.keep([f"see {second}"])
    assert len(pastes) == 1
    assert pastes.expand(first + second) == first + "b" * 2_000
    assert pastes.fold("c" * 2_000) not in {first, second}


def test_a_whole_text_is_folded_again_where_its_pastes_stand() -> None:
    pastes = Pastes()
    first, second = "a\n" * 20, "b" * 2_000
    shown = f"see {pastes.fold(first)} and {pastes.fold(second)}!"
    whole, folds = pastes.expand(shown), pastes.folds(shown)
    later = Pastes()
    again = later.fold_at(whole, folds)
    assert again == "see [Pasted text #1 +21 lines] and [Pasted text #2]!"
    assert later.expand(again) == whole
    assert pastes.fold_again(f"changed: {whole}") == f"changed: {shown}"
    assert later.fold_at("short", folds) == "short", "what does not fit is left as it is"
