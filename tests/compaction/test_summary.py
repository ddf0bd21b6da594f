import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.summary.judge import expect
from tenuto.compaction.summary.prompts import FIRST
from tenuto.compaction.summary.summary import (
    CRITICAL,
    add_identifiers,
    audit_identifiers,
    find_fault,
    find_identifiers,
    is_too_long,
    join_summaries,
    shorten,
    text_of_summary,
)
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import ThinkingPart, ToolCallPart
from tenuto.text.estimate import estimate_text
from tests.compaction.build import SUMMARY, reply, text

ASKED = expect(FIRST, covered=10_000, length=2_000)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(""), "empty"),
        (reply("   \n"), "empty"),
        (reply("<think>only this</think>"), "empty"),
        (reply(SUMMARY, stop_reason="max_tokens"), "cut off"),
        (reply(SUMMARY, stop_reason="window_exceeded"), "cut off"),
        (reply(SUMMARY, stop_reason="refusal"), "refusal"),
        (reply("I'm sorry, but I can't help with that."), "refusal"),
        (AssistantMessage(parts=(*text(SUMMARY), ToolCallPart(id="1", name="read"))), "tool"),
        (AssistantMessage(parts=(ThinkingPart(text=SUMMARY),)), "empty"),
    ],
)
def test_r010_a_summary_that_is_not_complete_is_a_fault(answer, words):
    assert words in find_fault(answer, 10_000, ASKED).what


def test_a_complete_summary_has_no_fault_and_one_longer_than_the_original_has():
    assert find_fault(reply(SUMMARY), 10_000, ASKED) is None
    assert "longer than what it replaces" in find_fault(reply(SUMMARY), 20, ASKED).what


def test_a_summary_about_refusals_is_not_a_refusal():
    about = SUMMARY.replace("Mend", "Handle 'I'm sorry, I cannot' answers; mend")
    assert find_fault(reply(about), 10_000, ASKED) is None


@pytest.mark.parametrize(
    "wrapped",
    [
        f"<think>long\nthoughts</think>\n\n{SUMMARY}",
        f"```markdown\n{SUMMARY}\n```",
        f"<summary>\n{SUMMARY}\n</summary>",
        f"{SUMMARY}\n\n<read-files>\nmade/up.py\n</read-files>",
    ],
)
def test_wrappers_reasoning_and_invented_lists_are_taken_off(wrapped):
    assert text_of_summary(reply(wrapped)) == SUMMARY


def test_a_fenced_block_inside_a_summary_stays():
    summary = f"{SUMMARY}\n```sh\npytest -q\n```"
    assert text_of_summary(reply(summary)) == summary


@given(st.integers(20, 600), st.integers(0, 60), st.integers(0, 60))
def test_r009_a_shortened_summary_is_within_its_budget(limit, done, facts):
    summary = SUMMARY.replace("- [x] Read", "\n".join(f"- [x] step {n}" for n in range(done)) + "\n- [x] Read")
    summary += "".join(f"\n- fact number {n} that matters somewhat" for n in range(facts))
    short = shorten(summary, limit)
    assert estimate_text(short) <= limit
    if limit > 200:
        assert "Mend the parser." in short
        assert "## Next Steps" in short
    if estimate_text(summary) <= limit:
        assert short == summary


def test_length_has_a_tolerance_of_a_tenth():
    tokens = estimate_text(SUMMARY)
    assert not is_too_long(SUMMARY, tokens - 2)
    assert is_too_long(SUMMARY, tokens // 2)


def test_identifiers_of_the_last_part_are_found():
    latest = (
        "See https://example.com/a?b=1, file src/tenuto/core/agent/step.py and util.py, commit 3f2a9bc, "
        "server on localhost:8080 or port 5432, ENOENT from `parse_line`, code E0382."
    )
    assert set(find_identifiers(latest)) >= {
        "https://example.com/a?b=1",
        "src/tenuto/core/agent/step.py",
        "util.py",
        "3f2a9bc",
        "localhost:8080",
        "port 5432",
        "ENOENT",
        "parse_line",
        "E0382",
    }


@pytest.mark.parametrize(
    "name",
    [
        "OPS-3493",
        "GH-12",
        "cus_703abcf88d",
        "sk_live_4eC39HqLyjWD",
        "req-01abcdef23",
        "web-frontend-7d9f8c6b5d",
        "6f1c2d34-9b0a-4e8d-8c7f-0123456789ab",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ],
)
@pytest.mark.parametrize(
    "around", ["the job {} is late", "id={}, retried", "({})", "für `x` gilt {}.", "番号は {} です"]
)
def test_t5_ids_and_tickets_are_exact_names(name, around):
    """truth.md T5: tickets and ids with a prefix were not looked for, so hiding a log took them from every summary."""
    assert name in find_identifiers(around.format(name))


@pytest.mark.parametrize("text", ["a well-known thing", "08:12:55 worker batch took 712 ms", "2026-11-22", "read_only"])
def test_plain_words_and_times_are_no_exact_names(text):
    assert find_identifiers(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Aq7Xw1Zr9bT3/kLm2PzQ8vY+sD4fG6hJ0cN5xB1aR7eU3iO9tW2yM8pK4jH6gF1d",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "tests 2/2 passed",
        "say(`no ${thing} left`)",
        "one(`a.${x}`), two(`b.${y}`) : ``",
    ],
)
def test_encoded_bytes_counts_and_texts_with_holes_are_no_exact_names(text):
    """Seen in real sessions: the lines of a private key, and what stands between two template strings."""
    assert find_identifiers(text) == []


def test_a_long_path_and_a_hash_are_exact_names_whatever_colour_they_have():
    path = "/Users/me/workspaces/billingApp2/packages/paymentKit/src/CheckoutSessionController2.ts"
    assert path in find_identifiers(f"\x1b[36m{path}\x1b[0m")
    assert find_identifiers("commit \x1b[33m3f2a9bc\x1b[m") == ["3f2a9bc"]


def test_the_audit_counts_names_and_names_the_missing_ones_latest_first():
    latest = " ".join(f"src/module_{number}.py" for number in range(80))
    audited = audit_identifiers(latest, ("src/module_79.py is here",))
    assert audited.found == 80
    assert len(audited.missing) == 79
    assert audited.missing[:2] == ("src/module_78.py", "src/module_77.py")


def test_the_audit_does_not_count_a_part_of_a_name_beside_it():
    audited = audit_identifiers("edit src/core/deep.py, port 8080 on localhost:8080", ("",))
    assert audited.missing == ("localhost:8080", "port 8080", "src/core/deep.py")


def test_identifiers_go_under_critical_context():
    added = add_identifiers(SUMMARY, ["a/b.py"])
    assert added.index(CRITICAL) < added.index("`a/b.py`")
    assert add_identifiers("just text", ["a/b.py"]).endswith(f"{CRITICAL}\n- Exact names from the last part: `a/b.py`")
    assert add_identifiers(SUMMARY, []) == SUMMARY


def test_identifiers_of_a_split_turn_stay_in_the_history_part():
    joined = add_identifiers(join_summaries(SUMMARY, "## Original Request\nx"), ["a/b.py"])
    assert joined.index("`a/b.py`") < joined.index("---") < joined.index("## Original Request")
