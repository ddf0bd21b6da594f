"""The table of keys in the documentation is the table of the program; `UPDATE_GOLDEN=1` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.tui.keys.bindings import key_label
from tenuto.tui.keys.keys import CONTEXT_TITLES, KEYS

DOCUMENT = Path(__file__).parents[2] / "docs" / "keys.md"
BEGIN, END = "<!-- keys: written by tests/tui/test_keys_document.py -->\n", "<!-- end of keys -->\n"


def table() -> str:
    lines = ["| where | keys | id | does |", "|---|---|---|---|"]
    for context, title in CONTEXT_TITLES.items():
        where = title
        for row in KEYS:
            if row.context != context:
                continue
            keys = ", ".join(f"`{key_label(key)}`" for key in row.keys)
            does = row.help.replace("|", "\\|").replace("\\ and", "`\\` and")
            lines.append(f"| {where} | {keys} | `{row.id}` | {does} |")
            where = ""
    return "\n".join(lines) + "\n"


def test_the_document_has_every_key_that_the_program_has_and_no_other():
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    found, end, after = rest.partition(END)
    assert begin and end
    if os.environ.get("UPDATE_GOLDEN"):
        DOCUMENT.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")
    else:
        assert found == table(), "UPDATE_GOLDEN=1 pytest tests/tui/test_keys_document.py writes it anew"
