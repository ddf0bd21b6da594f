import base64
import random

from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.estimate import estimate_text

PROSE = "The parser reads a line, and then it decides what the line means. " * 20


@given(st.text(alphabet=st.characters()))
def test_a_quarter_of_the_characters_is_the_floor_and_no_character_costs_more_than_three(value):
    tokens = estimate_text(value)
    assert tokens >= len(value) / 4
    assert tokens <= 3 * len(value) + 1


def test_prose_is_about_four_characters_a_token():
    assert len(PROSE) / 4 <= estimate_text(PROSE) < len(PROSE) / 3.7


def test_wide_scripts_are_about_a_token_a_character():
    for value in ("压缩上下文" * 200, "コンテキスト" * 200, "문맥을 압축" * 200):
        assert 0.8 * len(value) <= estimate_text(value) <= 1.1 * len(value)


def test_dense_text_counts_more_than_prose_of_the_same_length():
    source = random.Random(7)
    digits = " ".join(str(source.randrange(10**9)) for _ in range(200))
    encoded = base64.b64encode(source.randbytes(3_000)).decode()
    minified = "function(a,b){return a.x[b]?c(a,{d:1}):e&&f(b)};" * 40
    for value in (digits, encoded, minified):
        assert estimate_text(value) > 1.25 * len(value) / 4, value[:20]


def test_one_dense_block_inside_prose_still_counts_as_dense():
    encoded = base64.b64encode(random.Random(1).randbytes(30_000)).decode()
    mixed = PROSE * 30 + encoded
    assert estimate_text(mixed) > 0.95 * (estimate_text(PROSE * 30) + len(encoded) / 2.3)


def test_lone_surrogates_do_no_harm():
    assert estimate_text("a\ud800b") >= 1
