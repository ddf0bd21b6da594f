"""A summary that cannot be used: the user reads what is wrong, the model also what to do instead (issue F 14)."""

from __future__ import annotations

import inspect
from typing import NamedTuple

import pytest

from tenuto.compaction.summary import judge, summary
from tenuto.compaction.summary.judge import Fault, expect
from tenuto.compaction.summary.prompts import FIRST
from tenuto.compaction.summary.summarise import SummaryError, accept_summary
from tenuto.compaction.summary.summary import find_fault
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import ToolCallPart
from tests.compaction.build import SUMMARY, reply, text
from tests.compaction.test_judge import BAD

LENGTH = 3_000
COVERED = 14_000
EXPECTED = expect(FIRST, covered=COVERED, length=LENGTH)


class Case(NamedTuple):
    """An answer that cannot be used, and what its fault says: what is wrong, and what to do instead."""

    answer: AssistantMessage
    what: str
    advice: str
    replaced: int = COVERED


def judged(name: str) -> AssistantMessage:
    return reply(BAD[name][0])


CASES = {
    "a call": Case(AssistantMessage(parts=(*text(SUMMARY), ToolCallPart(id="1", name="read"))), "a tool", "text only"),
    "cut off": Case(reply(SUMMARY, stop_reason="max_tokens"), "cut off", "be shorter"),
    "a refusal": Case(reply("I'm sorry, but I can't help with that."), "a refusal", "only to report"),
    "empty": Case(reply(""), "empty", ""),
    "too long": Case(reply(SUMMARY), "longer than what it replaces", "keep only", replaced=20),
    "a heading is missing": Case(judged("one heading"), "lacks the heading ## Next Steps", ""),
    "other headings": Case(judged("a continuation"), "the headings that were asked for", "do not go on with the work"),
    "words before": Case(judged("mostly something before"), "before the first heading", "write nothing before it"),
    "the template": Case(judged("the template"), "what the headings are for", "fill each of them in"),
    "empty headings": Case(judged("headings alone"), "next to nothing", "say what was done"),
    "a sentence again": Case(judged("one sentence for ever"), "times", "say each thing once"),
    "words again": Case(judged("a loop in Chinese without marks"), "again and again", "say each thing once"),
}


def test_f14_every_fault_that_can_be_found_has_its_case():
    made = sum(inspect.getsource(module).count("return Fault(") for module in (judge, summary))
    faults = [find_fault(case.answer, case.replaced, EXPECTED) for case in CASES.values()]
    assert len(CASES) == made
    assert len({fault.what for fault in faults if fault}) == made


@pytest.mark.parametrize("name", CASES)
async def test_f14_the_user_reads_what_is_wrong_and_the_model_what_to_do_too(name):
    case = CASES[name]
    fault = find_fault(case.answer, case.replaced, EXPECTED)
    assert isinstance(fault, Fault)
    assert case.what in fault.what
    assert case.advice in fault.advice
    assert bool(case.advice) == bool(fault.advice)
    asked: list[str] = []

    async def ask(feedback: str) -> AssistantMessage:
        asked.append(feedback)
        return case.answer

    with pytest.raises(SummaryError) as raised:
        await accept_summary(ask, length=LENGTH, replaced=case.replaced, expected=EXPECTED)
    assert str(raised.value) == f"the summary could not be used: {fault.what}"
    assert not fault.advice or fault.advice not in str(raised.value)
    assert asked[0] == ""
    assert fault.what in asked[1]
    assert fault.advice in asked[1]
