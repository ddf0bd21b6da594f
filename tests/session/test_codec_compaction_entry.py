"""The compaction entry on disk: whole, several of them, old ones, ones of a later version, damaged neighbours."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import (
    CompactionDetails,
    CompactionEntry,
    ProviderItems,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, TextPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.log.record import decode, encode
from tenuto.session.view.projection import project
from tests.session.build import answer, log_of, new_session, reopen, text, user

FULL = CompactionEntry(
    seq=90,
    ts=1_700_000_000.25,
    summary="## Goal\nmend “the” parser\n\n<read-files>\n/a.py\n</read-files>",
    first_kept_index=41,
    replacement=(
        SystemMessage(text="frame\n<summary>…</summary>"),
        UserMessage(parts=(TextPart(text="mend it"), ImagePart(sha256="ab" * 32, media_type="image/png", size=7))),
    ),
    edits=(ViewEdit(target=44, kind="truncated", text="[cut]", keep_head=1_500, keep_tail=500),),
    system_seq=89,
    tokens_before=182_000,
    tokens_after=24_000,
    rough=True,
    trigger=150_000,
    reason="overflow",
    rung="serialised",
    focus="keep the API names",
    details=CompactionDetails(read_files=("/a.py",), modified_files=("/b.py", "/ü.py")),
    provider_items=ProviderItems(provider="openai", model="m", items=(msgspec.Raw(b'{"type":"compaction"}'),)),
    from_extension="mine",
    usage=Usage(input=9_000, cache_read=100, output=800),
    duration=12.5,
)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.none() | st.integers(0, 10**9)
entries = st.builds(
    CompactionEntry,
    seq=st.integers(1, 10**6),
    ts=st.floats(0, 2e9),
    summary=texts,
    first_kept_index=st.integers(0, 10**6),
    replacement=st.lists(
        st.builds(SystemMessage, text=texts)
        | st.builds(lambda value: UserMessage(parts=(TextPart(text=value),), origin="continuation"), texts),
        max_size=3,
    ).map(tuple),
    edits=st.lists(
        st.builds(
            ViewEdit,
            target=st.integers(1, 99),
            kind=st.sampled_from(["hidden", "truncated", "omitted"]),
            text=texts,
            keep_head=st.integers(0, 9),
            image_text=texts,
            keep_images=st.integers(0, 9),
        ),
        max_size=3,
    ).map(tuple),
    tokens_before=numbers,
    tokens_after=numbers,
    rough=st.booleans(),
    reason=st.sampled_from(["threshold", "overflow", "manual", "model_switch", "agent"]),
    focus=texts,
    details=st.none()
    | st.builds(
        CompactionDetails,
        read_files=st.lists(texts, max_size=3).map(tuple),
        modified_files=st.lists(texts, max_size=3).map(tuple),
    ),
    usage=st.none() | st.builds(Usage, input=st.integers(0, 99), output=st.integers(0, 99)),
    duration=st.floats(0, 1e4),
)


def read(line: bytes) -> CompactionEntry:
    entry = decode(line)
    assert isinstance(entry, CompactionEntry)
    return entry


def test_every_field_comes_back():
    untouched = [
        field.name for field in msgspec.structs.fields(CompactionEntry) if getattr(FULL, field.name) == field.default
    ]
    assert untouched == [], "the example has something in every field"
    stored, line = encode(FULL)
    assert stored is FULL
    assert line.count(b"\n") == 1
    assert read(line) == FULL
    plain = json.loads(line)
    assert plain["type"] == "compaction"
    assert plain["first_kept_index"] == 41
    assert plain["details"] == {"read_files": ["/a.py"], "modified_files": ["/b.py", "/ü.py"]}


@given(entries)
def test_any_entry_comes_back(entry):
    _, line = encode(entry)
    assert line.count(b"\n") == 1
    assert read(line) == entry


@given(st.text(st.characters(), max_size=20))
def test_r073_a_summary_with_half_characters_is_stored_and_read(summary):
    stored, line = encode(CompactionEntry(seq=3, summary=summary, replacement=(SystemMessage(text=summary),)))
    line.decode("utf-8")
    assert read(line) == stored


def test_an_old_entry_with_the_first_fields_alone_stands_for_history(tmp_path):
    """As the first version of such a file had them: summary, index, tokens, details, and when it was made."""
    line = (
        b'{"type":"compaction","seq":5,"ts":1700000000.0,"summary":"OLD NOTES","first_kept_index":4,'
        b'"tokens_before":900,"details":{"read_files":["/a"]},"created_at":"2026-01-01T00:00:00"}'
    )
    entry = read(line)
    assert entry.details == CompactionDetails(read_files=("/a",))
    path = [SystemMessage(seq=1, text="s"), msgspec.structs.replace(user("gone"), seq=2)]
    path += [msgspec.structs.replace(answer("gone too"), seq=3), msgspec.structs.replace(user("kept"), seq=4), entry]
    view = project(path)
    assert [type(one).__name__ for one in view] == ["SystemMessage", "SystemMessage", "UserMessage"]
    assert view[1].text == "OLD NOTES"


@pytest.mark.parametrize(
    "more",
    [
        b'"quality":0.9',
        b'"details":{"read_files":["/a"],"deleted_files":["/b"]}',
        b'"edits":[{"target":2,"kind":"folded","depth":3}]',
        b'"replacement":[{"type":"hologram","text":"?"}]',
        b'"usage":{"input":3,"photons":4}',
        b'"reason":"boredom","rung":7',
    ],
)
def test_unknown_fields_and_values_of_a_later_version_do_no_harm(more):
    entry = read(b'{"type":"compaction","seq":5,"summary":"NOTES","first_kept_index":4,' + more + b"}")
    assert (entry.summary, entry.first_kept_index) == ("NOTES", 4)
    encode(entry)


def test_several_compactions_in_one_session_come_back_in_order(tmp_path):
    session = new_session(tmp_path)
    for number in range(4):
        session.append(user(f"request {number}"))
        kept = session.append(answer(f"answer {number}"))
        summary = f"notes {number}"
        session.append(
            CompactionEntry(
                summary=summary, first_kept_index=kept.seq, replacement=(SystemMessage(text=summary),), edits=FULL.edits
            )
        )
    before, view = list(session.entries()), session.get_llm_history()
    session = reopen(session)
    assert list(session.entries()) == before
    assert session.get_llm_history() == view
    assert view[0].text == "notes 3"
    assert log_of(session).read_bytes().count(b'"type":"compaction"') == 4
    session.close()


def test_the_index_is_a_seq_and_no_position_in_the_file(tmp_path):
    """A damaged line before it moves every position; the kept tail still begins with the same entry."""
    session = new_session(tmp_path)
    session.append(user("first"))
    session.append(answer("second"))
    kept = session.append(user("KEPT"))
    session.append(CompactionEntry(summary="s", first_kept_index=kept.seq, replacement=(SystemMessage(text="notes"),)))
    session.close()
    lines = log_of(session).read_bytes().splitlines(keepends=True)
    lines[1] = b'{"type":"user","se\n'
    lines.insert(1, b"\x00\x00garbage\n")
    log_of(session).write_bytes(b"".join(lines))
    session = reopen(session)
    assert len(session.damage) == 2
    assert [type(one).__name__ for one in session.get_llm_history()] == ["SystemMessage", "UserMessage"]
    assert text_of(session.get_llm_history()[1].parts) == "KEPT"
    session.close()


def test_r102_a_damaged_compaction_line_brings_the_whole_history_back(tmp_path):
    session = new_session(tmp_path)
    for number in range(3):
        session.append(user(f"request {number}"))
        session.append(answer(f"answer {number}"))
    whole = session.get_llm_history()
    session.append(CompactionEntry(summary="s", first_kept_index=5, replacement=(SystemMessage(text="notes"),)))
    session.close()
    *lines, last = log_of(session).read_bytes().splitlines(keepends=True)
    log_of(session).write_bytes(b"".join(lines) + last[: len(last) // 2] + b"\n")
    session = reopen(session)
    assert len(session.damage) == 1
    assert session.get_llm_history() == whole
    session.append(user("go on"))
    session.close()


def test_edits_of_a_compaction_are_in_its_one_line_and_act_on_the_kept_tail(tmp_path):
    session = new_session(tmp_path)
    session.append(user("read it"))
    session.append(answer("", calls=("c",)))
    result = session.append(ToolResultMessage(call_id="c", name="read", parts=text("HEAD" + "x" * 5_000 + "TAIL")))
    edit = ViewEdit(target=result.seq, kind="truncated", text="[…]", keep_head=4, keep_tail=4)
    session.append(
        CompactionEntry(
            summary="s", first_kept_index=result.seq - 1, replacement=(SystemMessage(text="notes"),), edits=(edit,)
        )
    )
    for one in (session, reopen(session)):
        assert text_of(one.get_llm_history()[-1].parts) == "HEAD[…]TAIL"
        assert text_of(one.find(result.seq).parts).startswith("HEADxxx"), "the history stays whole"
    one.close()
