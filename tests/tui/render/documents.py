"""Random Markdown, made of the pieces that block structure turns on."""

from hypothesis import strategies as st

_PIECES = [
    "# H\n", "para text\n", "lazy\n", "\n", "\n\n", "\n\n\n", "- a\n", "- b\n", "  - n\n", "   - m\n", "    - o\n",
    "* x\n", "+ y\n", "1. one\n", "2. two\n", "1) p\n", "0. z\n", "999999999. z\n", "> q\n", ">\n", "> - l\n",
    "```\n", "```py\n", "~~~\n", "  ```\n", "  code\n", "    indented\n", "     deep\n", "   three\n", "\t- tab\n",
    "| a | b |\n", "|---|---|\n", "|--|--|\n", "- a | b\n", "===\n", "---\n", "***\n", "- [ ] t\n", "- [x] d\n",
    "[r]: /u\n", "[r] text\n", "[q]: <a\n", "**bo", "ld** ", "`c", "`", "-\n", "- \n", "1.\n", "  ", "  \n", "x",
    "word " * 30, "日本語", "👩‍👩‍👧", "\x1b[31m", "\x1b]0;t", "\x07", "\r\n", "def f():\n    return '''1\n" * 14,
]  # fmt: skip


def documents(max_size: int = 30) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(_PIECES), max_size=max_size).map("".join)
