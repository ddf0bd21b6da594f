"""One function writes text to the terminal; security.md S18."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenuto
from tenuto.guard.terminal import escape_json, sanitize_for_terminal

SOURCE = Path(tenuto.__file__).parent
ALLOWED = {
    "guard/terminal.py": "the door",
    "cli/main.py": "`--version`, a constant, before anything is imported",
    "cli/output.py": "the streams themselves",
    "engine/ray_engine.py": "keeps Ray's threads from writing",
    "tool/documents/pdf_text.py": "a child of ours that answers through a file",
    "tool/search/line_matcher.py": "a child of ours that answers through a pipe",
}
"""Files that write to standard output or standard error by themselves, and why."""
DRIVERS = {
    "tui/first_paint/screen.py": "the early frame",
    "tui/render/live.py": "a traceback, while standard error is the screen's own log",
    "tui/terminal/terminal.py": "takes the streams away from everybody while a screen is up",
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
HARMLESS = {"isatty", "fileno", "flush", "encoding", "errors", "buffer"}


def strange_writes(tree: ast.AST) -> Iterator[str]:
    """Calls of `print`, uses of the streams that may write, writes to descriptors 1 and 2, printed tracebacks."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            to_file = any(word.arg == "file" for word in node.keywords)
            if name == "print" or (name.startswith("traceback.print") and not to_file):
                yield f"{node.lineno}: {name}"
            if name in {"os.write", "os.fdopen", "open"} and node.args and is_standard(node.args[0]):
                yield f"{node.lineno}: {name}"
        if isinstance(node, ast.Attribute) and node.attr in STREAMS and ast.unparse(node.value) == "sys":
            parent = parents[node]
            if not (isinstance(parent, ast.Attribute) and parent.attr in HARMLESS):
                yield f"{node.lineno}: sys.{node.attr}"


def is_standard(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, 2) and not isinstance(node.value, bool)


def test_s18_nobody_else_writes_to_the_terminal() -> None:
    names = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {name: list(strange_writes(ast.parse(path.read_text(encoding="utf-8")))) for name, path in names.items()}
    assert {name: writes for name, writes in found.items() if writes and name not in ALLOWED | DRIVERS} == {}
    assert {name for name in ALLOWED if not found.get(name)} == set(), "these need not be in the list any more"


@pytest.mark.parametrize(
    "line",
    [
        "print(1)",
        "sys.stdout.write(x)",
        "sys.stderr.writelines(x)",
        "out = sys.stdout",
        "os.write(1, b'')",
        "traceback.print_exc()",
        "f(file=sys.stderr)",
        "sys.__stderr__.write('')",
    ],
)
def test_the_lint_sees_what_it_looks_for(line: str) -> None:
    assert list(strange_writes(ast.parse(line)))
    assert not list(strange_writes(ast.parse("sys.stderr.isatty(); os.write(handle, b''); f(file)")))


@given(
    st.text() | st.text(st.characters(min_codepoint=0x7F, max_codepoint=0x9F)) | st.sampled_from("\u202e\u2066\u061c")
)
def test_s18_escaped_json_is_the_same_value_and_says_nothing_to_a_terminal(text: str) -> None:
    import msgspec

    written = escape_json(msgspec.json.encode({"k": text}).decode())
    assert msgspec.json.decode(written) == {"k": text}
    assert sanitize_for_terminal(written) == written
