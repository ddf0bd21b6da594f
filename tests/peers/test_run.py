"""L1: `scripts/bench peers` from end to end, with Tenuto and a newcomer: real processes, terminal and server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.bench_lib.peers.agent import PROGRAMS
from scripts.bench_lib.peers.network import NAMESPACE, PROXIES

ROOT = Path(__file__).parents[2]
TAKEN = ("start", "hello", "shell-50", "resume-1MB")
NEWCOMER = """\
name = "Newcomer"
package = "newcomer (npm)"
find = ["newcomer"]
protocol = "openai-chat"
prompt = "^> "
one_shot = ["-p"]

[answers]
"Is this right" = "y"

[environment]
NEWCOMER_URL = "${openai_url}"
NEWCOMER_KEY = "${key}"

[files]
"settings" = "trusted ${project}"

[unsupported]
shell-50 = "it has no tools"
"""
PROGRAM = """\
import json, os, pathlib, socket, sys, tty, urllib.request
home = pathlib.Path(os.environ["HOME"])
assert (home / "settings").read_text() == f"trusted {os.getcwd()}"
if "--version" in sys.argv:
    sys.exit("newcomer 3.2.1")
if "-p" in sys.argv:
    names = [name for _, name in socket.if_nameindex()]
    pathlib.Path(os.environ["TMPDIR"], "interfaces").write_text(json.dumps(names))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
    with urllib.request.urlopen(os.environ["NEWCOMER_URL"] + "/chat/completions", body) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])
    sys.exit()
tty.setraw(0)
if not (home / "answered").exists():
    os.write(1, b"Is this right?")
    while os.read(0, 1) != b"y":
        pass
    (home / "answered").touch()
os.write(1, b"\\r\\n> ")
while data := os.read(0, 100):
    os.write(1, data)
"""


@pytest.mark.terminal
def test_l1_the_command_measures_a_newcomer_too_says_what_is_missing_and_leaves_nothing_behind(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("tenuto.toml", "tenuto-inline.toml"):
        (programs / name).write_text((PROGRAMS / name).read_text())
    (programs / "newcomer.toml").write_text(NEWCOMER)
    (programs / "absent.toml").write_text(NEWCOMER.replace("ewcomer", "o-such-agent"))
    (tmp_path / "newcomer").write_text(f"#!{sys.executable}\n{PROGRAM}")
    (tmp_path / "newcomer").chmod(0o755)
    measure(tmp_path, programs)
    record = json.loads((tmp_path / "out/peers.json").read_text())
    taken = {(row["measure"], row["agent"]) for row in record["results"]}
    assert taken == {
        *((name, "Tenuto") for name in TAKEN),
        *((name, "Tenuto --inline") for name in ("start", "resume-1MB")),
        *((name, "Newcomer") for name in ("start", "hello")),
    }
    assert all(value >= 0 for row in record["results"] for value in row["values"])
    missing = {(row["measure"], row["agent"]): row["reason"] for row in record["not_measured"]}
    assert missing["shell-50", "Newcomer"] == "it has no tools"
    assert missing["resume-1MB", "Newcomer"]
    assert missing.keys() | taken == {(name, agent["name"]) for name in TAKEN for agent in record["agents"]}
    assert record["absent"] == {"No-such-agent": "not installed here (no-such-agent (npm))"}
    assert [agent["version"] for agent in record["agents"]][2] == "3.2.1"
    page = (tmp_path / "out/peers.md").read_text()
    assert "start: typed key shown" in page
    assert "(Newcomer)" in page
    assert record["network"] in (NAMESPACE, PROXIES)
    if record["network"] == NAMESPACE:
        assert json.loads((tmp_path / "interfaces").read_text()) == ["lo"]
    assert not list(tmp_path.glob("tenuto-bench-*"))


def measure(place: Path, programs: Path) -> None:
    """Run the command over these descriptions, with temporary files in `place`."""
    words = [sys.executable, "-m", "scripts.bench_lib", "peers", "--quiet", "--runs", "1", "--where", str(place)]
    words += ["--programs", str(programs), "--output", str(place / "out")]
    words += [word for name in TAKEN for word in ("--only", name)]
    environ = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(words, cwd=ROOT, env=environ, start_new_session=True) as process:
        try:
            assert process.wait(timeout=240) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
