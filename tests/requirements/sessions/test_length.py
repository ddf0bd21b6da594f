"""What a long session and many sessions cost, and what never leaves the disk (R-069 to R-071, R-076, T-27, T-28)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.cli.sessions import run_sessions
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.library.catalog import find_session, list_bin, list_sessions
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tenuto.tool.search.matchers import ExpressionMatcher
from tenuto.tool.search.record import Question, recall
from tenuto.tool.search.search import Stop
from tests.core.harness import reopened
from tests.server import Call, Reply, Request, ScriptedServer
from tests.session.long import write_many, write_session

DAY = 86_400
OPENER = """
import json, resource, sys
from pathlib import Path
from tenuto.session.session import Session


def most() -> float:
    # The kernel's own peak of this program; what getrusage says begins with the parent's.
    if not Path("/proc/self/status").exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


before = most()
session = Session.open(Path(sys.argv[1]))
view = len(session.get_llm_history())
loads = session.loads
grown = most() - before
print(json.dumps([loads.bytes, view, grown, before + grown, session.highest_seq]))
session.close()
"""


def open_in_a_process(directory: Path) -> list[float]:
    """Return bytes read again, messages in the view, growth and peak of memory in MB, and the last seq."""
    done = subprocess.run([sys.executable, "-c", OPENER, str(directory)], capture_output=True, check=True, timeout=120)
    return json.loads(done.stdout)


def check_long(tmp_path: Path, entries: int, size: int) -> None:
    directory = write_session(tmp_path / "home", tmp_path, entries, size, "openai-chat/test")
    loaded, view, grown, peak, highest = open_in_a_process(directory)
    assert highest >= entries
    assert 1 < view < 2_000
    assert loaded < 4 << 20, "opening reads the end of the log"
    assert grown < 60, "and keeps little of it"
    assert peak < 300


def test_t27_r069_a_long_session_opens_at_the_cost_of_its_end(tmp_path):
    check_long(tmp_path, 20_000, 20_000_000)


@pytest.mark.full
def test_t27_r069_a_session_of_1_gb(tmp_path):
    check_long(tmp_path, 1_000_000, 10**9)
    shutil.rmtree(tmp_path / "home")


def test_t27_r069_r076_every_one_of_many_sessions_is_listed_and_opens(tmp_path, monkeypatch):
    from tenuto.session.library import meta

    home = tmp_path / "home"
    write_many(home, tmp_path, 120)
    monkeypatch.setattr(meta, "read_log", None)  # a picker that reads a log fails
    listed = list_sessions(home)
    assert len(listed) == 120
    for summary in listed:
        session = Session.open(summary.directory, read_only=True)
        assert (session.id, session.state.title) == (summary.id, summary.title)


@pytest.mark.full
def test_t27_r069_a_list_of_3000_sessions(tmp_path, monkeypatch):
    from tenuto.session.library import meta

    write_many(tmp_path / "home", tmp_path, 3_000)
    monkeypatch.setattr(meta, "read_log", None)
    assert len(list_sessions(tmp_path / "home")) == 3_000


def test_r069_a_search_through_everything_asks_few_questions(tmp_path, monkeypatch):
    asked = []
    real = ExpressionMatcher._ask

    def count(self, question):
        asked.append(question)
        return real(self, question)

    monkeypatch.setattr(ExpressionMatcher, "_ask", count)
    directory = write_session(tmp_path / "home", tmp_path, 12_000, 6_000_000, "openai-chat/test")
    session = Session.open(directory, read_only=True)
    found = recall(Question(query="^result 31:", regex=True), session.path(), session.store.outputs, Stop())
    assert "#31 " in found
    assert "1 match" in found
    assert len(asked) < 1_000, "batches, and each piece of the one where it is"


def shouting(request: Request) -> Reply:
    if any(item.kind == "result" for item in request.turn):
        return Reply("That was long.")
    return Reply(tool_calls=[Call("bash", {"command": "seq 1 700000"})])


async def test_r070_the_log_grows_by_a_reference_and_not_by_the_output(tmp_path):
    async with ScriptedServer(shouting) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("count")
            session = running.session
            (result,) = [entry for entry in session.path() if isinstance(entry, ToolResultMessage)]
            assert (session.directory / LOG_NAME).stat().st_size < 200_000
            (output,) = session.store.outputs.iterdir()
            assert output.stat().st_size > 4_000_000, "all of it is beside the log"
            assert str(output) in text_of(result.parts), "and the model is told where"


def contents(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


async def test_t28_r071_after_400_days_nothing_is_gone(tmp_path):
    now = [1_700_000_000.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    def script(request: Request) -> Reply:
        return shouting(request) if "count" in request.items[-1].text else Reply("fine")

    home = tmp_path / "home"
    async with ScriptedServer(script) as server:
        for text in ("count", "another one"):
            async with reopened(tmp_path, server, clock=clock) as running:
                await running.ask(text)
        before = contents(home / "sessions")
        old = {summary.id for summary in list_sessions(home)}
        assert len(old) == 2
        for path in home.rglob("*"):
            os.utime(path, (now[0], now[0]))
        now[0] += 400 * DAY
        async with reopened(tmp_path, server, clock=clock) as running:
            await running.ask("after a year")
            await running.runtime.run_command("/resume")
        async with reopened(tmp_path, server, clock=clock, resume=min(old)) as running:
            assert running.session.id == min(old), "it opens as on the first day"
    after = contents(home / "sessions")
    changed = {path for path in before if not after.get(path, b"").startswith(before[path])}
    assert {path.name for path in changed} <= {"meta.json", "lock"}, "what is kept anew with every opening"
    assert old < {summary.id for summary in list_sessions(home)}


def test_r071_deleting_lists_first_and_moves_to_a_bin(tmp_path, capsys):
    home = tmp_path / "home"
    directory = write_session(home, tmp_path, 20, 2_000, "openai-chat/test")
    whole = (directory / LOG_NAME).read_bytes()
    assert run_sessions(("delete", directory.name, "--help"), home, {}) == 0
    assert directory.is_dir()
    run_sessions(("delete", directory.name), home, {})
    said = capsys.readouterr()
    assert directory.is_dir(), "without a yes nothing is moved"
    assert directory.name[:8] in said.out + said.err
    assert run_sessions(("delete", directory.name, "--yes"), home, {}) == 0
    assert find_session(home, directory.name) is None
    (moved,) = list_bin(home)
    assert (moved / LOG_NAME).read_bytes() == whole
    assert run_sessions(("restore", directory.name), home, {}) == 0
    assert (directory / LOG_NAME).read_bytes() == whole
