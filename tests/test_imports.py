"""What is imported when: start-up is a feature."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.server import Call, Reply, ServerThread

HEAVY = (
    "acp",
    "textual",
    "rich",
    "httpx",
    "httpx2",
    "h11",
    "anyio",
    "mcp",
    "lxml",
    "pydantic",
    "anthropic",
    "openai",
    "pygments",
    "tree_sitter",
    "tree_sitter_bash",
)

PROBE = """
import json, os, sys

def leave(code):
    raise SystemExit(code)

os._exit = leave  # the command leaves without taking the interpreter apart; we want a last look at it
sys.argv = ["tenuto", *{arguments!r}]
from tenuto.cli.main import main
try:
    main()
except SystemExit:
    pass
print("MODULES", json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(*arguments: str, environ: dict[str, str] | None = None, cwd=None) -> set[str]:
    """Return the names of packages, and of modules that are none's, that a run imports."""
    return {name.partition(".")[0] for name in modules_of(*arguments, environ=environ, cwd=cwd)}


def modules_of(*arguments: str, environ: dict[str, str] | None = None, cwd=None) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(arguments=list(arguments))],
        capture_output=True,
        text=True,
        env=environ,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    line = next(line for line in done.stderr.splitlines() if line.startswith("MODULES "))
    return set(json.loads(line.removeprefix("MODULES ")))


def modules_of_python() -> set[str]:
    code = "import asyncio, json, pathlib, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(argument):
    assert not imported_by(argument) & set(HEAVY)


def test_version_imports_almost_nothing():
    assert not imported_by("--version") & {"asyncio", "argparse", "msgspec", "typing", "pathlib"}


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai-chat", "gemini"])
def test_no_sdk_is_imported_over_the_wire_clients(tmp_path, protocol):
    with ServerThread([Reply("Hello.")]) as server:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **server.environ()}
        modules = imported_by("-p", "hello", "--model", f"{protocol}/test", environ=environ, cwd=tmp_path)
    assert len(server.requests) == 1
    assert not modules & {"anthropic", "openai", "httpx2", "textual", "rich", "pydantic"}
    assert not modules & {"httpx", "email", "http", "certifi"}


def test_the_offline_model_needs_no_http_library(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    modules = imported_by("-p", "hello", "--model", "offline/tenuto", environ=environ, cwd=tmp_path)
    assert not modules & {"httpx", "httpx2", "h11", "lxml", "anthropic", "openai", "textual"}


def test_the_parser_of_shell_comes_with_the_first_command(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    without = imported_by("-p", "hello", "--model", "offline/tenuto", environ=environ, cwd=tmp_path)
    assert not without & {"tree_sitter", "tree_sitter_bash"}
    call = Call("bash", {"command": "echo hello"})
    with ServerThread([Reply(tool_calls=[call]), Reply("Done.")]) as server:
        environ |= server.environ()
        modules = imported_by("-p", "run", "--model", "openai-chat/test", environ=environ, cwd=tmp_path)
    assert modules >= {"tree_sitter", "tree_sitter_bash"}


LATE = {
    "ssl",  # the first https address
    "shutil",
    "tempfile",
    "tomllib",  # settings that somebody has
    "tenuto.core.finding",  # --continue, --resume
    "tenuto.session.library.catalog",
    "tenuto.session.describe",
    "tenuto.guard.approval",  # the first call
    "tenuto.tool.process.process",  # the first command
    "tenuto.frontend.lines",  # --output-format
    "tenuto.compaction.summary",
    "tenuto.core.compacting.compact",
}


def test_a_one_shot_imports_what_it_uses(tmp_path):
    """The bound on their number keeps what was gained: each module takes a quarter of a millisecond.

    What asyncio and pathlib bring is another number on every Python.
    """
    with ServerThread([Reply("Hello.")]) as server:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **server.environ()}
        modules = modules_of("-p", "hello", "--model", "openai-chat/test", environ=environ, cwd=tmp_path)
    assert not modules & LATE
    assert len([name for name in modules if name.startswith("tenuto")]) < 195
    assert len(modules - modules_of_python()) < 250


MCP = {"mcp", "mcp_types", "anyio", "httpx2", "starlette"}


def test_nothing_of_mcp_is_imported_where_no_server_is_configured(tmp_path):
    """Also not where a project brings some: those are only named."""
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "sh"}}}')
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    modules = imported_by("-p", "hello", "--model", "offline/tenuto", environ=environ, cwd=tmp_path)
    assert not modules & MCP


def test_the_loop_of_a_session_imports_nothing_of_the_sdk():
    """The thread of the servers does that: an import of most of a second would hold up the screen."""
    probe = "import sys; import tenuto.tool.mcp.hub, tenuto.core.opening, tenuto.command.mcp_commands; "
    code = f"{probe} print([name for name in {sorted(MCP)} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_inline_screen_needs_no_framework():
    probe = "import sys, {module}; print([name for name in ('textual', 'rich') if name in sys.modules])"

    def loaded(module: str) -> str:
        code = probe.format(module=module)
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert loaded("tenuto.tui.full.app") == "['textual', 'rich']"
    assert loaded("tenuto.tui.inline.app") == "[]"
    assert loaded("tenuto.tui.inline.plain") == "[]"


def test_a_screen_is_up_before_the_core_is_imported():
    probe = """
import sys
from pathlib import Path
from tenuto.cli.arguments import Options
from tenuto.cli.start import runtime_start
runtime_start(Options(), Path("."), interactive=True)
import tenuto.tui.{screen}.app
late = ("tenuto.core.runtime", "tenuto.session.session", "tenuto.model.registry", "h11", "markdown_it", "pygments")
late += ("json",)
print([name for name in late if name in sys.modules])
"""
    for screen in ("full", "inline"):
        code = probe.format(screen=screen)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", screen
