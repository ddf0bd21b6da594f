"""Whatever is wrong with a source: an import never raises on it, counts it, and never leaves a call unpaired."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.session.importers.builder import Assembler
from tenuto.session.importers.format import Context
from tenuto.session.importers.import_session import FORMATS, NotImportable, import_source, open_source
from tenuto.session.importers.json_access import Report, read_lines
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.session.importers import sources
from tests.session.importers.reading import bring_file, check_view, view_words
from tests.session.importers.sources import FILES, write_lines

MAKERS = {
    **{name: make for name, (_, make) in FILES.items()},
    "claude-code compacted": sources.claude_compacted,
    "claude-code rewound": sources.claude_rewound,
    "codex compacted": sources.codex_compacted,
    "pi compacted": sources.pi_compacted,
    "kimi-code compacted": sources.kimi_code_compacted,
    "klaude-code compacted": sources.klaude_compacted,
}


def file_bytes(name: str) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in MAKERS[name]())


@pytest.mark.parametrize("name", FILES)
def test_damaged_lines_are_skipped_and_counted(tmp_path, name):
    path = write_lines(tmp_path / "session.jsonl", FILES[name][1]())
    good, _ = bring_file(tmp_path, path)
    before = view_words(good)
    lines = path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle:middle] = [b"\0" * 400 + b"\n", b'{"type": "half\n', b"\xff\xfe\n", b"\n", b"[1, 2]\n"]
    path.write_bytes(b"".join(lines) + b'{"cut of')
    session, made = bring_file(tmp_path, path)
    assert view_words(session) == before
    assert made.report.damaged == 5
    assert [damage.line for damage in made.report.damages] == [*(middle + n for n in (1, 2, 3, 5)), len(lines) + 1]
    assert made.report.damages[0].size == 400
    assert "5 damaged lines skipped" in made.report.remarks[0]


@pytest.mark.parametrize("name", ["pi", "claude-code", "codex", "klaude-code", "kimi-code", "kimi-cli"])
def test_a_line_glued_to_a_torn_one_is_kept(tmp_path, name):
    lines = [json.dumps(line).encode() for line in FILES[name][1]()]
    torn = lines[-1][: len(lines[-1]) // 2]
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(lines[:-2]) + b"\n" + torn + lines[-2] + b"\n" + lines[-1] + b"\n")
    session, made = bring_file(tmp_path, path)
    good, _ = bring_file(tmp_path, write_lines(tmp_path / "good.jsonl", FILES[name][1]()))
    assert made.report.damaged == 1
    assert view_words(session) == view_words(good)


def test_a_call_whose_result_was_lost_has_one_that_says_so(tmp_path):
    lines = [line for line in sources.codex_session() if line["payload"].get("call_id") != "call_2" or "output" not in line["payload"]]  # fmt: skip # noqa: E501
    session, made = bring_file(tmp_path, write_lines(tmp_path / "s.jsonl", lines))
    assert "shell: interrupted; may have taken effect; check" in view_words(session)
    assert made.report.counts["interrupted"] == 1
    check_view(session.get_llm_history())


def test_a_result_whose_call_was_lost_is_kept_out_of_the_view(tmp_path):
    lines = [line for line in sources.pi_session() if line.get("id") != "a4"]
    lines[-1]["parentId"] = "n1"
    session, made = bring_file(tmp_path, write_lines(tmp_path / "s.jsonl", lines))
    assert made.report.counts["orphan"] == 1
    assert not any(words.startswith("bash: ok") for words in view_words(session))
    assert "text='ok'" in str(list(session.entries()))


def test_calls_that_share_an_id_get_ids_of_their_own(tmp_path):
    step = sources.pi_call("call_0", "bash", command="ls")
    lines = [
        sources.PI_HEAD,
        sources.pi_message("u1", None, 1, role="user", content="Go."),
        sources.pi_answer("a1", "u1", 2, step, step, stop="toolUse"),
        sources.pi_result("r1", "a1", 3, "call_0", "first"),
        sources.pi_result("r2", "r1", 4, "call_0", "second"),
        sources.pi_answer("a2", "r2", 5, step, stop="toolUse"),
        sources.pi_result("r3", "a2", 6, "call_0", "third"),
    ]
    session, _ = bring_file(tmp_path, write_lines(tmp_path / "s.jsonl", lines))
    check_view(session.get_llm_history())
    assert [words for words in view_words(session) if words.startswith("bash")] == [
        "bash: first",
        "bash: second",
        "bash: third",
    ]


def test_a_beginning_that_was_lost_is_named_so_that_a_user_speaks_first(tmp_path):
    lines = sources.klaude_session()[2:]
    session, _ = bring_file(tmp_path, write_lines(tmp_path / "s.jsonl", lines))
    assert view_words(session)[0] == "user: (What came before could not be read from the imported session.)"


def damage(data: bytes, seed: int) -> bytes:
    """Cut, drop, double, swap, overwrite, glue: what disks, crashes and second writers do to a file."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 6)):
        lines = data.split(b"\n")
        place = chance.randrange(len(lines))
        at = chance.randrange(len(data) + 1)
        match chance.randrange(8):
            case 0:
                del lines[place]
                data = b"\n".join(lines)
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[place])
                data = b"\n".join(lines)
            case 2:
                other = chance.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
                data = b"\n".join(lines)
            case 3:
                data = data[:at] + bytes(chance.randrange(256) for _ in range(8)) + data[at + chance.randrange(9) :]
            case 4:
                data = data[:at] + b"\0" * chance.randrange(50) + data[at:]
            case 5:
                data = data.replace(b"\n", b"", 1) if chance.random() < 0.5 else data[:at]
            case 6:
                data = change_value(lines, place, chance)
            case _:
                lines = lines[place:]
                data = b"\n".join(lines)
    return data


def change_value(lines: list[bytes], place: int, chance: random.Random) -> bytes:
    """Put something else where a value was, as another version of the program would."""
    try:
        fields = json.loads(lines[place])
    except ValueError:
        return b"\n".join(lines)
    where = fields
    while isinstance(where, (dict, list)) and where:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = chance.choice(keys)
        if not isinstance(where[key], (dict, list)) or chance.random() < 0.3:
            where[key] = chance.choice([None, 7, -1e300, True, "", "x", "\ud800", [], {}, [[]], [None], {"type": 3}])
            break
        where = where[key]
    lines[place] = json.dumps(fields).encode()
    return b"\n".join(lines)


@pytest.mark.parametrize("name", MAKERS)
@settings(suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_random_damage_never_raises_and_never_leaves_a_call_unpaired(name, seed):
    data = damage(file_bytes(name), seed)
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "session.jsonl"
        path.write_bytes(data)
        try:
            made = import_source(open_source(path), folder / "home")
        except NotImportable:
            return
        session = Session.open(made.directory, read_only=True)
        assert not session.damage
        check_view(session.get_llm_history())
        assert project(session.path(), session.state.model) == session.get_llm_history()
        assert path.read_bytes() == data
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_lines_of_any_other_format_never_raise(known, data):
    names = data.draw(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=3))
    lines = [line for name in names for line in damage(file_bytes(name), data.draw(st.integers(0, 9999))).split(b"\n")]
    report, entries = Report(), []

    def append(entry, _ts):
        entries.append(entry)
        return len(entries)

    context = Context(keep_image=lambda data, kind: None, report=report)
    reader, assembler = known.reader(context), Assembler(append, report, last_seq=0, agent=known.label)
    for fields in read_lines(lines, known.is_line, report):
        for piece in reader.read(fields):
            assembler.add(piece)
    for piece in reader.finish():
        assembler.add(piece)
    assembler.finish()
