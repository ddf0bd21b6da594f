"""`tenuto models` and a gateway by name (B6): real processes, real HTTP; the gateway is reached through a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.model.test_catalogue_refresh import published
from tests.model.tiny_server import TinyServer, always, plain
from tests.program import TENUTO
from tests.server import Reply, ServerThread

NOT_LOCAL = {"ANTHROPIC_BASE_URL": "http://gateway.example", "OPENAI_BASE_URL": "http://gateway.example/v1"}
MODELS = ("claude-opus-5-5", "claude-opus-5-7", "gpt-6.2-astra", "mystery")


def environ(tmp_path: Path, server: ServerThread, **more: str) -> dict[str, str]:
    """What makes the scripted server a gateway of another host: it is asked as a proxy, by that host's name."""
    keys = {"ANTHROPIC_API_KEY": "test", "OPENAI_API_KEY": "test", "HTTP_PROXY": server.base_url, **NOT_LOCAL}
    home = {"HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    return {"PATH": os.environ["PATH"], **keys, **home, **more}


def run(tmp_path: Path, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [*TENUTO, *words],
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("anthropic/claude-opus-5-5", 1_000_000),
        ("anthropic/claude-opus-5-7", 1_000_000),
        ("openai/gpt-6.2-astra", 1_050_000),
        ("openai-chat/anthropic/claude-opus-5-5", 1_000_000),
    ],
)
def test_b6_a_run_behind_a_gateway_knows_window_and_money(tmp_path: Path, model: str, window: int):
    with ServerThread([Reply("Hello.")], listed_window=0, models=MODELS) as server:
        done = run(tmp_path, environ(tmp_path, server), "-p", "hello", "--json", "--model", model)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    usage = [event for event in events if event["event"] == "context_usage"][-1]
    assert usage["window"] == window
    assert usage["trigger"] > 800_000
    assert usage["total"]["cost"] > 0


def test_b6_a_local_gateway_is_believed_and_nobody_else(tmp_path: Path):
    with ServerThread([Reply("Hello.")], listed_window=0, models=MODELS) as server:
        variables = environ(tmp_path, server) | server.environ()
        done = run(tmp_path, variables, "-p", "hello", "--json", "--model", "anthropic/claude-opus-5-5")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    usage = [event for event in events if event["event"] == "context_usage"][-1]
    assert usage["window"] is None
    assert usage["total"].get("cost") is None


def test_b6_what_is_assumed_is_said(tmp_path: Path):
    with ServerThread([], listed_window=0, models=MODELS) as server:
        variables = environ(tmp_path, server)
        context = run(tmp_path, variables, "-p", "/context", "--model", "anthropic/claude-opus-5-5").stdout
        nearest = run(tmp_path, variables, "-p", "/context", "--model", "anthropic/claude-opus-5-7").stdout
        chosen = run(tmp_path, variables, "-p", "/model", "--model", "anthropic/claude-opus-5-5").stdout
    assert "1,000,000 (by name: claude-opus-5-5)" in context
    assert "$4 / $20 per million tokens (by name: claude-opus-5-5)" in context
    assert "1,000,000 (nearest version: claude-opus-5-5)" in nearest
    rows = {line.split()[0]: line for line in chosen.splitlines() if "/" in line}
    assert "1000k window" in rows["anthropic/claude-opus-5-5"]
    assert rows["anthropic/claude-opus-5-5"].endswith("by name: claude-opus-5-5")
    assert rows["anthropic/claude-opus-5-7"].endswith("nearest version: claude-opus-5-5")
    assert "window" not in rows["anthropic/mystery"]


def test_b6_models_are_listed_with_their_numbers_and_where_those_come_from(tmp_path: Path):
    with ServerThread([], listed_window=0, models=MODELS) as server:
        variables = environ(tmp_path, server)
        text = run(tmp_path, variables, "models")
        data = run(tmp_path, variables, "models", "--json")
    assert text.returncode == data.returncode == 0, text.stderr + data.stderr
    rows = {line.split()[0]: line.split()[1:] for line in text.stdout.splitlines() if "/" in line}
    opus = ["1,000,000", "name", "128,000", "name", "4", "/", "20", "name", "claude-opus-5-5"]
    assert rows["anthropic/claude-opus-5-5"] == opus
    assert rows["anthropic/claude-opus-5-7"] == [word.replace("name", "nearest") for word in opus]
    assert rows["openai/mystery"] == ["?", "?", "?"]
    assert rows["offline/tenuto"][:2] == ["128,000", "provider"]
    assert "came with the program" in text.stdout
    found = json.loads(data.stdout)
    models = {model["model"]: model for model in found["models"]}
    assert set(models) == {
        name for name in rows if name.split("/")[0] in ("anthropic", "openai", "openai-chat", "offline")
    }
    assert models["openai/gpt-6.2-astra"]["assumed_from"] == "gpt-6-astra"
    assert models["openai/gpt-6.2-astra"]["price_source"] == "nearest"
    assert found["catalogue"]["fetched"] is False


async def test_b6_refresh_fetches_what_the_settings_name(tmp_path: Path):
    async with TinyServer(always(plain("200 OK", published()))) as place:
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TENUTO_HOME": str(tmp_path / "home"),
            "TENUTO_CATALOGUE__URL": place.base_url,
            **NOT_LOCAL,
        }
        done = await asyncio.to_thread(run, tmp_path, variables, "models", "refresh")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Fetched: 2 models of 2 providers")
        after = await asyncio.to_thread(run, tmp_path, variables, "models")
        assert "(fetched)" in after.stdout
        as_json = await asyncio.to_thread(run, tmp_path, variables, "models", "refresh", "--json")
        assert json.loads(as_json.stdout)["models"] == 2
    failed = await asyncio.to_thread(run, tmp_path, variables, "models", "refresh")
    assert failed.returncode == 1
    assert failed.stderr.startswith("tenuto: the catalogue stays as it is: ")
    listed = await asyncio.to_thread(run, tmp_path, variables, "models")
    assert "The last attempt to fetch one failed on" in listed.stdout
    assert "(fetched)" in listed.stdout


def test_a_damaged_catalogue_is_named_and_not_used(tmp_path: Path):
    cache = tmp_path / "home/cache"
    cache.mkdir(parents=True)
    (cache / "catalogue.json").write_text("{half")
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    done = run(tmp_path, variables, "models")
    assert "is not used: it is damaged" in done.stdout
    assert json.loads(run(tmp_path, variables, "models", "--json").stdout)["catalogue"]["ignored"]


def test_a_model_of_the_settings_that_cannot_be_used_hides_no_list(tmp_path: Path):
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    done = run(tmp_path, {**variables, "TENUTO_MODEL": "nonsense"}, "models")
    assert done.returncode == 0
    assert "offline/tenuto" in done.stdout
    assert "the model of the settings cannot be used: “nonsense” is not a model" in done.stderr


def test_words_that_it_does_not_know_are_bad_usage(tmp_path: Path):
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    assert run(tmp_path, variables, "models", "remove").returncode == 2


def test_the_list_has_a_column_for_what_is_assumed_only_where_something_is(tmp_path: Path):
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    shown = run(tmp_path, home, "models")
    assert "offline/tenuto" in shown.stdout and "assumed from" not in shown.stdout
    with ServerThread([], listed_window=0, models=("claude-opus-5-7",)) as server:
        shown = run(tmp_path, environ(tmp_path, server), "models")
    assert "assumed from" in shown.stdout.splitlines()[0]
