"""Completion in real shells: what `tenuto completion SHELL` prints is loaded, and Tab is pressed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.cli.arguments import SUBCOMMANDS
from tests.program import TENUTO


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    (home / "sessions" / "p" / "abc-session").mkdir(parents=True)
    (home / "sessions" / "p" / "abc-session" / "events.jsonl").write_text("")
    beside = str(Path(sys.executable).parent)
    path = beside + os.pathsep + os.environ["PATH"]
    return {"PATH": path, "HOME": str(tmp_path), "TENUTO_HOME": str(home), "ANTHROPIC_API_KEY": "k"}


def ask(line: str, environ: dict[str, str]) -> list[str]:
    """What the program answers to a shell that asks at the end of this line."""
    given = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line.encode())), "COMP_TYPE": "9"}
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m tenuto 8>&1 9>/dev/null 1>/dev/null"],
        env=environ | given | {"_ARGCOMPLETE_IFS": "\n"},
        capture_output=True,
        text=True,
        check=False,
    )
    return [word.strip() for word in done.stdout.split("\n") if word.strip()]


def test_words_options_and_subcommands(environ):
    assert set(ask("tenuto ", environ)) >= set(SUBCOMMANDS)
    assert ask("tenuto conf", environ) == ["config"]
    assert {"--model", "--mode"} <= set(ask("tenuto --mo", environ))
    assert set(ask("tenuto config ", environ)) >= {"show", "get", "set", "unset", "edit", "schema"}
    assert "--json" in ask("tenuto sessions list --", environ)
    assert set(ask("tenuto sessions ", environ)) >= {"list", "show", "export"}
    assert set(ask("tenuto approvals check --mode ", environ)) >= {"ask", "edits", "auto", "plan"}


def test_models_keys_and_sessions_that_there_are(environ):
    assert any(word.startswith("anthropic/claude-") for word in ask("tenuto -m anthropic/cl", environ))
    assert ask("tenuto config get ui.the", environ) == ["ui.theme"]
    assert ask("tenuto sessions show ab", environ) == ["abc-session"]
    assert ask("tenuto -r ab", environ) == ["abc-session"]


@pytest.mark.parametrize(
    "line", ["", "tenuto nothing ", "tenuto config get 'ui", "tenuto \u00e9 --mo", "tenuto sessions nothing "]
)
def test_odd_lines_end_in_silence(environ, line):
    assert isinstance(ask(line, environ), list)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_takes(environ, shell):
    script = subprocess.run(
        [*TENUTO, "completion", shell], env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert "tenuto" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", "-c", script] if shell != "fish" else [shell, "-c", script], env=environ, check=True)


def test_bash_completes_at_tab(environ):
    """Ask bash itself, with what was loaded as a user loads it."""
    script = (
        'eval "$(tenuto completion bash)"; COMP_WORDS=(tenuto conf); COMP_CWORD=1; COMP_LINE="tenuto conf"; '
        'COMP_POINT=11; COMP_TYPE=9; _python_argcomplete tenuto; printf "%s" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "config", done.stderr
