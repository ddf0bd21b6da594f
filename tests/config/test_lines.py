"""In which line a key of a settings file stands."""

from __future__ import annotations

import json
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.lines import find_lines

TEXT = '''# [ui] in a comment
mode = "plan"

[ui] # the screen
theme = """
[tools]
mode = 3
"""
status_items = [
  "model",  # one
  "cost",
]

[models."a/b"]
context_window = 4096
compaction.model = 1
'''


def test_each_key_has_the_line_that_it_begins_in():
    found = {".".join(path): line for path, line in find_lines(TEXT).items()}
    assert found == {
        "mode": 2,
        "ui": 4,
        "ui.theme": 5,
        "ui.status_items": 9,
        "models": 14,
        "models.a/b": 14,
        "models.a/b.context_window": 15,
        "models.a/b.compaction": 16,
        "models.a/b.compaction.model": 16,
    }


def test_of_a_broken_file_what_is_whole_is_found():
    assert find_lines('mode = "plan"\nui = {\ntheme = "x"\n') == {("mode",): 1}
    assert find_lines("") == {}
    assert find_lines("[" * 5_000) == {}


NAMES = st.sampled_from(["a", "b.c", "[x]", "ü", 'q"q', "# no"])
VALUES = st.one_of(st.integers(0, 9), st.booleans(), st.sampled_from(['"x"', '"""\n[a]\n"""', "[\n1,\n]", "'#'"]))


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=4), max_size=4), st.integers(0, 3))
def test_property_all_keys_are_found_and_each_line_names_its_key(tables, blank: int):
    rows: list[str] = []
    for table, values in tables.items():
        rows += [""] * blank + [f"[{json.dumps(table, ensure_ascii=False)}]"]
        rows += [f"{json.dumps(key, ensure_ascii=False)} = {str(value).lower()}" for key, value in values.items()]
    text = "\n".join(rows)
    found = find_lines(text)
    whole = tomllib.loads(text)
    assert set(found) == {(table,) for table in whole} | {(table, key) for table in whole for key in whole[table]}
    lines = text.split("\n")
    assert all(json.dumps(path[-1], ensure_ascii=False) in lines[line - 1] for path, line in found.items())
