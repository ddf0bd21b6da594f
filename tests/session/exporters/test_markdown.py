"""The Markdown export: readable, and nothing in it can break out of its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    PlanMark,
    PlanView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.session.describe import line_of, pieces_of
from tenuto.session.exporters.html import write_page
from tenuto.session.exporters.markdown import code, embed, fence, plain, quote, write_markdown
from tests.session.exporters.samples import call, everything, number, source_of, text
from tests.session.exporters.test_html import HOSTILE

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
fragments = st.one_of(
    st.sampled_from(
        [
            "`",
            "``",
            "```",
            "````",
            "~~~",
            "```python",
            "<b>",
            "<div>",
            "<!--",
            "</details>",
            "<script>",
            "\\",
            "\n",
            "\n\n",
        ]
    ),
    st.sampled_from(
        ["> ", "- ", "    ", "1. ", "# x", "===", "---", "| a |", "<", ">", " ", "\t", "word", "<?x", "<![CDATA["]
    ),
    st.sampled_from(HOSTILE),
    st.text(max_size=6),
)
wild = st.lists(fragments, max_size=14).map("".join)


def document_of(*entries) -> str:
    return "".join(write_markdown(source_of(number(entries))))


def test_b10_several_edits_are_written_as_the_texts_that_they_are() -> None:
    edits = [{"old_string": "a\n\tb", "new_string": "c"}, {"old_string": "d", "new_string": "e"}]
    document = document_of(AssistantMessage(parts=(call("edit", "c1", path="a.py", edits=edits),), model="m"))
    assert "a.py (2 edits)" in document.replace("\\", "")
    assert "a\n\tb\nnew_string: c\nold_string: d" in document


def headings(document: str) -> list[str]:
    tokens = READER.parse(document)
    return [
        tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0
    ]


def html_of(document: str) -> list[str]:
    tokens = READER.parse(document)
    inline = [child for token in tokens for child in token.children or () if child.type == "html_inline"]
    return [token.content for token in [*tokens, *inline] if token.type in ("html_block", "html_inline")]


@given(wild)
def test_a_fence_holds_whatever_is_in_it(words: str) -> None:
    tokens = READER.parse(f"{fence(words)}\n\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    kept = sanitize_for_terminal(words.replace("\r\n", "\n").replace("\r", "\n")).removesuffix("\n")
    assert tokens[0].content == kept + "\n"


@given(wild)
def test_inline_code_is_one_piece_of_code(words: str) -> None:
    made = code(words)
    if made:
        (inline,) = [token for token in READER.parse(f"x {made} y") if token.type == "inline"]
        assert [child.type for child in inline.children or ()] == ["text", "code_inline", "text"]


@given(wild)
@example("```\\|a|b|\n|-|:-:|\n|<b>|x' onclick='y|")
def test_an_embedded_text_changes_nothing_around_it_and_has_no_html(words: str) -> None:
    for made in (embed(words), quote(words)):
        tokens = READER.parse(f"before\n\n{made}\n\nafter")
        last = tokens[-3:]
        assert [(token.type, token.level) for token in last] == [
            ("paragraph_open", 0),
            ("inline", 1),
            ("paragraph_close", 0),
        ]
        assert last[1].content == "after"
        assert html_of(made) == []


@given(wild)
def test_plain_words_are_no_markup(words: str) -> None:
    made = plain(words)
    (inline,) = [token for token in READER.parse(f"x {made} y") if token.type == "inline"]
    kinds = {child.type for child in inline.children or ()}
    assert kinds <= {"text", "text_special"}


@given(wild, wild)
def test_the_whole_document_keeps_its_parts(word: str, name: str) -> None:
    plain_one = document_of(*everything("xx", "xx"))
    document = document_of(*everything(f"x{word}x", f"x{name}x"))
    document.encode("utf-8")
    ours = re.compile(r"(?:You|Assistant|You, by a command|You ran) · #\d+")
    assert [found[0] for line in headings(document) if (found := ours.match(line))] == [
        found[0] for line in headings(plain_one) if (found := ours.match(line))
    ]
    allowed = re.compile(r"<details><summary>[^<>]*</summary>\s*|</details>\s*")
    assert [tag for tag in html_of(document) if not allowed.fullmatch(tag)] == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("List<String> of `List<int>`", "List&lt;String> of `List<int>`"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n&lt;b>"),
        ("a < b and c > d", "a < b and c > d"),
        ("open\n```py\nx = 1", "open\n```py\nx = 1\n```"),
        ("~~~~\nx", "~~~~\nx\n~~~~"),
        ("\\`<b>`", "\\`&lt;b>`"),
        ("``<b>` <i>``", "``<b>` <i>``"),
        ("    <b>", "    <b>"),
        ("`\n<div>`", "`\n&lt;div>`"),
        ("x `\n`<b>` y", "x `\n`&lt;b>` y"),
        ("see `a\nb` and `<c>`", "see `a\nb` and `<c>`"),
    ],
)
def test_an_answer_stays_as_it_was_written_but_for_tags_and_open_fences(words: str, shown: str) -> None:
    assert embed(words) == shown


def test_the_document_reads_in_order() -> None:
    document = document_of(
        UserMessage(parts=text("Mend *it*.")),
        AssistantMessage(parts=(*text("I look."), call("bash", "c", command="ls\npwd"))),
        ToolResultMessage(call_id="c", name="bash", parts=text("a\nb\n")),
        ToolResultMessage(call_id="d", name="read", parts=text("x\n" * 40)),
    )
    order = [
        "## You · #1",
        "> Mend *it*.",
        "## Assistant · #2",
        "I look.",
        "**bash** · `ls pwd` · 2 lines",
        "command:\nls\npwd",
        "a\nb",
    ]
    positions = [document.index(words) for words in order]
    assert positions == sorted(positions)
    assert "<details><summary>40 lines</summary>" in document


def test_compactions_and_branches_are_there() -> None:
    document = document_of(*everything())
    assert r"**Compacted** #17 · 182k → \~24k tokens · threshold" in document
    assert "taken back" in document
    assert document.index("## Not sent yet") < document.index("## Branch: word (")
    assert "| name | 4 | 4,800 | 36,000 |" in document


def test_b15_a_plan_in_an_answer_is_exported_as_the_plan_that_screens_show() -> None:
    answer = "So:\n<proposed_plan>\n# Make it quick\n\n1. measure\n</proposed_plan>\n"
    view = PlanView(text="# Make it quick\n\n1. measure", outcome="approved", mode="edits")
    entries = number(
        [
            UserMessage(parts=text("plan it")),
            AssistantMessage(parts=text(answer), plan=PlanMark(state="proposed")),
            DeveloperMessage(text="The user approved the plan.", kind="plan", plan=view, answers=2),
        ]
    )
    for shown in ("".join(write_markdown(source_of(entries))), "".join(write_page(source_of(entries)))):
        assert "proposed_plan" not in shown
        assert "Make it quick" in shown and "So:" in shown and "approved" in shown
    for entry in entries:
        told = [line_of(entry), *(piece.text for piece in pieces_of(entry, Path()))]
        assert not any("proposed_plan" in words for words in told)
