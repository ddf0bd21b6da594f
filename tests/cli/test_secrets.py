"""One key, planted wherever a user may have one, and looked for in all that the program leaves (S7, S21, S22)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server import Call, HttpError, Reply, Request, ServerThread
from tests.terminal.pseudo import PseudoTerminal

SECRET = "tnt-7Qx9-planted-0451"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def echo(request: Request) -> Reply:
    """Look at the key in every way that a model has, then say what came of it."""
    results = [item.text for item in request.items if item.kind == "result"]
    if results:
        return Reply(f"It is {results[-1]}", thinking=f"hm, {results[0]}")
    calls = [
        Call("bash", {"command": "env; cat key.txt; tr a-z A-Z < key.txt | tr A-Z a-z"}),
        Call("bash", {"command": "cut -c1-9 key.txt | tr -d '\\n'; sleep 0.3; cut -c10- key.txt"}),
        Call("bash", {"command": "seq 1 9000; cat key.txt; seq 1 9000"}),
        Call("read", {"path": "key.txt"}),
        Call("grep", {"pattern": "planted"}),
    ]
    return Reply("", tool_calls=calls)


def everything_below(folder: Path) -> str:
    return "\n".join(
        path.read_bytes().decode("utf-8", "replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "auth.json" and path.name != "settings.toml"
    )


def plant(work: Path, home: Path, where: str) -> dict[str, str]:
    """Put the key where `where` says; return the variables of the run."""
    home.mkdir(parents=True, exist_ok=True)
    (work / "key.txt").write_text(f"{SECRET}\n")
    match where:
        case "variable":
            return {"ANTHROPIC_API_KEY": SECRET, "DEPLOY_TOKEN": SECRET}
        case "auth.json":
            (home / "auth.json").write_text(json.dumps({"anthropic": SECRET}))
        case "header":
            (home / "settings.toml").write_text(f'[providers.anthropic.headers]\nx-team = "Bearer {SECRET}"\n')
        case _:
            return {"GATEWAY": "url"}
    return {}


@pytest.mark.parametrize("where", ["variable", "auth.json", "header", "url"])
def test_s7_s21_one_planted_key_stands_in_no_sink(run: Run, tmp_path: Path, where: str):
    home = tmp_path / "home"
    with ServerThread(echo) as server:
        environ = plant(run.work, home, where)
        if where in {"auth.json"}:
            environ["ANTHROPIC_API_KEY"] = ""
        if environ.pop("GATEWAY", ""):
            environ["ANTHROPIC_BASE_URL"] = server.base_url.replace("//", f"//me:{SECRET}@")
        model = ("--model", "anthropic/test", "--mode", "auto")
        text = run("-p", "look", *model, server=server, environ=environ)
        events = run("-p", "look", "--json", *model, server=server, environ=environ)
        lines = run("-p", "look", "--output-format", "stream-json", *model, server=server, environ=environ)
        session = json.loads(lines.stdout.splitlines()[-1])["session_id"]
        exports = [
            run(
                "sessions",
                "export",
                session,
                "--format",
                form,
                "--output",
                str(tmp_path / f"out.{form}"),
                server=server,
            )
            for form in ("html", "md", "jsonl")
        ]
        bodies = [request.body for request in server.requests]
    assert [done.returncode for done in (text, events, lines, *exports)] == [0] * 6, text.stderr + exports[0].stderr
    sinks = {
        "log and outputs": everything_below(home),
        "stdout": text.stdout,
        "stderr": text.stderr + events.stderr + lines.stderr,
        "--json": events.stdout,
        "stream-json": lines.stdout,
        **{form: (tmp_path / f"out.{form}").read_text() for form in ("html", "md", "jsonl")},
        "what the model is sent": json.dumps(bodies),
    }
    assert [name for name, text in sinks.items() if SECRET in text] == []
    assert "[masked: " in sinks["log and outputs"]


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai-chat"])
def test_s21_a_refusal_that_echoes_the_key_is_masked(run: Run, tmp_path: Path, protocol: str):
    with ServerThread([HttpError(401, f"Incorrect API key provided: {SECRET}.")] * 3) as server:
        keys = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET}
        done = run("-p", "hi", "--model", f"{protocol}/test", server=server, environ=keys)
    assert done.returncode == 1
    assert "Incorrect API key provided" in done.stderr
    assert SECRET not in done.stdout + done.stderr + everything_below(tmp_path / "home")


def test_s21_credentials_in_an_address_are_masked_where_nothing_answers(run: Run, tmp_path: Path):
    environ = {"OPENAI_BASE_URL": f"http://me:{SECRET}@127.0.0.1:9/v1", "TENUTO_REQUEST__RETRIES": "0"}
    done = run("-p", "hi", "--model", "openai/test", environ=environ)
    assert done.returncode == 1
    assert SECRET not in done.stdout + done.stderr + everything_below(tmp_path / "home")


@pytest.mark.terminal
@pytest.mark.parametrize("screen", [[], ["--inline"]])
def test_s7_the_screen_shows_neither_a_known_key_nor_what_looks_like_one(tmp_path: Path, screen: list[str]):
    work = tmp_path / "work"
    work.mkdir()
    (work / "key.txt").write_text(f"{SECRET}\nAKIAIOSFODNN7EXAMPLE\n")

    def script(request: Request) -> Reply:
        if any(item.kind == "result" for item in request.items):
            return Reply("All seen.")
        return Reply("", tool_calls=[Call("read", {"path": "key.txt"}), Call("bash", {"command": "cat key.txt"})])

    with ServerThread(script) as server:
        environ = {**server.environ(), "DEPLOY_TOKEN": SECRET}
        arguments = ("--model", "anthropic/test", "--mode", "auto", *screen, "look")
        terminal = PseudoTerminal(work, tmp_path / "home", environ, *arguments)
        try:
            terminal.wait_for("All seen.")
            raw = terminal.output
        finally:
            terminal.close()
    assert SECRET.encode() not in raw
    assert b"AKIAIOSFODNN7EXAMPLE" not in raw


def test_a_mask_is_never_written_in_the_place_of_a_secret(run: Run):
    (run.work / "key.txt").write_text(f"{SECRET}\nport = 1\n")

    def script(request: Request) -> Reply:
        done = sum(item.kind == "result" for item in request.items)
        calls = [
            Call("read", {"path": "key.txt"}),
            Call("write", {"path": "key.txt", "content": "[masked: DEPLOY_TOKEN]\nport = 2\n"}),
            Call("edit", {"path": "key.txt", "old_string": "port = 1", "new_string": "port = 2"}),
        ]
        return Reply("", tool_calls=[calls[done]]) if done < len(calls) else Reply("Done.")

    with ServerThread(script) as server:
        done = run(
            "-p", "raise it", "--model", "anthropic/test", "--mode", "auto",
            server=server, environ={"DEPLOY_TOKEN": SECRET},
        )  # fmt: skip
    results = [item.text for item in server.requests[-1].items if item.kind == "result"]
    assert done.returncode == 0, done.stderr
    assert "That is a mask" in results[1]
    assert (run.work / "key.txt").read_text() == f"{SECRET}\nport = 2\n"


def test_the_setting_masks_what_is_sent_too(run: Run):
    (run.work / "key.txt").write_text("AKIAIOSFODNN7EXAMPLE\n")

    def script(request: Request) -> Reply:
        if any(item.kind == "result" for item in request.items):
            return Reply("Seen.")
        return Reply("", tool_calls=[Call("read", {"path": "key.txt"})])

    for value, is_sent in (("false", True), ("true", False)):
        with ServerThread(script) as server:
            run("-p", "x", "--model", "anthropic/test", server=server, environ={"TENUTO_TOOLS__MASK_SENT": value})
        assert ("AKIAIOSFODNN7EXAMPLE" in json.dumps(server.requests[-1].body)) is is_sent
