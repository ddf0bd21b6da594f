"""Titles by rule, from how a conversation began."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.titles import title_of

BEGINNINGS = {
    "Fix the parser": "Fix the parser",
    "Fix the parser. Then look at the lexer, which is slow": "Fix the parser",
    "Why is it slow? It was not": "Why is it slow?",
    "\n\n  Fix the parser of\nnested quotes\n\nand the rest": "Fix the parser of nested quotes",
    "look at @src/tenuto/text/titles.py please": "look at titles.py please",
    "# Repair the roof\nIt rains in.": "Repair the roof",
    "- first do this\n- then do that": "first do this",
    "```python\nx = 1\n```\nWhat does this print?": "What does this print?",
    "```\nonly(code)": "```",
    'Traceback (most recent call last):\n  File "x.py", line 3\nValueError: 3\n\nwhy does it fail': "ValueError: 3",
    "for (i = 0; i < 3; i++) {\n": "for (i = 0; i < 3; i++) {",
    "[Pasted text #1 +30 lines] explain this log": "explain this log",
    '<skill name="x">\nMend it all\n</skill>': "Mend it all",
    "ein sehr langer Satz über die Reparatur des Daches, der nicht und nicht enden will": (
        "ein sehr langer Satz über die Reparatur des Daches, der…"
    ),
    "x" * 90: "x" * 60 + "…",
    "直してください。それから": "直してください",
    "version 3.11 of Python fails": "version 3.11 of Python fails",
    "a\x1b[31mb\u202e c": "a [31mb c",
    " \n\t": "",
}


@pytest.mark.parametrize(("text", "title"), BEGINNINGS.items())
def test_the_title_is_the_first_sentence_that_is_words(text, title):
    assert title_of(text) == title


@given(st.text(max_size=400), st.integers(1, 80))
def test_a_title_is_one_printable_line_that_fits(text, room):
    title = title_of(text, room)
    assert len(title) <= room + 1
    assert title.isprintable()
    assert "".join(title.split()) or not any(one.isprintable() and not one.isspace() for one in text)
