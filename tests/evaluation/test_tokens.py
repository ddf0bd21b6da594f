import base64
import random

from tenuto.evaluation.scripted import CHARACTERS, WORDS, count_item, count_text

PROSE = "The parser reads a line, and then it decides what the line means. " * 20


def per_token(text: str) -> float:
    return len(text) / count_text(text)


def test_content_of_every_kind_costs_what_tokenizers_charge_for_it():
    source = random.Random(3)
    assert 3.5 < per_token(PROSE) < 5.5
    assert 1.5 < per_token("\n".join(map(str, range(3_000)))) < 2.2
    assert 1.0 < per_token("压缩上下文之后继续工作" * 50) < 1.4
    assert 1.4 < per_token(base64.b64encode(source.randbytes(3_000)).decode()) < 2.2
    assert count_text(" " * 400) == 1, "white space is cheap"
    assert count_text("=" * 80) == 10, "and so is a ruler"


def test_what_a_model_does_not_read_costs_nothing():
    block = '{"type":"thinking","thinking":"one two three","signature":"%s"}'
    assert count_item(block % "x") == count_item(block % ("xY9" * 500))


def test_the_two_ways_of_counting_differ_where_tokenizers_do():
    items = ['{"role":"user","content":"1 2 3 4 5 6 7 8 9 10 11 12"}']
    assert CHARACTERS.prompt(items) < WORDS.prompt(items)
