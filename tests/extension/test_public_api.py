"""What an extension's author imports from `tenuto`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tenuto
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, NoticeEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart

ENTRIES = (
    UserMessage(seq=2, parts=(TextPart(text="mend it"),)),
    NoticeEntry(seq=3, text="never for the model"),
    AssistantMessage(
        seq=4, parts=(TextPart(text="reading"), ToolCallPart(id="1", name="read", arguments='{"path": "a.py"}'))
    ),
    ToolResultMessage(seq=5, call_id="1", name="read", parts=(TextPart(text="x" * 10_000),)),
    ShellEntry(seq=6, command="ls", output="a.py", exit_code=0),
    ShellEntry(seq=7, command="secret", excluded=True),
    BranchSummaryEntry(seq=8, summary="went elsewhere", from_seq=3),
    ExtensionEntry(seq=9, extension="x", in_view=True, parts=(TextPart(text="from x"),)),
)


@pytest.mark.parametrize("convert", [tuple, tenuto.convert_to_llm])
def test_a_conversation_as_text_from_entries_or_messages(convert):
    text = tenuto.serialize_conversation(convert(ENTRIES))
    assert text.startswith('[User]: mend it\n\n[Assistant]: reading\n\n[Assistant tool calls]: read(path="a.py")')
    assert "[Tool result]: xxx" in text
    assert len(text) < 4_000
    for shown in ("ls", "went elsewhere", "from x"):
        assert shown in text
    for hidden in ("never for the model", "secret"):
        assert hidden not in text


def test_entries_as_messages():
    messages = tenuto.convert_to_llm(ENTRIES)
    assert [message.seq for message in messages] == [2, 4, 5, 6, 8, 9]
    assert messages[0] is ENTRIES[0]


def test_the_names_are_there_and_cost_nothing_before_they_are_used():
    code = "import sys, tenuto; print(*(name for name in sys.modules if name.startswith('tenuto')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == {"tenuto", "tenuto.version"}
    assert {name for name in tenuto.__all__ if getattr(tenuto, name) is None} == set()
