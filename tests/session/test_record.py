from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import ExtensionEntry, UnknownEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, UserMessage
from tenuto.protocol.part import TextPart, ThinkingPart, text_of
from tenuto.session.log.record import DamagedLine, decode, encode
from tests.session.build import answer, user


def stored(entry):
    return msgspec.structs.replace(entry, seq=1)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30))
def test_r073_any_text_gives_one_line_of_valid_utf8_json(value):
    kept, line = encode(stored(user(value)))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8"))["type"] == "user"
    assert decode(line) == kept
    assert isinstance(kept, UserMessage)
    text_of(kept.parts).encode("utf-8")


def test_r073_halves_that_belong_together_become_the_character():
    kept, _ = encode(stored(user("\ud83d\ude00 and \ud83d alone")))
    assert isinstance(kept, UserMessage)
    assert text_of(kept.parts) == "😀 and � alone"


def test_an_entry_that_needs_no_change_is_the_same_object():
    entry = stored(answer())
    assert encode(entry)[0] is entry


@pytest.mark.parametrize("raw", [rb'{"type":"user","seq":1,"parts":[{"type":"text","text":"a\ud800b"}]}'])
def test_r073_a_stored_escaped_lone_surrogate_is_read(raw):
    entry = decode(raw)
    assert isinstance(entry, UserMessage)
    assert text_of(entry.parts) == "a�b"
    encode(entry)


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b'{\n  "a": 1\n}', b'{"a":1}'),
        (b'{"a":', b"null"),
        (b"", b"null"),
        (b'"\xff"', b"null"),
        (b'{"s":"\\ud800"}', '{"s":"\ufffd"}'.encode()),
    ],
)
def test_a_raw_block_never_breaks_the_line(block, kept):
    entry = stored(AssistantMessage(parts=(ThinkingPart(text="", provider="x", block=msgspec.Raw(block)),)))
    _, line = encode(entry)
    read = decode(line)
    assert line.count(b"\n") == 1
    assert isinstance(read, AssistantMessage)
    assert isinstance(read.parts[0], ThinkingPart)
    assert bytes(read.parts[0].block) == kept


def test_an_extension_state_travels_byte_for_byte():
    _, line = encode(stored(ExtensionEntry(extension="x", state=msgspec.Raw(b'{"b": 1.50, "a": [1,2]}'))))
    read = decode(line)
    assert isinstance(read, ExtensionEntry)
    assert bytes(read.state) == b'{"b": 1.50, "a": [1,2]}'


def test_an_unknown_type_is_kept_as_its_line():
    line = b'{"type":"hologram","seq":7,"ts":2.5,"size":[1,2]}'
    assert decode(line + b"\n") == UnknownEntry(kind="hologram", raw=line, seq=7, ts=2.5)


def test_r102_a_compaction_with_missing_and_unknown_fields_is_read():
    entry = decode(b'{"type":"compaction","seq":9,"first_kept_index":4,"made_by":"later","reason":"moon"}')
    assert isinstance(entry, CompactionEntry)
    assert (entry.first_kept_index, entry.summary, entry.reason) == (4, "", "manual")


def test_a_field_of_a_newer_version_does_not_cost_the_message():
    line = (
        b'{"type":"assistant","seq":3,"stop_reason":"dreamt","parts":'
        b'[{"type":"hologram"},{"type":"text","text":"kept"},{"type":"smell"}]}'
    )
    entry = decode(line)
    assert isinstance(entry, AssistantMessage)
    assert entry.parts == (TextPart(text="kept"),)
    assert entry.stop_reason == "end_turn"


def test_a_known_type_that_cannot_be_read_is_kept_as_its_line():
    entry = decode(b'{"type":"user","seq":3}')
    assert isinstance(entry, UnknownEntry)
    assert (entry.kind, entry.seq) == ("user", 3)


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"3", b'{"seq":1}', b'{"type":4,"seq":1}', b'{"type":"user","parts":[]}', b'{"type":"user"', b"\0"],
)
def test_a_line_without_an_entry_is_damaged(line):
    with pytest.raises(DamagedLine):
        decode(line)


def test_a_deeply_nested_line_is_damaged_and_not_fatal():
    with pytest.raises(DamagedLine):
        decode(b'{"type":"user","seq":1,"parts":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
