"""`tenuto sessions`: what is there, the bin and back, sums; real processes on a real home."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tenuto.session.session import Session
from tests.program import TENUTO

NAMES = ("The parser", "The lexer")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    from tenuto.protocol.entry import ModelEntry, TitleEntry
    from tenuto.protocol.message import AssistantMessage, UserMessage
    from tenuto.protocol.part import TextPart
    from tenuto.protocol.usage import Usage

    for name in NAMES:
        work = tmp_path / name.split()[1]
        work.mkdir()
        session = Session.create(tmp_path / "home", work, durability="none")
        session.append(UserMessage(parts=(TextPart(text=f"mend {name.lower()}"),)))
        session.append(
            AssistantMessage(
                parts=(TextPart(text="done"),), model="anthropic/test", usage=Usage(input=1_000, output=20, cost=0.5)
            )
        )
        session.append(TitleEntry(title=name))
        session.append(ModelEntry(model="anthropic/test"))
        session.close()
    return tmp_path / "home"


def tenuto(home: Path, *words: str, cwd: Path | None = None, typed: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TENUTO_HOME": str(home), "TZ": "UTC"}
    command = [*TENUTO, "sessions", *words]
    return subprocess.run(
        command, env=environ, cwd=cwd, input=typed, capture_output=True, text=True, timeout=60, check=False
    )


def ids(home: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in tenuto(home, "list", "--json").stdout.splitlines()]
    return {line["title"]: line["id"] for line in lines}


def test_list_finds_words_and_the_present_directory(home: Path, tmp_path: Path) -> None:
    assert len(tenuto(home).stdout.splitlines()) == 2
    assert "The lexer" in tenuto(home, "list", "LEXER", "mend").stdout
    assert tenuto(home, "list", "nothing-like-it").stdout == ""
    here = tenuto(home, "list", "--here", cwd=tmp_path / "parser").stdout
    assert "The parser" in here
    assert "The lexer" not in here


def test_show_tells_the_facts_and_the_damage(home: Path) -> None:
    found = ids(home)["The parser"]
    log = next(home.glob(f"sessions/*/{found}/events.jsonl"))
    before = log.read_bytes()
    log.write_bytes(before + b'{"seq": 99, "type": "user", half a line\n')
    shown = tenuto(home, "show", found[:8])
    assert shown.returncode == 0
    for words in ("The parser", "mend the parser", "anthropic/test", "1,000 tokens in", "damaged"):
        assert words in shown.stdout
    data = json.loads(tenuto(home, "show", found, "--json").stdout)
    assert (data["compactions"], len(data["damage"]), data["cost"]) == (0, 1, 0.5)
    assert log.read_bytes().startswith(before), "it is only read"


def test_stats_add_up(home: Path) -> None:
    shown = tenuto(home, "stats").stdout
    assert "2 sessions, 4 messages, 2 steps" in shown
    assert "anthropic/test: 2 sessions" in shown
    data = json.loads(tenuto(home, "stats", "--json").stdout)
    assert data["total"]["sessions"] == 2
    assert data["total"]["cost"] == 1.0


def test_delete_moves_to_the_bin_and_restore_brings_back(home: Path) -> None:
    found = ids(home)["The parser"]
    log = next(home.glob(f"sessions/*/{found}/events.jsonl"))
    content = log.read_bytes()
    gone = tenuto(home, "delete", found, "--yes")
    assert gone.returncode == 0
    assert "The parser" in gone.stdout, "listed first"
    assert list(ids(home)) == ["The lexer"]
    assert "The parser" in tenuto(home, "restore").stdout
    assert tenuto(home, "restore", found[:6]).returncode == 0
    assert set(ids(home)) == set(NAMES)
    assert log.read_bytes() == content


def test_nothing_is_deleted_without_a_yes(home: Path) -> None:
    found = ids(home)["The parser"]
    refused = tenuto(home, "delete", found, typed="y\n")
    assert refused.returncode == 1, "an answer from a pipe is nobody's"
    assert "--yes" in refused.stderr
    assert set(ids(home)) == set(NAMES)


def test_an_open_session_stays(home: Path) -> None:
    found = ids(home)["The parser"]
    session = Session.open(next(home.glob(f"sessions/*/{found}")))
    refused = tenuto(home, "delete", found, "--yes")
    session.close()
    assert refused.returncode == 1
    assert f"process {os.getpid()}" in refused.stderr
    assert set(ids(home)) == set(NAMES)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["unknown-word"], "sessions list | show"),
        (["show"], "sessions show --help"),
        (["show", "zzz"], "there is no session zzz"),
        (["delete", "zzz", "--yes"], "there is no session zzz"),
        (["restore", "zzz"], "in the bin"),
        (["list", "--wrong"], "sessions list --help"),
    ],
)
def test_bad_input_is_one_line(home: Path, words: list[str], said: str) -> None:
    refused = tenuto(home, *words)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert set(ids(home)) == set(NAMES)


def test_help_names_every_word_and_each_explains_itself(home: Path) -> None:
    shown = tenuto(home, "--help")
    words = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ")]
    assert (shown.returncode, shown.stderr) == (0, "")
    assert {"list", "export", "repair", "import"} <= set(words)
    for word in words:
        own = tenuto(home, word, "--help")
        assert own.returncode == 0
        assert own.stdout.startswith("usage: tenuto"), word
    unknown = tenuto(home, "lsit")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert all(word in unknown.stderr for word in words)
