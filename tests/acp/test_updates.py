"""Events as session updates: every kind of event, and what depends on what was told before."""

from __future__ import annotations

import base64
import os
from collections import Counter
from dataclasses import dataclass
from typing import get_args

import msgspec
import pytest
from acp.schema import SessionNotification
from acp.utils import serialize_params
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from pydantic import BaseModel

from tenuto.api.approving import Allow, Deny, read_answer
from tenuto.frontend.acp import session as hosted
from tenuto.frontend.acp.calls import KINDS, Around, diff_content, kind_of, locations_of
from tenuto.frontend.acp.compaction import CompactionUpdate, wants_compactions
from tenuto.frontend.acp.permissions import answer_of, asked_call, offers
from tenuto.frontend.acp.session import WHOLE_BYTES, read_small_text
from tenuto.frontend.acp.updates import LIVE_CHARS, Told, updates_of
from tenuto.guard.secrets import Secrets
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol import event as events
from tenuto.protocol.entry import ShellEntry, TodoItem, TodoStatus
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DiffView, ToolResultMessage
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart, WebSearch, WebSource
from tenuto.protocol.usage import Usage
from tenuto.tool.edits.diff import diff_view
from tenuto.tool.edits.encoding import to_lf
from tenuto.tool.run.registry import ToolRegistry

S = {"session_id": "s"}
DIFF = DiffView(path="a.py", diff="@@ -1,2 +1,2 @@\n x\n-old\n+new\n@@ -9 +9,2 @@\n y\n+z", added=2, removed=1)
ENTRY = CompactionEntry(seq=7, summary="# Kept\n\nwhat was said", tokens_before=900, tokens_after=90, rung="model")
ANSWER = AssistantMessage(
    seq=2,
    parts=(
        ThinkingPart(text="hm"),
        TextPart(text="Look."),
        ToolCallPart(id="c", name="read", arguments='{"path": "a.py", "offset": 3}'),
    ),
)
RESULT = ToolResultMessage(seq=3, call_id="c", name="edit", parts=(TextPart(text="ok"),), ui=(DIFF,))

SAMPLES: list[tuple[events.AnyEvent, list[str]]] = [
    (events.SessionOpenedEvent(**S, cwd="/w", model="m", mode="ask"), []),
    (events.ReplayFinishedEvent(**S), []),
    (events.EarlierEntriesEvent(**S, remaining=1, before=2), []),
    (events.EarlierFoundEvent(**S, query="q", upto=1), []),
    (events.ModelChangedEvent(**S, model="m"), []),
    (events.ModeChangedEvent(**S, mode="plan"), ["current_mode_update"]),
    (events.TitleChangedEvent(**S, title="t"), ["session_info_update"]),
    (events.TodoChangedEvent(**S, items=(TodoItem(text="a"), TodoItem(text="b", status="cancelled"))), ["plan"]),
    (
        events.ContextUsageEvent(**S, tokens=5, window=10, trigger=8, estimated=True, total=Usage(cost=0.5)),
        ["usage_update"],
    ),
    (events.TaskStartedEvent(**S, kind="agent"), []),
    (events.TaskFinishedEvent(**S, kind="agent", outcome="completed"), []),
    (events.TaskSettledEvent(**S, outcome="completed"), []),
    (events.StepStartedEvent(**S, step=1), []),
    (events.UserMessageEvent(**S, seq=1, parts=(TextPart(text="hi"),)), []),
    (events.AssistantTextDeltaEvent(**S, text="a"), ["agent_message_chunk"]),
    (events.AssistantThinkingDeltaEvent(**S, text="a"), ["agent_thought_chunk"]),
    (events.ToolCallDeltaEvent(**S, index=0, name="bash", characters=3), []),
    (events.WebSearchEvent(**S, search=WebSearch(id="w", query="q")), ["tool_call"]),
    (events.AssistantWithdrawnEvent(**S, reason="overloaded"), []),
    (events.AssistantMessageEvent(**S, message=ANSWER), ["agent_thought_chunk", "agent_message_chunk", "tool_call"]),
    (events.ToolStartedEvent(**S, call_id="c", name="bash", arguments='{"command": "ls"}'), ["tool_call"]),
    (
        events.CallRefusedEvent(**S, call_id="c", name="bash", summary="ls", reason="no"),
        ["agent_message_chunk"],
    ),
    (events.ToolOutputEvent(**S, call_id="c", text="line\n"), ["tool_call_update"]),
    (events.ToolResultEvent(**S, message=RESULT), ["tool_call_update"]),
    (events.ApprovalRequestedEvent(**S, request_id="r", call_id="c", tool="bash", summary="ls", detail="ls"), []),
    (events.ApprovalResolvedEvent(**S, request_id="r", decision="once"), []),
    (events.ChildProgressEvent(**S, call_id="c", child="k", agent="general", steps=2), ["tool_call_update"]),
    (events.ChildEndedEvent(**S, call_id="c", child="k", agent="general", outcome="completed"), []),
    (events.ChildTranscriptEvent(**S, child="k", working=True), []),
    (events.HooksRunningEvent(**S, names=("x",)), []),
    (events.CommandProgressEvent(**S, text="12 of 30"), ["tool_call"]),
    (events.ExtensionStatusEvent(**S, extension="x", text="y"), []),
    (events.RetryEvent(**S, attempt=1, attempts=5, wait=2, reason="overloaded"), ["agent_message_chunk"]),
    (events.QueueChangedEvent(**S, items=()), []),
    (events.PromptReturnedEvent(**S, parts=(), reason="no room"), []),
    (events.NoticeEvent(**S, text="hear", level="warning"), ["agent_message_chunk"]),
    (events.ShellStartedEvent(**S, command="ls"), []),
    (events.ShellOutputEvent(**S, text="x"), []),
    (events.ShellFinishedEvent(**S, entry=ShellEntry(seq=4, command="ls", output="x")), []),
    (events.TrustWaitingEvent(**S, count=2), ["agent_message_chunk"]),
    (events.UndoneEvent(**S, seq=9, target=7), []),
    (events.CompactionStartEvent(**S, reason="manual"), ["compaction_update"]),
    (events.CompactionProgressEvent(**S, stage="summary"), []),
    (events.CompactionProposedEvent(**S, entry=ENTRY), []),
    (events.CompactionEndEvent(**S, reason="manual", entry=ENTRY), ["compaction_update"]),
]
AROUND = Around(cwd="/w", key="k", compactions=True)


def plain(update: object) -> dict:
    shown = serialize_params(update) if isinstance(update, BaseModel) else update
    return msgspec.json.decode(msgspec.json.encode(shown))


def tell(*told: events.AnyEvent, around: Around = AROUND, state: Told = Told()) -> list[dict]:  # noqa: B008
    out: list[dict] = []
    for event in told:
        updates, state = updates_of(event, state, around)
        out += map(plain, updates)
    return out


def test_there_is_a_sample_of_every_event():
    assert {type(event) for event, _ in SAMPLES} == set(get_args(events.AnyEvent))


@pytest.mark.parametrize(("event", "kinds"), SAMPLES, ids=[type(event).__name__ for event, _ in SAMPLES])
def test_every_event_is_told_in_the_words_of_the_protocol(event, kinds):
    told = tell(event)
    assert [update["sessionUpdate"] for update in told] == kinds
    for update in told:
        if not update["sessionUpdate"].startswith("compaction"):  # the package does not know those yet
            assert SessionNotification.model_validate({"sessionId": "s", "update": update})


def test_a_streamed_answer_is_not_told_again():
    told = tell(
        events.StepStartedEvent(**S, step=1),
        events.AssistantThinkingDeltaEvent(**S, text="hm"),
        events.AssistantTextDeltaEvent(**S, text="Lo"),
        events.AssistantTextDeltaEvent(**S, text="ok."),
        events.AssistantMessageEvent(**S, message=ANSWER),
    )
    assert [update["sessionUpdate"] for update in told] == [
        "agent_thought_chunk",
        "agent_message_chunk",
        "agent_message_chunk",
        "tool_call",
    ]
    assert "".join(u["content"]["text"] for u in told if u["sessionUpdate"] == "agent_message_chunk") == "Look."
    assert told[1]["messageId"] == told[2]["messageId"] != told[0]["messageId"]


def test_k4_how_far_a_command_is_is_a_call_that_counts_and_ends():
    progress = events.CommandProgressEvent
    told = tell(
        *(progress(**S, text=text) for text in ("Exporting, 1 of 3", "Exporting, 2 of 3", "", "Searching, 9", ""))
    )
    first, second = told[:3], told[3:]
    assert [update.get("title") for update in first] == ["Exporting, 1 of 3", "Exporting, 2 of 3", None]
    assert [update.get("status") for update in first] == ["in_progress", None, "completed"]
    assert [update.get("status") for update in second] == ["in_progress", "completed"]
    assert len({update["toolCallId"] for update in first}) == len({update["toolCallId"] for update in second}) == 1
    assert first[0]["toolCallId"] != second[0]["toolCallId"]


def test_answers_and_notices_are_messages_of_their_own():
    told = tell(
        events.StepStartedEvent(**S, step=1),
        events.AssistantTextDeltaEvent(**S, text="one"),
        events.NoticeEvent(**S, text="hear"),
        events.AssistantTextDeltaEvent(**S, text=" two"),
        events.AssistantMessageEvent(**S, message=ANSWER),
        events.StepStartedEvent(**S, step=2),
        events.AssistantTextDeltaEvent(**S, text="three"),
    )
    chunks = [update for update in told if update["sessionUpdate"] == "agent_message_chunk"]
    assert len({chunk["messageId"] for chunk in chunks}) == 4


@given(st.lists(st.sampled_from(["One.", "Two.\n", "\n"]), max_size=3), st.booleans())
def test_a_remark_begins_a_paragraph_for_clients_that_join_messages(pieces, is_streamed):
    answer = AssistantMessage(seq=1, parts=(TextPart(text="Whole."),))
    deltas = [events.AssistantTextDeltaEvent(**S, text=piece) for piece in pieces]
    before = deltas if is_streamed else [events.AssistantMessageEvent(**S, message=answer)]
    remark = events.NoticeEvent(**S, text="```\na table\n```")
    text = "".join(one["content"]["text"] for one in tell(*before, remark, remark))
    assert text.count("```\na table") == 2
    assert all(text[place - 1] == "\n" for place in range(1, len(text)) if text[place:].startswith("```"))


def test_what_was_withdrawn_is_said_to_not_count():
    told = tell(
        events.AssistantTextDeltaEvent(**S, text="half an ans"),
        events.AssistantWithdrawnEvent(**S, reason="overloaded"),
        events.AssistantTextDeltaEvent(**S, text="an answer"),
    )
    assert "does not count: overloaded" in told[1]["content"]["text"]
    assert told[2]["messageId"] != told[0]["messageId"]


def test_a_call_goes_from_pending_to_its_changes():
    told = tell(
        events.AssistantMessageEvent(**S, message=ANSWER),
        events.ToolStartedEvent(**S, call_id="c", name="read", arguments='{"path": "a.py"}', summary="a.py:3-"),
        events.ToolResultEvent(**S, message=RESULT),
    )[2:]
    assert [update.get("status") for update in told] == ["pending", "in_progress", "completed"]
    assert told[0]["locations"] == [{"path": "/w/a.py", "line": 3}]
    assert told[1]["title"] == "read a.py:3-"
    assert told[2]["content"] == [
        {"type": "diff", "path": "/w/a.py", "oldText": "x\nold\n", "newText": "x\nnew\n"},
        {"type": "diff", "path": "/w/a.py", "oldText": "y\n", "newText": "y\nz\n"},
    ]
    assert told[2]["locations"] == [{"path": "/w/a.py", "line": 2}]


@given(st.lists(st.text(max_size=3_000), min_size=1, max_size=8))
def test_live_output_is_its_end_and_bounded(pieces):
    told = tell(*(events.ToolOutputEvent(**S, call_id="c", text=piece) for piece in pieces))
    assert all(len(update["content"][0]["content"]["text"]) <= LIVE_CHARS for update in told)
    last = told[-1]["content"][0]["content"]["text"]
    assert last.isprintable() or "".join(pieces).endswith(last) or len(last) < len("".join(pieces))


def test_a_call_in_a_terminal_of_the_client_shows_that_and_not_its_text():
    state = Told(terminals={"c": "t1"})
    told = tell(
        events.ToolOutputEvent(**S, call_id="c", text="x"), events.ToolResultEvent(**S, message=RESULT), state=state
    )
    assert len(told) == 1 and told[0]["content"] == [{"type": "terminal", "terminalId": "t1"}]


def test_a_todo_list_is_a_plan_in_its_words():
    items = tuple(TodoItem(text=status, status=status) for status in get_args(TodoStatus))
    (plan,) = tell(events.TodoChangedEvent(**S, items=items))
    assert [(one["content"], one["status"]) for one in plan["entries"]] == [
        ("pending", "pending"),
        ("in_progress", "in_progress"),
        ("done", "completed"),
    ]


def question(**changes) -> events.ApprovalRequestedEvent:
    values = {"request_id": "r", "call_id": "c", "tool": "bash", "summary": "ls", "detail": "ls", **changes}
    return events.ApprovalRequestedEvent(**S, **values)


def test_a_question_of_a_server_has_its_own_answers_and_what_is_written_needs_a_form():
    answers = (events.OfferedAnswer(label="Red"), events.OfferedAnswer(label="Write it", writes=True))
    asked = question(kind="question", call_id="", tool="mcp", answers=answers)
    assert [one.name for one in offers(asked, asks_reasons=True)] == ["Red", "Write it"]
    (red,) = offers(asked, asks_reasons=False)
    assert (red.name, answer_of(red)) == ("Red", Allow(choice=0))
    written = offers(asked, asks_reasons=True)[1]
    assert answer_of(written, "blue") == Allow(choice=1, text="blue")
    assert asked_call(asked, AROUND).tool_call_id == "question-r" and asked_call(asked, AROUND).title == "ls"


def test_every_answer_of_the_screens_is_offered_and_nothing_is_allowed_by_putting_a_question_away():
    kinds = tuple(events.ApprovalKind(rules=(f"bash({name})",), covers=name) for name in ("ls", "ls *"))
    asked = question(kinds=kinds)
    offered = offers(asked, asks_reasons=True)
    assert len({one.id for one in offered}) == len(offered)
    operations = [read_answer(asked, answer_of(one, "why")) for one in offered]
    answered = [(one.decision, one.kind) for one in operations]
    assert answered == [
        ("once", 0),
        ("session", 0),
        ("session", 1),
        ("project", 0),
        ("project", 1),
        ("deny", 0),
        ("deny", 0),
    ]
    assert operations[-1].feedback == "why"
    assert answer_of(None) == Deny()
    plan = question(kind="plan", detail="# Plan")
    assert [read_answer(plan, answer_of(one)).mode for one in offers(plan, asks_reasons=False)] == [
        "edits",
        "ask",
        "auto",
        None,
    ]


def test_a_web_search_is_one_call():
    found = WebSearch(id="w", query="q", sources=(WebSource("http://x", "X"),), done=True)
    told = tell(
        events.WebSearchEvent(**S, search=WebSearch(id="w", query="q")), events.WebSearchEvent(**S, search=found)
    )
    assert [(one["sessionUpdate"], one["status"]) for one in told] == [
        ("tool_call", "in_progress"),
        ("tool_call_update", "completed"),
    ]
    assert "[X](http://x)" in told[1]["content"][0]["content"]["text"]


def test_a_replayed_conversation_has_the_users_words_and_images():
    around = Around(cwd="/w", key="k", load_image={"there": b"PNG"}.get)
    parts = (
        TextPart(text="hi"),
        ImagePart(sha256="there", media_type="image/png"),
        ImagePart(sha256="gone", media_type="image/png", name="b.png"),
    )
    told = tell(events.UserMessageEvent(**S, seq=1, parts=parts), around=around, state=Told(replays=True))
    assert [update["sessionUpdate"] for update in told] == ["user_message_chunk"] * 3
    assert told[1]["content"] == {
        "type": "image",
        "data": base64.b64encode(b"PNG").decode(),
        "mimeType": "image/png",
    }
    assert "b.png is not there any more" in told[2]["content"]["text"]


def test_what_the_client_has_seen_is_not_told_again_when_the_leaf_moves():
    message = events.AssistantMessageEvent(**S, message=ANSWER)
    opened = events.SessionOpenedEvent(**S, cwd="/w", model="m", mode="ask")
    assert not tell(opened, message)
    assert tell(opened, message, events.ReplayFinishedEvent(**S), message)


def test_nothing_that_a_terminal_would_obey_is_told():
    hostile = "\x1b]0;evil\x07\x1b[2Jtext"
    told = tell(
        events.AssistantTextDeltaEvent(**S, text=hostile),
        events.NoticeEvent(**S, text=hostile),
        events.ToolStartedEvent(**S, call_id="c", name="bash", arguments="{}", summary=hostile),
        events.ToolOutputEvent(**S, call_id="c", text=hostile),
        START,
        progress(1, hostile),
        events.CompactionEndEvent(**S, reason="manual", entry=CompactionEntry(seq=1, summary=hostile)),
    )
    assert "\x1b" not in str(told) and "\\x1b" not in str(told)


# --- compactions ---


def end(**changes) -> events.CompactionEndEvent:
    return events.CompactionEndEvent(**S, **{"reason": "manual", **changes})


START = events.CompactionStartEvent(**S, reason="threshold")


def progress(tokens: int, text: str = "") -> events.CompactionProgressEvent:
    return events.CompactionProgressEvent(**S, stage="summarising", summary_tokens=tokens, text=text or UNSET)


@dataclass
class Shown:
    """A compaction as a client has it that follows the protocol to the letter."""

    status: str = ""
    summary: str = ""
    error: str | None = None


def show(told: list[dict]) -> dict[str, Shown]:
    """Take updates as the protocol says: a summary replaces, nothing in it takes back, chunks only while it goes on."""
    timeline: dict[str, Shown] = {}
    for update in told:
        if update["sessionUpdate"] == "compaction_summary_chunk":
            assert timeline[update["compactionId"]].status == "in_progress"
            assert update["content"]["text"]
            timeline[update["compactionId"]].summary += update["content"]["text"]
        elif update["sessionUpdate"] == "compaction_update":
            one = timeline.setdefault(update["compactionId"], Shown())
            assert one.status in {"", "in_progress"}
            one.status = update["status"]
            if (summary := update.get("summary")) is not None:
                assert not summary or one.status == "completed"
                one.summary = "".join(block["text"] for block in summary)
            one.error = update.get("error")
            assert one.error is None or one.status == "failed"
    return timeline


def test_the_summary_is_told_while_it_is_written():
    pieces = [piece + "\n" for piece in ENTRY.summary.split("\n")]
    told = tell(START, progress(0), *(progress(number + 1, piece) for number, piece in enumerate(pieces)))
    assert [update["sessionUpdate"] for update in told] == ["compaction_update", *["compaction_summary_chunk"] * 3]
    assert [update["content"]["text"] for update in told[1:]] == pieces
    assert len({update["compactionId"] for update in told}) == 1


def test_the_end_says_nothing_twice():
    told = tell(START, progress(0), progress(1, ENTRY.summary), end(entry=ENTRY))
    assert told[-1] == {"sessionUpdate": "compaction_update", "compactionId": "k-compaction-1", "status": "completed"}


def test_a_summary_that_was_made_ahead_is_one_chunk():
    told = tell(START, progress(0), end(entry=ENTRY))
    assert [update["sessionUpdate"] for update in told[1:]] == ["compaction_summary_chunk", "compaction_update"]
    assert show(told)["k-compaction-1"] == Shown("completed", ENTRY.summary)


def test_what_a_second_attempt_replaces_is_taken_back_before_it_is_written():
    told = tell(START, progress(0), progress(2, "I will not"), progress(0), progress(1, "# Kept"))
    assert [show(told[:count])["k-compaction-1"].summary for count in range(1, 5)] == ["", "I will not", "", "# Kept"]


PIECES = st.lists(st.builds(progress, st.integers(0, 9), st.text(max_size=20)), max_size=12)
ENDS = [{"entry": ENTRY}, {"entry": ENTRY, "error": "still over"}, {"aborted": True}, {"error": "no model"}, {}]


@given(st.lists(st.tuples(PIECES, st.sampled_from(ENDS)), min_size=1, max_size=4))
def test_whatever_was_streamed_the_client_has_the_summary_that_is_kept(rounds):
    told = tell(*(one for pieces, ended in rounds for one in (START, *pieces, end(**ended))))
    shown = show(told)
    assert len(shown) == len(rounds)
    for one, (_pieces, ended) in zip(shown.values(), rounds, strict=True):
        assert one.status != "in_progress"
        assert one.summary == (ENTRY.summary if "entry" in ended else "")


def test_pieces_of_a_summary_are_nothing_to_a_client_that_does_not_ask_for_them():
    assert not tell(progress(1, "# Kept"), around=Around(cwd="/w", key="k"))
    branch = events.CompactionStartEvent(**S, reason="branch")
    assert not tell(branch, progress(1, "# Kept"))


def test_a_replayed_compaction_is_one_update_with_the_whole_summary():
    told = tell(end(entry=ENTRY), state=Told(replays=True))
    assert told == [
        {
            "sessionUpdate": "compaction_update",
            "compactionId": "k-compaction-1",
            "status": "completed",
            "summary": [{"type": "text", "text": ENTRY.summary}],
        }
    ]


@pytest.mark.parametrize(
    ("ended", "status", "error"),
    [
        (end(aborted=True), "cancelled", None),
        (end(error="no model"), "failed", "no model"),
        (end(error="nothing to do", needless=True), "failed", "nothing to do"),
        (end(), "failed", "it came to nothing"),
    ],
)
def test_a_compaction_that_wrote_nothing_says_so(ended, status, error):
    told = tell(START, ended)
    assert len(told) == 2 and told[1]["status"] == status and told[1].get("error") == error
    assert "summary" not in told[1]


def test_one_that_leaves_too_much_says_so_beside_it():
    told = tell(START, end(entry=ENTRY, error="still over its limit"))
    assert told[-1]["sessionUpdate"] == "agent_message_chunk" and "still over" in told[-1]["content"]["text"]


def test_a_client_that_does_not_ask_for_compactions_gets_words():
    around = Around(cwd="/w", key="k")
    told = tell(START, end(entry=ENTRY, tokens_before=900), START, end(error="no model"), around=around)
    assert {update["sessionUpdate"] for update in told} == {"agent_message_chunk"}
    assert "900" in told[1]["content"]["text"] and "no model" in told[3]["content"]["text"]


def test_notes_on_a_branch_are_no_compaction():
    told = tell(events.CompactionStartEvent(**S, reason="branch"), end(reason="branch", entry=ENTRY))
    assert [update["sessionUpdate"] for update in told] == ["agent_message_chunk"]


@pytest.mark.parametrize(
    ("capabilities", "wants"),
    [
        ({"session": {"compaction": {}}}, True),
        ({"session": {"compaction": None}}, False),
        ({"session": {}}, False),
        ({"session": None}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_compactions_go_to_clients_that_ask_for_them(capabilities, wants):
    assert wants_compactions({"clientCapabilities": capabilities}) is wants
    assert wants_compactions(None) is False


def test_the_shape_of_a_compaction_is_the_one_of_the_protocol():
    update = CompactionUpdate(session_update="compaction_update", compaction_id="c", status="failed", error="e")
    assert msgspec.json.encode(update) == (
        b'{"sessionUpdate":"compaction_update","compactionId":"c","status":"failed","error":"e"}'
    )


# --- calls ---


def test_every_built_in_tool_has_a_kind():
    named = {schema.name for family in ("", "gpt") for schema in ToolRegistry().schemas(family)}
    assert named <= set(KINDS)
    assert kind_of("mcp__x__y") == "other"


@given(st.sampled_from(sorted(KINDS)), st.text(max_size=60))
def test_locations_are_absolute_whatever_the_arguments_are(name, arguments):
    for text in (arguments, msgspec.json.encode({"path": arguments, "input": arguments, "offset": -1}).decode()):
        assert all(one.path.startswith("/") for one in locations_of(name, text, "/w"))


# --- changes ---

KINDS_OF_LINES = ["", "a", "b", "c", "\tdef f():", "é\r", "x\x1b[1my", "@@ -1 +1 @@", "-a", "\\ no"]
LINES = st.lists(st.sampled_from(KINDS_OF_LINES), max_size=14)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n", "\n\n"]))


def safe(text: str) -> str:
    return "\n".join(map(sanitize_for_terminal, to_lf(text).split("\n")))


def files(**texts: str) -> Around:
    return Around(cwd="/w", read_text={f"/w/{name}": text for name, text in texts.items()}.get)


@given(TEXTS, TEXTS, st.booleans())
def test_a_small_file_is_shown_whole_from_what_it_is_now(before, after, proposed):
    view = diff_view("a", before, after)
    (*shown,) = diff_content(view, files(a=before if proposed else after), proposed=proposed)
    if to_lf(before) == to_lf(after):
        assert all(one.old_text == one.new_text for one in shown)
    else:
        assert [(one.path, one.old_text, one.new_text) for one in shown] == [("/w/a", safe(before), safe(after))]


@given(TEXTS, TEXTS, TEXTS)
def test_what_is_shown_of_a_file_that_has_changed_again_is_still_this_change(before, after, later):
    view = diff_view("a", before, after)
    for one in diff_content(view, files(a=later)):
        old, new = Counter((one.old_text or "").split("\n")), Counter(one.new_text.split("\n"))
        assert (new - old).total() <= view.added + 1
        assert (old - new).total() <= view.removed + 1


def test_of_a_large_file_or_one_with_endless_lines_there_are_pieces():
    before = "".join(f"line {number}\n" for number in range(5_000))
    changed = before.replace("line 10\n", "ten\n").replace("line 4000\n", "4 k\n")
    (first, second) = diff_content(diff_view("a", before, changed), AROUND)
    assert first.new_text.count("\n") == second.new_text.count("\n") == 7
    wide = diff_view("a", "x" * 3_000, "y" * 3_000)
    (piece,) = diff_content(wide, files(a="y" * 3_000))
    assert len(piece.new_text) < 1_100
    cut = diff_view("a", "", before)  # its diff has only the first lines
    assert all(one.new_text.count("\n") < 5_000 for one in diff_content(cut, files(a=before)))


def test_a_moved_file_is_read_where_it_lies():
    view = msgspec.structs.replace(diff_view("new", "a\nb\n", "a\nc\n"), moved_from="old")
    for around, proposed in ((files(new="a\nc\n"), False), (files(old="a\nb\n"), True)):
        (shown,) = diff_content(view, around, proposed=proposed)
        assert (shown.path, shown.old_text, shown.new_text) == ("/w/new", "a\nb\n", "a\nc\n")


def test_only_small_regular_texts_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(hosted, "KNOWN", known := Secrets())
    known.learn("a key", "sk-known-to-be-secret-1")

    def written(data: bytes):
        (tmp_path / "a").write_bytes(data)
        return read_small_text(str(tmp_path / "a"))

    assert written("ä\n".encode()) == "ä\n" and written("\ufeffä".encode()) == "ä"
    assert written(b"x" * WHOLE_BYTES) and written(b"x" * (WHOLE_BYTES + 1)) is None
    assert written("ä".encode("latin-1")) is None and written(b"a\0b") is None
    assert "masked" in written(b"key = sk-known-to-be-secret-1\n")
    os.mkfifo(tmp_path / "pipe")
    assert [read_small_text(str(tmp_path / name)) for name in ("pipe", "gone", ".")] == [None] * 3
