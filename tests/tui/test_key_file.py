"""The user's own keys: what the file may say, and what is said of what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.tui.keys.bindings import normal_key
from tenuto.tui.keys.key_file import REQUIRED, KeyFile, apply_text, key_file_text, read_key_file
from tenuto.tui.keys.keys import CONTEXT_TITLES, KEYS, default_bindings, help_text, key_list

PROMPT = ("empty", "prompt", "transcript", "global")


def read(text: str) -> KeyFile:
    return apply_text(text, KEYS)


def found(file: KeyFile, key: str, contexts=PROMPT[1:]) -> str:
    row = file.bindings.find(contexts, key)
    return row.id if row else ""


def test_a_key_is_bound_otherwise_and_the_usual_one_is_free_again():
    file = read('"detail" = "ctrl+x d"\n"mode.cycle" = ["f6", "Alt-M"]\n')
    assert file.problems == []
    assert (found(file, "ctrl+x d"), found(file, "ctrl+o")) == ("detail", "")
    assert (found(file, "f6"), found(file, "alt+m"), found(file, "shift+tab")) == ("mode.cycle", "mode.cycle", "")
    assert file.bindings.changed == {"detail", "mode.cycle"}
    assert file.bindings.label("detail") == "Ctrl+X d"
    assert file.bindings.labels("mode.cycle") == "F6, Alt+M"
    assert "F6, Alt+M" in help_text(file.bindings)


@pytest.mark.parametrize(
    "text",
    [
        'mode.cycle = "f6"', '"mode.cycle" = ["f6"]', "'mode.cycle' = 'F6'  # mine", '\ufeff"mode.cycle" = "f6"\r\n',
    ],
)  # fmt: skip
def test_the_file_may_be_written_in_more_than_one_way(text, tmp_path: Path):
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8", newline="")
    file = read_key_file(path)
    assert (file.problems, found(file, "f6")) == ([], "mode.cycle")


@pytest.mark.parametrize("value", ["[]", '"none"', '""', "false", '"off"'])
def test_a_key_can_be_taken_away(value):
    file = read(f'"repaint" = {value}')
    assert (file.problems, found(file, "ctrl+l"), file.bindings.label("repaint")) == ([], "", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"mode.cycel" = "f6"', ["1: ", "“mode.cycel”", "did you mean “mode.cycle”", "/keys"]),
        ('\n"detail" = "ctrl+i"', ["2: ", "Tab"]),
        ('"detail" = "cmd+o"', ["1: ", "super+o"]),
        ('"detail" = "ctlr+o"', ["1: ", "“ctlr” is no modifier"]),
        ('"detail" = 5', ["1: ", "as text"]),
        ('"detail" = "x"', ["1: ", "typed as text"]),
        ('"detail" = "space q"', ["1: ", "typed as text"]),
        ('"help.question" = "/"', ["1: ", "typed as text"]),
        ('detail: "f6"', ["1: ", "not understood"]),
        ('"detail" = "f6', ["1: ", "not understood"]),
        ('[mode]', ["1: ", "not understood"]),
        ('"detail" = "ctrl+t"', ["1: ", "Ctrl+T is “detail” now", "“todo” has no key"]),
        ('"detail" = "f6"\n"todo" = "f6"', ["2: ", "F6 is “todo” now", "“detail” (line 1) has no key"]),
        ('"todo" = "f6"\n"detail" = "f6"', ["2: ", "F6 is “detail” now", "“todo” (line 1) has no key"]),
        ('"detail" = "ctrl+s"', ["1: ", "“detail” now", "“steer” has no key"]),
        ('"queue" = "ctrl+x"\n"editor" = "ctrl+x ctrl+e"', ["2: ", "Ctrl+E is “editor” now", "loses Ctrl+X and"]),
        ('"repaint" = "alt+q"', ["1: ", "“repaint” now", "“queue” has Ctrl+X q"]),
        ('"detail" = "ctrl+e"', ["1: ", "“detail” now", "“edit.line_end” has End"]),
        ('"todo" = "ctrl+enter"', ["1: ", "Ctrl+Enter stays “send”", "send a prompt"]),
        ('"send" = "escape"', ["1: ", "Esc stays “escape”"]),
        ('"detail" = "f6"\n"detail" = "f7"', ["1: ", "bound again in line 2"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line_that_names_the_line(text, words):
    problems = read(text).problems
    assert len(problems) == 1 and "\n" not in problems[0]
    assert [word for word in words if word not in problems[0]] == []


def test_what_is_wrong_costs_that_line_alone():
    file = read('nonsense\n"detail" = "f6"\n"todo" = [\n"f7",\n"mode.cycle" = "f8"\n"repaint" = ["cmd+l", "f9"]\n')
    assert (found(file, "f6"), found(file, "f8"), found(file, "f9")) == ("detail", "mode.cycle", "repaint")
    assert [problem.partition(":")[0] for problem in file.problems] == ["1", "3", "4", "6"]


def test_a_file_that_swaps_two_keys_is_no_conflict():
    file = read('"detail" = "ctrl+t"\n"todo" = "ctrl+o"\n')
    assert (file.problems, found(file, "ctrl+t"), found(file, "ctrl+o")) == ([], "detail", "todo")
    file = read('"send" = "alt+enter"\n"newline" = ["enter", "ctrl+j"]\n')
    assert (file.problems, found(file, "enter"), found(file, "alt+enter")) == ([], "newline", "send")


@pytest.mark.parametrize("id", REQUIRED)
@pytest.mark.parametrize("value", ['"none"', '"cmd+q"', '["ctrl+m", "cmd+x"]'])
def test_nobody_can_lock_themselves_in(id, value):
    file = read(f'"{id}" = {value}')
    row = next(row for row in KEYS if row.id == id)
    assert file.bindings.labels(id)
    assert found(file, row.keys[0], (row.context, "transcript", "global")) == id
    assert file.problems


@pytest.mark.parametrize("id", ["detail", "steer", "mode.cycle", "approval.once", "picker.page_up"])
@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
def test_nothing_takes_the_last_key_that_leaves(id, key):
    file = read(f'"{id}" = "{key}"')
    context = next(row.context for row in KEYS if row.id == id)
    assert found(file, key, (context, "transcript", "global")) in ("escape", "cancel")
    assert len(file.problems) == 1
    assert read(f'"cancel" = "ctrl+q"\n"escape" = "f9"\n"{id}" = "{key}"').problems == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from([row.id for row in KEYS]),
            st.lists(
                st.sampled_from(sorted({normal_key(key) for row in KEYS for key in row.keys} - {"ctrl+h"})), max_size=3
            ),
        ),
        max_size=8,
    )
)
@example([("approval.confirm", ["f6"]), ("escape", ["f6"])])
def test_whatever_is_bound_one_can_leave_answer_and_send(overrides):
    file = read("\n".join(f'"{id}" = {keys!r}' for id, keys in overrides))
    by_id = {row.id: row for row in file.bindings.rows}
    for id in REQUIRED:
        keys = by_id[id].keys
        above = {
            key for row in file.bindings.rows if row.context == by_id[id].context and row.id != id for key in row.keys
        }
        assert set(keys) - above, id
    pairs = [(row.context, key) for row in file.bindings.rows for key in row.keys]
    assert len(pairs) == len(set(pairs))


@given(st.text(max_size=200))
def test_no_file_ends_in_a_fault(text):
    for problem in read(text).problems:
        assert problem.partition(":")[0].isdecimal()


def test_a_file_that_cannot_be_read_leaves_the_usual_keys(tmp_path: Path):
    assert read_key_file(tmp_path / "keys.toml") == KeyFile(default_bindings())
    (tmp_path / "keys.toml").mkdir()
    file = read_key_file(tmp_path / "keys.toml")
    assert file.bindings is default_bindings() and str(tmp_path) in file.problems[0]


def test_the_file_to_begin_with_names_everything_and_changes_nothing():
    text = key_file_text(KEYS, CONTEXT_TITLES)
    assert read(text).problems == [] and read(text).bindings.changed == frozenset()
    assert [row.id for row in KEYS if f'# "{row.id}" = ' not in text] == []
    bare = "\n".join(line.removeprefix("# ") for line in text.split("\n") if line.startswith('# "'))
    again = read(bare.replace('"ctrl+h"', '"f20"'))
    assert again.bindings.changed <= {"edit.backspace"}


def test_the_list_marks_what_is_changed_and_names_the_file():
    file = read('"detail" = "f6"')
    text = key_list(file.bindings, "/home/me/keys.toml")
    assert "* detail" in text and "F6" in text and "/home/me/keys.toml" in text and "* todo" not in text
    assert [row.id for row in KEYS if row.id not in text] == []


def test_the_editors_are_told_by_the_key_that_they_know():
    file = read('"edit.line_start" = "f6"\n"edit.undo" = "none"\n')
    assert file.bindings.editing("f6") == "ctrl+a"
    assert (file.bindings.editing("ctrl+a"), file.bindings.editing("home")) == ("", "")
    assert (file.bindings.editing("ctrl+_"), file.bindings.editing("shift+left")) == ("", "shift+left")
