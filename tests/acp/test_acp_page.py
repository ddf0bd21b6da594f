"""The examples of docs/acp.md: what is JSON is JSON, and the commands in them are started as they stand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tenuto.frontend.acp.session import STOP_REASONS
from tests.acp.client import environment
from tests.acp.test_acpx import ACPX, NODE
from tests.server import Reply, ScriptedServer

PAGE = (Path(__file__).parents[2] / "docs" / "acp.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SETTINGS = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
SCRIPTS = [text for kind, text in BLOCKS if kind == "sh"]


def started() -> list[list[str]]:
    """Return every command by which the page has a client start Tenuto."""
    servers = [one for settings in SETTINGS for one in settings["agent_servers"].values()]
    words = [[one["command"], *one["args"]] for one in servers]
    lua = next(text for kind, text in BLOCKS if kind == "lua")
    words.append(re.findall(r'"([^"]*)"', re.findall(r"default = \{([^}]*)\}", lua)[0]))
    words += [shlex.split(word) for text in SCRIPTS for word in shlex.split(text) if word.startswith("tenuto ")]
    return words


def environ(tmp_path: Path, server: ScriptedServer) -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**environment(tmp_path, server), "PATH": programs}


@pytest.mark.parametrize("words", started(), ids=" ".join)
async def test_what_clients_start_answers_them(tmp_path, words):
    assert len(started()) == 5
    async with ScriptedServer([]) as server:
        program = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environ(tmp_path, server)
        )
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        out, _ = await asyncio.wait_for(program.communicate(json.dumps(hello).encode() + b"\n"), 30)
        assert program.returncode == 0 and json.loads(out.splitlines()[0])["result"]["protocolVersion"] == 1


@pytest.mark.skipif(not (ACPX.exists() and NODE.exists()), reason="acpx is not there: scripts/acp-clients installs it")
async def test_the_example_with_acpx_runs_as_it_stands(tmp_path):
    (example,) = (text for text in SCRIPTS if text.startswith("acpx "))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "acpx").symlink_to(ACPX)
    async with ScriptedServer([Reply("It keeps lights.")]) as server:
        values = environ(tmp_path, server)
        values["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{NODE.parent}{os.pathsep}{values['PATH']}"
        program = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-e", "-c", example), stdout=asyncio.subprocess.PIPE, env=values, cwd=tmp_path
        )
        out, _ = await asyncio.wait_for(program.communicate(), 60)
        assert program.returncode == 0 and "It keeps lights." in out.decode()


def test_the_page_names_every_way_a_turn_ends():
    assert [reason for reason in STOP_REASONS.values() if f"`{reason}`" not in PAGE] == []
