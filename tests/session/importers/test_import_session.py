"""The edge of an import: the source is only read, the session appears whole or not at all, a second import is known."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.message import ToolResultMessage
from tenuto.session.importers.import_session import (
    FORMATS,
    MAX_RESULT_CHARACTERS,
    STAGING,
    NotImportable,
    find_marks,
    find_sources,
    import_source,
    matching_marks,
    open_source,
)
from tenuto.session.library.catalog import list_sessions
from tenuto.session.session import Session
from tests.session.importers import sources
from tests.session.importers.reading import bring, check_view, of
from tests.session.importers.sources import CWD, FILES, write_all_sources, write_lines


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_sources_are_only_read(tmp_path):
    person = tmp_path / "person"
    paths = write_all_sources(person)
    before = snapshot(person)
    for path in paths.values():
        path.chmod(0o400)
        import_source(open_source(path), tmp_path / "home")
    assert snapshot(person) == before


def test_sessions_are_found_in_the_agents_usual_places(tmp_path):
    person = tmp_path / "person"
    paths = write_all_sources(person)
    write_lines(person / ".claude/projects/-home-ada-clock/agent-1.jsonl", sources.claude_session())
    (person / ".codex/sessions/2026/05/01/rollout-empty.jsonl").write_bytes(b"")
    found = find_sources({}, person)
    assert {source.format.name: source.path for source in found} == paths
    assert {source.name for source in found} == {"Why does the clock stop?", "Clock that stops"}
    assert {source.format.name for source in found} == {known.name for known in FORMATS}


@pytest.mark.parametrize(
    ("variable", "folder", "name"),
    [
        ("CLAUDE_CONFIG_DIR", ".claude", "claude-code"),
        ("CODEX_HOME", ".codex", "codex"),
        ("PI_CODING_AGENT_DIR", ".pi/agent", "pi"),
        ("KIMI_CODE_HOME", ".kimi-code", "kimi-code"),
        ("KIMI_SHARE_DIR", ".kimi", "kimi-cli"),
    ],
)
def test_places_that_the_agents_variables_name_are_looked_in(tmp_path, variable, folder, name):
    write_all_sources(tmp_path / "elsewhere")
    found = find_sources({variable: str(tmp_path / "elsewhere" / folder)}, tmp_path / "person")
    assert [source.format.name for source in found] == [name]


def test_the_session_lies_where_its_project_is_and_is_private(tmp_path):
    old = os.umask(0)
    try:
        session, made = bring(tmp_path, sources.claude_session())
    finally:
        os.umask(old)
    assert str(session.cwd) == CWD
    assert [summary.id for summary in list_sessions(tmp_path / "home", Path(CWD))] == [made.id]
    for path in (tmp_path / "home").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_session_is_listed_by_when_it_took_place(tmp_path):
    _, made = bring(tmp_path, sources.claude_session())
    (summary,) = list_sessions(tmp_path / "home")
    assert (summary.title, summary.messages, summary.updated) == ("Clock that stops", 6, 1_777_629_617.25)
    assert made.id.endswith("-20260501-100001")
    assert (made.directory / "events.jsonl").stat().st_mtime == pytest.approx(summary.updated)


def test_a_result_that_fits_no_request_is_kept_in_a_file(tmp_path):
    lines = sources.pi_session()
    whole = "first line\n" + "x" * (2 * MAX_RESULT_CHARACTERS) + "\nlast line"
    lines[4]["message"]["content"][0]["text"] = whole
    session, _ = bring(tmp_path, lines)
    (result,) = [entry for entry in of(session, ToolResultMessage) if entry.truncated]
    shown = result.parts[0].text
    assert len(shown) < MAX_RESULT_CHARACTERS + 1_000
    assert (shown[:10], shown[-9:]) == ("first line", "last line")
    assert result.output_path in shown
    assert Path(result.output_path).read_text() == whole
    assert result.output_size == len(whole)


def test_the_same_source_is_known_by_session_and_by_path(tmp_path):
    path = write_lines(tmp_path / "a/one.jsonl", sources.claude_session())
    made = import_source(open_source(path), tmp_path / "home")
    (mark,) = find_marks(tmp_path / "home")
    assert (mark.directory, mark.format, mark.path) == (made.directory, "claude-code", str(path))
    copy = write_lines(tmp_path / "b/copy.jsonl", sources.claude_session())
    other = write_lines(tmp_path / "b/pi.jsonl", sources.pi_session())
    marks = find_marks(tmp_path / "home")
    assert list(matching_marks(open_source(path), marks)) == [mark]
    assert list(matching_marks(open_source(copy), marks)) == [mark]
    assert list(matching_marks(open_source(other), marks)) == []


def test_the_model_goes_along_where_it_can_be_used(tmp_path):
    path = write_lines(tmp_path / "one.jsonl", sources.claude_session())
    asked: list[str] = []
    made = import_source(open_source(path), tmp_path / "home", accepts_model=lambda model: bool(asked.append(model)))
    assert asked == ["anthropic/claude-sonnet-4-5-20250929"]
    assert not of(Session.open(made.directory, read_only=True), ModelEntry)
    made = import_source(open_source(path), tmp_path / "home", accepts_model=lambda model: True)
    assert Session.open(made.directory, read_only=True).state.model == asked[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a session file of a known agent"),
        (b"hello\n", "not a session file of a known agent"),
        (b'{"type":"header","session_id":"x","cwd":"/"}\n', "Tenuto itself"),
        (json.dumps(sources.PI_HEAD).encode(), "no conversation"),
    ],
)
def test_what_is_no_session_is_refused_and_leaves_nothing(tmp_path, content, why):
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotImportable, match=why):
        import_source(open_source(path), tmp_path / "home")
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file()]


def test_a_sub_agents_transcript_alone_is_refused(tmp_path):
    lines = [{**line, "isSidechain": True} for line in sources.claude_session()]
    with pytest.raises(NotImportable, match="sub-agent"):
        bring(tmp_path, lines)


def test_a_directory_stands_for_the_session_in_it(tmp_path):
    write_all_sources(tmp_path)
    for name in ("kimi-code", "kimi-cli", "klaude-code"):
        path = tmp_path / FILES[name][0]
        folder = path.parent.parent.parent if name == "kimi-code" else path.parent
        assert open_source(folder).path == path
    with pytest.raises(NotImportable, match="name the file"):
        open_source(tmp_path)


def test_the_display_log_of_kimi_cli_leads_to_the_messages_beside_it(tmp_path):
    path = write_lines(tmp_path / "s/context.jsonl", sources.kimi_cli_session())
    wire = [{"type": "metadata", "protocol_version": "1.10"}, {"timestamp": 1.0, "message": {"type": "TurnBegin"}}]
    assert open_source(write_lines(tmp_path / "s/wire.jsonl", wire)).path == path


def big_source(path: Path, turns: int, width: int = 2_000) -> Path:
    with path.open("wb") as file:
        last = None
        for turn in range(turns):
            made = sources.Claude()
            made.user(f"u{turn}", "Go on.", last)
            made.answer(f"a{turn}", f"m{turn}", sources.call(f"t{turn}", "Bash", command="make"))
            last = made.result(f"r{turn}", f"t{turn}", "x" * width, f"a{turn}")
            file.writelines(json.dumps(line).encode() + b"\n" for line in made.lines)
    return path


def test_an_import_that_is_killed_leaves_no_session_and_the_next_one_clears_up(tmp_path):
    path = big_source(tmp_path / "big.jsonl", 6_000)
    environ = {**os.environ, "TENUTO_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    running = subprocess.Popen([sys.executable, "-m", "tenuto", "import", str(path)], env=environ)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "home" / STAGING).glob("*/events.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert list((tmp_path / "home" / STAGING).iterdir())
    assert list_sessions(tmp_path / "home") == []
    assert find_marks(tmp_path / "home") == []
    made = import_source(open_source(path), tmp_path / "home")
    assert list((tmp_path / "home" / STAGING).iterdir()) == []
    assert made.report.calls == 6_000


@pytest.mark.full
def test_a_source_of_200_megabytes_is_read_as_a_stream(tmp_path):
    path = big_source(tmp_path / "big.jsonl", 12_000, 16_000)
    assert path.stat().st_size > 190_000_000
    code = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from tenuto.session.importers.import_session import import_source\n"
        "from tenuto.session.importers.import_session import open_source\n"
        "made = import_source(open_source(Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "print(made.report.calls, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, made.directory)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "home"], capture_output=True, text=True, check=True
    )
    calls, memory, directory = done.stdout.split(maxsplit=2)
    assert calls == "12000"
    assert int(memory) < 600_000, "kilobytes"
    check_view(Session.open(Path(directory.strip()), read_only=True).get_llm_history())
