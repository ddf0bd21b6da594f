"""Compactions in a real session: what the model is sent after one, after many, and after a restart."""

import itertools
from pathlib import Path

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.plan.plan import CompactionPlan, plan_compaction
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.view import SessionData
from tenuto.compaction.ways.rungs import propose_digest, propose_summary
from tenuto.protocol.entry import PinEntry, QueuedEntry, TodoEntry, TodoItem
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    FileUse,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart
from tenuto.session.session import Session
from tests.compaction.build import MODEL, SUMMARY, budget, gated, text, words


class Talk:
    """A session that talks, and is compacted the way the core does it."""

    def __init__(self, home: Path) -> None:
        self.session = Session.create(home, home, durability="none")
        self.session.append(SystemMessage(text="You are an agent. RULES-NONCE"))
        self._numbers = itertools.count()

    def turn(self, request: str, steps: int = 3, size: int = 1_200) -> None:
        self.session.append(UserMessage(parts=text(request)))
        for _ in range(steps):
            number = next(self._numbers)
            call = ToolCallPart(id=f"c{number}", name="edit", arguments=f'{{"path": "src/f{number}.py"}}')
            self.session.append(AssistantMessage(parts=(call,), model=MODEL, stop_reason="tool_use"))
            used = (FileUse(path=f"src/f{number}.py", op="edit"),)
            self.session.append(
                ToolResultMessage(
                    call_id=call.id, name="edit", parts=text(f"result {number} " + words(size)), files=used
                )
            )
        self.session.append(AssistantMessage(parts=text("done"), model=MODEL))

    def compact(self, *, summary: str = "") -> CompactionPlan:
        session, meter = self.session, Meter()
        plan = plan_compaction(
            session.path(),
            session.get_llm_history(),
            size=meter.measure(session, MODEL),
            budget=budget(),
            meter=meter,
            model_id=MODEL,
            tracker=session.state.files,
        )
        assert isinstance(plan, CompactionPlan), plan
        data = SessionData(pins=tuple(pin.text for pin in session.state.pins), todo=session.state.todo)
        if summary:
            outcome = propose_summary(plan, summary, data, Prompts(), None)
        else:
            outcome = propose_digest(plan, data, Prompts())
        proposal, flaw = gated(outcome, plan)
        assert flaw == ""
        session.append(proposal.to_entry("threshold"))
        return plan

    def reopened(self) -> Session:
        self.session.close()
        self.session = Session.open(self.session.directory, durability="none")
        return self.session


def test_the_view_is_system_summary_and_the_kept_tail(tmp_path):
    talk = Talk(tmp_path)
    for number in range(8):
        talk.turn(f"request {number}")
    plan = talk.compact(summary=SUMMARY)
    view = talk.session.get_llm_history()
    assert view[0].text == "You are an agent. RULES-NONCE"
    assert isinstance(view[1], SystemMessage)
    assert SUMMARY in view[1].text
    kept = [message.seq for message in view if message.seq >= plan.cut]
    assert kept == [entry.seq for entry in plan.kept]
    assert not any(isinstance(message, CompactionEntry) for message in view)
    talk.turn("and then")
    assert talk.session.get_llm_history()[: len(view)] == view, "what was sent stays as it was"
    talk.session.close()


def test_only_the_newest_of_several_compactions_counts_and_files_add_up(tmp_path):
    talk = Talk(tmp_path)
    for summary in ("## Goal\nFIRST NOTES", "## Goal\nSECOND NOTES"):
        for number in range(8):
            talk.turn(f"request {number}")
        talk.compact(summary=summary)
    view = talk.session.get_llm_history()
    assert "SECOND NOTES" in str(view)
    assert "FIRST NOTES" not in str(view)
    first, second = (entry for entry in talk.session.path() if isinstance(entry, CompactionEntry))
    assert set(first.details.modified_files) < set(second.details.modified_files)
    assert second.summary.count("<modified-files>") == 1
    talk.session.close()


def test_eleven_compactions_keep_rules_pins_todo_files_and_the_last_request(tmp_path):
    talk = Talk(tmp_path)
    talk.session.append(PinEntry(text="PIN-NONCE: never touch legacy/"))
    talk.turn("FIRST-REQUEST-NONCE")
    for round_number in range(11):
        items = (
            TodoItem(text=f"step {round_number}", status="in_progress"),
            TodoItem(text="CANCELLED-PLAN", status="cancelled"),
            TodoItem(text="FINISHED-PLAN", status="done"),
        )
        talk.session.append(TodoEntry(items=items))
        for number in range(5):
            talk.turn(f"request {round_number}.{number}")
        talk.compact()
        session = talk.reopened()
        size = Meter().measure(session, MODEL)
        assert size.tokens <= budget().target
        view = str(session.get_llm_history())
        assert view.count("RULES-NONCE") == 1
        assert view.count("PIN-NONCE: never touch legacy/") == 1
        assert view.count("CANCELLED-PLAN") == 1
        assert "[-] cancelled: CANCELLED-PLAN" in view
        assert f"step {round_number}" in view
        assert f"step {round_number - 1}\n" not in view
        assert "FIRST-REQUEST-NONCE" in view
        assert f"request {round_number}.4" in view
    newest = [entry for entry in talk.session.path() if isinstance(entry, CompactionEntry)][-1]
    assert len(newest.details.modified_files) > 100
    talk.session.close()


def test_r044_r045_queued_texts_are_untouched_and_never_in_the_replacement(tmp_path):
    talk = Talk(tmp_path)
    for number in range(8):
        talk.turn(f"request {number}")
    queued = talk.session.append(QueuedEntry(parts=text("QUEUED-NONCE")))
    talk.compact()
    assert talk.session.state.queue == (queued,)
    assert "QUEUED-NONCE" not in str(talk.session.get_llm_history())
    assert talk.reopened().state.queue == (queued,)
    talk.session.close()


def test_usage_from_before_the_compaction_never_triggers_again(tmp_path):
    from tenuto.compaction.measure.meter import should_compact_threshold
    from tenuto.config.settings import CompactionSettings
    from tenuto.protocol.usage import Usage

    talk = Talk(tmp_path)
    for number in range(8):
        talk.turn(f"request {number}")
    full = Usage(input=31_000, output=100)
    talk.session.append(AssistantMessage(parts=text("full"), model=MODEL, usage=full, estimate=31_000))
    assert should_compact_threshold(Meter().measure(talk.session, MODEL), budget(), CompactionSettings())
    talk.compact()
    for session in (talk.session, talk.reopened()):
        assert not should_compact_threshold(Meter().measure(session, MODEL), budget(), CompactionSettings())
    talk.session.close()
