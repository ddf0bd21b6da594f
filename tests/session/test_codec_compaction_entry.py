"""Seed 000, phase 0: a compaction entry goes through the codec and comes back the same (R-102)."""

from __future__ import annotations

import json

import msgspec

from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import CompactionDetails, CompactionEntry, SystemMessage, UserMessage
from tenuto.protocol.part import TextPart
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session

ENTRY = CompactionEntry(
    summary="## Goal\nGo on. 漢字",
    first_kept_index=1,
    replacement=(SystemMessage(text="framed"), UserMessage(parts=(TextPart(text="the turn's own words"),))),
    edits=(ViewEdit(target=7, kind="truncated", text="cut", keep_head=10, keep_tail=5),),
    tokens_before=100,
    tokens_after=10,
    reason="threshold",
    rung="serialised",
    focus="names",
    details=CompactionDetails(read_files=("a",), modified_files=("b",)),
    usage=Usage(input=5, output=3, cost=0.25),
    duration=1.5,
)


def started(tmp_path) -> Session:
    session = Session.create(tmp_path / "home", tmp_path)
    session.append(UserMessage(parts=(TextPart(text="hello"),)))
    return session


def compactions(session: Session) -> list[CompactionEntry]:
    return [entry for entry in session.entries() if isinstance(entry, CompactionEntry)]


def test_codec_compaction_entry_round_trips_and_several_may_exist(tmp_path):
    session = started(tmp_path)
    first = session.append(ENTRY)
    second = session.append(msgspec.structs.replace(ENTRY, summary="later"))
    session.close()
    assert compactions(Session.open(session.directory)) == [first, second]
    assert first.seq < second.seq
    assert first.ts > 0


def test_codec_compaction_entry_survives_unknown_and_missing_fields(tmp_path):
    session = started(tmp_path)
    session.append(ENTRY)
    session.close()
    log = session.directory / "events.jsonl"
    *before, last = log.read_bytes().rstrip(b"\n").split(b"\n")
    for change in ({"from_the_future": {"a": [1]}}, {"details": None, "usage": None}):
        line = json.loads(last) | change
        if "details" in change:
            for name in ("replacement", "edits", "duration", "rung"):
                line.pop(name)
        log.write_bytes(b"\n".join([*before, json.dumps(line).encode(), b""]))
        reopened = Session.open(session.directory, read_only=True)
        (entry,) = compactions(reopened)
        assert entry.summary == ENTRY.summary
        seen = "framed" if "replacement" in line else "Go on."
        assert any(seen in message.text for message in reopened.get_llm_history() if isinstance(message, SystemMessage))
