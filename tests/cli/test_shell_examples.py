"""Every shell example of the documentation is run: each line of each ```sh block, with a scripted model.

The lines of a page run one after the other in one shell, in a copy of the sample project. What is not run here stands
in a table, with what runs it instead or the reason why nothing does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.core.harness import copy_sample
from tests.server import Call, Reply, Request, ServerThread

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# \S+/\S+\n")
"""Begins a block that is a file, by its name."""
SHELL = {"sh", "bash", "zsh", "shell", "console"}
MODEL = "openai-chat/test"
SCREEN = "it opens a screen; tests/terminal starts them"
NEEDS_NETWORK = "it installs something from the network"
BENCHMARK = "it takes Docker, a key and money; tests/frontend/harbor runs small tasks through the same agent"
OF_THE_READER = "a place, key or file that only the reader has"


class Example(NamedTuple):
    """One line of a page, with its continuations and without its comment."""

    page: str
    line: str


ELSEWHERE = {
    "docs/headless.md": ("", "test_headless_page.py", "test_an_example_runs"),
    "docs/batch.md": ("", "../frontend/batch/test_page.py", "test_l5_an_example_runs"),
    "docs/mcp.md": ("", "test_mcp.py", "test_every_command_of_the_page_runs_as_it_stands"),
    "docs/skills.md": ("", "test_skills.py", "test_j2_the_example_of_the_page_is_listed_checked_and_used"),
    "docs/plugins.md": ("", "test_plugins.py", "test_j7_every_command_of_the_page_runs_as_it_stands"),
    "docs/configuration.md": ("tenuto config", "test_config.py", "test_the_examples_of_the_document_do_what_they_say"),
    "docs/benchmarks/compaction.md": (
        "tenuto eval",
        "../evaluation/test_reporting.py",
        "test_s20_the_commands_of_the_page_are_understood",
    ),
}
"""Pages whose lines that begin so are run by a test of their own: the beginning, its file, its name."""
NOT_RUN = {
    Example(
        "docs/benchmarks/compaction.md",
        "llama-server -m SmolLM2-135M-Instruct.Q4_1.gguf -c 8192 -np 1 --jinja --port 18181",
    ): OF_THE_READER,
    Example("README.md", "./scripts/run"): SCREEN,
    Example("README.md", "./scripts/test"): "it runs this test",
    Example("docs/index.md", "uv tool install tenuto"): NEEDS_NETWORK,
    Example("docs/index.md", "tenuto"): SCREEN,
    Example("docs/tutorial.md", "tenuto"): SCREEN,
    Example("docs/tutorial.md", "export ANTHROPIC_API_KEY=sk-ant-…"): OF_THE_READER,
    Example("docs/tutorial.md", "export OPENAI_API_KEY=sk-…"): OF_THE_READER,
    Example("docs/tutorial.md", "tenuto --continue"): SCREEN,
    Example("docs/tutorial.md", "tenuto --resume"): SCREEN,
    Example("docs/local-models.md", "ollama pull qwen3-coder"): NEEDS_NETWORK,
    Example("docs/local-models.md", "tenuto --model ollama/qwen3-coder"): SCREEN,
    Example("docs/importing.md", "tenuto import ~/.codex/sessions/x.jsonl"): OF_THE_READER,
    Example("docs/importing.md", "tenuto import session-folder/"): OF_THE_READER,
    Example("docs/importing.md", "tenuto --resume ID"): SCREEN,
    Example("docs/acp.md", 'toad acp "tenuto acp"'): "Toad is a program of others, with a screen of its own",
    Example(
        "docs/acp.md", 'acpx --agent "tenuto acp" --approve-reads exec "what does this project do?"'
    ): "tests/acp/test_acpx.py drives it, where npm is",
    Example("docs/harbor.md", "uv tool install --python 3.12 --with tenuto harbor"): NEEDS_NETWORK,
    Example("docs/harbor.md", "harbor agent schema tenuto.frontend.harbor:TenutoAgent"): BENCHMARK,
    Example("docs/harbor.md", "export ANTHROPIC_API_KEY=…"): OF_THE_READER,
    Example("docs/harbor.md", "export OPENAI_API_KEY=…"): OF_THE_READER,
    Example(
        "docs/harbor.md",
        "harbor run -d terminal-bench/terminal-bench-2-1 -a tenuto.frontend.harbor:TenutoAgent "
        "-m anthropic/claude-opus-5-5 -n 4",
    ): BENCHMARK,
    Example("docs/harbor.md", "harbor download terminal-bench/terminal-bench-2-1 --export"): BENCHMARK,
    Example(
        "docs/harbor.md",
        "tenuto batch terminal-bench-2-1 -m anthropic/claude-opus-5-5 --jobs 4 --max-cost 3 --total-cost 100",
    ): BENCHMARK,
    Example(
        "docs/harbor.md",
        "harbor run -d swe-bench/swe-bench-verified -a tenuto.frontend.harbor:TenutoAgent -m openai/gpt-6 -n 4",
    ): BENCHMARK,
    Example(
        "docs/benchmarks/trajectories.md", "scripts/trajectories tests/trajectories/recordings"
    ): "tests/trajectories runs it, in the checkout",
    Example("docs/configuration.md", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 tenuto"): SCREEN,
    Example("docs/configuration.md", "uv tool install 'tenuto[otel]'"): NEEDS_NETWORK,
    Example("docs/configuration.md", 'eval "$(tenuto completion zsh)"'): "test_completion.py runs it, where zsh is",
    Example("docs/configuration.md", "tenuto completion fish | source"): "test_completion.py runs it, where fish is",
}
"""Lines that nothing runs as they stand, each with the reason."""
CODES = {
    Example("docs/approvals.md", 'tenuto approvals check --mode ask -- "cargo test && git push"'): 4,
}
"""Lines that end with another exit code than 0, as their page says."""


def examples(page: Path) -> list[Example]:
    """Return the shell lines of a page, in order."""
    name = str(page.relative_to(ROOT))
    found: list[Example] = []
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in SHELL and not FILE.match(text):
            whole = re.sub(r"\\\n\s*|(?<=\|)\n\s*", " ", text)
            lines = (re.sub(r"\s+#\s.*", "", line).strip() for line in whole.splitlines())
            found += [Example(name, line) for line in lines if line]
    return found


EXAMPLES = [example for page in PAGES for example in examples(page)]


def is_elsewhere(example: Example) -> bool:
    """Say whether another test runs this line."""
    return example.page in ELSEWHERE and example.line.startswith(ELSEWHERE[example.page][0])


HERE = [one for one in EXAMPLES if not is_elsewhere(one) and one not in NOT_RUN]


def answer(request: Request) -> Reply:
    """Do what the README's example for a mended test needs: a change. All else is answered."""
    if "fix the failing test" in request.last_user and all(item.kind != "call" for item in request.items):
        return Reply(tool_calls=[Call("write", {"path": "mended.txt", "content": "mended\n"})])
    return Reply("Done.")


# --- what a page takes for granted ---


def with_a_session(run: Callable[..., str], work: Path) -> dict[str, str]:
    """A session that is long enough to compact; its id stands for those of the page."""
    (work / "log.txt").write_text("".join(f"line {number} of a long log\n" for number in range(4000)))
    for number in range(6):
        run("-p", f"read log.txt, part {number}: " + "what does it say about the orders? " * 200)
    session = json.loads(run("sessions", "list", "--json").splitlines()[0])["id"]
    return {"ID": session, "3fa9": session}


def with_a_project_that_asks_for_trust(run: Callable[..., str], work: Path) -> dict[str, str]:
    """A project with an extension, here and in the place that the page names."""
    for project in (work, work.parent / "code" / "shop"):
        (project / ".tenuto" / "extensions").mkdir(parents=True)
        (project / ".tenuto" / "extensions" / "announce.py").write_text("def setup(tenuto): ...\n")
    return {"4e559852": json.loads(run("trust", "--json"))["items"][0]["id"]}


def blocks_of(page: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if kind == language]


def with_the_files_of_the_page(_run: Callable[..., str], work: Path) -> dict[str, str]:
    """The server and the extension that the page prints."""
    server, extension = blocks_of("docs/own-tools.md", "python")
    (work / "tickets.py").write_text(server)
    write_extension(work, "tickets", extension)
    return {}


def with_the_first_extension(_run: Callable[..., str], work: Path) -> dict[str, str]:
    """The first extension that the page prints."""
    write_extension(work, "announce", blocks_of("docs/extensions.md", "python")[0])
    return {}


def write_extension(work: Path, name: str, code: str) -> None:
    folder = work.parent / "home" / "extensions"
    folder.mkdir()
    (folder / f"{name}.py").write_text(code)


def with_a_change(_run: Callable[..., str], work: Path) -> dict[str, str]:
    """Something to review and to commit."""
    (work / "README.md").write_text("# Shop\n\nMended.\n")
    return {}


def with_an_empty_folder(_run: Callable[..., str], work: Path) -> dict[str, str]:
    """Nothing: the page makes its own project."""
    shutil.rmtree(work)
    work.mkdir()
    return {}


PREPARED = {
    "README.md": with_a_change,
    "docs/big-sessions.md": with_a_session,
    "docs/export.md": with_a_session,
    "docs/extensions.md": with_the_first_extension,
    "docs/own-tools.md": with_the_files_of_the_page,
    "docs/tutorial.md": with_an_empty_folder,
    "docs/trust.md": with_a_project_that_asks_for_trust,
}


# --- the tests ---


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and the programs of this environment before all others."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text(f'model = "{MODEL}"\n\n[models."{MODEL}"]\ncontext_window = 32000\n')
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": programs, "HOME": str(tmp_path), "TENUTO_HOME": str(home), "PAGER": "cat", "EDITOR": "true", **who}


@pytest.mark.parametrize("page", sorted({example.page for example in HERE}))
def test_k6_every_shell_example_of_a_page_runs(page, tmp_path, environ):
    lines = [example for example in HERE if example.page == page]
    if missing := [name for name in ("git", "jq") if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    work = copy_sample(tmp_path / "work")
    subprocess.run("git init -q && git add . && git commit -qm sample", shell=True, cwd=work, env=environ, check=True)
    with ServerThread(answer) as server:
        environ |= server.environ()

        def run(*words: str) -> str:
            done = subprocess.run(
                ["tenuto", *words], cwd=work, env=environ, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        stands_for = PREPARED[page](run, work) if page in PREPARED else {}
        done, codes = run_lines([example.line for example in lines], stands_for, work, environ)
    wanted = [CODES.get(example, 0) for example in lines]
    assert list(zip([example.line for example in lines], codes, strict=False)) == list(
        zip([example.line for example in lines], wanted, strict=True)
    ), done.stderr


def run_lines(
    lines: list[str], stands_for: dict[str, str], work: Path, environ: dict[str, str]
) -> tuple[subprocess.CompletedProcess[str], list[int]]:
    """Run lines in one shell; returns what it said, and the exit code of each. A pipe's is that of any part of it."""
    codes = work.parent / "codes"
    script = ["set -o pipefail"]
    for line in lines:
        line = re.sub(r'^eval "\$\((.*)\)"$', r"\1 > /dev/null && \g<0>", line)  # its own code is that of the result
        for word, value in stands_for.items():
            line = re.sub(rf"\b{word}\b", value, line)
        script += [line.replace("| less", "| cat"), f"echo $? >> {codes}"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=work, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done, [int(code) for code in codes.read_text().split()]


def test_k6_no_row_of_the_tables_is_dead():
    assert {one for one in NOT_RUN if one not in EXAMPLES or is_elsewhere(one)} == set()
    assert {one for one in CODES if one not in HERE} == set()
    assert set(PREPARED) <= {one.page for one in HERE}
    for page, (begin, file, name) in ELSEWHERE.items():
        assert any(one.page == page and one.line.startswith(begin) for one in EXAMPLES), page
        text = (Path(__file__).parent / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text and Path(page).name in text, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_k6_what_a_user_would_type_stands_in_a_block_of_shell(page):
    """A block of another kind would not be run."""
    others = [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind in ("", "text")]
    assert [
        line for text in others for line in text.splitlines() if re.match(r"(\$ )?(tenuto(?= |$)|scripts/|\./)", line)
    ] == []
