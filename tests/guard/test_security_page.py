"""docs/security.md against the tests and the code: each promise names a test that is there, each hole has one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tenuto.guard.protected import SECRET_FOLDERS
from tenuto.guard.sandbox.policy import SECRET_PLACES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
NUMBERS = [*(f"r{number:03}" for number in (37, 41, 75, *range(77, 89))), *(f"t{number}" for number in range(31, 40))]


@cache
def functions(file: Path) -> dict[str, str]:
    """The tests of a file, each with its docstring."""
    tree = ast.parse(file.read_text("utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in found if node.name.startswith("test_")}


def named() -> list[tuple[str, str]]:
    """The tests of the table; `::name` alone is one of the file before it in the row."""
    found: list[tuple[str, str]] = []
    for row in re.findall(r"^\| .* \| (`tests/.*) \|$", PAGE, re.MULTILINE):
        file = ""
        for start, name in re.findall(r"`(tests/[\w/.]+)?::(\w+)`", row):
            file = start or file
            found.append((file, name))
    return found


def test_each_test_that_the_page_names_exists() -> None:
    assert len(named()) > 40
    assert not [each for each in named() if each[1] not in functions(ROOT / each[0])]
    assert PAGE.count("`tests/") + PAGE.count("`::") == len(named()), "each is named in the table, with its file"


@pytest.mark.parametrize("number", range(1, 25))
def test_each_hole_that_was_found_is_held_by_a_test_of_the_page(number: int) -> None:
    """S1 to S24 of the review."""
    assert [name for _, name in named() if f"_s{number}_" in name]


@pytest.mark.parametrize("number", NUMBERS)
def test_each_requirement_of_safety_stands_at_a_test(number: str) -> None:
    """In its name or docstring; R-037, R-041, R-075, R-077 to R-088, T-31 to T-39."""
    spelled = f"{number[0].upper()}-{number[1:]}"
    tests = [each for file in (ROOT / "tests").rglob("test_*.py") for each in functions(file).items()]
    assert [name for name, said in tests if f"_{number}_" in f"{name}_" or spelled in said]


def test_the_page_names_what_is_hidden() -> None:
    (row,) = re.findall(r"^\| not read \| (.*) \|$", PAGE, re.MULTILINE)
    said = {name.removeprefix("~/") for name in re.findall(r"`(~/[\w./-]+)`", row)}
    assert said <= set(SECRET_PLACES)
    assert set(SECRET_FOLDERS) <= said
