"""What providers' words mean (DESIGN section 7)."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.endpoint import Endpoint
from tenuto.model.errors import classify, classify_object, overflow_numbers, parse_retry_after, with_hint
from tests.model.error_table import LOOK_ALIKES, OVERFLOW, ROWS, SEEN, Row, openai


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.provider}-{row.text[:60]}")
def test_r017_every_text_is_told_right(row: Row):
    error = classify(row.provider, row.status, row.text)
    assert (error.kind, error.observed, error.limit) == (row.kind, row.observed, row.limit), str(error)


@pytest.mark.parametrize("row", SEEN, ids=lambda row: f"{row.provider}-{row.text[:60]}")
def test_s4_every_text_that_users_have_reported_is_told_right(row: Row):
    """reliability.md S4."""
    error = classify(row.provider, row.status, row.text)
    assert (error.kind, error.observed, error.limit) == (row.kind, row.observed, row.limit), str(error)


def test_s4_no_false_alarm_and_at_most_one_in_a_hundred_missed():
    """The bar, over all rows: what the parametrised test says of one text, this says of the whole."""
    rows = [*ROWS, *SEEN]
    verdicts = [
        (row.kind == "overflow", classify(row.provider, row.status, row.text).kind == "overflow") for row in rows
    ]
    assert not verdicts.count((False, True))
    assert verdicts.count((True, False)) <= 0.01 * len(rows)
    assert len(SEEN) >= 150


def test_t15_the_table_covers_twenty_providers_and_confuses_none():
    confused: Counter[str] = Counter()
    for row in ROWS:
        if (classify(row.provider, row.status, row.text).kind == "overflow") != (row.kind == "overflow"):
            confused[row.provider] += 1
    assert not confused
    assert len({row.provider.split("/")[0] for row in OVERFLOW}) >= 20


@pytest.mark.parametrize("row", [row for row in OVERFLOW if row.status is not None], ids=lambda row: row.provider)
def test_r019_the_same_words_inside_a_stream_mean_the_same(row: Row):
    try:
        body = json.loads(row.text)
    except ValueError:
        body = {"message": row.text}
    error = classify_object(row.provider, body)
    assert (error.kind, error.observed, error.limit) == (row.kind, row.observed, row.limit)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_r018_nested_json_is_unwrapped(depth: int):
    text = openai("prompt is too long: 250000 tokens > 200000 maximum")
    for _ in range(depth):
        text = json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": text}}})
    error = classify("openrouter", 400, text)
    assert (error.kind, error.observed, error.limit) == ("overflow", 250000, 200000)
    assert error.text == "prompt is too long: 250000 tokens > 200000 maximum"


@pytest.mark.parametrize("status", [400, 413])
def test_r020_no_body_is_left_to_the_caller(status: int):
    assert classify("cerebras", status, "").kind == "ambiguous"
    assert classify("cerebras", status, f"{status} status code (no body)").kind == "ambiguous"


def test_t17_a_huge_output_asked_for_is_not_a_long_conversation():
    text = (
        "This endpoint's maximum context length is 1000000 tokens. However, you requested about 1000135 tokens "
        "(135 of text input, 1000000 in the output). Please reduce the length of either one."
    )
    error = classify("openrouter", 400, openai(text))
    assert error.kind == "output_budget"
    assert error.limit == 999_865


def test_t18_a_stray_number_is_no_window():
    assert overflow_numbers("invalid params, context window exceeds limit (2013)") == (None, None)


@pytest.mark.parametrize(
    "text", ["prompt is too long", "context length exceeded in 2026", "exceeds the context window 95%"]
)
def test_r023_no_number_is_made_up(text: str):
    assert overflow_numbers(text) == (None, None)


def test_r029_an_allowance_smaller_than_the_request_says_so():
    row = next(row for row in LOOK_ALIKES if row.provider == "groq" and row.status == 413)
    error = classify("groq", 413, row.text)
    assert "6,000" in str(error)
    assert "7,012" in str(error)
    assert "/compact" in str(error)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 1.4s.", 1.4),
        ("Please try again in 250ms.", 0.25),
        ("Please try again in 57m36s.", 3456.0),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please retry in 31.2s.", 31.2),
        ("Please retry after 6 seconds.", 6.0),
        ("try again later", None),
    ],
)
def test_r093_a_stated_wait_is_read_from_the_text(text: str, seconds: float | None):
    error = classify("openai", 429, openai(f"Rate limit reached. {text}"))
    assert error.kind == "rate_limit"
    assert error.retry_after == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_r093_retry_after_is_read_from_the_headers(headers: dict[str, str], seconds: float | None):
    assert parse_retry_after(headers) == seconds


def test_r093_retry_after_may_be_a_date():
    assert parse_retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    far = parse_retry_after({"retry-after": "Fri, 21 Oct 2095 07:28:00 GMT"})
    assert far is not None
    assert far > 1e6


def test_a_refused_key_names_its_variable():
    endpoint = Endpoint(
        provider="anthropic",
        kind="anthropic",
        base_url="https://api.anthropic.com",
        key="x",
        key_name="ANTHROPIC_API_KEY",
    )
    error = with_hint(classify("anthropic", 401, ""), endpoint)
    assert "ANTHROPIC_API_KEY" in str(error)


def test_an_unknown_model_says_how_to_list_them():
    assert "/model" in str(classify("openai", 404, openai("The model `x` does not exist.", "model_not_found")))


def test_a_long_error_is_bounded():
    error = classify("proxy", 400, json.dumps({"error": {"message": "bad " * 10_000}}))
    assert len(error.text) <= 500


@pytest.mark.parametrize(
    "text", ["{" * 5000, "[" * 5000, '{"error":' * 3000, "\x00\ud800", '{"error": NaN}', "null", "[]"]
)
def test_no_body_breaks_the_reading(text: str):
    assert classify("proxy", 400, text).kind in {"invalid", "ambiguous"}


def test_a_long_hostile_text_is_read_quickly():
    # Patterns that go back and forth would take minutes for this.
    text = ("input tokens prompt context maximum " * 4000)[:60_000]
    assert classify("proxy", 400, text).kind in {"invalid", "overflow"}


# --- texts that it has never seen: the same words with other numbers, in other wrappings ---

numbered = [row for row in OVERFLOW if row.observed is not None and row.limit is not None]
wrappers = st.sampled_from(
    [
        lambda text: text,
        lambda text: json.dumps({"error": text}),
        lambda text: json.dumps({"error": {"message": text, "status": "INVALID_ARGUMENT"}}),
        lambda text: json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": text}}),
        lambda text: json.dumps([{"error": {"code": 400, "message": text}}]),
        lambda text: json.dumps({"detail": text}),
        lambda text: json.dumps({"error": {"message": "Provider returned error", "metadata": {"raw": text}}}),
    ]
)


def with_numbers(row: Row, observed: int, limit: int) -> str | None:
    """Return the row's text with other sizes in it; `None` where they cannot be told from other digits."""
    said = str(row.observed), str(row.limit)
    if any(not re.search(rf"(?<![\d,]){number}(?![\d,])", row.text) for number in said) or said[0] == said[1]:
        return None
    text = re.sub(rf"(?<![\d,]){said[0]}(?![\d,])", "OBSERVED", row.text)
    text = re.sub(rf"(?<![\d,]){said[1]}(?![\d,])", "LIMIT", text)
    return text.replace("OBSERVED", str(observed)).replace("LIMIT", str(limit))


@given(st.sampled_from(numbered), st.integers(1_000, 900_000), st.integers(1, 900_000), st.sampled_from([None, 400]))
def test_other_sizes_in_the_same_words_are_read(row: Row, limit: int, over: int, status: int | None):
    text = with_numbers(row, limit + over, limit)
    if text is None or re.search(r"\d", text.replace(str(limit + over), "").replace(str(limit), "")):
        return  # a third number belongs to the other two (a sum, an output), and would no longer fit
    error = classify(row.provider, status, text)
    assert (error.kind, error.observed, error.limit) == ("overflow", limit + over, limit)


def message_of(row: Row) -> str:
    """Return the words alone, without the object around them."""
    try:
        value = json.loads(row.text)
    except ValueError:
        return row.text
    for _ in range(8):
        if isinstance(value, list):
            value = value[0]
        if isinstance(value, dict):
            keys = [key for key in ("error", "message", "detail", "response", "msg") if value.get(key)]
            value = value[keys[0]] if keys else ""
    return value if isinstance(value, str) else ""


worded = [row for row in OVERFLOW if classify(row.provider, row.status or 400, message_of(row)).kind == "overflow"]


def test_most_overflows_are_told_by_their_words_alone():
    assert len(worded) > 0.8 * len(OVERFLOW)


@given(st.sampled_from(worded), wrappers, wrappers, st.sampled_from([None, 400, 413, 422]))
def test_an_overflow_is_one_in_every_wrapping(row: Row, inner, outer, status: int | None):
    words = message_of(row)
    bare = classify(row.provider, status or row.status, words)
    error = classify(row.provider, status or row.status, outer(inner(words)))
    assert (error.kind, error.observed, error.limit) == ("overflow", bare.observed, bare.limit)


@given(st.sampled_from(LOOK_ALIKES), wrappers, st.sampled_from(["", "upstream: ", "Error code: 400 - "]))
def test_what_only_sounds_like_it_stays_something_else_in_every_wrapping(row: Row, wrapper, prefix: str):
    assert classify(row.provider, row.status, wrapper(prefix + message_of(row))).kind != "overflow"


def spaced(text: str, breaks: list[str]) -> str:
    """Return the text with other white space at some of its spaces."""
    words = text.split(" ")
    gaps = [breaks[index % len(breaks)] for index in range(len(words) - 1)]
    return "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))


def plain_words(row: Row) -> str:
    """Return the row's sentences if they can be put into something else: no object, no quotes of one; else nothing."""
    words = message_of(row)
    return "" if row.kind == "ambiguous" or any(mark in words for mark in "{[]}\\\n") else words


plain = [(row, plain_words(row)) for row in [*ROWS, *SEEN] if plain_words(row)]


@given(
    st.sampled_from(plain),
    st.lists(wrappers, max_size=4),
    st.sampled_from(["", "upstream: ", "Error code: 400 - ", "litellm.BadRequestError: OpenAIException - ", "✕ "]),
    st.lists(st.sampled_from([" ", " ", "\n", "  ", "\r\n", "\t"]), min_size=1, max_size=7),
    st.sampled_from([str, str.upper, str.lower]),
)
def test_s4_no_wrapping_changes_the_verdict(row: tuple[Row, str], outer, prefix: str, breaks: list[str], cased):
    """reliability.md S4: nested JSON, a prefix, line breaks in the middle, another case."""
    (provider, status, *_), words = row
    text = cased(spaced(prefix + words, breaks))
    for wrap in outer:
        text = wrap(text)
    error = classify(provider, status or 400, text)
    bare = classify(provider, status or 400, words)
    assert (error.kind, error.observed, error.limit) == (bare.kind, bare.observed, bare.limit)
