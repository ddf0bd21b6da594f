"""Questions of MCP servers: field by field, what fits, what ends them; nobody there declines and says so."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.state.elicitation import DECLINE, WRITE, Field, fault_of, offer, read_fields, read_value, show_value
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, one_call_each
from tests.core.test_mcp import configure
from tests.server import Call

FORM = {
    "name": {"type": "string", "title": "Your name", "minLength": 2},
    "size": {"type": "integer", "default": 3, "maximum": 9},
    "share": {"type": "number"},
    "sure": {"type": "boolean"},
    "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
    "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}},
}


async def asked_by(tmp_path, schema: dict[str, Any], answers, **changes) -> tuple[dict, list[ApprovalRequestedEvent]]:
    """Have the server ask with this schema; return what it was answered, and what the user was asked.

    An answer is a label, a text to write, or `None` for Esc.
    """
    configure(tmp_path, asker=f"asking:{json.dumps(schema)}")
    async with agent(tmp_path, one_call_each(Call("mcp__asker__ask", {})), **changes) as running:
        await running.send("go")
        for number, given_answer in enumerate(answers, 1):
            request = await running.until(ApprovalRequestedEvent, number)
            assert request.kind == "question" and request.summary.startswith("asker asks: Who?")
            labels = [one.label for one in request.answers]
            writes = given_answer is not None and given_answer not in labels
            operation = AnswerApprovalOperation(
                session_id=request.session_id,
                request_id=request.request_id,
                decision="deny" if given_answer is None else "once",
                choice=0 if given_answer is None else labels.index(WRITE if writes else given_answer),
                feedback=given_answer if writes else "",
            )
            await running.runtime.submit(operation)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        (result,) = (event.message for event in running.of(ToolResultEvent))
        return json.loads(text_of(result.parts).split("\n")[1]), running.of(ApprovalRequestedEvent)


async def test_j1_each_field_is_a_question_of_its_own_and_all_is_shown_before_it_is_sent(tmp_path):
    schema = {"type": "object", "properties": FORM, "required": ["name"]}
    said = ["A", "Ada", "10", "As proposed: 3", "Leave it out", "Yes", "Green", "mo, we", "Send this to asker"]
    got, asked = await asked_by(tmp_path, schema, said)
    content = {"name": "Ada", "size": 3, "sure": True, "colour": "g", "days": ["mo", "we"]}
    assert got == {"action": "accept", "content": content}
    assert "Your name" in asked[0].detail and "may be left out" not in asked[0].detail
    assert "That does not fit: at least 2 characters" in asked[1].detail
    assert "at most 9" in asked[2].detail and "That does not fit: at most 9" in asked[3].detail
    assert [(one.asked, one.behind) for one in (asked[0], asked[-1])] == [(0, 6), (6, 0)]
    assert "Your name: Ada\nsize: 3\nshare: (left out)\nsure: yes\ncolour: g\ndays: mo, we" in asked[-1].detail


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ([None], "cancel"),
        ([DECLINE], "decline"),
        (["Ada", None], "cancel"),
        (["Ada", "Leave it out", DECLINE], "decline"),
    ],
)
async def test_j1_a_question_can_be_declined_or_left_at_every_field(tmp_path, said, action):
    schema = {"type": "object", "properties": {"name": FORM["name"], "share": FORM["share"]}}
    got, _ = await asked_by(tmp_path, schema, said)
    assert got == {"action": action}


@pytest.mark.parametrize(("said", "action"), [("Accept", "accept"), (DECLINE, "decline"), (None, "cancel")])
async def test_j1_a_question_without_fields_is_accepted_declined_or_left(tmp_path, said, action):
    got, (asked,) = await asked_by(tmp_path, {"type": "object", "properties": {}}, [said])
    assert got["action"] == action and [one.letter for one in asked.answers] == ["y", "n"]


async def test_j1_what_cannot_be_asked_is_declined(tmp_path):
    schema = {"type": "object", "properties": {"deep": {"type": "object"}}, "required": ["deep"]}
    got, (asked,) = await asked_by(tmp_path, schema, [DECLINE])
    assert got == {"action": "decline"} and "cannot be asked here" in asked.detail


async def test_j1_where_nobody_is_there_a_question_is_declined_and_that_is_said(tmp_path):
    configure(tmp_path, asker="asking")
    async with agent(tmp_path, one_call_each(Call("mcp__asker__ask", {})), interactive=False) as running:
        await running.ask("go")
        assert '{"action": "decline"}' in text_of(running.of(ToolResultEvent)[0].message.parts)
        said = [event.text for event in running.of(NoticeEvent) if "asker" in event.text]
        assert said == ["MCP server asker asks: Who? Declined: nobody is there to answer."]


# --- as properties ---

WORDS = st.text("abc, é", max_size=6)
SCHEMAS = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 4), "default": WORDS}),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.lists(WORDS, min_size=1, max_size=12, unique=True)}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-3, 3), "maximum": st.integers(-3, 3), "default": st.none() | st.integers()},
    ),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans() | WORDS}),
    st.fixed_dictionaries({"type": st.just("array"), "items": st.just({"enum": ["a", "b"]})}),
    st.dictionaries(WORDS, WORDS),
)


@given(SCHEMAS, st.booleans(), st.text(max_size=8))
def test_j1_whatever_is_answered_fits_its_field(schema, needed, text):
    for field in read_fields({"it": schema}, ("it",) if needed else ()):
        rows = offer(field)
        assert rows[-1][0].label == DECLINE
        assert any(answer.label == "Leave it out" for answer, _ in rows) is not needed
        for answer, value in rows[:-1]:
            assert value is None or fault_of(field, value) == ""
            assert value is not None or answer.writes or not needed
        value, fault = read_value(field, text)
        assert fault == fault_of(field, value)


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        ("date", "2026-07-28", "28.7."),
        ("date-time", "2026-07-28T12:00:00Z", "noon"),
        ("email", "ada@example.org", "ada"),
        ("uri", "https://example.org", "example"),
        ("unheard-of", "anything", None),
    ],
)
def test_j1_a_text_has_the_form_that_is_asked_for(form, right, wrong):
    (field,) = read_fields({"it": {"type": "string", "format": form}}, ())
    assert read_value(field, right) == (right, "")
    assert wrong is None or "is needed" in read_value(field, wrong)[1]


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_j1_a_number_is_read_as_it_is_shown(number):
    kind = "integer" if isinstance(number, int) else "number"
    assert read_value(Field(name="it", kind=kind), show_value(number)) == (number, "")
