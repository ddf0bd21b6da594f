"""What the offline model understands of a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.offline_requests import parse
from tenuto.model.offline_wishes import (
    AddTodo,
    Create,
    Explain,
    FindFiles,
    FinishTodo,
    Greet,
    Help,
    Look,
    Read,
    Replace,
    Run,
    RunTests,
    Search,
    ShowTodo,
    Thanks,
    Unknown,
)

UNDERSTOOD: dict[str, Any] = {
    "hello": [Greet()],
    "Hi there!": [Greet()],
    "help": [Help()],
    "What can you do?": [Help()],
    "how do I connect a real model?": [Help()],
    "thanks!": [Thanks()],
    "look around": [Look()],
    "please list the files": [Look()],
    "what's in this repo?": [Look()],
    "explain this project": [Look()],
    "ls src": [Look("src")],
    "list files in src/tenuto": [Look("src/tenuto")],
    "read README.md": [Read("README.md")],
    "Could you show me src/app.py?": [Read("src/app.py")],
    "read `my file.txt`": [Read("my file.txt")],
    "read “my file.txt”": [Read("my file.txt")],
    "open @src/app.py lines 10-20": [Read("src/app.py", 10, 20)],
    "read a.py line 7": [Read("a.py", 7, 0)],
    "read a.py, b.py and 'c d.py'": [Read("a.py"), Read("b.py"), Read("c d.py")],
    "search for TODO": [Search("TODO")],
    "search `def main` in src": [Search("def main", "src")],
    "search foo bar in src/": [Search("foo bar", "src/")],
    'search for "this and that" in README.md': [Search("this and that", "README.md")],
    "grep /fo+/ in src": [Search("fo+", "src", regular=True)],
    "where is Session defined?": [Search("Session")],
    "who calls load_settings?": [Search("load_settings")],
    "find *.py": [FindFiles("*.py")],
    "find all *.py files in src": [FindFiles("*.py", "src")],
    "find README.md": [FindFiles("README.md")],
    "find files ending in .toml": [FindFiles("*.toml")],
    "find parse_config": [Search("parse_config")],
    "run `ls -la | head`": [Run("ls -la | head")],
    "run echo then": [Run("echo then")],
    "$ git status": [Run("git status")],
    "git status --short": [Run("git status --short")],
    "make test": [Run("make test")],
    "run:\n```sh\nls\npwd\n```": [Run("ls\npwd")],
    "run the tests": [RunTests()],
    "replace foo by bar in a.py": [Replace("foo", "bar", "a.py")],
    'replace "hello, world" with "hi. all" in `b c.py`': [Replace("hello, world", "hi. all", "b c.py")],
    "change timeout = 10 to timeout = 20 in config.toml.": [Replace("timeout = 10", "timeout = 20", "config.toml")],
    "replace all foo with bar in a.py": [Replace("foo", "bar", "a.py", everywhere=True)],
    "rename foo to bar everywhere in a.py": [Replace("foo", "bar", "a.py", everywhere=True)],
    "create file notes.txt with hello world": [Create("notes.txt", "hello world\n")],
    'create a file called "my notes.md" containing: # Notes': [Create("my notes.md", "# Notes\n")],
    "create x.py with\n```python\nprint(1)\n\nprint(2)\n```": [Create("x.py", "print(1)\n\nprint(2)\n")],
    'write "x = 1" to a.py': [Create("a.py", "x = 1\n")],
    "create an empty file b.txt": [Create("b.txt", "")],
    "why did it fail?": [Explain()],
    "what went wrong": [Explain()],
    "explain the failure": [Explain()],
    "todo": [ShowTodo()],
    "todo: a; b, with a comma; c": [AddTodo(("a", "b, with a comma", "c"))],
    "add write docs to the todo list": [AddTodo(("write docs",))],
    "mark 1 and 2 as done": [FinishTodo((1, 2))],
    "mark all done": [FinishTodo((0,))],
    "mark the docs done": [FinishTodo(("the docs",))],
    "read a.py, then run the tests": [Read("a.py"), RunTests()],
    "replace foo by bar in a.py then run `make then` then todo": [
        Replace("foo", "bar", "a.py"),
        Run("make then"),
        ShowTodo(),
    ],
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_understood(text: str) -> None:
    assert parse(text) == UNDERSTOOD[text]


@pytest.mark.parametrize(
    "text",
    [
        "refactor the session module",
        "make it better",
        "make the tests pass",
        "go over the design and improve it",
        "read a.py, then refactor it thoroughly and with taste",
        "写一个编译器",
        "",
    ],
)
def test_not_understood_is_said_and_never_guessed(text: str) -> None:
    (wish,) = parse(text)
    assert isinstance(wish, (Unknown, Greet)) if text else isinstance(wish, Unknown)


@given(st.text(max_size=300))
def test_any_text_becomes_at_least_one_wish(text: str) -> None:
    assert parse(text)


@given(
    old=st.text(st.characters(exclude_characters="`\r", exclude_categories=["Cs"]), min_size=1, max_size=60),
    new=st.text(st.characters(exclude_characters="`\r", exclude_categories=["Cs"]), min_size=1, max_size=60),
)
def test_quoted_texts_are_taken_exactly(old: str, new: str) -> None:
    if old != new:
        assert parse(f"replace `{old}` by `{new}` in `a file.py`") == [Replace(old, new, "a file.py")]


@pytest.mark.parametrize("text", ["replace " + "x to y " * 20_000, "search " + "in a " * 20_000, "then " * 20_000])
def test_a_long_text_does_not_hang_the_parser(text: str) -> None:
    assert isinstance(parse(text)[0], Unknown)


def test_a_long_block_can_be_written_to_a_file() -> None:
    block = "\n".join(f"line {number}" for number in range(5_000))
    assert parse(f"create big.txt with\n```\n{block}\n```") == [Create("big.txt", f"{block}\n")]
