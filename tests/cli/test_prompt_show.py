"""H10: what is sent first can be seen, and has a limit. `tenuto prompt show` is compared with what a server gets."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import tty
from pathlib import Path

import pytest

from tenuto.cli.prompting import NotSentError, divide_request, record_request
from tenuto.protocol.model import Family
from tests.cli.conftest import TENUTO
from tests.cli.first_request import (
    FAMILIES,
    LIMIT,
    MODES,
    PAGE,
    PLACE_TOKENS,
    TOOLS,
    environment_tokens,
    mode_tokens,
    system_tokens,
    tool_tokens,
    with_table,
)
from tests.server import Reply, ServerThread

MODELS = {"anthropic": "anthropic/test", "openai": "openai/test", "openai-chat": "openai-chat/test"}
NAMES: dict[Family, str] = {"claude": "claude-x", "gpt": "gpt-x", "gemini": "gemini-x", "other": "x"}
BOUND = re.compile(r'"prompt_cache_key":"[^"]*"')
"""The one field that names the session."""


def unbound(body: str) -> str:
    return BOUND.sub('"prompt_cache_key":"…"', body)


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def home(tmp_path):
    """A home in which no list of models has to be asked for, so that two runs know the same."""
    home = tmp_path / "home"
    home.mkdir()
    windows = [f'[models."{model}"]\ncontext_window = 100000\n' for model in MODELS.values()]
    (home / "settings.toml").write_text("\n".join(windows))
    (home / "AGENTS.md").write_text("Answer in rhymes.\n")
    return home


@pytest.mark.parametrize("protocol", MODELS)
@pytest.mark.parametrize("options", [(), ("--mode", "plan")], ids=["", "plan"])
def test_h10_the_body_is_byte_for_byte_what_a_run_sends(run, tmp_path, home, protocol, options):
    (run.work / "notes.txt").write_text("forty-two\n")
    (run.work / "AGENTS.md").write_text("Use tabs.\n")
    words = ("--model", MODELS[protocol], *options, "explain @notes.txt – please")
    before = everything_in(home)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with ServerThread([Reply("ok")]) as server:
        shown = run("prompt", "show", "--json", *words, server=server, environ={"TMPDIR": str(temporary)})
        assert (shown.returncode, shown.stderr) == (0, "")
        assert server.all_requests == [], "nothing is sent"
        assert everything_in(home) == before, "nothing is left"
        assert everything_in(temporary) == []
        done = run("-p", *words, server=server)
    assert done.returncode == 0, done.stderr
    [request] = server.requests
    assert not server.refusals
    assert unbound(shown.stdout) == unbound(request.raw.decode()) + "\n"
    assert (BOUND.search(shown.stdout) is not None) == (protocol == "openai")
    for text in ("Answer in rhymes.", "Use tabs.", "forty-two"):
        assert text in shown.stdout


@pytest.mark.parametrize("protocol", MODELS)
def test_h10_the_parts_are_readable_and_their_tokens_add_up(run, home, protocol):
    with ServerThread([Reply("ok")]) as server:
        environ = {**server.environ(), "ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
        shown = run("prompt", "show", "fix", "it", "--model", MODELS[protocol], environ=environ)
    assert (shown.returncode, shown.stderr) == (0, ""), "no key is needed"
    headings = re.findall(r"^# (.+) \((?:([\d,]+) tokens?|not read by the model)\)$", shown.stdout, re.MULTILINE)
    names = [name for name, _ in headings]
    tools = [f"Tool: {name}" for name in tool_tokens("other")]
    assert names == ["System prompt", "Instruction files", "Prompt", "Note", "Note", "Note", *tools, "Other fields"]
    total = sum(int(tokens.replace(",", "") or 0) for _, tokens in headings)
    assert shown.stdout.count(f"about {total:,} tokens") == 2
    assert f"Working directory: {run.work}" in shown.stdout
    assert 'model: "test"' in shown.stdout


def test_h10_the_bytes_do_not_depend_on_the_encoding_of_the_output(run, home):
    words = ("prompt", "show", "--json", "--model", "anthropic/test", "größer \u202e als")
    shown = [run(*words, environ={"PYTHONIOENCODING": name}).stdout for name in ("utf-8", "ascii")]
    assert "größer \u202e als" in shown[0]
    assert shown[0] == shown[1]


def test_h10_a_terminal_gets_the_same_value_without_what_it_would_obey(run, home):
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    words = ("prompt", "show", "--json", "--model", "anthropic/test", "turned \u202e round")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TENUTO_HOME": str(home)}
    with subprocess.Popen(
        [*TENUTO, *words], stdin=subprocess.DEVNULL, stdout=theirs, env=environ, cwd=run.work
    ) as program:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # Linux tells the end of a terminal that way
            while data := os.read(ours, 65_536):
                shown += data
    os.close(ours)
    assert program.returncode == 0
    assert "\u202e" not in shown.decode()
    assert json.loads(shown)["messages"][0]["content"][0]["text"] == "turned \u202e round"


def test_h10_no_key_of_the_user_is_shown(run, home):
    environ = {"ANTHROPIC_API_KEY": "sk-very-secret"}
    for options in ((), ("--json",)):
        shown = run("prompt", "show", "--model", "anthropic/test", *options, environ=environ)
        assert shown.returncode == 0, shown.stderr
        assert "sk-very-secret" not in shown.stdout + shown.stderr


def test_h10_without_model_and_key_it_says_for_which_model_it_is(run):
    shown = run("prompt", "show", "--json")
    model = json.loads(shown.stdout)["model"]
    assert shown.returncode == 0
    assert f"anthropic/{model}" in shown.stderr
    assert "--model" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "nonsense"], ["provider/name"]),
        (["--model", "nobody/test"], ["nobody", "anthropic"]),
        (["--model", "offline/tenuto"], ["offline/tenuto", "--model"]),
        (["--model", "openai/gpt-6-sol:hihg"], ["hihg", "did you mean openai/gpt-6-sol:high?"]),
        (["--mode", "paln"], ["paln", "did you mean plan"]),
        (["--cwd", "/nowhere"], ["/nowhere"]),
        (["--frobnicate"], ["--frobnicate", "tenuto prompt show --help"]),
        (["/compact"], ["/compact", "command"]),
    ],
)
def test_h10_bad_input_gives_one_clear_line(run, tmp_path, arguments, words):
    done = run("prompt", "show", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "home" / "sessions").exists()


def test_a_prompt_that_begins_with_the_word_is_told_how_to_be_sent(run):
    done = run("prompt", "engineering", "is", "dead")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tenuto -p prompt" in done.stderr
    with ServerThread([Reply("ok")]) as server:
        done = run("-p", "prompt", "engineering", "--model", "openai-chat/test", server=server)
    assert done.returncode == 0, done.stderr
    assert "prompt engineering" in server.requests[0].items[-1].text


def test_h10_what_would_not_be_sent_is_said(run, home):
    (home / "settings.toml").write_text('[models."openai-chat/test"]\ncontext_window = 8000\n')
    done = run("prompt", "show", "--model", "openai-chat/test", "word " * 20_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not fit" in done.stderr


async def test_a_prompt_that_is_too_long_raises(tmp_path):
    (tmp_path / "settings.toml").write_text('[models."openai/test"]\ncontext_window = 8000\n')
    with pytest.raises(NotSentError, match="does not fit"):
        await record_request("word " * 20_000, tmp_path, tmp_path, {}, model="openai/test")


@pytest.mark.parametrize("family", TOOLS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("protocol", MODELS)
async def test_h10_the_first_request_stays_under_its_limit(tmp_path, protocol, mode, family):
    work = tmp_path / "work"
    work.mkdir()
    model = f"{protocol}/{NAMES[family]}"
    request = await record_request("…", work, tmp_path / "home", {}, model=model, mode=mode)
    assert request.warnings == ()
    parts = divide_request(request.body)
    system, prompt, environment, place, about_mode, *tools, others = parts
    theirs = [tools.pop().name] if tools[-1].name.startswith("The provider's tool") else []
    searches = protocol == "openai" or (protocol == "anthropic" and mode != "plan")
    assert theirs == (["The provider's tool: web_search"] if searches else [])
    assert (system.name, system.tokens) == ("System prompt", system_tokens(family))
    assert prompt.name == "Prompt"
    assert (environment.name, place.name, about_mode.name) == ("Note", "Note", "Note")
    assert environment.tokens < 2 * environment_tokens() + len(os.fspath(work))
    assert place.tokens <= PLACE_TOKENS
    assert about_mode.tokens == mode_tokens(mode, alone=True)
    sizes = {f"Tool: {name}": size for name, size in tool_tokens(family).items()}
    assert [tool.name for tool in tools] == list(sizes)
    for tool in tools:  # of two forms of a tool the larger one is told
        assert tool.tokens <= sizes[tool.name] < tool.tokens + (150 if tool.name == "Tool: apply_patch" else 1)
    assert others.tokens == 0
    assert sum(part.tokens for part in parts) + PLACE_TOKENS - place.tokens < LIMIT
    assert mode_tokens(mode, alone=False) <= mode_tokens(mode, alone=True), "on a screen it is not larger"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", MODELS)
async def test_b11_the_first_request_stays_under_its_limit_in_every_family(tmp_path, protocol, family):
    work = tmp_path / "work"
    work.mkdir()
    model = f"{protocol}/{NAMES[family]}"
    for mode in MODES:
        request = await record_request("…", work, tmp_path / "home", {}, model=model, mode=mode)
        parts = divide_request(request.body)
        assert parts[0].tokens == system_tokens(family)
        place = next(part.tokens for part in parts[3:])
        assert sum(part.tokens for part in parts) + PLACE_TOKENS - place < LIMIT
    own = system_tokens(family) - system_tokens("other")
    assert (0 < own <= 60) or (own == 0 and family == "other")


def test_h10_the_page_has_the_table():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "python -m tests.cli.first_request writes it"
