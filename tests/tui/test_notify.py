from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.alerts.terminal_alerts import CallFilter, Notification, describe_bell, notification_sequence
from tenuto.tui.effects import Bell
from tenuto.tui.machine.item import AssistantItem
from tenuto.tui.machine.state import UiState

FORMS = ("osc9", "osc99", "osc777")


def request(**given_fields):
    fields = {"request_id": "r", "call_id": "c", "tool": "bash", "summary": "npm test", "detail": "npm test"}
    return ApprovalRequestedEvent(session_id="s", **{**fields, **given_fields})


def test_who_looks_is_not_called_and_who_may_not_look_is_only_asked():
    calls = CallFilter(after=10)
    calls.has_focus = True
    assert not calls.wanted(Bell("approval"), 0.0)
    calls.has_focus = None
    assert not calls.wanted(Bell("finished", 60.0), 0.0)
    assert not calls.wanted(Bell("failed"), 0.0)
    assert calls.wanted(Bell("approval"), 0.0)


def test_a_short_run_is_no_reason_but_a_short_failure_is():
    calls = CallFilter(after=10)
    calls.has_focus = False
    assert not calls.wanted(Bell("finished", 9.9), 0.0)
    assert calls.wanted(Bell("finished", 10.0), 0.0)
    assert calls.wanted(Bell("failed", 0.1), 1.0), "more urgent than what was said a second ago"


def test_several_at_once_are_one_call_and_the_more_urgent_comes_through():
    calls = CallFilter(after=0)
    calls.has_focus = False
    assert calls.wanted(Bell("finished"), 0.0)
    assert calls.wanted(Bell("approval"), 0.5)
    assert not calls.wanted(Bell("approval"), 1.0)
    assert not calls.wanted(Bell("compaction"), 1.0)
    assert calls.wanted(Bell("compaction"), 4.0)


def test_it_says_where_and_what():
    state = UiState()
    state.status.cwd, state.status.title = "/home/me/code/shop", ""
    state.approvals.requests.append(request())
    assert describe_bell(Bell("approval"), state) == Notification("Tenuto: shop", "Approval needed: bash npm test")
    state.status.title = "Fix the cart"
    state.transcript.items[1] = AssistantItem(id=1, text="## Done\n\nAll tests pass.")
    told = describe_bell(Bell("finished", 75.0), state)
    assert told == Notification("Tenuto: Fix the cart", "Finished in 1m 15s: Done")


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(st.sampled_from("ab;\x07\x1b\\]\x9c\x9d\n\u202e字"), max_size=40))
def test_r088_a_notification_is_one_sequence_whatever_it_says(form, text):
    state = UiState()
    state.status.title = text
    state.approvals.requests.append(request(summary=text))
    sequence = notification_sequence(describe_bell(Bell("approval"), state), form)
    inner = r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e]*"
    wanted = {
        "osc9": rf"\x1b\]9;{inner}\x07",
        "osc777": r"\x1b\]777;notify;[^;]*;[^;]*\x07",
        "osc99": rf"\x1b\]99;i=tenuto:d=0:o=unfocused;{inner}\x1b\\\x1b\]99;i=tenuto:p=body;{inner}\x1b\\",
    }[form]
    assert re.fullmatch(wanted, sequence), sequence
    ours = 4 if form == "osc99" else 2
    assert len(re.findall(r"[\x00-\x1f\x7f-\x9f]", sequence)) == ours


def test_where_there_is_no_form_there_is_no_sequence():
    assert notification_sequence(Notification("a", "b"), "") == ""
