"""Every command that lists or shows answers with JSON too; what takes its time says so on a terminal and only there."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from tenuto.cli.arguments import SUBCOMMANDS
from tests.session.build import new_session, user

LISTING = [
    ["sessions", "list"],
    ["sessions", "show", "ID"],
    ["sessions", "stats"],
    ["sessions", "export", "ID"],
    ["sessions", "compact", "ID", "--dry-run"],
    ["sessions", "repair", "ID"],
    ["sessions", "delete", "ID", "--yes"],
    ["models"],
    ["import"],
    ["prompt", "show"],
    ["approvals", "list"],
    ["approvals", "check", "--", "ls"],
    ["doctor"],
    ["sandbox"],
    ["trust"],
    ["hooks"],
    ["skills"],
    ["mcp"],
    ["mcp", "list"],
    ["plugins"],
    ["extensions"],
    ["login"],
    ["search", "mend"],
    ["config", "show"],
    ["config", "get", "mode"],
    ["stats"],
]
ACTING = {"acp", "batch", "completion", "config schema", "eval", "logout"}
"""What shows nothing that is not JSON, or what a program reads, by itself."""


@pytest.mark.parametrize("words", LISTING, ids=" ".join)
def test_what_lists_or_shows_answers_with_json(run, tmp_path, words):
    session = new_session(tmp_path / "home")
    session.append(user("mend it"))
    session.close()
    words = [session.id if word == "ID" else word for word in words]
    place = words.index("--") if "--" in words else len(words)
    done = run(*words[:place], "--json", *words[place:])
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    assert lines
    for line in lines:
        json.loads(line)


def test_no_subcommand_was_forgotten():
    tried = {words[0] for words in LISTING} | {name.split()[0] for name in ACTING}
    assert tried == set(SUBCOMMANDS)


@pytest.mark.parametrize(
    "words", [["sessions", "list"], ["sessions", "list", "nothing"], ["search", "nothing"]], ids=" ".join
)
def test_an_empty_list_says_so_beside_what_a_pipe_gets(run, words):
    done = run(*words)
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1)
    silent = run(*words, "--json")
    assert (silent.stdout, silent.stderr, silent.returncode) == ("", "", done.returncode)


def test_the_bin_as_json_and_what_came_back(run, tmp_path):
    session = new_session(tmp_path / "home")
    session.append(user("mend it"))
    session.close()
    moved = json.loads(run("sessions", "delete", session.id, "--yes", "--json").stdout)
    assert moved["id"] == session.id
    assert os.path.isdir(moved["directory"])
    listed = json.loads(run("sessions", "restore", "--json").stdout)
    assert (listed["id"], listed["first_text"], listed["directory"]) == (session.id, "mend it", moved["directory"])
    back = json.loads(run("sessions", "restore", session.id, "--json").stdout)
    assert back == {"id": session.id, "directory": str(session.directory)}


def test_repair_as_json_names_the_damage(run, tmp_path):
    session = new_session(tmp_path / "home")
    session.append(user("mend it"))
    session.close()
    with (session.directory / "events.jsonl").open("ab") as log:
        log.write(b'{"type": half\n')
    done = json.loads(run("sessions", "repair", session.id, "--json").stdout)
    assert done["id"] == session.id
    assert done["entries"] == 2
    assert len(done["damage"]) == 1


SLOW = """
import threading
from tenuto.cli import progress
shown = threading.Event()
write = progress.write_status
progress.PATIENCE = 0.01
progress.INTERVAL = 0.0
def watch(text):
    write(text)
    shown.set()
progress.write_status = watch
with progress.working("Reading the log"):
    shown.wait()
shown.clear()
with progress.progress("Reading sessions") as tell:
    done = 0
    while not shown.is_set():
        done += 1
        tell(done, 3_000_000_000)
"""


def test_work_shows_on_a_terminal_and_is_gone_when_it_is_done():
    outer, inner = pty.openpty()
    subprocess.run([sys.executable, "-c", SLOW], stderr=inner, check=True, timeout=60)
    os.close(inner)
    told = os.read(outer, 100_000).decode()
    os.close(outer)
    assert "Reading the log, 0 s" in told
    assert " of 3,000,000,000" in told
    assert told.endswith("\r\x1b[K")


def test_nothing_of_it_is_written_where_there_is_no_terminal():
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
