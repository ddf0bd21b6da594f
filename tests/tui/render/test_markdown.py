"""Markdown: structure, copying, untrusted text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.render.line import copy_text
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import RenderOptions
from tests.tui.render.documents import documents

CODE = st.text(st.sampled_from([*"abc \t(){}'\"#=", "\n", "日", "é"]), max_size=200)


def rows(text, width=60):
    return [line.text for line in render_markdown(text, width)]


def spans(text):
    return [span for line in render_markdown(text, 80) for span in line.spans if span[0].strip()]


def test_emphasis_nests():
    assert spans("a **b *c* ~~d~~**") == [
        ("a ", "text"),
        ("b ", "text bold"),
        ("c", "text bold italic"),
        ("d", "text bold strike"),
    ]


def test_a_link_shows_its_target_once_and_carries_it():
    assert spans("[docs](https://x.org/a)") == [
        ("docs", "text link @https://x.org/a"),
        (" (https://x.org/a)", "link.target @https://x.org/a"),
    ]
    assert rows("<https://x.org>") == ["  https://x.org"]


def test_a_dangerous_link_is_no_link():
    assert not any("@" in style for _, style in spans("[x](javascript:alert(1))"))


def test_raw_html_is_text():
    assert rows("<b>bold</b> &amp; <script>x</script>") == ["  <b>bold</b> & <script>x</script>"]


def test_newlines_of_a_paragraph_stay_where_they_were_meant():
    assert rows("one\ntwo") == ["  one", "  two"]
    assert rows("Name: `a`\n**Size**: 3") == ["  Name: a", "  Size: 3"]


def test_lines_that_an_editor_wrapped_are_joined_and_hard_breaks_stay():
    wrapped = "This line was broken by an editor that keeps its lines below eighty\ncolumns, as many do."
    assert rows(wrapped, 60) == [
        "  This line was broken by an editor that keeps its lines",
        "  below eighty columns, as many do.",
    ]
    copied = copy_text(render_markdown(wrapped, 60))
    assert copied == wrapped.replace("\n", " ")
    assert rows(wrapped.replace("\n", "  \n"), 100) == [f"  {line}" for line in wrapped.split("\n")]


def test_rows_of_a_table_that_wrap_are_told_apart():
    short = rows("|a|b|\n|-|-|\n|1|2|\n|3|4|", 40)
    assert len(short) == 4
    long = rows(f"|a|b|\n|-|-|\n|1|{'word ' * 20}|\n|3|4|", 40)
    assert long[1].replace("─", "").strip() == "┼" and long[-2] == long[1]


def test_numbers_count_on_from_the_first():
    assert rows("3. a\n3. b\n9) c") == ["  3. a", "  4. b", "", "  9) c"]


def test_a_known_language_is_coloured_and_an_unknown_is_plain():
    assert ("def", "code.keyword") in spans("```python\ndef f(): pass\n```")
    assert spans("```nosuchlanguage\ndef f(): pass\n```") == [("def f(): pass", "code")]


def test_wide_screens_keep_text_narrow_and_code_wide():
    text = "word " * 60 + "\n\n```\n" + "x" * 130 + "\n```"
    lines = render_markdown(text, 160)
    assert max(line.width for line in lines if "word" in line.text) <= 102
    assert any(line.width == 134 for line in lines)


def test_a_table_of_too_many_columns_becomes_records():
    table = "|" + "|".join("abcdefghij") + "|\n|" + "---|" * 10 + "\n|" + "|".join("0123456789") + "|"
    assert rows(table, 30)[:3] == ["  a: 0", "  b: 1", "  c: 2"]


@pytest.mark.parametrize("prefix", ["", "> ", "- item\n\n  ", "1. a\n   - b\n\n     "])
@given(code=CODE, width=st.integers(20, 100))
def test_copying_a_fence_gives_its_code_verbatim(prefix, code, width):
    head, indentation = prefix.rpartition("\n")[0::2]
    indentation = indentation if indentation != "- " else "  "
    lines = ["```python", *code.split("\n"), "```"]
    text = head + "\n" + "\n".join(indentation + line for line in lines)
    copied = copy_text([line for line in render_markdown(text, width) if line.gutter > 2 or not line.spans])
    assert copied.strip("\n") == code.strip("\n")


@pytest.mark.parametrize("prefix", ["", "    "], ids=["fence", "indented"])
@pytest.mark.parametrize(
    ("options", "mark"),
    [(RenderOptions(), "↳"), (RenderOptions(ascii=True), ">"), (RenderOptions(spoken=True), "")],
    ids=["unicode", "ascii", "spoken"],
)
@given(words=st.lists(st.integers(1, 120), min_size=1), width=st.integers(20, 100))
def test_f13_a_row_that_goes_on_with_a_line_of_code_is_marked_and_no_other(prefix, options, mark, words, width):
    """Of `daily-user.md`: a long line of code was cut in the middle of a word, and nothing said so."""
    code = ["x" * size for size in words]
    text = "\n".join(prefix + line for line in code) if prefix else "\n".join(["```", *code, "```"])
    continues = False
    lines = render_markdown(text, width, options)
    for line in lines:
        shown = line.text.partition("x")[0].strip()
        assert shown == (mark if continues else "")
        continues = line.soft
    assert copy_text(lines).split("\n") == code, "the mark is not copied"


PAYLOADS = [
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x1b\\",
    "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b_apc\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[6n",
    "\x1bc",
    "\x1b]0;never ended",
    "\x9b31m\x9d0;x\x9c",
    "\u202egnp.exe\u2066\u2069",
    "\x08\x7f\x00\r",
    "&#27;[31m&#155;&#x202e;&#13;&#8206;",
]
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(
    "frame",
    ["{}", "# {}", "- {}", "> {}", "`{}`", "**{}**", "[{}](http://x/{})", "![{}]({})", "```\n{}\n```",
     "```{}\nx\n```", "|{}|b|\n|---|---|\n|c|{}|", "<http://x/{}>", "    {}", "[r]\n\n[r]: /{} '{}'"],
)  # fmt: skip
def test_r088_no_control_byte_in_any_output(payload, frame):
    for line in render_markdown(frame.replace("{}", payload), 60):
        for text, style in line.spans:
            assert not UNSAFE.search(text)
            assert not UNSAFE.search(style)
        assert line.source is None or not UNSAFE.search(line.source.replace("\t", ""))


@given(documents(), st.integers(12, 120))
def test_r100_no_line_is_wider_than_the_screen(text, width):
    for line in render_markdown(text, width):
        assert line.width <= width
        assert not UNSAFE.search(line.text)
        assert line.gutter <= max(line.width, line.gutter if not line.spans else 0)


@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_last_line_of_a_fence_is_coloured_as_any_other(ending):
    lines = render_markdown(f"```bash\necho a  # why\n```{ending}", 60)
    assert ("# why", "code.comment") in lines[-1].spans
    minus, plus = render_markdown(f"```diff\n-a\n+b\n```{ending}", 60)
    assert ("-a", "diff.minus") in minus.spans
    assert ("+b", "diff.plus") in plus.spans


def test_a_narrow_table_keeps_words_whole_where_cells_can_be_spared():
    rows = ["order | name | before", "---|---|---", "no discount, and wrapped | x | 20.00", "a | some longer name | 5"]
    text = "\n".join(f"| {row} |" for row in rows)
    words = " ".join(line.text for line in render_markdown(text, 34)).replace("│", " ").split()
    assert {"discount,", "wrapped", "longer", "before", "20.00"} <= set(words)
