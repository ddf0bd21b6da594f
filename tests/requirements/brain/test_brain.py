"""What cost tasks with a frontier model, over HTTP on each protocol: B1, B2, B8, B12, B13, B15.

B3 is in `tests/contracts`, B4 and B6 in `tests/cli`, B5 in `tests/tool`, B7, B9, B10 and B14 in `tests/core`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.core.harness import PROTOCOLS, Agent, agent, one_call_each
from tests.server import Call, Reply, Request

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)


def asked_for(request: Request) -> int | None:
    """The longest answer that a request allows, whatever its wire calls that."""
    return next((value for name, value in request.body.items() if name.startswith("max_")), None)


def results(running: Agent) -> list[str]:
    return [item.text for item in running.server.requests[-1].items if item.kind == "result"]


def set_models_limit(tmp_path: Path, protocol: str, tokens: int) -> None:
    (tmp_path / "home").mkdir()
    text = f'[models."{protocol}/test"]\nmax_output_tokens = {tokens}\n'
    (tmp_path / "home" / "settings.toml").write_text(text)


@pytest.mark.parametrize("effort", ["", ":high"])
async def test_b1_an_answer_may_be_as_long_as_the_model_can(tmp_path, protocol, effort):
    set_models_limit(tmp_path, protocol, 64_000)
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test{effort}", options={"window": 200_000}) as running:
        assert (await running.ask("hi")).outcome == "completed"
        assert asked_for(running.server.requests[0]) == 64_000


async def test_b1_a_setting_stands_over_the_models_limit(tmp_path, protocol):
    set_models_limit(tmp_path, protocol, 64_000)
    environ = {"TENUTO_MAX_OUTPUT_TOKENS": "40000"}
    options = {"window": 200_000}
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test", options=options, environ=environ) as running:
        await running.ask("hi")
        assert asked_for(running.server.requests[0]) == 40_000


async def test_b1_no_more_is_asked_for_than_the_window_leaves(tmp_path, protocol):
    set_models_limit(tmp_path, protocol, 64_000)
    options = {"window": 30_000}
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test", options=options) as running:
        assert (await running.ask("word " * 8_000)).outcome == "completed"
        (request,) = running.server.requests
        tokens = asked_for(request)
        assert tokens is not None
        assert 10_000 < tokens < 30_000 - len(request.raw) // 4
        assert not running.server.refusals


async def test_b1_where_nobody_knows_the_limit_none_is_sent(tmp_path, protocol):
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test") as running:
        await running.ask("hi")
        assert (asked_for(running.server.requests[0]) is None) == (protocol != "anthropic")


async def test_b2_a_call_that_is_cut_off_is_told_as_that_and_done_in_parts(tmp_path, protocol):
    """A model that obeys is not stopped for making the same call again: nobody knows how the call would have ended."""
    lines = "".join(f"row {number}\n" for number in range(300))
    cut = Reply(tool_calls=[Call("write", json.dumps({"path": "rows.txt", "content": lines})[:700])], stop="max_tokens")
    parts = [lines[:1_000], lines[1_000:]]
    writes = [
        Reply(tool_calls=[Call("write", {"path": "rows.txt", "content": part, "append": bool(place)})])
        for place, part in enumerate(parts)
    ]
    async with agent(tmp_path, [*[cut] * 5, *writes, Reply("Written.")], model=f"{protocol}/test") as running:
        assert (await running.ask("write the rows")).outcome == "completed"
        told = results(running)
    assert all("cut off at its output limit" in text and "append" in text for text in told[:5])
    assert not any("JSON" in text for text in told[:5])
    assert (tmp_path / "work" / "rows.txt").read_text() == lines


SAID = [
    "cause, not the symptom",
    "nothing beside it",
    "has a library before you use it",
    "comments and files only where",
    "need not be read again",
    "refused is an answer",
    "git log and git blame",
    "nothing has to be hurried or saved up",
    "hard to take back, or leaves the machine",
    "# Before you finish",
    "<harness-note>",
]
"""B8: what four of five peers say."""


@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_b8_the_model_is_told_how_to_work(tmp_path, protocol, mode):
    async with agent(tmp_path, [Reply("hi")], model=f"{protocol}/test", mode=mode) as running:
        await running.ask("hi")
        text = running.server.requests[0].raw.decode()
    assert [words for words in SAID if words not in text] == []


async def test_b12_a_file_of_1_500_lines_takes_three_reads(tmp_path, protocol):
    (tmp_path / "work").mkdir()
    lines = [f"{number:04} " + "x" * 69 for number in range(1, 1_501)]
    (tmp_path / "work" / "long.txt").write_text("\n".join(lines))

    def script(request: Request) -> Reply:
        told = [item.text for item in request.items if item.kind == "result"]
        ahead = re.search(r"go on with offset=(\d+)", told[-1]) if told else None
        if told and ahead is None:
            return Reply("read")
        return Reply(tool_calls=[Call("read", {"path": "long.txt", "offset": int(ahead[1]) if ahead else 1})])

    async with agent(tmp_path, script, model=f"{protocol}/test", options={"window": 200_000}) as running:
        assert (await running.ask("read it")).outcome == "completed"
        assert len(results(running)) == 3
        shown = [row.partition("\t")[2] for text in results(running) for row in text.split("\n") if "\t" in row]
    assert shown == lines


async def test_b13_commands_see_the_environment_as_the_user_set_it(tmp_path, monkeypatch, protocol):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "env.sh").write_text("from_bash_env() { echo sourced; }\n")
    for name, value in {"BASH_ENV": str(tmp_path / "work" / "env.sh"), "CI": "1", "PAGER": "less"}.items():
        monkeypatch.setenv(name, value)
    call = Call("bash", {"command": "from_bash_env; echo CI=$CI PAGER=$PAGER"})
    async with agent(tmp_path, one_call_each(call), model=f"{protocol}/test") as running:
        await running.ask("look")
        (told,) = results(running)
    assert "sourced\nCI=1 PAGER=cat" in told


async def test_b15_a_notebook_is_read_as_its_cells(tmp_path, protocol):
    (tmp_path / "work").mkdir()
    output = {"output_type": "stream", "name": "stdout", "text": ["forty-two\n"]}
    code = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": ["print(x)"], "outputs": [output]}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [code]}
    (tmp_path / "work" / "study.ipynb").write_text(json.dumps(book))
    call = Call("read", {"path": "study.ipynb"})
    async with agent(tmp_path, one_call_each(call), model=f"{protocol}/test") as running:
        await running.ask("read it")
        (told,) = results(running)
    assert "--- cell 1 of 1: code [1] ---" in told
    assert "forty-two" in told
    assert "output_type" not in told
