"""A real model in an evaluation, over real HTTP: what its provider counted, and its answers (issue 20, item 3)."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.summary.prompts import SAME_PREFIX
from tenuto.evaluation.driving import Case, measure
from tenuto.evaluation.real import GAP, is_answered, make_question, read_usage
from tenuto.evaluation.stories import Fact
from tenuto.evaluation.wires import Usage
from tests.evaluation.test_recorded import FOLDER
from tests.server import Reply, ScriptedServer


def line(value) -> bytes:
    return b"data: " + json.dumps(value).encode()


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (
            {"usage": {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 80}}},
            Usage(10, 80, 7),
        ),
        ({"timings": {"prompt_n": 10, "cache_n": 80, "predicted_n": 7}}, Usage(10, 80, 7)),
        (
            {
                "response": {
                    "usage": {"input_tokens": 90, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 80}}
                }
            },
            Usage(10, 80, 7),
        ),
        (
            {
                "type": "message_start",
                "message": {
                    "usage": {"input_tokens": 4, "cache_creation_input_tokens": 6, "cache_read_input_tokens": 80}
                },
            },
            Usage(10, 80, 0),
        ),
    ],
)
def test_s20_the_usage_of_every_protocol_is_read(value, usage):
    assert read_usage(line(value)) == usage


@given(st.binary(max_size=200))
def test_s20_property_any_other_line_tells_nothing(data):
    assert read_usage(b"data: " + data) is None or b"{" in data


def test_s20_a_question_has_a_gap_where_the_figure_stood():
    question = make_question(Fact(kind="number", text="the proxy has port 9083 in staging", ask="port"))
    assert question is not None
    assert question.missing == "9083"
    assert f"port {GAP} in staging" in question.prompt
    assert "9083" not in question.prompt
    assert is_answered(question, "It is 9083.")
    assert not is_answered(question, "It is 4000.")
    assert make_question(Fact(kind="identifier", text="7f3a9c1", ask="7f3a9c1")) is None


@given(st.text(min_size=1, max_size=80))
def test_s20_property_a_question_never_has_all_of_its_fact(text):
    question = make_question(Fact(kind="decision", text=text, ask="x"))
    if question is not None:
        assert GAP in question.prompt
        assert question.missing
        assert is_answered(question, question.missing)
        assert msgspec.structs.replace(question, kind="error").text == text


NOTES = """## Goal
Mend the precision of the field.

## Constraints & Preferences
- none

## Progress
### Done
- [x] looked at the repository

## Next Steps
1. go on

## Critical Context
- the field is TimeDelta
"""


def answer(request) -> Reply:
    said = json.dumps(request.body["messages"][-1])
    if GAP in said:
        return Reply("TimeDelta")
    return Reply(NOTES if json.dumps(SAME_PREFIX)[1:-1] in json.dumps(request.body) else "Done with this part.")


async def test_s20_a_real_model_summarises_in_place_and_is_asked():
    file = FOLDER / "swe-agent-marshmallow.jsonl"
    async with ScriptedServer(answer, window=16_384) as server:
        settings = f'[providers.local]\nkind = "openai-chat"\nbase_url = "{server.openai_url}"\n'
        case = Case(seed=0, window=16_384, rounds=2, recorded=str(file), model="local/small", questions=2)
        figures = await measure(case, settings)
    assert not server.faults
    assert not server.refusals
    assert not figures.over
    assert figures.made == 2
    assert figures.largest <= 16_384
    assert figures.summaries >= 2
    assert figures.compactions.fresh
    assert figures.cached
    assert all(cached > 0.9 * whole for cached, whole in figures.cached[:1])
    assert figures.answers
    assert len(figures.answers) <= 2 * len({one.kind for one in figures.answers})
    assert not [sight for sight in figures.sights if sight.kind == "user head" and not sight.in_view]


async def test_s20_a_request_that_a_real_provider_refuses_as_too_long_is_counted():
    file = FOLDER / "swe-agent-marshmallow.jsonl"
    async with ScriptedServer(answer, window=9_000) as server:
        settings = f'[providers.local]\nkind = "openai-chat"\nbase_url = "{server.openai_url}"\n'
        case = Case(seed=0, window=65_536, rounds=1, recorded=str(file), model="local/small")
        figures = await measure(case, settings)
    assert figures.over
