"""Tool calls as models write them (R-094, R-095)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.wire.conversation import (
    CallDraft,
    check_arguments,
    finish_freeform,
    freeform_input,
    unique_id,
    wire_call_id,
    wire_name,
)
from tenuto.protocol.part import ToolCallPart
from tests.model.decoding import calls_of, decode
from tests.model.streams import DONE, anthropic_end, anthropic_start, block_delta, block_start, block_stop, call, chunk


@pytest.mark.parametrize(
    "text",
    ['{"path": "a', '{"a": 1}}', "[1]", '"x"', "7", "true", "{'a': 1}", "read a file", '{"a": 1} {"b": 2}', "\ud800{"],
)
def test_r094_what_is_no_object_has_a_fault_and_is_stored_valid(text: str):
    arguments, fault = check_arguments(text)
    assert arguments == "{}"
    assert fault
    assert len(fault) < 600
    fault.encode()


def test_r094_the_echo_is_bounded():
    assert len(check_arguments("x" * 1_000_000)[1]) < 600


@pytest.mark.parametrize(
    ("text", "value"),
    [("", {}), ("  ", {}), ("null", {}), (' {"a": 1}\n', {"a": 1}), ('{"a": "\\ud800\\u0000"}', {"a": "\ufffd\ufffd"})],
)
def test_arguments_that_are_fine(text: str, value: object):
    arguments, fault = check_arguments(text)
    assert (json.loads(arguments), fault) == (value, "")


@given(st.text(max_size=50))
def test_r094_stored_arguments_are_always_one_object(text: str):
    assert isinstance(json.loads(check_arguments(text)[0]), dict)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    )
)
def test_valid_arguments_keep_their_value(value: dict[str, object]):
    cleaned = json.loads(json.dumps(value).replace("\\u0000", "\ufffd"))
    arguments, fault = check_arguments(json.dumps(value))
    assert fault == ""
    assert json.loads(arguments) == cleaned


async def test_r094_a_call_cut_at_the_output_limit_is_not_run():
    chunks = [
        anthropic_start(),
        block_start(0, type="tool_use", id="t", name="bash", input={}),
        block_stop(0),
        *anthropic_end("max_tokens"),
    ]
    part = (await decode("anthropic", chunks))[1].parts[0]
    assert isinstance(part, ToolCallPart)
    assert part.fault
    chunks[2:2] = [block_delta(0, "input_json_delta", partial_json='{"command": "rm -rf /tmp/x')]
    part = (await decode("anthropic", chunks))[1].parts[0]
    assert isinstance(part, ToolCallPart)
    assert part.fault
    assert part.arguments == "{}"


async def test_r095_empty_and_duplicate_ids_are_made_unique():
    calls = [
        call(0, "", "read", "{}"),
        call(1, "same", "read", '{"a":1}'),
        call(2, "same", "read", '{"a":2}'),
        call(3, "old", "read", "{}"),
    ]
    chunks = [chunk({"tool_calls": calls}), chunk({}, "tool_calls"), DONE]
    message = (await decode("openai-chat", chunks, taken={"old"}))[1]
    ids = [call_id for call_id, _, _ in calls_of(message)]
    assert len(set(ids)) == 4
    assert ids[1] == "same"
    assert "old" not in ids
    assert all(ids)
    again = (await decode("openai-chat", chunks, taken={"old"}))[1]
    assert [call_id for call_id, _, _ in calls_of(again)] == ids


@given(st.text(max_size=100))
def test_ids_and_names_fit_every_wire(text: str):
    assert 0 < len(wire_name(text)) <= 64
    assert 0 < len(wire_call_id(text, 40)) <= 40
    assert wire_call_id(text, 40) == wire_call_id(text, 40)
    assert unique_id(text, "", set())


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",))), st.booleans())
def test_b10_a_call_of_one_text_gives_it_back_as_it_came(text: str, cut: bool):
    call = finish_freeform(CallDraft("c", "apply_patch", [text]), set(), cut_at=7 if cut else None)
    assert call.freeform
    assert freeform_input(call.arguments) == text
    assert json.loads(call.arguments) == {"input": freeform_input(call.arguments)}
    assert (call.cut_at, bool(call.fault)) == ((7, True) if cut else (None, False))
