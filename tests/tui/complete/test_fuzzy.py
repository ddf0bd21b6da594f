from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.complete.commands import is_subsequence, rank, rank_folded, subsequence_pattern

PATHS = [
    "docs/state.md",
    "src/tenuto/core/agent/step.py",
    "src/tenuto/tui/machine/step.py",
    "src/tenuto/tui/state/state.py",
    "tests/tui/machine/test_step.py",
    "src/steps/old/readme.md",
    "README.md",
]


def best(query: str) -> list[str]:
    return [PATHS[place] for place in rank(query, PATHS, 3)]


def test_the_name_counts_more_than_the_way_to_it():
    assert best("step.py")[0] == "src/tenuto/core/agent/step.py"
    assert best("step")[:2] == ["src/tenuto/core/agent/step.py", "src/tenuto/tui/machine/step.py"]
    assert best("readme")[0] == "README.md"
    assert best("machine/st")[0] == "src/tenuto/tui/machine/step.py"
    assert best("tst")[0] in {"tests/tui/machine/test_step.py", "docs/state.md"}
    assert best("corestep") == ["src/tenuto/core/agent/step.py"]
    assert best("qqq") == []


@given(st.text(alphabet="abc/", max_size=4), st.lists(st.text(alphabet="abcd/", max_size=8), max_size=30))
def test_exactly_the_texts_with_the_characters_in_order_match(query, texts):
    expected = {place for place, text in enumerate(texts) if is_subsequence(query, text)}
    assert set(rank(query, texts, len(texts))) == expected


@given(st.text(alphabet="ab", min_size=1, max_size=3), st.text(alphabet="abc", max_size=8))
def test_a_subsequence_is_what_is_left_after_leaving_characters_out(query, text):
    rest = iter(text)
    assert is_subsequence(query, text) == all(character in rest for character in query)


def test_a_good_match_is_found_behind_many_bad_ones():
    paths = [f"generated/aaa/zzz{number}/eta.txt" for number in range(5_000)] + ["src/zeta.py"]
    assert rank_folded("zeta", paths, 5)[0] == 5_000
    assert rank_folded("z", paths, 5)[0] == 5_000


@given(st.text("ab/._-[^]\\", min_size=1, max_size=6), st.text("abc/._-[^]\\\n", max_size=20))
def test_the_pattern_finds_what_has_the_characters_in_order(query: str, text: str) -> None:
    assert bool(subsequence_pattern(query).match(text)) == is_subsequence(query, text)
