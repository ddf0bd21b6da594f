"""What holds for the repository as a whole: its documents tell the truth, its files keep to the rules of the house."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.pictures.take import PICTURES

from tenuto.command.registry import COMMANDS
from tenuto.exit_codes import BAD_USAGE, CALLS_REFUSED
from tenuto.frontend.result import EXIT_CODES
from tenuto.tui.keys.bindings import key_label
from tenuto.tui.keys.keys import KEYS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_RUNS = [*PROJECT["dependencies"], *EXTRAS["documents"], *EXTRAS["cloud"], *EXTRAS["otel"]]
"""What a run imports, if only at the first file of a kind."""
FOR_DEVELOPMENT = [one for one in (*EXTRAS["docs"], *EXTRAS["test"], *EXTRAS["dev"]) if not one.startswith("tenuto[")]
MAX_LINES = 600
MAX_PICTURE_BYTES = 60_000
MACHINE_PLACES = ("work", "root")
"""Folders that stand for somebody's machine when a path begins with them."""
IMPORT_NAMES = {
    "agent-client-protocol": "acp",
    "tree-sitter": "tree_sitter",
    "tree-sitter-bash": "tree_sitter_bash",
    "markdown-it-py": "markdown_it",
    "cyclonedx-bom": "cyclonedx",
    "pyyaml": "yaml",
    "genai-prices": "genai_prices",
    "google-auth": "google",
    "google-genai": "google",
    "opentelemetry-sdk": "opentelemetry",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
}
PROGRAMS = {
    "basedpyright",
    "build",
    "import-linter",
    "mkdocs-material",
    "mkdocstrings",
    "ruff",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-xdist",
}
"""Development dependencies that are run, or loaded by pytest or by MkDocs, and not imported."""
OF_THE_SDKS = {"httpx2"}
"""What the official SDKs bring along; tests that use it are tests of the SDKs."""
HOSTS = {"harbor"}
"""What imports Tenuto, and not the other way round: its own part of it is imported where it is."""


def text_files() -> list[Path]:
    """The files that are committed, or will be, and are text."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    files = [ROOT / name for name in listed.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:4096]]


def table(heading: str, text: str = README) -> list[list[str]]:
    """The rows of the table whose head begins with `heading`."""
    found = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, f"no table that begins with “{heading}”"
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in found[1].splitlines()]


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@dataclass
class Outline:
    """What these tests ask about a module. Its tree is not kept: hundreds of them slow the collector down."""

    docstring: str | None
    imports: set[str]
    """The top-level packages that it imports, at any place in it."""


@functools.cache
def outline(path: Path) -> Outline:
    tree = ast.parse(path.read_bytes())
    names: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return Outline(ast.get_docstring(tree), {name.partition(".")[0] for name in names})


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that can stand on a line of its own, however deep."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, block, ())
        for child in children if isinstance(children, list) else ():
            yield child
            yield from statements(child)


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", requirement, maxsplit=1)[0] for requirement in requirements}


# --- the documents ---


def test_every_command_of_the_documents_is_there_and_executable():
    named = {
        name
        for file in DOCUMENTS
        for name in re.findall(r"(?:\./)?((?:scripts/|\.ci/)\w+)\b(?![./])", file.read_text())
    }
    assert {"scripts/run", "scripts/test", ".ci/run"} <= named
    for name in named:
        assert os.access(ROOT / name, os.X_OK), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = document if not path else document.parent / path
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


def test_the_readme_names_every_slash_command_and_no_other():
    named = [name.removeprefix("/") for row in table("command") for name in spans(row[0])]
    assert sorted(named) == sorted(command.name for command in COMMANDS)


def test_the_readme_names_only_keys_that_are_bound():
    bound = {key_label(key).lower() for row in KEYS for key in row.keys}
    named = [key for row in table("key") for key in spans(row[0])]
    assert len(named) > 10
    assert [key for key in named if key.lower() not in bound] == []


def test_the_readme_names_every_exit_code():
    assert {int(row[0]) for row in table("exit code")} == {*EXIT_CODES.values(), BAD_USAGE, CALLS_REFUSED}


def test_the_readme_names_every_option_and_no_other():
    from tenuto.cli.arguments import build_parser

    known = {option for action in build_parser()._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", README.partition("## Not supported yet")[0]))
    assert named <= known


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_are_small_and_name_nobody(name):
    picture = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert len(picture.encode()) <= MAX_PICTURE_BYTES
    assert "~/shop" in picture
    assert str(Path.home()) not in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched to show it"


def test_every_picture_is_shown_somewhere():
    texts = [
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/terminal.md", "docs/tutorial.md")
    ]
    assert [name for name in PICTURES if not any(f"pictures/{name}.svg" in text for text in texts)] == []
    assert {path.stem for path in (ROOT / "docs" / "pictures").iterdir()} == set(PICTURES)


def test_the_changelog_has_an_unreleased_section():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    assert found
    assert re.search(r"^- ", found[1], re.MULTILINE)


def test_the_map_of_the_house_names_files_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+(?:\.py|\.json|/))`", text))
    assert len(named) > 50
    places = (ROOT / "src" / "tenuto", ROOT)
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_map_of_the_house_is_what_the_code_says():
    """`scripts/house` draws it: a new folder, or another docstring, is in it at once."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "house", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# --- dependencies ---


def test_every_dependency_has_its_reason():
    decisions = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    requirements = [*FOR_RUNS, *FOR_DEVELOPMENT]
    assert [name for name in declared(requirements) if f"**{name}**" not in decisions] == []


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    dependencies = {IMPORT_NAMES.get(name, name) for name in declared(FOR_RUNS)}
    imported = set[str]().union(*(outline(path).imports for path in SOURCES))
    of_python = {*sys.stdlib_module_names, "annotationlib"}  # which is new in Python 3.14
    assert imported - of_python - {"tenuto"} - HOSTS == dependencies


def test_what_tests_and_scripts_import_is_declared_and_development_dependencies_have_a_use():
    tools = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    imported = set[str]().union(*(outline(path).imports for path in tools if "fixtures" not in path.parts))
    development = {IMPORT_NAMES.get(name, name) for name in declared(FOR_DEVELOPMENT)}
    dependencies = {IMPORT_NAMES.get(name, name) for name in declared(FOR_RUNS)}
    assert development - imported == PROGRAMS & development
    known = development | dependencies | OF_THE_SDKS | HOSTS | {"tenuto", "tests", "scripts"}
    assert imported - set(sys.stdlib_module_names) - known == set()


# --- the files ---


def test_modules_are_short():
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in SOURCES}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_modules_say_what_they_are_for():
    assert [str(path.relative_to(ROOT)) for path in SOURCES if not outline(path).docstring] == []


def test_no_file_names_a_place_on_somebodys_machine():
    place = re.compile(rf"(?<![\w.~}}-])/(?:{'|'.join(MACHINE_PLACES)})/")
    found = [
        str(file.relative_to(ROOT))
        for file in text_files()
        if place.search(file.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def test_every_test_folder_is_a_package():
    folders = {file.parent for file in (ROOT / "tests").rglob("test_*.py") if "fixtures" not in file.parts}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


# --- the tests ---

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}


def is_difference_of_clocks(node: ast.AST) -> bool:
    """Say whether an expression subtracts something from the present time, or the present time from something."""
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Sub)
        and any(
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in CLOCKS
            for call in ast.walk(part)
        )
        for part in ast.walk(node)
    )


def asserted_times(source: str) -> list[int]:
    """The lines with an assertion about how long something took."""
    if not any(f"{clock}(" in source for clock in CLOCKS):
        return []
    tree = ast.parse(source)
    measured = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_difference_of_clocks(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        and (
            is_difference_of_clocks(node.test)
            or any(isinstance(part, ast.Name) and part.id in measured for part in ast.walk(node.test))
        )
    ]


def test_no_test_asserts_how_long_something_took():
    """A machine under load is no fault of the program. To wait until a deadline is something else."""
    faults = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (lines := asserted_times(path.read_text(encoding="utf-8")))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        ("assert time.monotonic() - begun < 4", 1),
        ("took = loop.time() - begun\nassert took < 4", 1),
        ("assert time.monotonic() < deadline", 0),
    ],
)
def test_what_an_assertion_about_time_is(code: str, faults: int):
    assert len(asserted_times(code)) == faults


MATRIX = {
    "the wire": ("tests/model/test_transport.py", "test_an_answer_over_a_real_socket"),
    "connections": ("tests/model/test_connection.py", ""),
    "the race of addresses": ("tests/model/test_dialling.py", ""),
    "the executor": ("tests/core/test_agent.py", ""),
    "the queue": ("tests/core/test_queue.py", ""),
    "the full screen, piloted": ("tests/tui/full/test_app.py", ""),
    "the main job, headless": ("tests/terminal/test_main_job.py", "test_headless["),
    "the main job, full screen": ("tests/terminal/test_main_job.py", "[full]"),
    "the main job, inline": ("tests/terminal/test_main_job.py", "[inline]"),
}
"""What has to run on every Python: a file, and words in the name of a test."""


def test_the_matrix_has_all_that_depends_on_the_interpreter():
    files = sorted({file for file, _ in MATRIX.values()})
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--collect-only", "-m", "matrix and not full", *files]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    missing = [
        what
        for what, (file, words) in MATRIX.items()
        if not any(line.startswith(file) and words in line for line in listing)
    ]
    assert missing == []


def test_a_matrix_without_tests_fails():
    """pytest has an exit code of its own for a selection that is empty, and the script takes it for a failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "matrix and full", "-n", "1", "tests/text/test_tags.py"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode != 0
